"""Prefect flows round the plain functions of `flows.pipeline`: retries, logs and parameters, and nothing else.

The only file that imports prefect. A run has two tasks, whatever the number of exports: a Prefect server digests about
fifteen task runs a second, so work is never cut into one task per file.
"""

from pathlib import Path
from typing import Annotated, Any

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task
from pydantic import AfterValidator

from flows import config as configuration
from flows import pipeline
from flows.cli.terminal import clean
from flows.lease import BusyError
from warehouse.build import BuildReport
from warehouse.publish import BuildRunningError

RETRY_DELAYS_SECONDS = [10, 60, 300]
WAIT_SECONDS = 60.0  # for another writer, within one try


class RunFailedError(Exception):
    """The work was done as far as it could be; the message says what is missing."""


def _usable(path: Path) -> Path:
    """Return the path if a configuration can be read from it; the message of the error says what to change.

    Raises:
        ValueError: it cannot. Prefect shows it as a refused parameter, before any task starts.
    """
    try:
        return configuration.load(path).path
    except configuration.ConfigError as error:
        raise ValueError(str(error)) from None


ConfigFile = Annotated[Path, AfterValidator(_usable)]
DEFAULT = Path(configuration.FILE_NAME)  # a fixed name, looked up in the worker's folder when a run starts


def may_help_to_wait(error: object) -> bool:
    """Tell whether a later try may succeed: a file system that hiccups, or another process that writes just now."""
    return isinstance(error, OSError | BusyError | BuildRunningError)


def _retry(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    return may_help_to_wait(state.result(raise_on_failure=False))


_TASK: dict[str, Any] = {
    "retries": len(RETRY_DELAYS_SECONDS),
    "retry_delay_seconds": RETRY_DELAYS_SECONDS,
    "retry_condition_fn": _retry,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}


@task(name="ingest exports", **_TASK)
def ingest_exports(config: Path) -> pipeline.IngestReport:
    """Read what is new in the exports into the lake; bad lines and unknown formats are warnings."""
    log = get_run_logger()
    report = pipeline.ingest(configuration.load(config), wait_seconds=WAIT_SECONDS)
    log.info(
        "%d exports: %d lines read, %d used, %d ignored, %d rejected",
        len(report.exports), report.lines, report.used, report.ignored, report.rejected,
    )  # fmt: skip
    for export in report.unknown:
        log.warning("no format fits %s; its first line: %s", clean(export.path), clean(export.message))
    for export in report.failed:
        log.error("%s could not be read: %s", clean(export.path), clean(export.message))
    for note in report.notes:
        log.warning("%s", clean(note))
    return report


@task(name="build warehouse", **_TASK)
def build_warehouse(config: Path) -> BuildReport:
    """Build the marts from the lake, check them and publish them."""
    log = get_run_logger()
    report = pipeline.build(configuration.load(config), wait_seconds=WAIT_SECONDS)
    log.info(
        "build %s: %d tables, %d rows, %d interruptions, %.1f s",
        report.build_id, len(report.rows), sum(report.rows.values()), report.rows.get("marts.interruptions", 0),
        report.seconds,
    )  # fmt: skip
    if not report.published:
        names = ", ".join(clean(check) for check in report.failed_checks)
        raise RunFailedError(f"not published, the former build stays: these checks found bad rows: {names}")
    return report


@flow(name="ingest")
def ingest(config: ConfigFile = DEFAULT) -> None:
    """Read what is new in the exports into the lake.

    Args:
        config: path of goodput.toml, as the worker sees it.

    Raises:
        RunFailedError: an export could not be read as a whole; the others were.
    """
    _fail_if_unread(ingest_exports(config))


@flow(name="build")
def build(config: ConfigFile = DEFAULT) -> None:
    """Build the warehouse from the lake and publish it.

    Args:
        config: path of goodput.toml, as the worker sees it.

    Raises:
        RunFailedError: a check found bad rows; nothing was published.
    """
    build_warehouse(config)


@flow(name="run")
def run(config: ConfigFile = DEFAULT) -> None:
    """Read what is new, build, publish; like `goodput run`, an unreadable export fails the run after all else is published.

    Args:
        config: path of goodput.toml, as the worker sees it.

    Raises:
        RunFailedError: an export could not be read, or a check found bad rows.
    """
    report = ingest_exports(config)
    build_warehouse(config)
    _fail_if_unread(report)


def _fail_if_unread(report: pipeline.IngestReport) -> None:
    if report.failed:
        paths = ", ".join(clean(export.path) for export in report.failed)
        raise RunFailedError(f"{len(report.failed)} of {len(report.exports)} exports could not be read: {paths}")
