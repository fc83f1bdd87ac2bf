"""DuckDB's complaints about a query in short, with the next step."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

MOST_LINES = 6

_FILES = "queries read and write no files unless asked: --allow-files FOLDER opens a folder to them, but never the warehouse's own"
_FILE = re.compile(r"Table with name .*/.* does not exist")
_STEPS: tuple[tuple[str, str], ...] = (
    (
        r"Cannot access (file|directory) \"\w{2,}://|/extensions/|/stored_secrets|external extensions|requires the extension",
        "queries here reach no network and load no extensions",
    ),
    (
        _FILE.pattern,
        "a file of this ending is read by a function, such as read_csv('FILE') or read_text('FILE'); " + _FILES,
    ),
    (r"file system operations are disabled", _FILES),
    (r"arrow_large_buffer_size", "texts this long are too much at once: take a part of them, as in left(text, 1000)"),
    (
        r"configuration has been locked",
        "settings are fixed here; another DuckDB client may open the warehouse with its own",
    ),
    (
        r"read-only mode",
        "the warehouse is never changed by a query; `create temp table` makes a table that lasts until you leave",
    ),
    (r"^Catalog Error: .*Function|No function matches", "{macros} lists the functions beside DuckDB's own"),
    (r"^Catalog Error: (Table|View)", "{tables} lists what there is"),
    (r"Referenced (column|table)", "{describe} lists a table's columns"),
    (r"^Out of Memory", "take fewer rows or columns, or a where"),
)
_MISSING = re.compile(r"(?:Table|Function|Macro Function) with name \"?([\w.]+)\"? does not exist")


def is_interrupt(message: str) -> bool:
    """Tell whether a query was stopped by its user."""
    return message.startswith(("INTERRUPT", "Interrupt")) or "Query interrupted" in message


def in_short(message: str, *, known: Iterable[str] = (), is_shell: bool = False) -> str:
    """Return what DuckDB said of a query in a few lines, and what to do next.

    Args:
        message: DuckDB's.
        known: names of tables and macros, among which a misspelt one is looked for.
        is_shell: whether the shell's own words can be typed.
    """
    lines = [line for line in message.split("\n") if line.strip()]
    found = _MISSING.search(lines[0]) if lines else None
    near = _near(found[1], list(known)) if found else []
    if near or _FILE.search(message):
        lines = [line for line in lines if not line.startswith("Did you mean")]
    if near:
        lines.insert(1, f"Did you mean {' or '.join(near)}?")
    lines = [line for line in lines if "arrow_large_buffer_size" not in line]  # a setting, and those are locked
    lines = lines[:MOST_LINES]
    words = (
        {"tables": "`tables`", "macros": "`macros`", "describe": "`describe TABLE`"}
        if is_shell
        else {
            "tables": '`goodput sql "show all tables"`',
            "macros": '`goodput sql "select function_name, comment from duckdb_functions() where not internal"`',
            "describe": '`goodput sql "describe marts.TABLE"`',
        }
    )
    step = next((said for pattern, said in _STEPS if re.search(pattern, message, re.MULTILINE)), None)
    return "\n".join([*lines, step.format_map(words)] if step else lines)


def _near(name: str, known: list[str]) -> list[str]:
    """Return the names most like `name`: whole, or without their schema."""
    bare: dict[str, str] = {}
    for whole in known:
        bare.setdefault(whole.rpartition(".")[2], whole)
    tail = name.lower().rpartition(".")[2]
    found = difflib.get_close_matches(name.lower(), known, 2, 0.75) or [
        bare[k] for k in difflib.get_close_matches(tail, list(bare), 2, 0.75)
    ]
    return list(dict.fromkeys(found))
