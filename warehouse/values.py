"""Values of an answer as Python has them, whatever types a query makes."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from warehouse.session import identifier


def printable(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Return a relation without the types that Arrow hands over in no form fit for people: those as DuckDB writes them."""
    names = relation.columns
    odd = [str(kind) in {"INTERVAL", "BIT"} for kind in relation.types]
    if not any(odd):
        return relation
    return relation.project(
        ", ".join(
            f"#{n}::varchar as {identifier(names[n - 1])}" if is_odd else f"#{n}" for n, is_odd in enumerate(odd, 1)
        )
    )


def tuples(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return rows by position: names may occur twice."""
    return list(zip(*(_values(column) for column in batch.columns), strict=True))


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
