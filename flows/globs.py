"""Find few patterns for many files, none of which matches a file it should not, and that match tomorrow's files too."""

from __future__ import annotations

import glob
import os.path
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from flows.globs_names import STAMP, Names
from flows.landing import BadStampError, expression, stamp_utc

MIN_PREFIX = 3
_CAPTURE = re.compile(r"\{\w+\}")
_TAIL = re.compile(r"(?:\.\d{1,3})?(?:\.(?:gz|zst|xz))?$")
"""What log rotation and compression add to a name."""
_MONTH = re.compile(r"(?<!\d)(?:19|20)\d\d[-_.]?(?:0[1-9]|1[0-2])(?!\d)")
_NO_NAMES = Names()


def grouped(paths: Iterable[Path], everything: Iterable[Path], names: Names = _NO_NAMES) -> list[tuple[str, int]]:
    """Return patterns, each with how many of `paths` it matches, that match all of `paths` and nothing else of `everything`.

    Files of one folder are put together first, then the same patterns in sibling folders. A date in a name becomes
    `{collected_at}`, and a month or number a `*` where others differ in it. So does the name of a node that the file
    itself names. A file that fits no common pattern stands by its own name. No file is matched twice.

    Args:
        paths: files to match.
        everything: all files that are there.
        names: what the paths may tell: `{node}` and `{job_id}` are captured where names tell them.
    """
    wanted = set(paths)
    everything = set(everything)
    others = everything - wanted
    by_folder: dict[Path, set[str]] = {}
    for path in wanted:
        by_folder.setdefault(path.parent, set()).add(path.name)
    found: dict[str, dict[Path, int]] = {}
    for folder, inside in by_folder.items():
        siblings = {p.name for p in others if p.parent == folder}
        for pattern, count in _in_folder(inside, siblings, names):
            found.setdefault(pattern, {})[folder] = count
    return sorted(
        entry for pattern, folders in found.items() for entry in _over_folders(pattern, folders, everything, names)
    )


def escaped(text: str) -> str:
    """Return a pattern that matches `text`; a brace, which would begin a capture, may be any character."""
    return glob.escape(text).replace("{", "?")


def _in_folder(inside: set[str], others: set[str], names: Names) -> Iterator[tuple[str, int]]:
    """Yield patterns over the names in one folder."""
    left = set(inside)
    while left:
        first = min(left)
        taken = others | (inside - left)
        options = {p: m for p in _candidates(first, left, names) if (m := _matched(p, left, taken))}
        # Of patterns that match as many files, the first stands for the most exact one.
        best = max(options, key=lambda p: (len(_CAPTURE.findall(p)), len(options[p])))
        yield best, len(options[best])
        left -= options[best]


def _matched(pattern: str, left: set[str], taken: set[str]) -> set[str]:
    """Return the names that a pattern matches; none where it would also match another, or one that is no date."""
    exact, loose = expression(pattern), expression(pattern, is_loose=True)
    if any(loose.fullmatch(name) for name in taken):
        return set()
    matched = {name for name in left if exact.fullmatch(name)}
    return matched if matched == {name for name in left if loose.fullmatch(name)} else set()


def _candidates(name: str, left: set[str], names: Names) -> Iterator[str]:
    """Yield patterns for `name` and others like it, the exact ones first."""
    tail = _TAIL.search(name)
    core = name[: tail.start()] if tail else name
    captured = list(_captured(core, names, is_alone=len(left) == 1))
    if not _has_month(name) and not any("*" in pattern for pattern in captured[:1]):
        yield escaped(name)
    for pattern in _cores(core, left, captured):
        yield pattern + name[len(core) :]
        yield pattern + "*"
    yield escaped(name)


def _has_month(name: str) -> bool:
    """Tell whether a name holds a month and no day: another file will come with another one."""
    return STAMP.search(name) is None and _MONTH.search(name) is not None


def _cores(core: str, left: set[str], captured: list[str]) -> Iterator[str]:
    """Yield patterns for a name without what rotation added: captures, the same ending, beginning, or but for numbers."""
    if _has_month(core):
        yield _MONTH.sub("*", escaped(core))
    # What stands for the name of a node comes before that name: another node's file will come.
    yield from (pattern for pattern in captured[:1] if "*" in pattern)
    yield escaped(core)
    yield from captured
    ending = "".join(Path(core).suffixes[-2:])
    suffix = escaped(ending if re.fullmatch(r"[\w.]*", ending) and not STAMP.search(ending) else "")
    stem = re.match(r"[^\W\d_]*", core)
    if len(left) > 1:
        if suffix:
            yield f"*{suffix}"
        if stem and len(stem[0]) >= MIN_PREFIX:
            yield f"{escaped(stem[0])}*{suffix}"
        yield re.sub(r"\d+", "*", escaped(core))


def _captured(core: str, names: Names, *, is_alone: bool) -> Iterator[str]:
    """Yield patterns that capture the time of collection, the node and the job, the most exact one first."""
    stamps = [m for m in STAMP.finditer(core) if _is_stamp(m[0])]
    dated = {stamps[0][0]: "{collected_at}"} if len(stamps) == 1 else {}
    told = dict(names.in_name(core, is_alone=is_alone, is_dated=bool(dated)))
    # Where a node or job would also stand for a file of another kind, the date alone may not.
    for captures in filter(None, (dated | told, *([dated] if told else []))):
        words = re.split("(" + "|".join(map(re.escape, captures)) + ")", core)
        if sum(word in captures for word in words) != len(captures):
            continue
        for rest in (escaped, _no_numbers, _no_words):
            yield "".join(captures[word] if word in captures else rest(word) for word in words)


def _no_numbers(text: str) -> str:
    return re.sub(r"\d+", "*", escaped(text))


def _no_words(text: str) -> str:
    """Put `*` for what stands before the last mark; an ending stays."""
    return text if not re.search(r"\w", text) or text.startswith(".") else "*" + re.sub(r"^.*\w", "", escaped(text))


def _is_stamp(text: str) -> bool:
    try:
        stamp_utc(text, None)
    except BadStampError:
        return False
    return True


def _over_folders(
    pattern: str, folders: dict[Path, int], everything: set[Path], names: Names
) -> Iterator[tuple[str, int]]:
    """Put the same pattern in sibling folders together, where that matches nothing else."""
    by_parent: dict[Path, list[Path]] = {}
    for folder in folders:
        by_parent.setdefault(folder.parent, []).append(folder)
    plain = _CAPTURE.sub("*", pattern)
    for parent, children in by_parent.items():
        cousins = {p.parent for p in everything if p.parent.parent == parent and fnmatchcase(p.name, plain)}
        common = _folder_pattern(pattern, [c.name for c in children], names) if cousins <= set(children) else None
        if common:
            yield os.path.join(escaped(str(parent)), common, pattern), sum(folders[c] for c in children)  # noqa: PTH118 - a pattern, no path
        else:
            for child in children:
                yield os.path.join(escaped(str(child)), pattern), folders[child]  # noqa: PTH118


def _folder_pattern(pattern: str, folders: list[str], names: Names) -> str | None:
    """Return what stands for the names of sibling folders; None = each its own name."""
    if "{collected_at}" not in pattern and all(STAMP.fullmatch(n) and _is_stamp(n) for n in folders):
        return "{collected_at}"
    return names.of_folders(pattern, folders) or ("*" if len(folders) > 1 else None)
