"""Find files that lie beside the exports and look like one, and that no source matches: a kind that was added later."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from flows.config import FILE_NAME as CONFIG
from flows.config import Config
from flows.ingesting import Job, is_own
from flows.landing import plain_folder, real_path
from flows.manifest import FILE_NAME as MANIFEST

MOST_SEEN = 10_000
"""Folders, and files that no source matches, that are come across at most: exports may lie beside anything."""
MOST_OPENED = 500
_LEAST_DEPTH = 3
"""`/srv/exports` may be looked through beside its children, `/srv` and `/` may not."""
_OF_THE_SYSTEM = frozenset(map(Path, ("/", "/var/log", "/var/log/journal")))
"""Folders that are no one's exports: what a source reads there lies among much that it leaves out on purpose."""
_UNFINISHED = ("~", ".tmp", ".part", ".partial", ".swp")


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies beside the exports.

    Attributes:
        files: files that look like an export, by path, with the formats that know their first lines.
        roots: the folders that were looked through and hold such files.
        is_whole: everything was looked at; False = there are too many files.
    """

    files: tuple[tuple[Path, tuple[str, ...]], ...]
    roots: tuple[Path, ...]
    is_whole: bool


def beside(config: Config, matched: Iterable[Job]) -> Beside:
    """Return the files in the folders of the path sources that look like an export and are none of `matched`.

    Links to folders are not followed. Passed over are names that begin with a dot, as patterns pass over them, names of
    unfinished files, data folders, and folders with a configuration of their own.

    Args:
        config: the configuration.
        matched: every file that a source matches.
    """
    paths = [job.found.path for job in matched]
    real, own = set(map(real_path, paths)), is_own(config)
    roots, walk = folders(config), _Walk(real.union(map(str, paths)))
    others = (p for p in walk.files(roots) if (target := real_path(p)) not in real and not own(target))
    found = tuple((p, formats) for p in islice(others, MOST_OPENED) if (formats := _formats(p)))
    is_whole = next(others, None) is None and walk.is_whole
    return Beside(found, tuple(r for r in roots if any(r in path.parents for path, _ in found)), is_whole)


def folders(config: Config) -> list[Path]:
    """Return the folders to look through, none inside another: those that path sources stand in, and some above them.

    The folder above is where the next kind will be put if it lies inside the configuration's own, or if several sources
    have their folders in it.
    """
    bases = {_without_dots(plain_folder(s.path)) for s in config.sources if not s.command} - _OF_THE_SYSTEM
    siblings = Counter(base.parent for base in bases)
    above = [p for p, n in siblings.items() if _may_look(p) and (n > 1 or config.base in p.parents)]
    every = sorted({*bases, *above})
    return [folder for folder in every if not any(other in folder.parents for other in every)]


def _without_dots(folder: Path) -> Path:
    """Return a folder by a name that tells what it lies in: `/srv/goodput/../exports` does not lie in `/srv/goodput`."""
    return Path(real_path(folder)) if ".." in folder.parts else folder


def _may_look(folder: Path) -> bool:
    return len(folder.parts) >= _LEAST_DEPTH and folder not in _OF_THE_SYSTEM and not _holds(folder, MANIFEST)


def _is_others(folder: Path) -> bool:
    """Tell whether a folder is a data folder, or another configuration's, such as that of a demo."""
    return _holds(folder, MANIFEST) or _holds(folder, CONFIG)


def _holds(folder: Path, name: str) -> bool:
    return os.path.lexists(folder / name)  # False too where this user may not look


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads in a circle, or where this user may not look
        return False


class _Walk:
    """Goes through folders, files before folders, and gives up after `MOST_SEEN`."""

    def __init__(self, taken: set[str]) -> None:
        self._taken, self._left = taken, MOST_SEEN
        self.is_whole = True

    def files(self, folders: Iterable[Path]) -> Iterator[Path]:
        """Yield the regular files in and below these folders whose paths are not taken."""
        waiting = [*folders][::-1]
        while waiting and self.is_whole:
            below = []
            for entry in self._entries(waiting.pop()):
                if entry.is_dir(follow_symlinks=False):
                    if not _is_others(Path(entry.path)):
                        below.append(Path(entry.path))
                elif _is_file(entry):
                    yield Path(entry.path)
            waiting += below[::-1]

    def _entries(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        """Yield what a folder holds, sorted; one that cannot be listed, or is gone, holds nothing that could be told."""
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda e: e.name)
        except OSError:
            return
        for entry in entries:
            if entry.path in self._taken or entry.name.startswith(".") or entry.name.endswith(_UNFINISHED):
                continue
            if self._left == 0:
                self.is_whole = False
                return
            self._left -= 1
            yield entry


def _formats(path: Path) -> tuple[str, ...]:
    """Return the formats that know the first lines of a file; none where it cannot be read."""
    from transforms.registry import sniff
    from transforms.stream import HEAD_BYTES, opened

    try:
        with path.open("rb") as raw:
            return tuple(s.name for s in sniff(opened(raw).read(HEAD_BYTES)))
    except Exception:  # noqa: BLE001 - decompressors raise errors of many kinds
        return ()
