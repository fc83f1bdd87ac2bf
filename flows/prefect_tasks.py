"""The Prefect tasks: the plain functions with retries and logs round them.

A run has a task or two, whatever the number of exports: a Prefect server digests about fifteen task runs a second, so work is never
cut into one task per file. What was done stands in the data folder and not in Prefect's states: a run whose report of success is
lost has still loaded what it loaded, and the next one finds it done.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from logging import Logger, LoggerAdapter
from pathlib import Path
from typing import Any, TypeAlias

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from flows import backfill, config, lease, pipeline, prefect_artifacts, prefect_events, same_folder, summary
from flows.cli.terminal import clean
from flows.lease import Holder
from warehouse.build import BuildReport

RETRY_DELAYS_SECONDS = [10, 60]
WAIT_SECONDS = 3600.0
"""How long to wait for another writer; a scheduled ingest that waits for longer has a successor."""
LOCK_NAME = "ingest.lock"

Log: TypeAlias = Logger | LoggerAdapter[Any]


class RunFailedError(Exception):
    """The work was done as far as it could be; the message says what is missing."""


def may_help_to_wait(error: object) -> bool:
    """Tell whether a later try may succeed: a file system that hiccups. Another writer was waited for already."""
    return isinstance(error, OSError)


def _retry(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    return may_help_to_wait(state.result(raise_on_failure=False))


_TASK: dict[str, Any] = {
    "retries": len(RETRY_DELAYS_SECONDS),
    "retry_delay_seconds": RETRY_DELAYS_SECONDS,
    "retry_condition_fn": _retry,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}


def _settings(path: Path) -> config.Config:
    """Return the configuration, if its data folder is still the one that `goodput serve` began with.

    Raises:
        RunFailedError: it is not.
    """
    settings = config.load(path)
    try:
        same_folder.check(settings.data)
    except same_folder.OtherFolderError as error:
        raise RunFailedError(str(error)) from None
    return settings


def _waiting(log: Log) -> Callable[[Holder], None]:
    return lambda holder: log.warning("waiting for %s, which writes to the data folder", clean(holder))


@task(name="ingest exports", **_TASK)
def ingest_exports(path: Path, until: datetime) -> pipeline.IngestReport:
    """Pull what is due and read what is new into the lake; bad lines and unknown formats are warnings."""
    log, settings = get_run_logger(), _settings(path)
    waiting: dict[str, Any] = {"wait_seconds": WAIT_SECONDS, "on_wait": _waiting(log)}
    # After an outage several late runs begin at once. One at a time asks the commands, or two would ask for the same window.
    with lease.hold(settings.data, "ingest", name=LOCK_NAME, **waiting):
        report = pipeline.ingest(settings, until=until, secrets=prefect_events.secret, **waiting)
    _log_pulls(log, report)
    log.info(
        "%d exports: %d lines read, %d used, %d ignored, %d rejected",
        len(report.exports), report.lines, report.used, report.ignored, report.rejected,
    )  # fmt: skip
    for export in report.unknown:
        log.warning("no format fits %s; its first line: %s", clean(export.path), clean(export.message))
    for export in report.failed:
        log.error("%s could not be read: %s", clean(export.path), clean(export.message))
    _log_notes(log, report.notes)
    return report


@task(name="build warehouse", **_TASK)
def build_warehouse(path: Path) -> BuildReport:
    """Build the marts from the lake, check them and publish them; nothing where that would change nothing."""
    log = get_run_logger()
    report = pipeline.build(_settings(path), wait_seconds=WAIT_SECONDS, on_wait=_waiting(log))
    if report.is_current:
        log.info("build %s is up to date: nothing to do", report.build_id)
        return report
    log.info(
        "build %s: %d tables, %d rows, %d interruptions, %.1f s",
        report.build_id, len(report.rows), sum(report.rows.values()), report.rows.get("marts.interruptions", 0),
        report.seconds,
    )  # fmt: skip
    if not report.published:
        names = ", ".join(clean(check) for check in report.failed_checks)
        raise RunFailedError(f"not published, the former build stays: these checks found bad rows: {names}")
    return report


@task(name="write artifacts", **_TASK)
def write_artifacts(path: Path) -> list[tuple[str, str]]:
    """Show what the published build says; return the stale sources, each with what is to be said of it."""
    log, settings = get_run_logger(), _settings(path)
    sections = summary.summary(settings, now=datetime.now(UTC))
    keys = prefect_artifacts.write(sections, prefect_events.warehouse_id(settings))
    log.info("artifacts: %s", ", ".join(keys))
    stale = prefect_artifacts.stale(sections)
    for _, text in stale:
        log.warning("%s", text)
    return stale


@task(name="maintain", **_TASK)
def maintain_data(path: Path) -> pipeline.MaintainReport:
    """Tidy up lake, landing, manifest and builds."""
    log = get_run_logger()
    report = pipeline.maintain(_settings(path), wait_seconds=WAIT_SECONDS, on_wait=_waiting(log))
    log.info(
        "%d files removed, %d parts merged into %d, %.1f MB given back",
        len(report.removed), report.merged_parts, report.merged_into, report.bytes_freed / 1e6,
    )  # fmt: skip
    _log_notes(log, report.notes)
    return report


@task(name="backfill windows", **_TASK)
def backfill_windows(path: Path, **asked: Any) -> list[str]:
    """Load windows; return those that are not loaded, with the reason."""
    log, settings = get_run_logger(), _settings(path)
    bar = prefect_artifacts.Progress("backfill", prefect_events.warehouse_id(settings))

    def progress(done: int, total: int, _step: backfill.Step, outcome: backfill.Outcome | None) -> None:
        bar.show(done, total)
        if outcome is not None:
            log.info("%s %s: %s %s", clean(outcome.source), outcome.window, outcome.status, clean(outcome.message))

    report = backfill.carry_out(
        settings, **asked, build=False, secrets=prefect_events.secret, progress=progress,
        wait_seconds=WAIT_SECONDS, on_wait=_waiting(log),
    )  # fmt: skip
    log.info("%d windows worked on, %d not loaded", len(report.outcomes), len(report.failed))
    _log_notes(log, report.notes)
    return [clean(f"{one.source} {one.window}: {one.message}") for one in report.failed]


def _log_pulls(log: Log, report: pipeline.IngestReport) -> None:
    for pull in report.pulls:
        window = f"{pull.window_start:%Y-%m-%dT%H:%M:%SZ}/{pull.window_end:%Y-%m-%dT%H:%M:%SZ}"
        if pull in report.failed_pulls:
            log.error("%s %s: %s", clean(pull.source), window, clean(pull.message))
        else:
            log.info("%s %s: %s bytes pulled", clean(pull.source), window, pull.byte_length)


def _log_notes(log: Log, notes: list[str] | tuple[str, ...]) -> None:
    for note in notes:
        log.warning("%s", clean(note))
