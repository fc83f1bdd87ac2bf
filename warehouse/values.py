"""Names and values of an answer, whatever a query makes: names told apart, and values as Python has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import duckdb

from warehouse.session import identifier

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1000
"""Rows of an answer that are held at once. Few, as long texts count too: Arrow holds at most 2 GB of one column in a batch."""

_UNFIT = re.compile(r"\b(INTERVAL|BIT|UNION|BIGNUM|UHUGEINT|VARIANT|TIME_NS|TIMESTAMP_NS)\b|(?<!WITH )\bTIME\b")
"""Types, also within nested ones, of which Arrow or Python drops something, or that they have in no form fit for people."""


def distinct(names: Sequence[str]) -> list[str]:
    """Return names of which no two are alike, as SQL compares them, ignoring case: `n`, `n (2)`."""
    taken: set[str] = set()
    told_apart = []
    for given in names:
        name, number = given, 1
        while name.lower() in taken:
            number += 1
            name = f"{given} ({number})"
        taken.add(name.lower())
        told_apart.append(name)
    return told_apart


def printable(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Return a relation of distinct names and of types that Python has without loss; others as DuckDB writes them."""
    return by_position(relation, [f"#{n}::varchar" if _UNFIT.search(str(k)) else "" for n, k in _numbered(relation)])


def by_position(relation: duckdb.DuckDBPyRelation, values: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """Return a relation of distinct names, in which `values` stand for the columns at their place; empty = as it is.

    A column is never taken by its name: a query may give two the same.
    """
    names = distinct(relation.columns)
    if names == relation.columns and not any(values):
        return relation
    pairs = enumerate(zip(values, names, strict=True), 1)
    return relation.project(", ".join(f"{value or f'#{n}'} as {identifier(name)}" for n, (value, name) in pairs))


def tuples(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return rows by position."""
    return list(zip(*(_values(column) for column in batch.columns), strict=True))


def _numbered(relation: duckdb.DuckDBPyRelation) -> list[tuple[int, str]]:
    return [(n, str(kind)) for n, kind in enumerate(relation.types, 1)]


def _values(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # a time that Python has no object for
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        number = getattr(scalar, "value", None)
        if not isinstance(number, int):
            return "out of range"
        words = {
            (1 << 63) - 1: "infinity",
            1 - (1 << 63): "-infinity",
            (1 << 31) - 1: "infinity",
            1 - (1 << 31): "-infinity",
        }
        return words.get(number, "after the year 9999" if number > 0 else "before the year 1")
