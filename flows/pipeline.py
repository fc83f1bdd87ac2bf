"""Ingest exports into the lake, build the warehouse from it, or both: plain functions, without Prefect."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from flows import lease
from flows.batches import MAX_BYTES, Batch
from flows.catching_up import CatchingUp
from flows.config import Config
from flows.config_errors import ConfigError, Problem
from flows.ingesting import Ingester, Progress, jobs, unmatched
from flows.lease import BusyError, OnWait
from flows.maintaining import MaintainReport, maintain
from flows.manifest import Manifest, ManifestError, opened, opened_to_read
from flows.pulling import sweep
from flows.repair import lacking, losses, repair, repair_content
from flows.reports import ExportReport, IngestReport
from flows.secret_values import Secrets
from warehouse.inputs import Inputs

if TYPE_CHECKING:
    from warehouse.build import BuildReport

__all__ = [
    "EXPECTED",
    "BuildError",
    "BusyError",
    "ExportReport",
    "IngestReport",
    "MaintainReport",
    "ManifestError",
    "build",
    "ingest",
    "maintain",
    "needs_build",
    "run",
]

DISTRIBUTION = "goodput-warehouse"
_LACKING = (
    "nothing was built, what was published stays. Bring them back (is a volume not mounted?), or run `goodput ingest`, which "
    "reads their exports again, then `goodput build`"
)
_UNREAD = "nothing was built, what was published stays. Run `goodput run`, or `goodput ingest` and `goodput build`"
BuildProgress = Callable[[str, float], None]


class BuildError(Exception):
    """The warehouse could not be built; the former build stays published. The message says why."""


EXPECTED = (ConfigError, BusyError, ManifestError, BuildError, OSError)
"""What `ingest`, `build` and `run` raise with a message for people."""


def ingest(
    config: Config,
    *,
    until: datetime | None = None,
    progress: Progress | None = None,
    wait_seconds: float = 0.0,
    on_wait: OnWait | None = None,
    batch_bytes: int = MAX_BYTES,
    secrets: Secrets | None = None,
) -> IngestReport:
    """Ask every command for the windows that are due, then read what is new in the configured exports into the lake.

    May be killed at any moment: what was committed stays, the rest is read by the next ingest. A source that matches no
    file, or whose command fails, is an error of the report and keeps none of the others from being read. Others may write
    while commands run.

    Args:
        config: the configuration.
        until: commands are asked for windows that ended, with their `delay`, before this UTC time; None = now.
        progress: told bytes of files done, bytes of all files, and the path of each file, or window of each command, when
            it begins.
        wait_seconds: how long to wait for another writer.
        on_wait: told who that is, once the wait has lasted a second.
        batch_bytes: rows held in memory before they are written.
        secrets: returns the value of a secret that a command needs and the environment does not hold.

    Raises:
        BusyError: another process writes to the data folder.
        ManifestError: the manifest is damaged or missing.
        OSError: the data folder cannot be written, or the disk is full.
    """
    asked = _asked(config, until, progress, secrets)
    with lease.hold(config.data, "ingest", wait_seconds=wait_seconds, on_wait=on_wait):
        return _ingest(config, asked, progress, batch_bytes)


def build(
    config: Config,
    *,
    force: bool = False,
    progress: BuildProgress | None = None,
    wait_seconds: float = 0.0,
    on_wait: OnWait | None = None,
) -> BuildReport:
    """Build the warehouse from the lake, check it and publish it; do nothing where the newest build would be the same.

    Args:
        config: the configuration.
        force: build in any case.
        progress: told each finished step and its seconds.
        wait_seconds: how long to wait for another writer.
        on_wait: told who that is, once the wait has lasted a second.

    Raises:
        BusyError: another process writes to the data folder.
        ManifestError: the manifest is damaged or missing.
        BuildError: rows are lacking in the lake, parts of it cannot be read and were set aside, a model or check is wrong, or
            memory or spill space ran out.
    """
    with lease.hold(config.data, "build", wait_seconds=wait_seconds, on_wait=on_wait):
        return _build(config, progress, force=force)


def run(
    config: Config,
    *,
    until: datetime | None = None,
    progress: Progress | None = None,
    build_progress: BuildProgress | None = None,
    wait_seconds: float = 0.0,
    on_wait: OnWait | None = None,
    secrets: Secrets | None = None,
) -> tuple[IngestReport, BuildReport]:
    """Ingest, then build, without another writer between the two. Arguments and errors as of `ingest` and `build`."""
    asked = _asked(config, until, progress, secrets)
    with lease.hold(config.data, "run", wait_seconds=wait_seconds, on_wait=on_wait):
        return _ingest(config, asked, progress, MAX_BYTES), _build(config, build_progress)


def _asked(config: Config, until: datetime | None, progress: Progress | None, secrets: Secrets | None) -> CatchingUp:
    if not config.sources:
        text = "names no exports: add [[sources]] with a path, or let `goodput init PATHS...` write the file"
        raise ConfigError(config.path, [Problem(None, text)])
    return CatchingUp(config, until, progress, secrets).run()


def _ingest(config: Config, asked: CatchingUp, progress: Progress | None, batch_bytes: int) -> IngestReport:
    with opened(config.data) as manifest, ThreadPoolExecutor(1, "hash") as workers:
        asked.store(manifest)
        sweep(config)
        notes = [*asked.notes, *repair(config.data, manifest)]
        todo, empty = jobs(config)
        batch = Batch(config.data / "lake", manifest, max_bytes=batch_bytes)
        ingester = Ingester(config, manifest, batch, workers)
        sizes = [job.size for job in todo]
        done, total, reports = 0, sum(sizes), []
        for job, size in zip(todo, sizes, strict=True):
            if progress:
                progress(done, total, job.found.name)
            reports.append(ingester.ingest(job))
            done += size
            if batch.is_full:
                batch.commit()
        batch.commit()
        merged = batch.merge()
        notes += losses(config.data, manifest, batch)
    exports = (*reports, *unmatched(config, empty))
    return IngestReport(exports, tuple(notes), merged, asked.pulls)


def _build(config: Config, progress: BuildProgress | None, *, force: bool = False) -> BuildReport:
    from warehouse.build import BuildFailedError
    from warehouse.build import build as build_warehouse
    from warehouse.checks import CheckError
    from warehouse.publish import BuildRunningError
    from warehouse.runner import ModelError

    with opened(config.data) as manifest:
        if missing := lacking(config, manifest):
            raise BuildError(f"{missing}; {_LACKING}")
        repair(config.data, manifest)
        inputs = inputs_of(config, manifest)
    try:
        return build_warehouse(
            config.data,
            inputs,
            started_at=datetime.now(UTC),
            code_version=_code_version(),
            memory_limit=config.memory_limit,
            threads=config.threads,
            keep=config.keep_builds,
            force=force,
            progress=progress,
        )
    except BuildRunningError as error:
        raise BusyError(config.data, None) from error
    except (ModelError, BuildFailedError) as error:
        raise BuildError(_cause(config) or str(error)) from error
    except CheckError as error:
        raise BuildError(str(error)) from error


def _cause(config: Config) -> str | None:
    """Return what a build failed on where that is parts of the lake, which are set aside; None = it was something else."""
    try:
        with opened(config.data) as manifest:
            notes = repair_content(config.data, manifest)
    except (ManifestError, OSError):  # a full disk, say: what the build itself met tells more
        return None
    return "; ".join([*notes, _UNREAD]) if notes else None


def inputs_of(config: Config, manifest: Manifest) -> Inputs:
    """Return what a build reads: lake, pieces of exports, settings."""
    return Inputs(
        config.data / "lake",
        manifest.exports(),
        config.settings_rows(),
        manifest.part_batches(),
        manifest.batches(),
        manifest.content(),
    )


def lack(config: Config) -> str | None:
    """Return what the lake should hold and does not, though an ingest may bring it back; writes nothing.

    Raises:
        ManifestError: the manifest is damaged or missing.
    """
    with opened_to_read(config.data) as manifest:
        return None if manifest is None else lacking(config, manifest)


def needs_build(config: Config) -> bool:
    """Tell whether a build would hold something else than the newest one; writes nothing, and waits for nobody.

    Raises:
        ManifestError: the manifest is damaged or missing.
    """
    from warehouse.build import current
    from warehouse.fingerprint import fingerprint

    with opened_to_read(config.data) as manifest:
        if manifest is None:
            return False
        inputs = Inputs(config.data / "lake", settings=config.settings_rows(), content=manifest.content())
    return current(config.data, fingerprint(inputs, _code_version())) is None


def _code_version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"
