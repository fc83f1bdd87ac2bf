"""The shell's own words: told apart from SQL, and what they do in a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "help": "these words",
        "tables": "every table, and what one row of it is",
        "describe": "TABLE: its columns, their types and what they mean",
        "macros": "functions beside DuckDB's own, each with an example",
        "questions": "ten questions with their queries; with a number: asks that one",
        "format": "table, record (one value a line), csv or json: how answers are shown",
        "rows": "NUMBER: how many rows of an answer are shown",
        "output": "FILE.csv, .json or .parquet: the next answer goes there, whole (`output FILE overwrite` if it is there)",
        "refresh": "moves on to the build that is published now",
        "quit": "leaves, as Ctrl-D does",
    }
)
"""Words in the order of the help."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {"exit": "quit", "q": "quit", "h": "help", "?": "help", "desc": "describe", "schema": "describe"}
)
"""Words of other shells."""

_LINE = re.compile(r"\s*(\.?)([a-z]+|\?)((?:\s[^;]*)?);?\s*", re.IGNORECASE)


def command_of(text: str) -> tuple[str, str] | None:
    """Return the word and its argument where `text` is one of the shell's own commands; None: it is SQL.

    A dot before it is allowed, as DuckDB's own shell wants it; an unknown word after a dot is a command too, an unknown one.
    """
    if "\n" in text.strip():
        return None
    found = _LINE.fullmatch(text)
    if found is None:
        return None
    dot, word, argument = found[1], found[2].lower(), found[3].strip()
    word = ALIASES.get(word, word) if dot or not argument else word
    if dot:
        return word, argument
    if word not in WORDS or (word == "describe" and not re.fullmatch(r"[\w.\"]*", argument)):
        return None
    return word, argument
