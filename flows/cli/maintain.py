"""`goodput maintain`: housekeeping of the data folder."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.tables import say_table
from flows.cli.terminal import Steps, here, note, say, say_json, warn
from flows.cli.words import counted

if TYPE_CHECKING:
    from flows.maintaining import MaintainReport

_NARROW = (("reason", 20), ("file", 30), ("reason", 0))


def maintain(
    *,
    dry_run: Annotated[bool, Parameter(help="Only say what would be done.")] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Merge small files of the lake, and remove old builds and what nothing needs any more. No mart changes.

    That is: builds beyond `keep_builds`, outputs of commands that a later try
    replaced or that are older than `keep_landing`, what stands in quarantine
    for longer than `keep_quarantine`, and what killed runs left. The lake is
    kept for ever. May be stopped at any moment.
    """
    from flows import pipeline

    settings = facts.configuration(config)
    with facts.expected_errors(), Steps("maintaining the data folder") as steps:
        report = pipeline.maintain(
            settings, is_dry_run=dry_run, progress=steps.show, wait_seconds=facts.WAIT_SECONDS, on_wait=steps.wait_for
        )
    if json:
        say_json({**asdict(report), "bytes_freed": report.bytes_freed})
    else:
        _say(report)
    return 0


def _say(report: MaintainReport) -> None:
    rows = [
        {"kind": r.kind, "mb": round(r.size_bytes / 1e6, 3), "file": here(str(r.path)), "reason": r.reason}
        for r in report.removed
    ]
    if rows:
        say_table(rows, tuple(rows[0]), narrow=_NARROW)
    for text in report.notes:
        warn(text)
    merged = f"{counted(report.merged_parts, 'small file')} of the lake"
    into = "" if not report.merged_parts else f" into {report.merged_into:,}"
    removed = counted(len(report.removed), "file")
    if report.is_dry_run:
        say(f"would remove {removed} ({report.bytes_freed / 1e6:,.1f} MB) and merge {merged}{into}")
        note("nothing was changed; `goodput maintain` does it")
    else:
        say(f"removed {removed}, merged {merged}{into}; {report.bytes_freed / 1e6:,.1f} MB freed")
