"""Say where a pattern that matches nothing stops to match, and which existing path was probably meant."""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_CAPTURE = re.compile(r"\{\w+\}")
_SHOWN = 5
_MAX_FOLDERS = 10_000


def nearest(pattern: str, base: Path) -> str:
    """Return what is nearest to a pattern that matches no file, as a sentence.

    Args:
        pattern: absolute path or glob, with captures.
        base: folder that paths are shown relative to.
    """
    first, *parts = Path(pattern).parts
    folders = [Path(first)]
    for i, part in enumerate(parts):
        is_last = i == len(parts) - 1
        if part == "**":
            if is_last:
                return f"there is no file below {_shown(folders[0], base)}"
            folders = list(_below(folders))
            continue
        inside = [child for folder in folders for child in _children(folder)]
        name = _CAPTURE.sub("*", part)
        fitting = [child for child in inside if fnmatch.fnmatchcase(child.name, name)]
        if is_last and fitting:
            return f"{_shown(fitting[0], base)} is a folder; end the path with /* or /** to read what is in it"
        folders_below = [child for child in fitting if child.is_dir()]
        if not folders_below:
            where = inside if is_last else [c for c in inside if c.is_dir()]
            return _sentence([part, *parts[i + 1 :]], folders, where, base)
        folders = folders_below
    return "nothing is there"


def _sentence(parts: list[str], folders: list[Path], inside: list[Path], base: Path) -> str:
    """Say what stands where the first of `parts` should."""
    wanted = re.sub(r"[*?]+", "", re.sub(r"\[(.)\]", r"\1", _CAPTURE.sub("", parts[0]))).lower()
    names = {child.name.lower(): child for child in sorted(inside, reverse=True)}
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {_shown(names[close[0]].joinpath(*parts[1:]), base)}?"
    where = "the configuration's folder" if folders[0] == base else _shown(folders[0], base)
    if not inside:
        return f"{where} is empty"
    where += " with what is below it" if len(folders) > 1 else ""
    some = ", ".join(child.name for child in sorted(inside)[:_SHOWN])
    return f"{where} holds {some}{', ...' if len(inside) > _SHOWN else ''}"


def _below(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield folders and those below them, not through links."""
    count = 0
    for folder in folders:
        for path, names, _ in os.walk(folder):
            names[:] = sorted(n for n in names if not n.startswith("."))
            yield Path(path)
            count += 1
            if count >= _MAX_FOLDERS:
                return


def _children(folder: Path) -> list[Path]:
    try:
        return [p for p in folder.iterdir() if not p.name.startswith(".")]
    except OSError:
        return []


def _shown(path: Path, base: Path) -> str:
    return os.path.relpath(path, base)
