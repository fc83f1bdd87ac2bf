"""Tables: fitted to the terminal, plain aligned lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from flows.cli.terminal import clean, note, shown

Row = Mapping[str, Any]
Steps = Sequence[tuple[str, int]]
"""How a table becomes narrower, step by step: a column and the width it may shrink to; 0 = the column is left out."""

GAP = 2
NO_WORDS: Mapping[str, str] = MappingProxyType({})
_TO_THE_SECOND, _TO_THE_MINUTE, _IN_ITS_YEAR = len("2026-05-04 13:30:00"), len("2026-05-04 13:30"), len("05-04 13:30")


def say_table(
    rows: Sequence[Row],
    columns: Sequence[str],
    *,
    narrow: Steps = (),
    right: Collection[str] = (),
    short: Mapping[str, str] = NO_WORDS,
) -> None:
    """Print rows: a table on a terminal, aligned lines elsewhere, never cut there.

    Args:
        rows: values by column.
        columns: columns to print, in order.
        narrow: what to shorten or leave out, in this order, where a terminal is too narrow; then no cell is ever broken
            over lines. None: long values are folded.
        right: columns to align right; those that hold numbers only are.
        short: shorter words for whole cells, where a terminal is too narrow for all columns.
    """
    cells = [[clean(shown(row.get(c))) for c in columns] for row in rows]
    rights = [c in right or (bool(rows) and all(_is_number(r.get(c)) for r in rows)) for c in columns]
    columns = [clean(c) for c in columns]  # a query names its columns as it likes
    if not sys.stdout.isatty():
        _say_plain(columns, cells, rights)
    elif narrow:
        _say_fitted(columns, cells, rights, narrow, short)
    else:
        _say_folded(columns, cells, rights)


def fitted(natural: Mapping[str, int], narrow: Steps, width: int) -> dict[str, int]:
    """Return the columns that fit into `width`, each with its own; as few steps are taken as will do.

    Args:
        natural: width of each column's widest cell.
        narrow: steps, in order.
        width: characters of the terminal.
    """
    for taken in range(len(narrow) + 1):
        least: dict[str, int] = dict(natural)
        for name, minimum in narrow[:taken]:
            if minimum == 0:
                least.pop(name, None)
            elif name in least:
                least[name] = min(least[name], minimum)
        if _total(least) <= width:
            break
    spare = width - _total(least)
    for name in list(least):
        grown = min(natural[name] - least[name], max(spare, 0))
        if grown and not _is_time(natural[name], least[name]):
            least[name] += grown
            spare -= grown
    return least


def _is_time(natural: int, least: int) -> bool:
    """Tell whether a column of times is cut to the minute or the year's day: it grows by whole parts or not at all."""
    return natural == _TO_THE_SECOND and least in (_TO_THE_MINUTE, _IN_ITS_YEAR)


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + GAP * max(len(widths) - 1, 0)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _say_plain(columns: Sequence[str], cells: list[list[str]], rights: list[bool]) -> None:
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(columns)]
    for line in [list(columns), *cells]:
        padded = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(line, widths, rights, strict=True))
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def _say_fitted(
    columns: Sequence[str], cells: list[list[str]], rights: list[bool], narrow: Steps, short: Mapping[str, str]
) -> None:
    natural = _natural(columns, cells)
    width = shutil.get_terminal_size().columns
    if short and _total(natural) > width:
        cells = [[short.get(cell, cell) for cell in row] for row in cells]
        natural = _natural(columns, cells)
    widths = fitted(natural, narrow, width)
    kept = [i for i, name in enumerate(columns) if name in widths]
    names = [columns[i] for i in kept]
    cut = [[_cut(row[i], widths[columns[i]]) for i in kept] for row in cells]
    _print_table(names, cut, [rights[i] for i in kept], max(width, _total(widths)))
    if left_out := [name for name in columns if name not in widths]:
        note(f"left out for want of width: {', '.join(left_out)}")


def _natural(columns: Sequence[str], cells: list[list[str]]) -> dict[str, int]:
    from rich.cells import cell_len

    return {n: max(cell_len(n), *(cell_len(row[i]) for row in cells), 1) for i, n in enumerate(columns)}


def _cut(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    if _is_time(len(text), width) and text[4:5] == text[7:8] == "-":
        return text[5:_TO_THE_MINUTE] if width == _IN_ITS_YEAR else text[:width]
    return set_cell_size(text, width - 1).rstrip() + "…"


def _say_folded(columns: Sequence[str], cells: list[list[str]], rights: list[bool]) -> None:
    _print_table(columns, cells, rights, None)


def _print_table(columns: Sequence[str], cells: list[list[str]], rights: list[bool], width: int | None) -> None:
    """Print a table with rich; without `width`, in the terminal's, and long cells folded."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP if width else 1, 0, 0))
    for name, is_right in zip(columns, rights, strict=True):
        is_fixed = width is not None
        table.add_column(
            Text(name),
            justify="right" if is_right else "left",
            overflow="crop" if is_fixed else "fold",
            no_wrap=is_fixed,
        )
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console(markup=False, highlight=False, emoji=False, width=width).print(table)
