"""What models start from: the lake's tables, the list of exports, the settings and the reference data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from transforms.tables import TABLES, Table
from warehouse.inputs import EXPORTS, SETTINGS, Inputs, Rows
from warehouse.session import catalog_of, identifier, literal

REFERENCE = Path(__file__).parent / "reference"
MACROS = Path(__file__).parent / "macros.sql"
MART_MACROS = Path(__file__).parent / "mart_macros.sql"

_SQL_TYPES: dict[Any, str] = {
    pl.String: "varchar",
    pl.Int64: "bigint",
    pl.Boolean: "boolean",
    pl.Float64: "double",
    pl.Date: "date",
}


def sql_type(dtype: pl.DataType) -> str:
    """Return DuckDB's name for a column type of the normalized tables.

    Raises:
        TypeError: no normalized table uses such a type yet.
    """
    if isinstance(dtype, pl.List):
        inner = dtype.inner
        return f"{sql_type(inner if isinstance(inner, pl.DataType) else inner())}[]"
    if isinstance(dtype, pl.Datetime):
        return "timestamptz" if dtype.time_zone else "timestamp"
    try:
        return _SQL_TYPES[type(dtype)]
    except KeyError:
        raise TypeError(f"{dtype}: add it to _SQL_TYPES in {Path(__file__).name}") from None


def known() -> set[str]:
    """Return the names of all relations that exist before any model runs."""
    names = {f"lake.{t}" for t in TABLES} | {"lake.exports"}
    names |= {f"settings.{t}" for t in SETTINGS}
    return names | {f"reference.{p.stem}" for p in REFERENCE.glob("*.csv")}


def inputs(con: duckdb.DuckDBPyConnection, given: Inputs) -> None:
    """Make the relations of `lake`, `settings` and `reference`, and the macros over them.

    Raises:
        KeyError: `given.settings` names a table that does not exist.
    """
    unknown = set(given.settings) - set(SETTINGS)
    if unknown:
        raise KeyError(f"settings {sorted(unknown)} are declared in no table of warehouse/inputs.py")
    lake(con, given)
    for name, table in SETTINGS.items():
        rows_table(con, "settings", table, given.settings.get(name, ()))
    for path in sorted(REFERENCE.glob("*.csv")):
        reference_table(con, path)
    con.execute(MACROS.read_text(encoding="utf-8"))


def lake(con: duckdb.DuckDBPyConnection, given: Inputs) -> None:
    """Make the relations of `lake`."""
    for table in TABLES.values():
        lake_table(con, table, given.lake)
    exports(con, given)


def exports(con: duckdb.DuckDBPyConnection, given: Inputs) -> None:
    """Make `lake.exports`."""
    rows_table(con, "lake", EXPORTS, given.exports)


def lake_table(con: duckdb.DuckDBPyConnection, table: Table, lake: Path) -> None:
    """Make `lake.<table>` over its Parquet parts: declared columns and types whatever the parts hold.

    A column that was declared after a part was written is null there.
    """
    name = f"memory.lake.{identifier(table.name)}"
    if not any((lake / table.name).rglob("*.parquet")):
        empty_table(con, name, table)
        return
    parts = literal(f"{lake / table.name}/**/*.parquet")
    # Looking for columns by name reads every part's footer for each model that selects from the table; where all parts
    # are alike one footer will do.
    schemas = con.execute(
        f"select count(distinct columns) from (select list_sort(list(concat(name, ':', type))) as columns "
        f"from parquet_schema({parts}) group by file_name)"
    ).fetchall()
    source = f"read_parquet({parts}, union_by_name = {schemas[0][0] > 1}, hive_partitioning = false)"
    con.execute(f"create view {name} as {_selected(con, table, source)}")


def lake_rows(con: duckdb.DuckDBPyConnection, table: Table, parts: str) -> str:
    """Return a query for the rows of some parts, an SQL list of files, with the declared columns and types."""
    source = f"read_parquet({parts}, union_by_name = true, hive_partitioning = false)"
    return _selected(con, table, source)


def _selected(con: duckdb.DuckDBPyConnection, table: Table, source: str) -> str:
    there = {row[0] for row in con.execute(f"describe select * from {source}").fetchall()}
    columns = ", ".join(_column(c.name, c.dtype, there) for c in table.columns)
    return f"select {columns} from {source}"


def _column(name: str, dtype: pl.DataType, there: set[str]) -> str:
    value = identifier(name) if name in there else "null"
    return f"cast({value} as {sql_type(dtype)}) as {identifier(name)}"


def empty_table(con: duckdb.DuckDBPyConnection, name: str, table: Table) -> None:
    """Make `name` with the declared columns and no rows."""
    columns = ", ".join(f"{identifier(c.name)} {sql_type(c.dtype)}" for c in table.columns)
    con.execute(f"create table {name} ({columns})")


def rows_table(con: duckdb.DuckDBPyConnection, schema: str, table: Table, rows: Rows) -> None:
    """Make `schema.<table>` from plain rows; an absent key is null."""
    name = f"{catalog_of(schema)}.{schema}.{identifier(table.name)}"
    empty_table(con, name, table)
    if rows:
        unknown = {key for row in rows for key in row} - set(table.schema)
        if unknown:
            raise KeyError(f"{schema}.{table.name}: undeclared columns {sorted(unknown)}; declare them in inputs.py")
        con.register("given_rows", _Stream(pl.DataFrame([dict(r) for r in rows], schema=table.schema)))
        con.execute(f"insert into {name} select * from given_rows")
        con.unregister("given_rows")


@dataclass(frozen=True, slots=True)
class _Stream:
    """A frame that DuckDB reads by Arrow's C interface; pyarrow, which it would load for it, takes a while."""

    frame: pl.DataFrame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


@cache
def reference_notes() -> Mapping[str, Mapping[str, Any]]:
    """Return what reference.toml says of each CSV: `grain`, and `types` where reading would guess wrong."""
    text = (REFERENCE / "reference.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def reference_table(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Make `reference.<file name>` from a CSV with a header; an empty field is null."""
    types = reference_notes().get(path.stem, {}).get("types", {})
    declared = ", ".join(f"{literal(k)}: {literal(v)}" for k, v in types.items())
    con.execute(
        f"create table build.reference.{identifier(path.stem)} as select * from read_csv({literal(str(path))}, "
        f"header = true, delim = ',', quote = '\"', escape = '\"', nullstr = '', sample_size = -1, "
        f"strict_mode = true{f', types = {{{declared}}}' if declared else ''})"
    )


def mart_macros(con: duckdb.DuckDBPyConnection) -> None:
    """Make the macros that read marts; DuckDB wants their tables to exist."""
    con.execute(MART_MACROS.read_text(encoding="utf-8"))
