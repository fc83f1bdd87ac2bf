"""What came into the lake and what left it since the build before: rows, and the parts that can hold their like.

A part is never changed, and each row names the piece of an export that it comes from: pieces that the build before did not
know are new, and lie in parts that it did not know; such a part may hold rows of others, where parts were merged. Rows leave the lake where an unterminated last line was read again; the rows of such lines lie in parts
of their own and are kept beside the build. Where anything else left, nothing is known, and everything is built.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from transforms.tables import TABLES, Table
from warehouse import load
from warehouse.inputs import Inputs
from warehouse.remake import SAME, SOME, delta
from warehouse.session import identifier, literal

_TAIL = re.compile(r"/b\d+t-\d+\.parquet$")
_EXPORTS = "lake.exports"


class UnknownChangeError(Exception):
    """It cannot be told which rows left the lake."""


def remember(con: duckdb.DuckDBPyConnection, inputs: Inputs, facts: Mapping[str, str]) -> None:
    """Keep in `work.state` what the next build needs to tell what changed: facts, parts, and rows that may leave."""
    con.execute("create schema if not exists work.state")
    con.execute("create or replace table work.state.facts (name varchar, value varchar)")
    con.executemany("insert into work.state.facts values (?, ?)", sorted(facts.items()))
    con.execute(
        "create or replace table work.state.parts as select unnest(?::varchar[]) as path", [sorted(inputs.parts or ())]
    )
    pieces = sorted(inputs.batches.items())
    con.execute(
        "create or replace table work.state.pieces as select unnest(?::varchar[]) as export_id, unnest(?::varchar[]) as batch",
        [[p[0] for p in pieces], [p[1] for p in pieces]],
    )
    for table in TABLES.values():
        tails = [p for p in inputs.parts or () if _TAIL.search(p) and _table_of(p) == table.name]
        name = f"work.state.{identifier('tail__' + table.name)}"
        con.execute(f"drop table if exists {name}")
        if tails:
            con.execute(f"create table {name} as {_rows(con, table, inputs.lake, tails)}")


def find(con: duckdb.DuckDBPyConnection, inputs: Inputs) -> tuple[dict[str, str], dict[str, str]]:
    """Make `delta.lake__<table>` of the rows that came or left.

    Returns:
        what became of each table of the lake; and a query for the rows that came into it.

    Raises:
        UnknownChangeError: rows left of which nothing is known.
    """
    former = {path for (path,) in con.execute("select path from work.state.parts").fetchall()}
    fresh = _fresh(con, inputs)
    batches = {inputs.batches[export_id] for export_id in fresh}
    parts = inputs.parts or {}
    new = [path for path in sorted(parts) if path not in former and not batches.isdisjoint(parts[path])]
    con.execute("create table memory.delta.fresh_exports as select unnest(?::varchar[]) as export_id", [sorted(fresh)])
    state, fresh_rows = {_EXPORTS: _exports(con)}, dict[str, str]()
    _see_that_none_is_lost(con)
    gone = _gone(con)
    tails = _tails(con) if gone else set[str]()
    found = set[str]()
    for table in TABLES.values():
        name = f"lake.{table.name}"
        came = [p for p in new if _table_of(p) == table.name]
        left = _left(con, table, gone) if table.name in tails else None
        found |= (
            {str(e) for (e,) in con.execute(f"select distinct export_id from ({left})").fetchall()} if left else set()
        )
        rows = _rows(con, table, inputs.lake, came)
        sources = [f"select *, 1 as _times from ({rows}) semi join memory.delta.fresh_exports using (export_id)"]
        if left:
            sources.append(f"select *, -1 as _times from ({left})")
        state[name] = SOME if came or left else SAME
        con.execute(f"create table {delta(name)} as {' union all '.join(sources)}")
        fresh_rows[name] = f"select * exclude (_times) from {delta(name)} where _times > 0"
    if unknown := gone - found:
        raise UnknownChangeError(f"{len(unknown)} pieces of exports were read again")
    return state, fresh_rows


def _fresh(con: duckdb.DuckDBPyConnection, inputs: Inputs) -> set[str]:
    """Return the pieces of exports that the build before did not know.

    Raises:
        UnknownChangeError: one that it knew was read again, perhaps with other settings.
    """
    known = dict(con.execute("select export_id, batch from work.state.pieces").fetchall())
    fresh = {export_id for export_id, batch in inputs.batches.items() if known.get(export_id) != batch}
    if again := fresh & known.keys():
        raise UnknownChangeError(f"{len(again)} pieces of exports were read again")
    return fresh


def _see_that_none_is_lost(con: duckdb.DuckDBPyConnection) -> None:
    """See that no piece of an export has lost rows since: it keeps its id and its batch, and which rows left cannot be told.

    Raises:
        UnknownChangeError: one has.
    """
    row = con.execute(
        f"select count(*) from {delta(_EXPORTS)} as now inner join {delta(_EXPORTS)} as former using (export_id) "
        "where now._times > 0 and former._times < 0 and former.status = 'loaded' and now.status <> 'loaded'"
    ).fetchone()
    if row and row[0]:
        raise UnknownChangeError(f"rows of {row[0]} pieces of exports were lost")


def _gone(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the pieces of exports whose rows left the lake."""
    rows = con.execute(
        f"select export_id from {delta(_EXPORTS)} as former "
        f"anti join (from {delta(_EXPORTS)} where _times > 0) as now using (export_id) "
        "where former._times < 0 and (former.lines_used > 0 or former.lines_rejected > 0)"
    ).fetchall()
    return {str(export_id) for (export_id,) in rows}


def _exports(con: duckdb.DuckDBPyConnection) -> str:
    name = delta(_EXPORTS)
    con.execute(
        f"create or replace table {name} as select * exclude (_times), sum(_times) as _times from ("
        "select *, 1 as _times from memory.lake.exports union all by name "
        "select *, -1 as _times from build.ops.exports) group by all having sum(_times) <> 0"
    )
    return SOME if con.execute(f"select 1 from {name} limit 1").fetchone() else SAME


def _tails(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the tables of which last lines are kept."""
    rows = con.execute(
        "select table_name from duckdb_tables() where database_name = 'work' and schema_name = 'state'"
    ).fetchall()
    return {name.removeprefix("tail__") for (name,) in rows if name.startswith("tail__")}


def _left(con: duckdb.DuckDBPyConnection, table: Table, gone: set[str]) -> str | None:
    """Return a query for the rows of last lines that were read again; None where there are none."""
    ids = ", ".join(map(literal, sorted(gone)))
    query = f"select * from work.state.{identifier('tail__' + table.name)} where export_id in ({ids})"
    return query if con.execute(f"select 1 from ({query}) limit 1").fetchone() else None


def _table_of(path: str) -> str:
    return path.partition("/")[0]


def _rows(con: duckdb.DuckDBPyConnection, table: Table, lake: Path, parts: Sequence[str]) -> str:
    """Return a query for the rows of some parts, with the declared columns and types."""
    if not parts:
        columns = ", ".join(f"null::{load.sql_type(c.dtype)} as {identifier(c.name)}" for c in table.columns)
        return f"select {columns} where false"
    files = ", ".join(literal(str(lake / part)) for part in parts)
    return load.lake_rows(con, table, f"[{files}]")
