"""Descriptions of tables and columns, put into the build as comments and read back as the data dictionary."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from transforms.tables import TABLES
from warehouse import changes, load, publish
from warehouse.inputs import EXPORTS, SETTINGS
from warehouse.runner import Model
from warehouse.session import PUBLISHED_SCHEMAS, identifier, literal, reading


@dataclass(frozen=True, slots=True)
class Entry:
    """A published table: its grain, and (name, type, description) of each column in order."""

    schema: str
    table: str
    grain: str | None
    columns: tuple[tuple[str, str, str | None], ...]


COLUMNS = Path(__file__).parent / "columns.toml"
MACROS = Path(__file__).parent / "macros.toml"
_DIARY = {"ops.builds": "One row: the build that made this file.", "ops.verdict_changes": changes.GRAIN}
"""Tables that no SELECT makes: they tell of the build itself, and are made anew with every one."""


@cache
def _written() -> Mapping[str, Any]:
    return tomllib.loads(COLUMNS.read_text(encoding="utf-8"))


@cache
def _declared() -> dict[str, str]:
    """Descriptions of the normalized tables' columns, where all tables that have the column say the same."""
    found: dict[str, set[str]] = {}
    for table in (*TABLES.values(), EXPORTS):
        for column in table.columns:
            found.setdefault(column.name, set()).add(column.doc)
    return {name: docs.pop() for name, docs in found.items() if len(docs) == 1}


def describe(schema: str, table: str, column: str) -> str | None:
    """Return the description of a column; None = nobody wrote one.

    The table's own section of columns.toml wins, then the common line there, then the declaration of the normalized tables.
    """
    if schema == "settings":
        return {c.name: c.doc for c in SETTINGS[table].columns}.get(column)
    own = _written().get("tables", {}).get(table, {})
    found = own.get(column) or _written()["columns"].get(column) or _declared().get(column)
    return None if found is None else str(found)


def grain(schema: str, table: str, models: Mapping[str, Model]) -> str | None:
    """Return what one row of a table is."""
    if schema == "settings":
        return SETTINGS[table].grain
    if schema == "reference":
        text = load.reference_notes().get(table, {}).get("grain")
        return str(text) if text else None
    if (text := _DIARY.get(f"{schema}.{table}")) is not None:
        return text
    model = models.get(f"{schema}.{table}")
    return model.grain if model else None


def comment(con: duckdb.DuckDBPyConnection, models: Mapping[str, Model], only: Collection[str] | None = None) -> None:
    """Comment on every table, column and macro of the build; or on those of its tables that are named in `only`."""
    for schema, table in _tables(con):
        if only is not None and f"{schema}.{table}" not in {*only, *_DIARY}:
            continue
        name = f"build.{schema}.{identifier(table)}"
        text = grain(schema, table, models)
        if text:
            con.execute(f"comment on table {name} is {literal(text)}")
        for (column,) in con.execute(f"select column_name from (describe {name})").fetchall():
            text = describe(schema, table, column)
            if text:
                con.execute(f"comment on column {name}.{identifier(column)} is {literal(text)}")
    if only is None:
        _comment_macros(con)


def _comment_macros(con: duckdb.DuckDBPyConnection) -> None:
    made = con.execute(
        "select distinct function_name, function_type from duckdb_functions() where database_name = 'build' order by all"
    ).fetchall()
    for macro, kind in made:
        if text := macros().get(macro):
            of = "macro table" if kind == "table_macro" else "macro"
            con.execute(f"comment on {of} build.main.{identifier(macro)} is {literal(text)}")


@cache
def macros() -> Mapping[str, str]:
    """Return what stands at each macro: its meaning, and an example after the word `Example:`."""
    written = tomllib.loads(MACROS.read_text(encoding="utf-8"))
    return {name: f"{entry['meaning']} Example: {entry['example']}" for name, entry in written.items()}


def _tables(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    rows = con.execute(
        "select schema_name, table_name from duckdb_tables() where database_name = 'build' order by all"
    ).fetchall()
    return [(str(s), str(t)) for s, t in rows if s in PUBLISHED_SCHEMAS]


def entries(path: Path) -> list[Entry]:
    """Return the data dictionary of a build, from its own comments.

    Args:
        path: `data/warehouse.duckdb`, or the file of one build.

    Raises:
        NoWarehouseError: nothing has been published.
    """
    with reading(publish.resolve(path), is_small=True) as con:
        rows = con.execute(
            "select c.schema_name, c.table_name, any_value(t.comment), "
            "list((c.column_name, c.data_type, c.comment) order by c.column_index) "
            "from duckdb_columns() as c inner join duckdb_tables() as t using (database_name, schema_name, table_name) "
            "where c.database_name = 'warehouse' group by c.schema_name, c.table_name order by all"
        ).fetchall()
    return [Entry(schema, table, text, tuple(tuple(c) for c in columns)) for schema, table, text, columns in rows]
