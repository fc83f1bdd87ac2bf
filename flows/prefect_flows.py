"""The Prefect flows, one for each deployment: parameters that are checked, the tasks, and events for what is to follow."""

import functools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar, cast

from prefect import flow
from prefect.states import Failed
from pydantic import AfterValidator, Field

from flows import config as configuration
from flows import pipeline, prefect_events
from flows import prefect_tasks as tasks
from flows.backfill import Reprocess
from flows.cli import periods
from flows.cli.terminal import CommandError, clean
from flows.cli.words import counted
from flows.prefect_tasks import RunFailedError
from warehouse.publish import NoWarehouseError

MAX_NAMED = 5
P = ParamSpec("P")
T = TypeVar("T")
TOLD = (RunFailedError, CommandError, NoWarehouseError, *(e for e in pipeline.EXPECTED if e is not OSError))
"""What is wrong outside the program, told in a sentence that says what to do."""


def _told(function: Callable[P, T]) -> Callable[P, T]:
    """Let a flow end as Failed with the sentence of an expected error, and without a traceback.

    Prefect logs what a flow raises, with its traceback; a state that is handed back it takes over as it is, and raises
    `RunFailedError`, which the state holds, to who called the flow. Not for tasks: there a state that is handed back is the
    value of the call, and the flow would go on.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except TOLD as error:
            text = clean(error)
            return cast("T", Failed(message=text, data=RunFailedError(text)))

    return run


class _Said(logging.Filter):
    """Keeps out what a process says of its run once more at its end, with a traceback of Prefect: the state says it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.exc_info, tuple) and isinstance(record.exc_info[1], RunFailedError))


logging.getLogger("prefect.flow_runs").addFilter(_Said())


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
Moment = Annotated[
    str,
    # A server checks patterns of parameters and not formats: another form is refused when a run is asked for, and a day
    # that no month has once the run begins.
    Field(
        pattern=r"^(\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?|\d+[smhdw])$",
    ),
]


@flow(name="ingest")
@_told
def ingest(config: ConfigFile = DEFAULT) -> None:
    """Pull what is due until the run's scheduled start, and read what is new in the exports into the lake.

    Args:
        config: path of goodput.toml, as the worker sees it.

    Raises:
        RunFailedError: an export could not be read as a whole, or a command failed; the others were read.
    """
    report = tasks.ingest_exports(config, prefect_events.scheduled_start())
    settings = configuration.load(config)
    # Also where this run read nothing: a former one may have been killed before it could say so.
    if pipeline.needs_build(settings):
        prefect_events.lake_changed(settings)
    problems = [
        *(f"{export.path}: {export.message}" for export in report.failed),
        *(f"{pull.source} {pull.window_start:%Y-%m-%dT%H:%M:%SZ}: {pull.message}" for pull in report.failed_pulls),
    ]
    if problems:
        raise RunFailedError(f"{len(problems)} could not be read, all else was: {_few(problems)}")


@flow(name="build")
@_told
def build(config: ConfigFile = DEFAULT) -> None:
    """Build the warehouse from the lake and publish it, if that would change anything.

    Args:
        config: path of goodput.toml, as the worker sees it.

    Raises:
        RunFailedError: a check found bad rows; nothing was published.
    """
    tasks.build_warehouse(config)


@flow(name="report")
@_told
def report(config: ConfigFile = DEFAULT) -> None:
    """Show stops, root causes, freshness, what changed and the last builds as artifacts, and tell of stale sources.

    Args:
        config: path of goodput.toml, as the worker sees it.
    """
    for source, text in tasks.write_artifacts(config):
        prefect_events.source_stale(configuration.load(config), source, text)


@flow(name="maintain")
@_told
def maintain(config: ConfigFile = DEFAULT) -> None:
    """Merge small parts of the lake, and remove superfluous files and old builds.

    Args:
        config: path of goodput.toml, as the worker sees it.
    """
    tasks.maintain_data(config)


@flow(name="backfill")
@_told
def backfill(
    start: Moment,
    end: Moment | None = None,
    config: ConfigFile = DEFAULT,
    sources: tuple[str, ...] = (),
    reprocess: Reprocess = "none",
    run_backwards: bool = False,
    max_active: Annotated[int, Field(ge=1, le=32)] = 2,
    build: bool = True,
) -> None:
    """Load what is missing between two times, window by window, then build.

    Args:
        start: first day or time, UTC: 2026-05-01 or 2026-05-01T06:00Z; or how long ago: 30d.
        end: last day, which is included, or a time, which is not; now if not given.
        config: path of goodput.toml, as the worker sees it.
        sources: names of the sources; none = all.
        reprocess: what is loaded besides what never was or is out of date: none, what failed, or all.
        run_backwards: newest windows first.
        max_active: how many commands run at once; loading is one at a time.
        build: build the warehouse in the end.

    Raises:
        RunFailedError: the period or a name is wrong, windows could not be loaded, or a check found bad rows.
    """
    first, last = periods.period(start, end)
    periods.check(configuration.load(config), sources, first, last)
    failed = tasks.backfill_windows(
        config, start=first, end=last, sources=sources, reprocess=reprocess, run_backwards=run_backwards,
        max_active=max_active,
    )  # fmt: skip
    if build:
        tasks.build_warehouse(config)
    if failed:
        raise RunFailedError(
            f"{counted(len(failed), 'window')} {'is' if len(failed) == 1 else 'are'} not loaded; `reprocess`: failed does these again: {_few(failed)}"
        )


def _few(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return "; ".join(clean(text) for text in texts[:MAX_NAMED]) + more
