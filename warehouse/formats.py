"""How an answer is written: CSV, JSON or Parquet, batch by batch; columns by their place, under distinct names."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from typing import BinaryIO

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from warehouse.session import identifier
from warehouse.values import BATCH_ROWS, by_position, distinct

_NO_PARQUET = re.compile(r"\b(INTERVAL|BIT|UNION|BIGNUM|UHUGEINT|VARIANT|TIME WITH TIME ZONE)\b")
"""Types, also within nested ones, that Parquet has not, or not without loss."""
_NO_NUMBER = re.compile(r'("(?:[^"\\]|\\.)*")|-?\bInfinity\b|-?\bNaN\b')


def _write_csv(relation: duckdb.DuckDBPyRelation, out: BinaryIO) -> None:
    kinds = [str(kind) for kind in relation.types]
    flat = by_position(relation, ["" if _is_number(k) else _as_text(n, k) for n, k in enumerate(kinds, 1)])
    fractions = [n for n, kind in enumerate(kinds) if _is_nested(kind) and re.search("DOUBLE|FLOAT", kind)]
    reader = flat.to_arrow_reader(BATCH_ROWS)
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(reader.schema.names)
    out.write(header.getvalue().encode())
    options = pyarrow.csv.WriteOptions(include_header=False)
    with pyarrow.csv.CSVWriter(out, reader.schema, write_options=options) as writer:
        for batch in reader:
            writer.write_batch(_json_in(batch, fractions))


def _write_json(relation: duckdb.DuckDBPyRelation, out: BinaryIO) -> None:
    separator = b"[\n"
    for batch in objects(relation).to_arrow_reader(BATCH_ROWS):
        for text in batch.column(0).to_pylist():
            out.write(separator + _strict(text).encode())
            separator = b",\n"
    out.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def _write_parquet(relation: duckdb.DuckDBPyRelation, out: BinaryIO) -> None:
    kinds = enumerate(map(str, relation.types), 1)
    kept = by_position(relation, [f"#{n}::varchar" if _NO_PARQUET.search(kind) else "" for n, kind in kinds])
    reader = kept.to_arrow_reader(BATCH_ROWS)
    with pyarrow.parquet.ParquetWriter(out, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)


FORMATS: dict[str, Callable[[duckdb.DuckDBPyRelation, BinaryIO], None]] = {
    "csv": _write_csv,
    "json": _write_json,
    "parquet": _write_parquet,
}


def objects(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Return a relation of one column: each row as an object, as DuckDB writes JSON: with NaN and infinity."""
    fields = ", ".join(f"{identifier(name)} := #{n}" for n, name in enumerate(distinct(relation.columns), 1))
    return relation.project(f"to_json(struct_pack({fields}))::varchar as object")


def _strict(text: str) -> str:
    """Return what DuckDB writes as JSON with null for what JSON has no number for; texts stay as they are."""
    if "NaN" not in text and "Infinity" not in text:
        return text
    return _NO_NUMBER.sub(lambda found: found[1] or "null", text)


def _json_in(batch: pa.RecordBatch, columns: list[int]) -> pa.RecordBatch:
    for n in columns:
        texts = [None if text is None else _strict(text) for text in batch.column(n).to_pylist()]
        field = batch.schema.field(n)
        batch = batch.set_column(n, field, pa.array(texts, field.type))
    return batch


def _as_text(position: int, kind: str) -> str:
    return f"to_json(#{position})::varchar" if _is_nested(kind) else f"#{position}::varchar"


def _is_nested(kind: str) -> bool:
    return kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))


def _is_number(kind: str) -> bool:
    is_one = kind.startswith(("DECIMAL", "DOUBLE", "FLOAT", "HUGEINT")) or kind.endswith(("INT", "INTEGER"))
    return is_one and kind != "UHUGEINT" and not _is_nested(kind)  # Arrow has none so large
