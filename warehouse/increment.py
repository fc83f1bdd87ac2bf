"""Make a build out of the one before: only what depends on records that came or went since is made anew.

The contract is that of a build of everything: the same records give the same tables. What each model needs for it stands in
its header, see `warehouse.slices`; a model without such a header is made anew as a whole where any of its inputs changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import duckdb

from transforms.tables import TABLES
from warehouse import runner
from warehouse.runner import Model
from warehouse.session import WORK_SCHEMAS, catalog_of, identifier, literal
from warehouse.slices import Slice

SAME, SOME, ALL = "same", "some", "all"
"""What became of a table: nothing changed; `delta.<schema>__<table>` holds the rows that came or went; nobody looked."""


def relation(name: str) -> str:
    """Return the full name of `schema.table`, past any view in `slice`."""
    schema, _, table = name.partition(".")
    return f"{catalog_of(schema)}.{schema}.{identifier(table)}"


def delta(name: str) -> str:
    """Return the name of the table with the rows of `schema.table` that came or went."""
    return f"memory.delta.{identifier(name.replace('.', '__'))}"


@dataclass(slots=True)
class Increment:
    """One build out of the one before.

    Attributes:
        con: session on the copies of that build and its work.
        models: every model, by name.
        state: SAME, SOME or ALL by `schema.table`.
        fresh: by table of the lake, a query for the rows that came into it.
        lake: makes a relation of the lake that is read as a whole, the first time it is.
    """

    con: duckdb.DuckDBPyConnection
    models: Mapping[str, Model]
    state: dict[str, str]
    fresh: Mapping[str, str]
    lake: Callable[[str], None]

    def run(self, model: Model) -> None:
        """Make what of a model may have changed.

        Raises:
            ModelError: DuckDB refuses the SELECT.
        """
        changed = [name for name in sorted(model.references) if self.state.get(name, SAME) != SAME]
        if not changed:
            self.state[model.name] = SAME
            return
        try:
            if model.slice and self._is_partial(model.slice, changed):
                self._run_slice(model, model.slice, changed)
            else:
                self._run_whole(model)
        except duckdb.OutOfMemoryException as error:
            raise runner.out_of_memory(model, error) from error
        except duckdb.Error as error:
            raise runner.ModelError(f"{model.path}: {error}") from error

    def _is_partial(self, part: Slice, changed: list[str]) -> bool:
        """Tell whether the rows that changed say which rows of a model to make anew."""
        if part.dirty is not None:
            return not any(self.state.get(name) == ALL for name in self._asked(part))
        return all(self.state[name] == SOME and part.columns <= self._columns(name) for name in changed)

    def _run_slice(self, model: Model, part: Slice, changed: list[str]) -> None:
        con, target = self.con, relation(model.name)
        self._find_dirty(part, changed)
        if self._is_empty("memory.delta.dirty"):
            self.state[model.name] = SAME
            return
        sliced = [n for n in sorted(model.references) if n not in part.whole and part.columns <= self._columns(n)]
        try:
            for name in sliced:
                source = self._fresh(name, part, target) or self._whole(name)
                con.execute(f"create view slice.{name} as select * from {source} as input {_where(part, 'input')}")
            for name in model.references - set(sliced):
                self._whole(name)
            con.execute(f"create or replace table memory.delta.fresh as\n{model.sql}\n")
        finally:
            for name in sliced:
                con.execute(f"drop view if exists slice.{name}")
        con.execute(
            f"create or replace table memory.delta.former as select * from {target} as input {_where(part, 'input')}"
        )
        if not self._compare(model.name, "memory.delta.former"):
            return
        con.execute(f"delete from {target} as input {_where(part, 'input')}")
        con.execute(f"insert into {target} by name select * from memory.delta.fresh")

    def _run_whole(self, model: Model) -> None:
        con, target = self.con, relation(model.name)
        for name in model.references:
            self._whole(name)
        if model.schema in WORK_SCHEMAS and not self._is_looked_at(model.name):
            con.execute(f"create or replace table {target} as\n{model.sql}\n")
            self.state[model.name] = ALL
            return
        con.execute(f"create or replace table memory.delta.fresh as\n{model.sql}\n")
        if not self._is_looked_at(model.name):
            self.state[model.name] = ALL
        elif not self._compare(model.name, target):
            return
        con.execute(f"delete from {target}")  # a published table keeps its comments
        con.execute(f"insert into {target} by name select * from memory.delta.fresh")

    def _fresh(self, name: str, part: Slice, target: str) -> str | None:
        """Return what came into a relation of the lake, where nothing else can be meant; None = all of it must be read.

        The rows of a piece of an export came together. A record may have been told before, in any folder.
        """
        if name not in self.fresh or part.columns not in ({"export_id"}, {"record_id"}):
            return None
        known = f"select 1 from {target} as input {_where(part, 'input')} limit 1"
        if part.columns == {"record_id"} and self.con.execute(known).fetchone():
            return None
        return f"({self.fresh[name]})"

    def _whole(self, name: str) -> str:
        """Return a relation that is read as a whole; those of the lake are made when they are needed."""
        if name.startswith("lake."):
            self.lake(name)
        return relation(name)

    def _find_dirty(self, part: Slice, changed: list[str]) -> None:
        """Make `delta.dirty`: the values, or the one time, to make a model anew for."""
        for name in self._asked(part):
            if self.state.get(name, SAME) == SAME:
                self.con.execute(f"create or replace table {delta(name)} as select * from {relation(name)} limit 0")
        if part.dirty is not None:
            query = part.dirty
            for name in re.findall(r"\blake\.\w+", query):
                self._whole(name)
        elif part.settles:
            query = " union all ".join(f"select min({identifier(part.settles)}) from {delta(n)}" for n in changed)
        else:
            query = " union ".join(f"select {', '.join(part.keys)} from {delta(n)}" for n in changed)
        if part.settles:
            query = f"select min(t) - interval {literal(part.margin)} as k0 from ({query}) as found (t) having min(t) is not null"
            self.con.execute(f"create or replace table memory.delta.dirty as {query}")
            return
        columns = ", ".join(f"k{i}" for i in range(len(part.keys)))
        self.con.execute(
            f"create or replace table memory.delta.dirty as select distinct {columns} from ({query}) as found ({columns})"
        )

    def _compare(self, name: str, former: str) -> bool:
        """Make `delta.<name>` of the rows that `delta.fresh` and `former` do not share; tell whether there are any."""
        self.con.execute(
            f"create or replace table {delta(name)} as select * exclude (times) from ("
            f"select *, 1 as times from memory.delta.fresh union all select *, -1 as times from {former}"
            ") group by all having sum(times) <> 0"
        )
        self.state[name] = SAME if self._is_empty(delta(name)) else SOME
        return self.state[name] == SOME

    def _is_looked_at(self, name: str) -> bool:
        """Tell whether somebody asks which rows of a model changed."""
        return any(
            name in (m.references if m.slice.dirty is None else self._asked(m.slice))
            for m in self.models.values()
            if m.slice is not None
        )

    def _asked(self, part: Slice) -> list[str]:
        """Return the tables whose changed rows a `-- Dirty:` query reads."""
        found = re.findall(r"\bdelta\.(\w+?)__(\w+)", part.dirty or "")
        return [f"{schema}.{table}" for schema, table in found]

    def _is_empty(self, table: str) -> bool:
        return self.con.execute(f"select 1 from {table} limit 1").fetchone() is None

    def _columns(self, name: str) -> frozenset[str]:
        if name.startswith("lake.") and name != "lake.exports":
            return frozenset(TABLES[name.removeprefix("lake.")].schema)
        rows = self.con.execute(f"select column_name from (describe {relation(name)})").fetchall()
        return frozenset(str(column) for (column,) in rows)


def _where(part: Slice, table: str) -> str:
    """Return the WHERE of the rows to make anew."""
    if part.settles:
        column = f"{table}.{identifier(part.settles)}"
        return f"where {column} >= (select k0 from memory.delta.dirty) or {column} is null"
    same = " and ".join(f"({key}) is not distinct from dirty.k{i}" for i, key in enumerate(part.keys))
    return f"where exists (select 1 from memory.delta.dirty as dirty where {same})"


def count(con: duckdb.DuckDBPyConnection, name: str) -> int:
    """Return the rows of `schema.table`."""
    row = con.execute(f"select count(*) from {relation(name)}").fetchone()
    return int(row[0]) if row else 0


def take_over(con: duckdb.DuckDBPyConnection, basis: str, build_id: str) -> bool:
    """Tell whether the work belongs to a build and has the same basis; if so, claim it until it is finished.

    What is written to it counts from its next checkpoint on, so that a killed process leaves it as it was; one that fails
    otherwise may leave a part, and then nobody takes it over.
    """
    try:
        rows = con.execute("select name, value from work.state.facts").fetchall()
    except duckdb.Error:
        return False
    if dict(rows) != {"basis": basis, "build_id": build_id}:
        return False
    con.execute("delete from work.state.facts")
    return True
