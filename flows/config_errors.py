"""Errors of the configuration: every problem at once, each with its line and what was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

Loc = tuple[str | int, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `line` counts from 1; None = the file as a whole."""

    line: int | None
    text: str

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


class ConfigError(Exception):
    """The configuration cannot be used; `problems` lists all that was found, in the file's order."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems, key=lambda p: p.line or 0))
        super().__init__("\n".join([f"{path}:", *(f"  {p}" for p in self.problems)]))


class ConfigMissingError(ConfigError):
    """There is no configuration file."""

    def __init__(self, path: Path) -> None:
        text = "no such file; write one with `goodput init PATHS...`, or name another with --config"
        super().__init__(path, [Problem(None, text)])


def did_you_mean(found: str, known: Iterable[str], *, quote: str = "`") -> str:
    """Return "; did you mean `x`?" for the nearest of `known`, else what there is to choose from, else nothing."""
    names = sorted(set(known))
    folded = {n.lower(): n for n in names}
    near = difflib.get_close_matches(found.lower(), folded, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {quote}{folded[near[0]]}{quote}?"
    if 0 < len(names) <= 20:
        return "; known: " + ", ".join(names)
    return ""


def line_numbers(text: str) -> dict[Loc, int]:
    """Return the line of every table and key of a TOML document, by its path.

    Tables in arrays have their position in the path: `("sources", 0, "path")`. Keys inside inline tables and arrays are
    not listed: look for the longest known prefix with `line_of`.
    """
    lines: dict[Loc, int] = {}
    counts: dict[Loc, int] = {}
    table: Loc = ()
    closing: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if closing is not None:
            closing = None if line.count(closing) % 2 else closing
            continue
        if header := _HEADER.match(line):
            table = _table(_parts(header[2]), counts, is_array=header[1] == "[[")
            lines.setdefault(table, number)
            if header[1] == "[[":
                lines.setdefault(table[:-1], number)
        elif key := _KEY.match(line):
            lines.setdefault(table + _parts(key[1]), number)
            closing = next((q for q in ('"""', "'''") if key[2].count(q) % 2), None)
    return lines


def line_of(lines: dict[Loc, int], loc: Loc) -> int | None:
    """Return the line of `loc`, or of the nearest table or key around it."""
    for end in range(len(loc), 0, -1):
        if loc[:end] in lines:
            return lines[loc[:end]]
    return None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(p[1:-1] if p[0] in "\"'" else p for p in re.findall(_PART, dotted))


def _table(parts: tuple[str, ...], counts: dict[Loc, int], *, is_array: bool) -> Loc:
    """Return the path of a table header; a table under an array of tables belongs to the array's last entry."""
    path: Loc = ()
    for part in parts[:-1]:
        path += (part,)
        if path in counts:
            path += (counts[path],)
    path += (parts[-1],)
    if is_array:
        counts[path] = counts.get(path, -1) + 1
    return (*path, counts[path]) if path in counts else path
