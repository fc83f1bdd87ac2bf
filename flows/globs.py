"""Find few globs for many files, none of which matches a file it should not."""

from __future__ import annotations

import glob
import os.path
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

MIN_PREFIX = 3


def grouped(paths: Iterable[Path], everything: Iterable[Path]) -> list[tuple[str, int]]:
    """Return globs, each with how many of `paths` it matches, that match all of `paths` and nothing else of `everything`.

    Files of one folder are put together first, then the same globs in sibling folders. A file that fits no common
    glob stands by its own name. No file is matched twice.
    """
    wanted = set(paths)
    everything = set(everything)
    others = everything - wanted
    by_folder: dict[Path, set[str]] = {}
    for path in wanted:
        by_folder.setdefault(path.parent, set()).add(path.name)
    found: dict[str, dict[Path, int]] = {}
    for folder, names in by_folder.items():
        siblings = {p.name for p in others if p.parent == folder}
        for pattern, count in _in_folder(names, siblings):
            found.setdefault(pattern, {})[folder] = count
    return sorted(entry for pattern, folders in found.items() for entry in _over_folders(pattern, folders, everything))


def _in_folder(names: set[str], others: set[str]) -> Iterator[tuple[str, int]]:
    """Yield globs over the names in one folder."""
    left = set(names)
    while left:
        first = min(left)
        taken = others | (names - left)
        options = [p for p in _candidates(first, left) if not any(fnmatchcase(t, p) for t in taken)]
        best = max(options, key=lambda p: sum(fnmatchcase(n, p) for n in left), default=glob.escape(first))
        matched = {n for n in left if fnmatchcase(n, best)}
        yield (best, len(matched)) if len(matched) > 1 else (glob.escape(first), 1)
        left -= matched if len(matched) > 1 else {first}


def _candidates(name: str, names: set[str]) -> Iterator[str]:
    """Yield globs for `name` and others like it: same suffix, same beginning, same but for numbers."""
    suffix = glob.escape("".join(Path(name).suffixes[-2:]))
    stem = re.match(r"[^\W\d_]*", name)
    if len(names) > 1 and suffix:
        yield f"*{suffix}"
    if stem and len(stem[0]) >= MIN_PREFIX:
        yield f"{glob.escape(stem[0])}*{suffix}"
    if stem and len(stem[0]) >= MIN_PREFIX and not suffix:
        yield f"{glob.escape(stem[0])}*"
    yield re.sub(r"\d+", "*", glob.escape(name))


def _over_folders(pattern: str, folders: dict[Path, int], everything: set[Path]) -> Iterator[tuple[str, int]]:
    """Put the same glob in sibling folders together, where that matches nothing else."""
    by_parent: dict[Path, list[Path]] = {}
    for folder in folders:
        by_parent.setdefault(folder.parent, []).append(folder)
    for parent, children in by_parent.items():
        cousins = {p.parent for p in everything if p.parent.parent == parent and fnmatchcase(p.name, pattern)}
        if len(children) > 1 and cousins <= set(children):
            yield os.path.join(glob.escape(str(parent)), "*", pattern), sum(folders[c] for c in children)  # noqa: PTH118 - a pattern, no path
        else:
            for child in children:
                yield os.path.join(glob.escape(str(child)), pattern), folders[child]  # noqa: PTH118
