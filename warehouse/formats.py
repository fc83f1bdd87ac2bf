"""How an answer is written: CSV, JSON or Parquet, batch by batch."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import BinaryIO

import duckdb
import pyarrow.csv
import pyarrow.parquet

from warehouse.session import identifier

BATCH_ROWS = 10_000


def _write_csv(relation: duckdb.DuckDBPyRelation, out: BinaryIO) -> None:
    flat = _flat(relation)
    reader = flat.to_arrow_reader(BATCH_ROWS)
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(reader.schema.names)
    out.write(header.getvalue().encode())
    options = pyarrow.csv.WriteOptions(include_header=False)
    with pyarrow.csv.CSVWriter(out, reader.schema, write_options=options) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _write_json(relation: duckdb.DuckDBPyRelation, out: BinaryIO) -> None:
    separator = b"[\n"
    for batch in objects(relation).to_arrow_reader(BATCH_ROWS):
        for text in batch.column(0).to_pylist():
            out.write(separator + text.encode())
            separator = b",\n"
    out.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def _write_parquet(relation: duckdb.DuckDBPyRelation, out: BinaryIO) -> None:
    reader = relation.to_arrow_reader(BATCH_ROWS)
    with pyarrow.parquet.ParquetWriter(out, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)


FORMATS: dict[str, Callable[[duckdb.DuckDBPyRelation, BinaryIO], None]] = {
    "csv": _write_csv,
    "json": _write_json,
    "parquet": _write_parquet,
}


def objects(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Return a relation of one column: each row as a JSON object."""
    fields = ", ".join(f"{identifier(c)} := {identifier(c)}" for c in relation.columns)
    return relation.project(f"to_json(struct_pack({fields}))::varchar as object")


def _flat(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Return a relation of numbers and texts: nested values as JSON."""
    pairs = [(c, str(t)) for c, t in zip(relation.columns, relation.types, strict=True)]
    return relation.project(", ".join(identifier(c) if _is_number(t) else _as_text(c, t) for c, t in pairs))


def _as_text(column: str, kind: str) -> str:
    is_nested = kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))
    value = f"to_json({identifier(column)})" if is_nested else identifier(column)
    return f"{value}::varchar as {identifier(column)}"


def _is_number(kind: str) -> bool:
    return kind.startswith(("DECIMAL", "DOUBLE", "FLOAT", "HUGEINT")) or kind.endswith(("INT", "INTEGER"))
