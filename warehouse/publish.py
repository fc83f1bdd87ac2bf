"""Where builds lie and which one readers see: names, the lock, the switch, roll-back, and pruning."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from warehouse import spill

SUFFIX = ".duckdb"
UNFINISHED = ".part"
SPILL = ".spill"
WORK = "newest.work"
"""File beside the builds with the tables of the newest one that are not published: the next build goes on from it."""
STAMP = "%Y%m%dT%H%M%S%fZ"
ROLLED_BACK = ".rolled-back"
"""File beside the builds that says which build a rollback published, and instead of which."""


class NoWarehouseError(Exception):
    """Nothing has been published yet."""


class NoSuchBuildError(Exception):
    """A build that was asked for is not there."""


class BuildRunningError(Exception):
    """Another process is building into the same folder."""


@dataclass(frozen=True, slots=True)
class Build:
    """A finished build.

    Attributes:
        build_id: UTC time of its start with microseconds; sorts by time.
        path: its file.
        is_published: whether readers see it.
        size_bytes: size of the file.
    """

    build_id: str
    path: Path
    is_published: bool
    size_bytes: int


def link_of(data: Path) -> Path:
    """Return the path that readers open."""
    return data / f"warehouse{SUFFIX}"


def folder_of(data: Path) -> Path:
    """Return the folder that holds the builds."""
    return data / "builds"


def places(data: Path) -> list[Path]:
    """Return where the files of a data folder lie, links resolved: itself, and what of it links to elsewhere.

    Parts of it are often put on other volumes: the lake or one table of it, the builds, what commands printed.
    """
    parts = [data / name for name in ("lake", "builds", "landing", "quarantine", "manifest.sqlite")]
    below = list[Path]()
    for part in parts:
        with suppress(OSError):  # it is not there, is a file, or this user may not look into it, and so not write to it
            below += part.iterdir()
    found = {path.resolve() for path in (data, link_of(data), *parts, *below)}
    own = data.resolve()
    return [own, *sorted(path for path in found if not path.is_relative_to(own))]


def published(data: Path) -> Path:
    """Return the file of the published build.

    Raises:
        NoWarehouseError: nothing has been published.
    """
    return resolve(link_of(data))


def resolve(link: Path) -> Path:
    """Return the file behind `link`, or `link` itself where it is a build.

    Opened by its own name, since DuckDB takes a path that one process has open for the same database as before.

    Raises:
        NoWarehouseError: there is none.
    """
    if not link.exists():
        if kept := builds(link.parent):
            raise NoWarehouseError(
                f"no build is published at {link}, but {len(kept)} are kept: `goodput rollback {kept[-1].build_id}` publishes "
                "the newest of them, `goodput builds` lists them, `goodput build` makes a new one"
            )
        raise NoWarehouseError(f"no warehouse at {link} yet: run `goodput run` first")
    return link.resolve()


def builds(data: Path) -> list[Build]:
    """Return the finished builds, oldest first."""
    link = link_of(data)
    current = link.resolve() if link.exists() else None
    paths = sorted(folder_of(data).glob(f"*{SUFFIX}"))
    return [Build(p.stem, p, p.resolve() == current, p.stat().st_size) for p in paths]


def new_id(data: Path, started_at: datetime) -> str:
    """Return the id of a build started at `started_at` (UTC); later than every build there, so that ids sort by time."""
    moment = started_at.astimezone(UTC)
    for build in builds(data):
        with suppress(ValueError):  # a file that somebody else named
            there = datetime.strptime(build.build_id, STAMP).replace(tzinfo=UTC)
            moment = max(moment, there + timedelta(microseconds=1))  # the clock may have been set back
    return moment.strftime(STAMP)


@contextmanager
def lock(data: Path) -> Iterator[None]:
    """Hold the only right to build into `data`; it ends with the process, however that ends.

    Raises:
        BuildRunningError: another process holds it.
    """
    folder = folder_of(data)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            raise BuildRunningError(
                f"process {handle.read().strip() or '?'} is building into {folder}; wait until it ends"
            ) from None
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def remove_unfinished(data: Path) -> None:
    """Remove what killed builds left. The caller holds the lock."""
    for pattern in (f"*{UNFINISHED}*", f"{ROLLED_BACK}.*"):
        for path in folder_of(data).glob(pattern):
            path.unlink(missing_ok=True)
    for path in folder_of(data).glob(f"*{SPILL}"):
        shutil.rmtree(path, ignore_errors=True)
    for path in data.glob(f".warehouse{SUFFIX}.*"):
        path.unlink(missing_ok=True)
    spill.sweep(folder_of(data))


def work_of(data: Path) -> Path:
    """Return the file with the tables of the newest build that are not published."""
    return folder_of(data) / WORK


def former(data: Path) -> Path | None:
    """Return the newest build, if there is work that the next build may go on from.

    A log beside the work is what a killed checkpoint or somebody else left: then nobody knows what the work holds.
    """
    newest, work = next(reversed(builds(data)), None), work_of(data)
    return newest.path if newest and work.exists() and not _log_of(work).exists() else None


def replace_work(data: Path, work: Path) -> None:
    """Put the work of a build of everything in the place of that of the build before, and of what lies beside it."""
    _log_of(work_of(data)).unlink(missing_ok=True)
    work.replace(work_of(data))


def finish(unfinished: Path, final: Path) -> None:
    """Give a written and closed file its final name, read-only and safe on disk.

    Raises:
        RuntimeError: a write-ahead log lies beside it: it was not closed.
    """
    wal = _log_of(unfinished)
    if wal.exists():
        raise RuntimeError(f"{wal} was left behind: the build was not closed; it is not published")
    unfinished.chmod(0o444)
    _sync(unfinished)
    unfinished.rename(final)
    _sync(final.parent)


def switch(data: Path, build: Path) -> None:
    """Let new readers see `build`; open sessions keep theirs.

    A link is switched, not a file renamed over: a `.wal` left beside the old file would replay into the new one.
    """
    link = link_of(data)
    if link.exists() and not link.is_symlink():
        raise FileExistsError(f"{link} is a file, not the link this project makes: move it away")
    _forget_log(build)
    fresh = data / f".{link.name}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(build.relative_to(data))
    fresh.replace(link)
    _sync(data)


def rollback(data: Path, build_id: str) -> Path:
    """Publish a former build again, and note that this was meant; see `held_back`.

    Returns:
        its file.

    Raises:
        NoSuchBuildError: it is not kept; the message lists those that are.
    """
    kept = {b.build_id: b.path for b in builds(data)}
    if build_id not in kept:
        raise NoSuchBuildError(f"no build {build_id!r}; kept are: {', '.join(kept) or 'none'}")
    marker, newest = folder_of(data) / ROLLED_BACK, max(kept)
    if build_id == newest:
        marker.unlink(missing_ok=True)
    else:
        # Before the switch: a rollback that was killed is none, since the newest build is still the published one.
        unfinished = marker.with_name(f"{marker.name}.{os.getpid()}")
        unfinished.write_text(f"{build_id} {newest}\n", encoding="ascii")
        unfinished.replace(marker)
    switch(data, kept[build_id])
    return kept[build_id]


def held_back(data: Path) -> str | None:
    """Return the id of the newest build, if a rollback took it from the readers and that still holds; else None.

    What has been read since that build, not since the published one, is what a rollback gives way to: else the next
    build on a schedule would undo it with the same data. A newest build that is unpublished without a rollback was killed
    before it was published, and holds nothing.
    """
    try:
        published_id, newest = (folder_of(data) / ROLLED_BACK).read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    there = builds(data)
    is_meant = any(b.is_published and b.build_id == published_id for b in there)
    return newest if is_meant and there[-1].build_id == newest else None


def prune(data: Path, keep: int) -> list[str]:
    """Remove all but the newest `keep` builds; the published one always stays.

    Returns:
        ids of the removed builds.
    """
    old = builds(data)[:-keep] if keep > 0 else builds(data)
    removed = [b for b in old if not b.is_published]
    for build in removed:
        build.path.unlink()
        _forget_log(build.path)
    return [b.build_id for b in removed]


def _forget_log(build: Path) -> None:
    """Remove a write-ahead log beside a finished build: ours leave none, so it is what somebody tried to write there."""
    _log_of(build).unlink(missing_ok=True)


def _log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.wal")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
