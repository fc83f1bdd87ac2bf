"""Guess the columns of `sacct -P -n`, printed without a header, from their values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

JOB_STATES = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PENDING",
    "PREEMPTED", "REQUEUED", "RUNNING", "SUSPENDED", "TIMEOUT",
}  # fmt: skip
_JOB = re.compile(r"\d+(?:_(?:\d+|\[[^\]]*\])|\+\d+)?(?:\.\w+)?")
_RAW = re.compile(r"\d{1,12}(?:\.\w+)?")
_EXIT = re.compile(r"\d{1,3}:\d{1,3}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|Unknown|None")
_SPAN = re.compile(r"(?:\d+-)?\d\d:\d\d:\d\d|UNLIMITED|Partition_Limit")
_TRES = re.compile(r"[a-z]+(?:/[^=,]+)?=[^=,]+(?:,[a-z]+(?:/[^=,]+)?=[^=,]+)*")
_HOSTS = re.compile(r"[A-Za-z][\w.-]*(?:\[[\d,-]+\])?(?:,[A-Za-z][\w.-]*(?:\[[\d,-]+\])?)*|None assigned")
_BRACKETS = re.compile(r"[A-Za-z][\w.-]*\[[\d,-]+\]")
_COUNT = re.compile(r"\d+")
_TIMES = {1: ("Start",), 2: ("Start", "End"), 3: ("Submit", "Start", "End"), 4: ("Submit", "Eligible", "Start", "End")}
_MOST = 0.9

Column = Sequence[str]


@dataclass(frozen=True, slots=True)
class Words:
    """Names that other exports know, by the column that holds them: Cluster, User, Account, Partition, JobName, nodes."""

    by_column: Mapping[str, frozenset[str]]
    nodes: frozenset[str] = frozenset()


def jobs_without_header(line: str) -> int:
    """Return how many columns `line` has if it looks like a job of `sacct -P -n` (without a header), else 0."""
    fields = line.split("|")
    return len(fields) if any(_is_state(field) for field in fields) else 0


def guess(lines: Sequence[str], words: Words) -> list[str | None]:
    """Return a name for each column, None where the values do not tell.

    Args:
        lines: first lines of the export; those whose number of fields is not the usual one are left out.
        words: names that other exports know.
    """
    split = [line.split("|") for line in lines if line.strip()]
    if not split:
        return []
    width = Counter(map(len, split)).most_common(1)[0][0]
    columns = list(zip(*(fields for fields in split if len(fields) == width), strict=True))
    names: dict[int, str] = {}
    for step in (_shapes, _times, _spans, _counts, _hosts, _known_words):
        for position, name in step(columns, names, words):
            if name not in names.values():
                names.setdefault(position, name)
    return [names.get(i) for i in range(width)]


Named = Iterator[tuple[int, str]]


def _is_state(text: str) -> bool:
    return text.partition(" ")[0] in JOB_STATES


def _most(column: Column, is_fit: Callable[[str], object]) -> bool:
    """Tell whether nearly all values fit, of those that are there."""
    filled = [value for value in column if value]
    return bool(filled) and sum(bool(is_fit(value)) for value in filled) >= _MOST * len(filled)


def _shapes(columns: Sequence[Column], _names: Mapping[int, str], _words: Words) -> Named:
    """Name what its form alone tells."""
    kinds: tuple[tuple[Callable[[str], object], tuple[str, ...]], ...] = (
        (_is_state, ("State",)),
        (_EXIT.fullmatch, ("ExitCode", "DerivedExitCode")),
        (lambda value: "=" in value and _TRES.fullmatch(value), ("AllocTRES",)),
    )
    for is_fit, wanted in kinds:
        yield from zip((i for i, c in enumerate(columns) if _most(c, is_fit)), wanted, strict=False)
    ids = [i for i, c in enumerate(columns) if _most(c, _JOB.fullmatch) and len(set(c)) > len(c) / 2]
    ids = [i for i in ids if i < 3]  # numbers farther on may be anything
    yield from zip(ids, ("JobID", "JobIDRaw"), strict=False)


def _times(columns: Sequence[Column], _names: Mapping[int, str], _words: Words) -> Named:
    """Name times by their order in most rows: a job is submitted, eligible, started, ended."""
    found = [i for i, c in enumerate(columns) if _most(c, _TIME.fullmatch)]
    rows = [row for row in zip(*(columns[i] for i in found), strict=True) if all(map(_is_moment, row))]
    ranks = [sum(sum(_moment(other) < _moment(row[n]) for other in row) for row in rows) for n in range(len(found))]
    ordered = [i for _, i in sorted(zip(ranks, found, strict=True))]
    yield from zip(ordered, _TIMES.get(len(found), ()), strict=False)


def _is_moment(text: str) -> bool:
    return _moment(text) != datetime.max  # noqa: DTZ901 - as in _moment


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return datetime.max  # noqa: DTZ901 - local by nature; "Unknown" comes last


def _spans(columns: Sequence[Column], names: Mapping[int, str], _words: Words) -> Named:
    """Name durations: one that is End less Start, one that is always nothing, one of few and round values."""
    at = {name: i for i, name in names.items()}
    for i, column in enumerate(columns):
        if i in names or not _most(column, _SPAN.fullmatch):
            continue
        filled = [value for value in column if value]
        if {"Start", "End"} <= at.keys() and _is_difference(column, columns[at["Start"]], columns[at["End"]]):
            yield i, "Elapsed"
        elif set(filled) == {"00:00:00"}:
            yield i, "Suspended"
        elif _most(column, lambda value: value.endswith(":00") or not value[0].isdigit()):
            yield i, "Timelimit"


def _is_difference(column: Column, starts: Column, ends: Column) -> bool:
    rows = [
        (value, _moment(end) - _moment(start))
        for value, start, end in zip(column, starts, ends, strict=True)
        if datetime.max not in (_moment(start), _moment(end))  # noqa: DTZ901 - as in _moment
    ]
    return bool(rows) and sum(_length(v) == d.total_seconds() for v, d in rows) >= _MOST * len(rows)


def _length(text: str) -> float | None:
    days, _, clock = text.rpartition("-")
    parts = clock.split(":")
    if len(parts) != 3 or not all(p.isdigit() for p in parts):
        return None
    return int(days or 0) * 86400 + int(parts[0]) * 3600 + int(parts[1]) * 60 + int(parts[2])


def _counts(columns: Sequence[Column], names: Mapping[int, str], _words: Words) -> Named:
    """Name counts that say the same as AllocTRES."""
    tres = next((columns[i] for i, name in names.items() if name == "AllocTRES"), None)
    if tres is None:
        return
    for i, column in enumerate(columns):
        if i in names or not _most(column, _COUNT.fullmatch):
            continue
        for name, key in (("NNodes", "node"), ("AllocCPUS", "cpu")):
            pairs = [(v, m[1]) for v, t in zip(column, tres, strict=True) if (m := re.search(rf"\b{key}=(\d+)", t))]
            if pairs and sum(value == told for value, told in pairs) >= _MOST * len(pairs):
                yield i, name
                break


def _hosts(columns: Sequence[Column], names: Mapping[int, str], words: Words) -> Named:
    """Name the host list: bracketed ranges, or names of nodes that other exports know."""
    scores = {
        i: sum(bool(_BRACKETS.search(v)) or v in words.nodes or v == "None assigned" for v in c)
        for i, c in enumerate(columns)
        if i not in names and _most(c, _HOSTS.fullmatch)
    }
    best = max(scores, key=lambda i: scores[i], default=None)
    if best is not None and scores[best]:
        yield best, "NodeList"


def _known_words(columns: Sequence[Column], names: Mapping[int, str], words: Words) -> Named:
    """Name columns that share most values with those of one name in other exports, best match first."""
    shares = []
    for i, column in enumerate(columns):
        filled = [value for value in column if value]
        if i in names or not filled:
            continue
        for name, known in words.by_column.items():
            share = sum(value in known for value in filled) / len(filled)
            if share >= 0.5:
                shares.append((-share, i, name))
    taken: set[int | str] = set(names.values())
    for _, i, name in sorted(shares):
        if taken.isdisjoint((i, name)):
            taken |= {i, name}
            yield i, name
