"""Housekeeping of the data folder: small parts merged, what is superfluous removed. No mart changes through it.

Nothing is removed that only it can tell: parts of the lake go only where another holds their rows, an output of a command
only once its rows are in the lake. The lake itself is kept for ever: a record that is left out moves the verdicts near it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sqlite3 import OperationalError

from flows import lease
from flows.batches import Batch, mergeable
from flows.cli.words import counted
from flows.config import Config
from flows.lease import BusyError, OnWait
from flows.manifest import FILE_NAME, LOADED, FileState, Manifest, opened, opened_to_read
from flows.printed import left
from flows.repair import losses, repair
from transforms import lake
from warehouse import publish

TURN_SECONDS = 60.0
"""How long others are kept waiting at most, one merge more or less."""
BETWEEN_SECONDS = 0.5
MERGE_AT = 2
FRESH = timedelta(days=1)
"""What is younger may belong to work that is under way."""
FREE_PAGES_SHARE = 0.1
"""The manifest is written anew where more of it is empty."""

ORPHAN, LANDING, QUARANTINE, BUILD = "orphan of the lake", "output of a command", "quarantine", "build"


@dataclass(frozen=True, slots=True)
class Removed:
    """A file that was removed, or would be.

    Attributes:
        kind: what it was: one of the four kinds above.
        path: its path.
        size_bytes: its length.
        reason: why it may go.
    """

    kind: str
    path: Path
    size_bytes: int
    reason: str


@dataclass(slots=True)
class MaintainReport:
    """What a maintenance did, or would do.

    Attributes:
        removed: files that were removed.
        merged_parts: small parts of the lake that went.
        merged_into: parts that took their place.
        merged_bytes: bytes that those are fewer.
        manifest_bytes: bytes by which the manifest became smaller.
        notes: what should be known beside.
        is_dry_run: nothing was changed; what merging would save is not known.
    """

    removed: list[Removed] = field(default_factory=list)
    merged_parts: int = 0
    merged_into: int = 0
    merged_bytes: int = 0
    manifest_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    is_dry_run: bool = False

    @property
    def bytes_freed(self) -> int:
        """Bytes given back to the disk."""
        return sum(r.size_bytes for r in self.removed) + self.merged_bytes + self.manifest_bytes


def maintain(
    config: Config,
    *,
    is_dry_run: bool = False,
    now: datetime | None = None,
    progress: Callable[[str], None] | None = None,
    wait_seconds: float = 0.0,
    on_wait: OnWait | None = None,
    turn_seconds: float = TURN_SECONDS,
) -> MaintainReport:
    """Merge small parts of the lake, and remove superfluous files and old builds.

    May be killed at any moment: every merge is one commit, and a removed file is one that nothing needs. The writer's lease
    is given up between turns, so that nobody waits for the whole of it.

    Args:
        config: the configuration.
        is_dry_run: only say what would be done.
        now: UTC; None = the clock's.
        progress: told each step.
        wait_seconds: how long to wait for another writer.
        on_wait: told who that is, once the wait has lasted a second.
        turn_seconds: how long to merge until others get a turn.

    Raises:
        BusyError: another process writes to the data folder.
        ManifestError: the manifest is damaged or missing.
        OSError: the data folder cannot be written, or the disk is full.
    """
    moment, tell = now or datetime.now(UTC), progress or (lambda _: None)
    report = MaintainReport(is_dry_run=is_dry_run)
    if not (config.data / FILE_NAME).exists():
        report.notes.append("nothing was read yet")
        return report
    if is_dry_run:
        _foresee(config, moment, report)
        return report
    with lease.hold(config.data, "maintain", wait_seconds=wait_seconds, on_wait=on_wait):
        tell("removing what is superfluous")
        with opened(config.data) as manifest:
            _tidy(config, manifest, moment, report)
    while True:
        turn = lease.hold(config.data, "maintain", wait_seconds=wait_seconds, on_wait=on_wait)
        with turn, opened(config.data) as manifest:
            is_done = _merge(config, manifest, report, tell, turn_seconds)
            if is_done:
                _vacuum(config.data, manifest, report)
        if is_done:
            return report
        time.sleep(BETWEEN_SECONDS)  # the lock asks nobody who waited first


def _foresee(config: Config, now: datetime, report: MaintainReport) -> None:
    with opened_to_read(config.data) as manifest:
        if manifest is None:
            return
        found = superfluous(config, manifest, now, report.notes)
        report.removed = [*found, *unfinished_builds(config.data), *old_builds(config)]
        groups = mergeable(list(manifest.parts().values()), MERGE_AT)
        report.merged_parts, report.merged_into = sum(map(len, groups)), len(groups)


def _tidy(config: Config, manifest: Manifest, now: datetime, report: MaintainReport) -> None:
    for one in superfluous(config, manifest, now, report.notes):
        one.path.unlink(missing_ok=True)
        report.removed.append(one)
    report.notes += repair(config.data, manifest)
    for folder in ("lake", "quarantine"):
        _remove_empty_folders(config.data / folder)
    try:
        with publish.lock(config.data):
            report.removed += unfinished_builds(config.data)
            publish.remove_unfinished(config.data)
            old = {one.path.stem: one for one in old_builds(config)}
            report.removed += [old[build] for build in publish.prune(config.data, config.keep_builds)]
    except publish.BuildRunningError as error:
        raise BusyError(config.data, None) from error


def superfluous(config: Config, manifest: Manifest, now: datetime, notes: list[str]) -> Iterator[Removed]:
    """Yield the files that nothing needs any more; add to `notes` what is kept against the configuration, and why."""
    folder = config.data / "lake"
    for name in lake.orphans(folder, manifest.parts().keys()):
        yield from _one(ORPHAN, folder / name, "a killed run left it; no commit names it")
    yield from _landed(config, manifest, now)
    yield from _set_aside(config, manifest, now, notes)


def old_builds(config: Config) -> list[Removed]:
    """Return the builds beyond `keep_builds`, which the published one never is."""
    kept = publish.builds(config.data)
    old = kept[: -config.keep_builds] if config.keep_builds > 0 else kept
    reason = f"more than {config.keep_builds} builds (`keep_builds`)"
    return [Removed(BUILD, b.path, b.size_bytes, reason) for b in old if not b.is_published]


def unfinished_builds(data: Path) -> list[Removed]:
    """Return what killed builds left; while a build is under way, also what it writes."""
    found = sorted(publish.folder_of(data).glob(f"*{publish.UNFINISHED}*"))
    return [one for path in found for one in _one(BUILD, path, "a killed build left it")]


def _landed(config: Config, manifest: Manifest, now: datetime) -> Iterator[Removed]:
    """Yield outputs of commands that are unfinished, that a later try took the place of, or that are old.

    Of the finished ones the lake holds all rows.
    """
    for path in left(config.data):
        yield from _one(LANDING, path, "a killed command left it")
    keep = config.document.warehouse.keep_landing
    named = {path for (path,) in manifest.select("select path from pulls where path is not null")}
    for path in sorted((config.data / "landing").glob("*/*.zst")):
        age = now - datetime.fromtimestamp(path.lstat().st_mtime, UTC)
        if path.is_symlink() or age < FRESH or not _is_read(manifest, path):
            continue
        if str(path) not in named:
            yield from _one(LANDING, path, "a later try took its place, and its rows are in the lake")
        elif keep is not None and age.total_seconds() > keep:
            yield from _one(LANDING, path, "older than `keep_landing`, and its rows are in the lake")


def _is_read(manifest: Manifest, path: Path) -> bool:
    """Tell whether the lake holds all rows of a file as it is now."""
    pieces = manifest.pieces(str(path))
    is_loaded = bool(pieces) and all(p.status == LOADED and not p.is_lost for p in pieces)
    return is_loaded and manifest.file(str(path)) == FileState.of(str(path), path.stat())


def _set_aside(config: Config, manifest: Manifest, now: datetime, notes: list[str]) -> Iterator[Removed]:
    """Yield what stands in quarantine for too long, unless rows are missing that it may hold a rest of."""
    keep = config.document.warehouse.keep_quarantine
    found = [
        one
        for path in sorted((config.data / "quarantine").rglob("*"))
        if path.is_file() and now.timestamp() - max(path.lstat().st_mtime, path.lstat().st_ctime) > keep
        for one in _one(QUARANTINE, path, "older than `keep_quarantine`")
    ]
    ((lost,),) = manifest.select("select count(distinct path) from pieces where is_lost")
    if found and lost:
        notes.append(
            f"{counted(len(found), 'file')} {'stays' if len(found) == 1 else 'stay'} in quarantine: rows of {counted(lost, 'file')} "
            "were lost and not read again yet"
        )
        return
    yield from found


def _one(kind: str, path: Path, reason: str) -> Iterator[Removed]:
    with suppress(FileNotFoundError):
        yield Removed(kind, path, path.lstat().st_size, reason)


def _remove_empty_folders(folder: Path) -> None:
    """Remove the folders below `folder` that hold nothing."""
    for path, _, _ in os.walk(folder, topdown=False):
        if Path(path) != folder:
            with suppress(OSError):  # it holds something
                Path(path).rmdir()


def _merge(
    config: Config, manifest: Manifest, report: MaintainReport, tell: Callable[[str], None], turn_seconds: float
) -> bool:
    """Merge small parts for as long as a turn lasts; tell whether none are left."""
    until = time.monotonic() + turn_seconds
    batch = Batch(config.data / "lake", manifest)
    while groups := mergeable(list(manifest.parts().values()), MERGE_AT):
        for group in groups:
            tell(f"merging small parts of {group[0].folder}")
            went, merged = batch.merge_group(group)
            if merged is not None:
                report.merged_parts += len(went)
                report.merged_into += 1
                report.merged_bytes += sum(p.size_bytes for p in went) - merged.size_bytes
            if time.monotonic() >= until:
                report.notes += losses(config.data, manifest, batch)
                return False
    report.notes += losses(config.data, manifest, batch)
    return True


def _vacuum(data: Path, manifest: Manifest, report: MaintainReport) -> None:
    """Write the manifest anew without its empty pages, where they are many and nobody else reads it just now."""
    ((pages,),), ((free,),) = manifest.select("pragma page_count"), manifest.select("pragma freelist_count")
    if free <= FREE_PAGES_SHARE * pages:
        return
    before = (data / FILE_NAME).stat().st_size
    try:
        manifest.vacuum()
    except OperationalError as error:
        report.notes.append(f"the manifest was not made smaller ({error}); the next maintenance tries again")
        return
    report.manifest_bytes = before - (data / FILE_NAME).stat().st_size
