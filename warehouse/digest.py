"""A digest per mart: equal where the same rows stand in it, whatever order they were inserted in."""

from __future__ import annotations

import hashlib
from pathlib import Path

import duckdb

from warehouse import publish
from warehouse.formats import objects
from warehouse.session import DamagedBuildError, identifier, reading
from warehouse.values import BATCH_ROWS


def digest(path: Path, schema: str = "marts") -> dict[str, str]:
    """Return the SHA-256 of each table of a schema, over its columns, types and rows in a fixed order.

    Rows are streamed as JSON objects and sorted by DuckDB, which spills, so no table is held in memory.

    Args:
        path: `data/warehouse.duckdb`, or the file of one build.
        schema: schema whose tables are hashed.

    Raises:
        NoWarehouseError: nothing has been published, or it is damaged.
    """
    file = publish.resolve(path)
    try:
        return _digests(file, schema)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise DamagedBuildError(f"{file} cannot be read ({reason}): run `goodput build` to make another") from error


def _digests(file: Path, schema: str) -> dict[str, str]:
    with reading(file) as con:
        names = con.execute(
            "select table_name from duckdb_tables() where database_name = 'warehouse' and schema_name = ? order by all",
            [schema],
        ).fetchall()
        return {str(name): _digest(con, f"warehouse.{schema}.{identifier(name)}") for (name,) in names}


def _digest(con: duckdb.DuckDBPyConnection, table: str) -> str:
    relation = con.table(table)
    hashed = hashlib.sha256()
    for column, kind in zip(relation.columns, relation.types, strict=True):
        hashed.update(f"{column} {kind}\n".encode())
    for batch in objects(relation).order("object").to_arrow_reader(BATCH_ROWS):
        hashed.update("".join(f"{text}\n" for text in batch.column(0).to_pylist()).encode())
    return hashed.hexdigest()
