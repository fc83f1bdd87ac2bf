"""Make the two files of a build, as a whole or out of the build before: the one that is published, and its work beside it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb

from transforms.tables import TABLES
from warehouse import changes, checks, dictionary, increment, lake_changes, load, publish, remake, runner
from warehouse.checks import FailedCheck
from warehouse.inputs import Inputs
from warehouse.runner import Model, Progress
from warehouse.session import building

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Files:
    """Where a build is made.

    Attributes:
        unfinished: its file, while it is made.
        final: its file.
        fresh_work: the tables that are not published, while everything is made.
        work: the same of the newest build.
        spill: folder for what does not fit in memory.
    """

    unfinished: Path
    final: Path
    fresh_work: Path
    work: Path
    spill: Path


@dataclass(frozen=True, slots=True)
class Made:
    """What was made.

    Attributes:
        rows: by `schema.table`, of the models that were made anew, and of all marts.
        failed_checks: checks that found bad rows.
        made_from: id of the build that it was made out of; None = of everything.
    """

    rows: dict[str, int]
    failed_checks: tuple[FailedCheck, ...]
    made_from: str | None = None


@contextmanager
def files(data: Path, build_id: str) -> Iterator[Files]:
    """Give names for the files of a build, and take away what was left of them at the end."""
    final = publish.folder_of(data) / f"{build_id}{publish.SUFFIX}"
    work = publish.work_of(data)
    found = Files(
        final.with_name(final.name + publish.UNFINISHED),
        final,
        work.with_name(work.name + publish.UNFINISHED),
        work,
        publish.folder_of(data) / f"{build_id}{publish.SPILL}",
    )
    found.spill.mkdir()
    try:
        yield found
    finally:
        _forget(found)
        shutil.rmtree(found.spill, ignore_errors=True)


def _forget(found: Files) -> None:
    for path in (found.unfinished, found.fresh_work):
        path.unlink(missing_ok=True)
        path.with_name(path.name + ".wal").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes one build.

    Attributes:
        inputs: lake, exports and settings.
        models: every model, by name.
        check_files: folder of checks.
        basis: hash of everything but the records; the build before must have the same to go on from it.
        started_at: UTC time.
        code_version: version of this project.
        mark: hash of all inputs.
        began: monotonic time at which it began, seconds.
        tell: told each finished step and its seconds.
        memory_limit: for DuckDB; None = from the container's limits.
        threads: likewise.
    """

    inputs: Inputs
    models: Mapping[str, Model]
    check_files: Path
    basis: str
    started_at: datetime
    code_version: str
    mark: str | None
    began: float
    tell: Progress
    memory_limit: str | None
    threads: int | None

    def whole(self, files: Files) -> Made:
        """Make everything anew.

        Raises:
            ModelError, CheckError: a model or check is wrong, or memory or spill space ran out.
            duckdb.Error: the files cannot be written.
        """
        _forget(files)
        work = None if self.inputs.parts is None else files.fresh_work  # nobody could tell what is new
        with self._session(files, work) as con:
            self._timed("inputs", lambda: load.inputs(con, self.inputs))
            rows = {}
            for model in runner.order(self.models, load.known()):
                rows[model.name] = self._timed(model.name, partial(runner.create, con, model))
            if "marts.interruptions" in self.models:  # other models have no such marts
                load.mart_macros(con)
            return self._finish(con, files, rows, None)

    def out_of(self, files: Files, former: Path) -> Made | None:
        """Make what depends on records that came or went since `former`; None where that cannot be told.

        Args:
            files: where to make it.
            former: a finished build with its work.

        Raises:
            ModelError, CheckError, duckdb.Error: as `whole`.
        """
        _forget(files)
        shutil.copyfile(former, files.unfinished)
        files.unfinished.chmod(0o644)
        with self._session(files, files.work) as con:
            if not increment.take_over(con, self.basis, former.stem):
                return None
            rows = {
                f"marts.{n}": int(r)
                for n, r in con.execute(
                    "select unnest(map_keys(mart_rows)), unnest(map_values(mart_rows)) from build.ops.builds"
                ).fetchall()
            }
            try:
                state, fresh = self._timed("inputs", lambda: self._changes(con))
            except lake_changes.UnknownChangeError:
                return None
            increment.Increment(con, self.models, state, fresh, self._lake, self.tell).run()
            rows |= increment.count(con, [n for n in self.models if n.startswith("marts.") and state[n] != remake.SAME])
            return self._finish(con, files, rows, former.stem)

    def _changes(self, con: duckdb.DuckDBPyConnection) -> tuple[dict[str, str], dict[str, str]]:
        load.exports(con, self.inputs)
        return lake_changes.find(con, self.inputs)

    def _lake(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        load.lake_table(con, TABLES[name.removeprefix("lake.")], self.inputs.lake)

    @contextmanager
    def _session(self, files: Files, work: Path | None) -> Iterator[duckdb.DuckDBPyConnection]:
        with building(
            files.unfinished, files.spill, work=work, memory_limit=self.memory_limit, threads=self.threads
        ) as con:
            yield con

    def _finish(
        self, con: duckdb.DuckDBPyConnection, files: Files, rows: dict[str, int], made_from: str | None
    ) -> Made:
        """Write what tells of the build itself, check it, and close its files.

        What is not published is written meanwhile. It names the build, and is of no use unless that is finished.
        """
        if self.inputs.parts is not None:
            lake_changes.remember(con, self.inputs, {"basis": self.basis, "build_id": files.final.stem})
        con.execute("use build")  # whoever looks for a table in `work` would hold up its checkpoint
        with ThreadPoolExecutor(1, "checkpoint") as aside:
            kept = aside.submit(con.cursor().execute, "checkpoint work")
            self._record(con, files.final.stem, rows, made_from)
            if "marts.interruptions" in self.models:
                link = publish.link_of(files.final.parent.parent)
                changes.record(con, link.resolve() if link.exists() else None, files.final.stem, self.started_at)
            self._timed("comments", lambda: dictionary.comment(con, self.models, {"ops.builds"} if made_from else None))
            failed = self._timed("checks", lambda: tuple(checks.run(con, self.check_files)))
            if not failed:
                self._timed("files", lambda: _close(con, kept))
        return Made(rows, failed, made_from)

    def _record(
        self, con: duckdb.DuckDBPyConnection, build_id: str, rows: Mapping[str, int], made_from: str | None
    ) -> None:
        """Make `ops.builds`, the one table that no SELECT can make: it tells of the build itself."""
        marts = {name.partition(".")[2]: n for name, n in sorted(rows.items()) if name.startswith("marts.")}
        con.execute(
            "create or replace table build.ops.builds as select ? as build_id, ?::timestamptz as started_at, "
            "?::timestamptz as finished_at, ? as code_version, map(?::varchar[], ?::bigint[]) as mart_rows, "
            "?::varchar as inputs_sha256, ?::varchar as made_from",
            [
                build_id,
                self.started_at,
                self.started_at + timedelta(seconds=time.monotonic() - self.began),
                self.code_version,
                list(marts),
                list(marts.values()),
                self.mark,
                made_from,
            ],
        )

    def _timed(self, step: str, work: Callable[[], T]) -> T:
        began = time.monotonic()
        result = work()
        self.tell(step, time.monotonic() - began)
        return result


def _close(con: duckdb.DuckDBPyConnection, kept: Future[duckdb.DuckDBPyConnection]) -> None:
    """Write `build`, and let go of both files once `work` is written too."""
    con.execute("use memory")
    con.execute("checkpoint build")
    kept.result()
    for catalog in ("work", "build"):
        con.execute(f"detach {catalog}")
