"""Answers to queries, as a table that fits the terminal or as one value a line."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from flows.cli.tables import say_table
from flows.cli.terminal import clean, note, say, shown, title

GAP = 1
READABLE = 20
"""Characters that a column needs at least, if it is not narrower by itself; longer values are folded."""
FEW = 3
"""Rows of an answer that is too wide: up to so many are shown one value a line, of more rows columns are left out."""

_PLAN = ("explain_key", "explain_value")

Rows = Sequence[Sequence[Any]]


def say_answer(columns: Sequence[str], rows: Rows, *, hint: str) -> None:
    """Print an answer as a table; on a terminal that is too narrow without its last columns, or one value a line.

    Args:
        columns: names; two may be alike.
        rows: values in the order of `columns`.
        hint: how to see the columns that were left out.
    """
    if tuple(columns) == _PLAN:
        for _, plan in rows:
            say(str(plan))  # a drawing of many lines
        return
    names = _unlike(columns)
    texts = [dict(zip(names, map(plain, row), strict=True)) for row in rows]
    kept = names
    if sys.stdout.isatty():
        kept = _that_fit(names, texts, shutil.get_terminal_size().columns)
        if len(kept) < len(names) and 0 < len(rows) <= FEW:
            say_records(columns, rows)
            return
    say_table(texts, kept)
    if left_out := names[len(kept) :]:
        note(f"left out for want of width: {_spoken(left_out)}; {hint}")


def say_records(columns: Sequence[str], rows: Rows) -> None:
    """Print an answer one value a line, long values over as many lines as they need."""
    names = [clean(name) for name in columns]
    indent = max(map(len, names), default=0) + 2
    width = max(shutil.get_terminal_size().columns, indent + READABLE) if sys.stdout.isatty() else sys.maxsize
    for number, row in enumerate(rows, 1):
        if len(rows) > 1:
            title(f"row {number}")
        for name, value in zip(names, row, strict=True):
            text = clean(shown(plain(value)))
            first, *others = textwrap.wrap(text, width - indent, drop_whitespace=False) or [""]
            say("\n".join([f"{name:<{indent}}{first}", *(" " * indent + other for other in others)]))


def plain(value: object) -> object:
    """Return a value of an answer as tables print it: what is nested as one text, bytes as DuckDB writes them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_within(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_within(item) for item in value) + "]"
    if isinstance(value, tuple):  # an entry of a map
        return ": ".join(_within(item) for item in value)
    if isinstance(value, bytes):
        return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in value)
    return value


def _within(value: object) -> str:
    return str(shown(plain(value)))


def _spoken(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= FEW else f"{len(names)} columns, {names[0]} to {names[-1]}"


def _unlike(columns: Sequence[str]) -> list[str]:
    """Return names of which no two are alike."""
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name in names:
            number += 1
            name = f"{column} ({number})"
        names.append(name)
    return names


def _that_fit(names: list[str], rows: list[dict[str, Any]], width: int) -> list[str]:
    """Return as many of the first columns as can be read in `width` characters, long values folded; at least one."""
    from rich.cells import cell_len

    used = -GAP
    for position, name in enumerate(names):
        natural = max(cell_len(clean(name)), *(cell_len(clean(shown(row[name]))) for row in rows), 1)
        used += GAP + min(natural, max(READABLE, cell_len(clean(name))))
        if used > width and position:
            return names[:position]
    return names
