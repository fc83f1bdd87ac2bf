"""Ad-hoc SQL on a published build: read-only, without access to files, network or settings."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from warehouse import publish
from warehouse.session import identifier, reading

BATCH_ROWS = 10_000


class QueryError(Exception):
    """DuckDB refuses a query; the message is DuckDB's."""


@contextmanager
def query(
    path: Path, sql: str, params: Sequence[Any] | Mapping[str, Any] | None = None
) -> Iterator[pa.RecordBatchReader]:
    """Run a query on the warehouse and give its answer as a stream of Arrow batches.

    Args:
        path: `data/warehouse.duckdb`, or the file of one build.
        sql: one statement.
        params: values for its `?` or `$name`.

    Raises:
        NoWarehouseError: nothing has been published.
        QueryError: DuckDB refuses the query, also while its answer is read; or it is more than one statement.
    """
    with _running(path, sql, params) as relation:
        yield relation.to_arrow_reader(BATCH_ROWS)


def rows(path: Path, sql: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Run a query and return its answer as dictionaries; times are aware datetimes in UTC.

    Raises:
        NoWarehouseError, QueryError: as `query`.
    """
    with _running(path, sql, params) as relation:
        names = relation.columns
        return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]


def write(path: Path, sql: str, out: BinaryIO, format: str) -> None:  # noqa: A002 - the option's name
    """Run a query and write its answer.

    Args:
        path: `data/warehouse.duckdb`, or the file of one build.
        sql: one statement.
        out: stream to write to.
        format: `csv` (nested values as JSON), `json` (one array of objects) or `parquet`.

    Raises:
        NoWarehouseError, QueryError: as `query`.
        ValueError: an unknown format.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; it is one of {', '.join(FORMATS)}")
    with _running(path, sql, None) as relation:
        FORMATS[format](relation, out)


@contextmanager
def _running(
    path: Path, sql: str, params: Sequence[Any] | Mapping[str, Any] | None
) -> Iterator[duckdb.DuckDBPyRelation]:
    with reading(publish.resolve(path)) as con:
        try:
            sql = _one_statement(con, sql)
            relation = con.sql(sql, params=params) if params else con.sql(sql)
            if relation is None:
                relation = con.sql("select 'done' as status where false")
            yield relation
        except (duckdb.Error, pa.ArrowException) as error:
            raise QueryError(str(error)) from error
        except OSError as error:
            if error.errno is not None:  # a real one, such as a broken pipe; Arrow has none for DuckDB's errors
                raise
            raise QueryError(str(error)) from error


def _one_statement(con: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return `sql` without the semicolon and comments at its end, on which DuckDB stumbles when it reads an answer as text.

    Raises:
        QueryError: it is more than one statement.
        duckdb.ParserException: it is none.
    """
    if len(con.extract_statements(sql)) > 1:
        raise QueryError("several statements in one query; give one at a time")
    text = sql.encode()
    for offset, kind in reversed(duckdb.tokenize(sql)):
        if kind != duckdb.token_type.comment and text[offset : offset + 1] != b";":
            break
        text = text[:offset]
    return text.decode()


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
