"""Make one model anew where its inputs changed, and tell which of its rows are other than before."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import duckdb

from warehouse import runner
from warehouse.runner import Model
from warehouse.session import SLICE, WORK_SCHEMAS, catalog_of, identifier, literal
from warehouse.slices import Slice

SAME, SOME, ALL = "same", "some", "all"
"""What became of a table: nothing changed; `delta.<schema>__<table>` holds the rows that came or went; nobody looked."""

FEW = 100
"""Values that stand in a query themselves."""


def relation(name: str) -> str:
    """Return the full name of `schema.table`, past any view that hides it."""
    schema, _, table = name.partition(".")
    return f"{catalog_of(schema)}.{schema}.{identifier(table)}"


def delta(name: str) -> str:
    """Return the name of the table with the rows of `schema.table` that came or went, `_times` more or fewer than before."""
    return f"memory.delta.{identifier(name.replace('.', '__'))}"


def asked_about(models: Mapping[str, Model]) -> frozenset[str]:
    """Return the tables of which somebody asks which rows changed."""
    found = [m.references if m.slice.dirty is None else _asked(m.slice) for m in models.values() if m.slice]
    return frozenset(name for names in found for name in names)


class _Where(NamedTuple):
    """Which rows of a table to make anew.

    Attributes:
        text: a WHERE; empty = all.
        is_known: whether it needs no other table to say so.
    """

    text: str = ""
    is_known: bool = False


@dataclass(slots=True)
class Worker:
    """Makes one model after another; others do so beside it.

    Attributes:
        con: session of its own, see `warehouse.session.aside`.
        number: what tells it from the others.
        state: what became of each table so far; shared.
        fresh: by table of the lake, a query for the rows that came into it.
        columns: of every table.
        asked: tables of which somebody asks which rows changed.
        lake: makes a relation of the lake that is read as a whole, the first time it is asked for.
    """

    con: duckdb.DuckDBPyConnection
    number: int
    state: dict[str, str]
    fresh: Mapping[str, str]
    columns: Mapping[str, frozenset[str]]
    asked: Collection[str]
    lake: Callable[[duckdb.DuckDBPyConnection, str], None]

    def run(self, model: Model) -> None:
        """Make what of a model may have changed.

        Raises:
            ModelError: DuckDB refuses the SELECT.
        """
        changed = [name for name in sorted(model.references) if self.state.get(name, SAME) != SAME]
        try:
            if not changed:
                self.state[model.name] = self._unchanged(model.name)
            elif model.slice and self._is_partial(model.slice, changed):
                self.state[model.name] = self._slice(model, model.slice, changed)
            else:
                self.state[model.name] = self._whole(model)
        except duckdb.OutOfMemoryException as error:
            raise runner.out_of_memory(model, error) from error
        except duckdb.Error as error:
            raise runner.ModelError(f"{model.path}: {error}") from error

    def _unchanged(self, name: str) -> str:
        if name in self.asked:
            self.con.execute(f"create table {delta(name)} as select *, 0 as _times from {relation(name)} limit 0")
        return SAME

    def _is_partial(self, part: Slice, changed: list[str]) -> bool:
        """Tell whether the rows that changed say which rows of a model to make anew."""
        if part.dirty is not None:
            return not any(self.state.get(name) == ALL for name in _asked(part))
        return all(self.state[name] == SOME and part.columns <= self.columns[name] for name in changed)

    def _slice(self, model: Model, part: Slice, changed: list[str]) -> str:
        target = relation(model.name)
        found = self._find_dirty(part, changed)
        if not found:
            return self._unchanged(model.name)
        where = self._where(part, found)
        is_new = not self.fresh.keys().isdisjoint(changed) and self._is_new(part, target, where)
        sliced = [n for n in sorted(model.references) if n not in part.whole and part.columns <= self.columns[n]]
        hidden = list[tuple[str, str]]()
        try:
            for name in sliced:
                kind = "table" if model.sql.count(name) > 1 else "view"  # not to look for the same rows twice
                hidden.append((kind, f"{SLICE}{self.number}.{name}"))
                rows = self._come(name, part, is_new=is_new) or self._rows(self._read(name), where)
                self.con.execute(f"create {' '.join(hidden[-1])} as {rows}")
            for name in model.references - set(sliced):
                self._read(name)
            return self._change(model, where, is_new=is_new)
        finally:
            for kind, name in hidden:
                self.con.execute(f"drop {kind} if exists {name}")

    def _whole(self, model: Model) -> str:
        for name in model.references:
            self._read(name)
        if model.name in self.asked:
            return self._change(model, _Where())
        if model.schema in WORK_SCHEMAS:
            self.con.execute(f"create or replace table {relation(model.name)} as\n{model.sql}\n")
        else:
            self._replace(model, _Where())
        return ALL

    def _is_new(self, part: Slice, target: str, where: _Where) -> bool:
        """Tell whether a table holds none of the records to make: one may have been told before, in any folder."""
        if part.columns not in ({"record_id"}, {"export_id"}) or part.dirty is not None:
            return False
        return self.con.execute(f"select 1 from {target} as input {where.text} limit 1").fetchone() is None

    def _come(self, name: str, part: Slice, *, is_new: bool) -> str | None:
        """Return what came into a relation of the lake, where nothing else can be meant; None = all of it must be read.

        The rows of a piece of an export came together. Without a `-- Dirty:` all that came is to be made.
        """
        if name in self.fresh and part.dirty is None and (is_new or part.columns == {"export_id"}):
            return self.fresh[name]
        return None

    def _read(self, name: str) -> str:
        """Return a relation that is read as a whole; those of the lake are made when they are needed."""
        if name.startswith("lake."):
            self.lake(self.con, name)
        return relation(name)

    def _find_dirty(self, part: Slice, changed: list[str]) -> int:
        """Keep the values, or the one time, to make a model anew for as `dirty`; return how many there are."""
        if part.dirty is not None:
            query = part.dirty
            for name in re.findall(r"\blake\.\w+", query):
                self._read(name)
        elif part.settles:
            query = " union all ".join(f"select {identifier(part.settles)} from {delta(n)}" for n in changed)
        else:
            query = " union ".join(f"select {', '.join(part.keys)} from {delta(n)}" for n in changed)
        if part.settles:
            margin = f"interval {literal(part.margin)}"
            # null: only rows without a time changed
            return self._keep(
                "dirty", f"select min(t) - {margin} as k0 from ({query}) as found (t) having count(*) > 0"
            )
        columns = ", ".join(f"k{i}" for i in range(len(part.keys)))
        return self._keep("dirty", f"select distinct {columns} from ({query}) as found ({columns})")

    def _change(self, model: Model, where: _Where, *, is_new: bool = False) -> str:
        """Give a table the rows that its model makes now for those it holds; only what is other is written.

        `delta.<name>` is made of the rows that the two do not share.
        """
        target, changes = relation(model.name), delta(model.name)
        columns = ", ".join(map(identifier, sorted(self.columns[model.name])))
        held = (
            ""
            if is_new
            else (
                f" union all select {columns}, -1 as _times, rowid as _row from ({self._rows(target, where, 'rowid, *')})"
            )
        )
        made = self._kept_as(
            changes,
            f"select {columns}, sum(_times) as _times, min(_row) as _row, count(_row) as _rows from ("
            f"select {columns}, 1 as _times, null::bigint as _row from (\n{model.sql}\n){held}"
            ") group by all having sum(_times) <> 0",
        )
        if not made:
            return SAME
        row = self.con.execute(f"select min(_times), max(_times), max(_rows) from {changes}").fetchone()
        least, most, alike = row or (0, 0, 0)
        if least < -1 or most > 1 or alike > 1:  # which of several rows that are alike goes cannot be said
            self._replace(model, where)
            return SOME
        if least < 0:
            self.con.execute(f"delete from {target} where rowid in (select _row from {changes} where _times < 0)")
        if most > 0:
            self.con.execute(f"insert into {target} by name select {columns} from {changes} where _times > 0")
        return SOME

    def _rows(self, source: str, where: _Where, what: str = "*") -> str:
        """Return a query for rows of a table; the columns that do not choose are read of those rows only."""
        if ".lake." in source or where.is_known or not where.text:
            return f"select {what} from {source} as input {where.text}"
        return f"select {what} from {source} where rowid in (select rowid from {source} as input {where.text})"

    def _replace(self, model: Model, where: _Where) -> None:
        """Put what a model makes in the place of rows; a published table keeps its comments."""
        self._keep("fresh", model.sql)  # it may read the rows that go
        self.con.execute(f"delete from {relation(model.name)} as input {where.text}")
        self.con.execute(f"insert into {relation(model.name)} by name select * from {self._kept('fresh')}")

    def _keep(self, name: str, query: str) -> int:
        """Keep what a query gives for as long as one model is made; return the number of rows."""
        return self._kept_as(self._kept(name), query)

    def _kept_as(self, name: str, query: str) -> int:
        row = self.con.execute(f"create or replace table {name} as\n{query}\n").fetchone()
        return int(row[0]) if row else 0

    def _kept(self, name: str) -> str:
        return f"memory.delta.{name}{self.number}"

    def _where(self, part: Slice, found: int) -> _Where:
        """Return which rows to make anew, those of a relation called `input`.

        A value that stands in the query itself reaches every scan, that of a join only a scan of the column, none through
        an expression over it.
        """
        values = self._literals(len(part.keys) or 1) if found <= FEW else []
        if part.settles:
            column = f"input.{identifier(part.settles)}"
            since = [f"{column} >= {value}" for value in values[0] if value is not None]
            return _Where(f"where {' or '.join((*since, f'{column} is null'))}", is_known=True)
        tests, together = list[str](), 1
        for (key, columns), known in zip(part.parsed, values, strict=False):
            if len(known) == 1 or (key,) != columns:
                tests.append(_is_one_of(f"({key})", known))
                together *= len(known)
        is_known = len(tests) == len(part.parsed) and together == found
        if not is_known:
            same = " and ".join(f"({key}) is not distinct from dirty.k{i}" for i, key in enumerate(part.keys))
            tests.append(f"exists (select 1 from {self._kept('dirty')} as dirty where {same})")
        return _Where(f"where {' and '.join(tests)}", is_known)

    def _literals(self, keys: int) -> list[list[str | None]]:
        """Return the values of each key to make anew, as they stand in a query; None = null."""
        columns = ", ".join(f"k{i}::varchar, typeof(k{i})" for i in range(keys))
        rows = self.con.execute(f"select {columns} from {self._kept('dirty')}").fetchall()
        found = [dict.fromkeys((row[2 * i], row[2 * i + 1]) for row in rows) for i in range(keys)]
        return [[None if v is None else f"{literal(v)}::{kind}" for v, kind in values] for values in found]


def _is_one_of(key: str, values: list[str | None]) -> str:
    known = ", ".join(value for value in values if value is not None)
    tests = [f"{key} in ({known})"] if known else []
    if None in values:
        tests.append(f"{key} is null")
    return f"({' or '.join(tests)})"


def _asked(part: Slice) -> list[str]:
    """Return the tables whose changed rows a `-- Dirty:` query reads."""
    found = re.findall(r"\bdelta\.(\w+?)__(\w+)", part.dirty or "")
    return [f"{schema}.{table}" for schema, table in found]
