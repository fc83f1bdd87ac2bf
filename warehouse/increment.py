"""Make a build out of the one before: only what depends on records that came or went since is made anew.

The contract is that of a build of everything: the same records give the same tables. What each model needs for it stands in
its header, see `warehouse.slices`; a model without such a header is made anew as a whole where any of its inputs changed.
Models that wait for each other's tables no longer are made side by side: most are small, and one core plans what another
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from queue import SimpleQueue
from threading import Lock
from time import monotonic

import duckdb

from transforms.tables import TABLES
from warehouse import remake
from warehouse.remake import relation
from warehouse.runner import Model, Progress
from warehouse.session import aside

WORKERS = 4
"""Most models made side by side."""


@dataclass(slots=True)
class Increment:
    """One build out of the one before.

    Attributes:
        con: session on the copies of that build and its work.
        models: every model, by name.
        state: SAME, SOME or ALL by `schema.table`.
        fresh: by table of the lake, a query for the rows that came into it.
        lake: makes a relation of the lake that is read as a whole; asked for each once.
        tell: told each model and its seconds.
    """

    con: duckdb.DuckDBPyConnection
    models: Mapping[str, Model]
    state: dict[str, str]
    fresh: Mapping[str, str]
    lake: Callable[[duckdb.DuckDBPyConnection, str], None]
    tell: Progress
    _made: set[str] = field(default_factory=lambda: {"lake.exports"})
    _making: Lock = field(default_factory=Lock)

    def run(self) -> None:
        """Make what may have changed of every model.

        Raises:
            ModelError: DuckDB refuses a SELECT.
        """
        workers = SimpleQueue[remake.Worker]()
        asked = remake.asked_about(self.models)
        columns = self._columns()
        cores = _threads(self.con)
        side_by_side = min(WORKERS, cores)
        self.con.execute(f"set threads = {cores - side_by_side + 1}")
        for number in range(side_by_side):
            con = aside(self.con, number)
            workers.put(remake.Worker(con, number, self.state, self.fresh, columns, asked, self._whole_lake))

        def make(model: Model) -> float:
            worker = workers.get()
            began = monotonic()
            try:
                worker.run(model)
            finally:
                workers.put(worker)
            return monotonic() - began

        graph = {n: m.references & self.models.keys() for n, m in self.models.items()}
        order, steps = TopologicalSorter(graph), steps_after(graph)
        order.prepare()
        ready = list[str]()
        running = dict[Future[float], str]()
        with ThreadPoolExecutor(side_by_side, "model") as pool:
            try:
                while order.is_active():
                    ready = sorted((*ready, *order.get_ready()), key=lambda name: steps[name])
                    while ready and len(running) < side_by_side:
                        name = ready.pop()  # what most others wait for
                        running[pool.submit(make, self.models[name])] = name
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        name = running.pop(future)
                        self.tell(name, future.result())
                        order.done(name)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self.con.execute(f"set threads = {cores}")

    def _whole_lake(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        with self._making:
            if name not in self._made:
                self.lake(con, name)
                self._made.add(name)

    def _columns(self) -> dict[str, frozenset[str]]:
        """Return the columns of every table that a model may read."""
        rows = self.con.execute(
            "select concat(schema_name, '.', table_name), list(column_name) from duckdb_columns() "
            "where database_name in ('build', 'work') or (schema_name = 'lake' and table_name = 'exports') group by 1"
        ).fetchall()
        known = {f"lake.{name}": frozenset(table.schema) for name, table in TABLES.items()}
        return known | {str(name): frozenset(map(str, columns)) for name, columns in rows}


def steps_after(graph: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return how many steps at least follow each node of a graph that tells what each comes after."""
    steps = dict.fromkeys(graph, 0)
    for name in reversed([*TopologicalSorter(graph).static_order()]):
        for before in graph[name]:
            steps[before] = max(steps[before], steps[name] + 1)
    return steps


def _threads(con: duckdb.DuckDBPyConnection) -> int:
    row = con.execute("select current_setting('threads')").fetchone()
    return int(row[0]) if row else 1


def count(con: duckdb.DuckDBPyConnection, names: Collection[str]) -> dict[str, int]:
    """Return the rows of tables, by `schema.table`."""
    if not names:
        return {}
    each = (f"select '{name}', count(*) from {relation(name)}" for name in sorted(names))
    return {str(name): int(rows) for name, rows in con.execute(" union all ".join(each)).fetchall()}


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
