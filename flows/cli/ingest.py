"""`goodput ingest`: read what is new in the exports into the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.cli import facts, landed, pulls
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import Steps, fail, here, say, say_json, warn
from flows.cli.words import counted

if TYPE_CHECKING:
    from flows.pipeline import IngestReport

MAX_LISTED = 20


def ingest(*, json: JsonOption = False, config: ConfigOption = None) -> int:
    """Ask commands for what is due, and read what is new in the exports.

    Bad lines are kept and counted; bad exports and commands fail alone, loudly.
    """
    report = ingested(facts.configuration(config))
    if json:
        say_json(as_json(report))
    else:
        say_ingest(report)
    warn_ingest(report)
    return 0 if report.is_complete else 1


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
    """Print what was pulled and read, in a line each."""
    if report.pulls:
        loaded = [p for p in report.pulls if p.status == "loaded"]
        sources = counted(len({p.source for p in report.pulls}), "command")
        say(
            f"asked {sources} for {counted(len(report.pulls), 'window')}: {len(loaded):,} loaded, "
            f"{len(report.failed_pulls):,} failed"
        )
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
    failures = pulls.failures(report.failed_pulls)
    for failure in failures[:MAX_LISTED]:
        fail(failure)
    for pull in [p for p in report.pulls if p.status == "loaded" and p.message][:MAX_LISTED]:
        warn(f"{pull.source} {pulls.window_of(pull)}: {pull.message}")
    for export in report.unknown[:MAX_LISTED]:
        warn(f"{here(export.path)}: {landed.unknown_format(export.message)}")
    for export in report.failed[:MAX_LISTED]:
        fail(f"{here(export.path)}: {export.message}")
    for export in [e for e in report.exports if e.rejected][:MAX_LISTED]:
        rejected = counted(export.rejected, "line")
        warn(f'{here(export.path)}: {rejected} rejected; `goodput sql "from ops.rejects"` says why')
    if again := pulls.unreadable([*report.unknown, *report.failed]):
        warn(again)
    listed = (failures, report.unknown, report.failed, [e for e in report.exports if e.rejected])
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
        "pulls": [
            {
                name: getattr(p, name)
                for name in (
                    "source",
                    "window_start",
                    "window_end",
                    "status",
                    "pulled_at",
                    "tries",
                    "path",
                    "byte_length",
                    "message",
                )
            }
            for p in report.pulls
        ],
        "notes": list(report.notes),
    }
