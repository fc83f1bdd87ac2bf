"""Find few patterns for many files, none of which matches a file it should not, and that match tomorrow's files too."""

from __future__ import annotations

import glob
import os.path
import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from flows.landing import BadStampError, expression, stamp_utc

MIN_PREFIX = 3
_CAPTURE = re.compile(r"\{\w+\}")
_TAIL = re.compile(r"(?:\.\d{1,3})?(?:\.(?:gz|zst|xz))?$")
"""What log rotation and compression add to a name."""
_STAMP = re.compile(
    r"(?<!\d)(?:19|20)\d\d-?\d\d-?\d\d(?:[T_ -]?\d\d[:.-]?\d\d(?:[:.-]?\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\d])"
)
_MONTH = re.compile(r"(?<!\d)(?:19|20)\d\d[-_.]?(?:0[1-9]|1[0-2])(?!\d)")
_NODE_LIKE = re.compile(r"[A-Za-z][A-Za-z0-9-]*\d[A-Za-z0-9-]*")
_NO_NODE = re.compile(r"(?:dmesg|kern(?:el)?|kmsg|messages|sys|syslog|journal|boot|log|out|txt)\d*", re.IGNORECASE)


def grouped(
    paths: Iterable[Path], everything: Iterable[Path], *, nodes: Collection[str] | None = None
) -> list[tuple[str, int]]:
    """Return patterns, each with how many of `paths` it matches, that match all of `paths` and nothing else of `everything`.

    Files of one folder are put together first, then the same patterns in sibling folders. A date in a name becomes
    `{collected_at}`, and a month or number a `*` where others differ in it. A file that fits no common pattern stands
    by its own name. No file is matched twice.

    Args:
        paths: files to match.
        everything: all files that are there.
        nodes: names of nodes; the files belong to one node each, so `{node}` is captured where names tell it.
            None = the files name their nodes themselves.
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
        for pattern, count in _in_folder(names, siblings, nodes):
            found.setdefault(pattern, {})[folder] = count
    return sorted(
        entry for pattern, folders in found.items() for entry in _over_folders(pattern, folders, everything, nodes)
    )


def node_in(name: str, nodes: Collection[str]) -> str | None:
    """Return the part of a file's name, without its ending, that is the name of a node, or looks like one; None = none does."""
    pieces = {n for n in nodes if re.search(rf"(?<![A-Za-z0-9]){re.escape(n)}(?![A-Za-z0-9])", name)}
    if pieces:
        return max(pieces, key=lambda n: (len(n), n))
    words = [w for w in re.split(r"[._]+|(?<![A-Za-z0-9])-|-(?![A-Za-z0-9])", _STAMP.sub(".", name)) if w]
    words = [
        re.sub(r"^(?:dmesg|kern|kmsg|messages|syslog|journal)-|-(?:dmesg|kern|kmsg|messages|syslog|journal)$", "", w)
        for w in words
    ]
    like = [w for w in words if _NODE_LIKE.fullmatch(w) and not _NO_NODE.fullmatch(w)]
    return like[0] if len(like) == 1 else None


def escaped(text: str) -> str:
    """Return a pattern that matches `text`; a brace, which would begin a capture, may be any character."""
    return glob.escape(text).replace("{", "?")


def _in_folder(names: set[str], others: set[str], nodes: Collection[str] | None) -> Iterator[tuple[str, int]]:
    """Yield patterns over the names in one folder."""
    left = set(names)
    while left:
        first = min(left)
        taken = others | (names - left)
        options = {p: m for p in _candidates(first, left, nodes) if (m := _matched(p, left, taken))}
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


def _candidates(name: str, names: set[str], nodes: Collection[str] | None) -> Iterator[str]:
    """Yield patterns for `name` and others like it, the exact ones first."""
    if not _has_month(name):
        yield escaped(name)
    tail = _TAIL.search(name)
    core = name[: tail.start()] if tail else name
    for pattern in _cores(core, names, nodes):
        yield pattern + name[len(core) :]
        yield pattern + "*"
    yield escaped(name)


def _has_month(name: str) -> bool:
    """Tell whether a name holds a month and no day: another file will come with another one."""
    return _STAMP.search(name) is None and _MONTH.search(name) is not None


def _cores(core: str, names: set[str], nodes: Collection[str] | None) -> Iterator[str]:
    """Yield patterns for a name without what rotation added: captures, the same ending, beginning, or but for numbers."""
    if _has_month(core):
        yield _MONTH.sub("*", escaped(core))
    yield escaped(core)
    yield from _captured(core, nodes, is_alone=len(names) == 1)
    ending = "".join(Path(core).suffixes[-2:])
    suffix = escaped(ending if re.fullmatch(r"[\w.]*", ending) and not _STAMP.search(ending) else "")
    stem = re.match(r"[^\W\d_]*", core)
    if len(names) > 1:
        if suffix:
            yield f"*{suffix}"
        if stem and len(stem[0]) >= MIN_PREFIX:
            yield f"{escaped(stem[0])}*{suffix}"
        yield re.sub(r"\d+", "*", escaped(core))


def _captured(core: str, nodes: Collection[str] | None, *, is_alone: bool) -> Iterator[str]:
    """Yield patterns that capture the time of collection and the node; that of a lone file must be known elsewhere."""
    node = None if nodes is None else node_in(core, nodes)
    node = None if is_alone and nodes is not None and node not in nodes else node
    stamps = [m for m in _STAMP.finditer(core) if _is_stamp(m[0])]
    parts = [(stamps[0][0], "{collected_at}")] if len(stamps) == 1 else []
    parts += [(node, "{node}")] if node else []
    if not parts:
        return
    words = re.split("(" + "|".join(re.escape(text) for text, _ in parts) + ")", core)
    captures = dict(parts)
    if sum(word in captures for word in words) != len(parts):
        return
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
    pattern: str, folders: dict[Path, int], everything: set[Path], nodes: Collection[str] | None
) -> Iterator[tuple[str, int]]:
    """Put the same pattern in sibling folders together, where that matches nothing else."""
    by_parent: dict[Path, list[Path]] = {}
    for folder in folders:
        by_parent.setdefault(folder.parent, []).append(folder)
    plain = _CAPTURE.sub("*", pattern)
    for parent, children in by_parent.items():
        cousins = {p.parent for p in everything if p.parent.parent == parent and fnmatchcase(p.name, plain)}
        common = _folder_pattern(pattern, [c.name for c in children], nodes) if cousins <= set(children) else None
        if common:
            yield os.path.join(escaped(str(parent)), common, pattern), sum(folders[c] for c in children)  # noqa: PTH118 - a pattern, no path
        else:
            for child in children:
                yield os.path.join(escaped(str(child)), pattern), folders[child]  # noqa: PTH118


def _folder_pattern(pattern: str, names: list[str], nodes: Collection[str] | None) -> str | None:
    """Return what stands for the names of sibling folders; None = each its own name."""
    if "{collected_at}" not in pattern and all(_STAMP.fullmatch(n) and _is_stamp(n) for n in names):
        return "{collected_at}"
    if nodes is not None and "{node}" not in pattern and all(node_in(n, nodes) == n for n in names):
        return "{node}" if len(names) > 1 or names[0] in nodes else None
    return "*" if len(names) > 1 else None
