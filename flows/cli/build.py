"""`goodput build`: make the marts from the lake, check and publish them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import Steps, fail, note, say, say_json
from flows.cli.words import counted

if TYPE_CHECKING:
    from warehouse.build import BuildReport


def build(
    *,
    force: Annotated[bool, Parameter(help="Build even if nothing has changed since the newest build.")] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Build the marts from what was ingested, check them, and publish them. Readers are never held up."""
    report = built(facts.configuration(config), force=force)
    if json:
        say_json(as_json(report))
    else:
        say_build(report)
    fail_checks(report)
    return 0 if report.published or report.is_current else 1


def built(settings: facts.Config, *, force: bool = False, wait_seconds: float = facts.WAIT_SECONDS) -> BuildReport:
    """Build, showing progress.

    Raises:
        CommandError: it cannot be done; the message says what to do.
    """
    from flows import pipeline

    with facts.expected_errors(), Steps("building the marts") as steps:
        return pipeline.build(
            settings,
            force=force,
            progress=lambda step, _seconds: steps.show(step),
            wait_seconds=wait_seconds,
            on_wait=steps.wait_for,
        )


def say_build(report: BuildReport) -> None:
    """Print what was built, in one line."""
    if report.is_current:
        rolled = (
            "" if report.published else "; readers see the one rolled back to, `goodput build --force` publishes anew"
        )
        say(f"nothing to build: no record, setting or rule has changed since build {report.build_id}{rolled}")
        return
    marts = {name.partition(".")[2]: rows for name, rows in report.rows.items() if name.startswith("marts.")}
    what = f"{counted(len(marts), 'mart')}, " + ", ".join(
        counted(marts.get(f"{thing}s", 0), thing) for thing in ("attempt", "interruption")
    )
    if report.published:
        new = " from what is new" if report.made_from else ""
        say(f"built {report.build_id} in {report.seconds:.1f} s{new}: {what}; every check passed, published")
        if report.fell_back:
            note(f"all of it was made anew, the build before could not be gone on from: {report.fell_back}")
    else:
        say(f"built {report.build_id} in {report.seconds:.1f} s: {what}; not published")


def fail_checks(report: BuildReport) -> None:
    """Print the checks that failed."""
    for check in report.failed_checks:
        fail(f"check {check}")
    if report.failed_checks:
        fail(
            "nothing was published, readers still see the build before. The rows above break a rule that must hold: look at the "
            "jobs or nodes they name in your exports, then report them with this message"
        )


def as_json(report: BuildReport) -> dict[str, object]:
    """Return plain values."""
    return {
        "build_id": report.build_id,
        "published": report.published,
        "is_current": report.is_current,
        "made_from": report.made_from,
        "fell_back": report.fell_back,
        "seconds": report.seconds,
        "rows": report.rows,
        "failed_checks": [
            {"name": c.name, "rule": c.rule, "count": c.count, "rows": list(c.rows)} for c in report.failed_checks
        ],
    }
