"""`goodput ingest`: read what is new in the exports into the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.cli import facts, landed
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import Steps, fail, here, say, say_json, warn
from flows.cli.words import counted

if TYPE_CHECKING:
    from flows.pipeline import IngestReport

MAX_LISTED = 20


def ingest(*, json: JsonOption = False, config: ConfigOption = None) -> int:
    """Read what is new in the exports. Bad lines are kept and counted, bad exports fail alone, loudly."""
    report = ingested(facts.configuration(config))
    if json:
        say_json(as_json(report))
    else:
        say_ingest(report)
    warn_ingest(report)
    return 1 if report.failed else 0


def ingested(settings: facts.Config) -> IngestReport:
    """Ingest, showing progress.

    Raises:
        CommandError: it cannot be done; the message says what to do.
    """
    from flows import pipeline

    with facts.expected_errors(), Steps("reading exports") as steps:
        return pipeline.ingest(
            settings, progress=steps.show_bytes, wait_seconds=facts.WAIT_SECONDS, on_wait=steps.wait_for
        )


def say_ingest(report: IngestReport) -> None:
    """Print what was read, in one line."""
    rejected = f"{report.rejected:,} rejected"
    read = [e for e in report.exports if e.lines]
    say(
        f"read {len(read)} of {counted(len(report.exports), 'export')}, {counted(report.lines, 'line')}: {report.used:,} used, "
        f"{report.ignored:,} ignored by rule, {rejected}"
    )


def warn_ingest(report: IngestReport) -> None:
    """Print what went wrong, and what to do about it."""
    for text in report.notes:
        warn(text)
    for export in report.unknown[:MAX_LISTED]:
        warn(f"{here(export.path)}: {landed.unknown_format(export.message)}")
    for export in report.failed[:MAX_LISTED]:
        fail(f"{here(export.path)}: {export.message}")
    for export in [e for e in report.exports if e.rejected][:MAX_LISTED]:
        rejected = counted(export.rejected, "line")
        warn(f'{here(export.path)}: {rejected} rejected; `goodput sql "from ops.rejects"` says why')
    listed = (report.unknown, report.failed, [e for e in report.exports if e.rejected])
    if hidden := sum(max(len(kind) - MAX_LISTED, 0) for kind in listed):
        warn(f"and {hidden} more; `goodput check` lists all")


def as_json(report: IngestReport) -> dict[str, object]:
    """Return plain values."""
    return {
        "lines": report.lines,
        "used": report.used,
        "ignored": report.ignored,
        "rejected": report.rejected,
        "exports": [
            {
                name: getattr(e, name)
                for name in (
                    "path",
                    "source",
                    "status",
                    "lines",
                    "used",
                    "ignored",
                    "rejected",
                    "ignored_by",
                    "message",
                )
            }
            for e in report.exports
        ],
        "notes": list(report.notes),
    }
