"""Make a build from the lake, check it, and publish it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb

from warehouse import checks, dictionary, load, publish, runner
from warehouse.checks import FailedCheck
from warehouse.fingerprint import fingerprint
from warehouse.inputs import Inputs
from warehouse.runner import Model, Progress
from warehouse.session import DamagedBuildError, building, reading

T = TypeVar("T")


class BuildFailedError(Exception):
    """DuckDB could not make or finish the file of a build: the disk is full, the memory too small."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did.

    Attributes:
        build_id: its id.
        path: its file; None where it was not published.
        seconds: time it took.
        rows: rows by `schema.table` of every model.
        failed_checks: checks that found bad rows.
        published: whether readers now see it.
        is_current: nothing had changed since it was made, so that nothing was done.
    """

    build_id: str
    path: Path | None
    seconds: float
    rows: dict[str, int] = field(default_factory=dict)
    failed_checks: tuple[FailedCheck, ...] = ()
    published: bool = False
    is_current: bool = False


def build(
    data: Path,
    inputs: Inputs,
    *,
    started_at: datetime,
    code_version: str,
    memory_limit: str | None = None,
    threads: int | None = None,
    keep: int = 5,
    force: bool = False,
    progress: Progress | None = None,
    models: Path = runner.MODELS,
    check_files: Path = checks.CHECKS,
) -> BuildReport:
    """Build the warehouse and publish it if every check passes; otherwise the former build stays.

    Args:
        data: folder that holds `builds/` and the link `warehouse.duckdb`.
        inputs: lake, exports and settings.
        started_at: UTC time; becomes the build's id.
        code_version: version of this project, kept in ops.builds.
        memory_limit: for DuckDB, as it reads it (`4GB`); None = from the container's limits.
        threads: for DuckDB; None = from the container's limits.
        keep: builds to keep, the published one always among them.
        force: build even if the newest build was made from the same records, settings and code.
        progress: told each finished step and its seconds.
        models: folder of models.
        check_files: folder of checks.

    Raises:
        BuildRunningError: another process builds into `data`.
        ModelError, CheckError: a model or check is wrong, or memory or spill space ran out.
        BuildFailedError: the build could not be begun or finished.
    """
    began = time.monotonic()
    tell = progress or (lambda _step, _seconds: None)
    mark = fingerprint(inputs, code_version)
    with publish.lock(data):
        publish.remove_unfinished(data)
        if not force and (newest := current(data, mark)):
            return replace(newest, seconds=time.monotonic() - began)
        found = runner.load(models)
        build_id = publish.new_id(data, started_at)
        final = publish.folder_of(data) / f"{build_id}{publish.SUFFIX}"
        unfinished = final.with_name(final.name + publish.UNFINISHED)
        spill = publish.folder_of(data) / f"{build_id}{publish.SPILL}"
        spill.mkdir()
        try:
            with building(unfinished, spill, memory_limit=memory_limit, threads=threads) as con:
                _timed("inputs", tell, lambda: load.inputs(con, inputs))
                rows = _run(con, found, tell)
                if models == runner.MODELS:  # other models have no such marts
                    load.mart_macros(con)
                _record(con, build_id, started_at, time.monotonic() - began, code_version, rows, mark)
                dictionary.comment(con, found)
                failed = _timed("checks", tell, lambda: tuple(checks.run(con, check_files)))
                con.execute("checkpoint build")
                con.execute("use memory")
                con.execute("detach build")
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise BuildFailedError(
                f"the build could not be finished ({reason}): the build before stays published. Is there room in {data}, and "
                "is memory_limit under [warehouse] large enough?"
            ) from error
        else:
            if failed:
                return BuildReport(build_id, None, time.monotonic() - began, rows, failed, published=False)
            publish.finish(unfinished, final)
            publish.switch(data, final)
            publish.prune(data, keep)
        finally:
            unfinished.unlink(missing_ok=True)
            unfinished.with_name(unfinished.name + ".wal").unlink(missing_ok=True)
            shutil.rmtree(spill, ignore_errors=True)
    return BuildReport(build_id, final, time.monotonic() - began, rows, published=True)


def current(data: Path, mark: str | None) -> BuildReport | None:
    """Return the newest build, if it was made from the inputs whose fingerprint is `mark`.

    It may not be the published one: a rollback holds until there is something new.
    """
    newest = next(reversed(publish.builds(data)), None)
    if newest is None or mark is None or not publish.link_of(data).exists():
        return None
    try:
        with reading(newest.path) as con:
            row = con.execute("select inputs_sha256, mart_rows from ops.builds").fetchone()
    except (duckdb.Error, DamagedBuildError):  # of a version that kept no such hash, or damaged: build anew
        return None
    if row is None or row[0] != mark:
        return None
    rows = {f"marts.{name}": int(n) for name, n in row[1].items()}
    return BuildReport(newest.build_id, newest.path, 0.0, rows, published=newest.is_published, is_current=True)


def _run(con: duckdb.DuckDBPyConnection, models: Mapping[str, Model], tell: Progress) -> dict[str, int]:
    """Make every model's table; return their row counts."""
    rows: dict[str, int] = {}
    for model in runner.order(models, load.known()):
        rows[model.name] = _timed(model.name, tell, partial(runner.create, con, model))
    return rows


def _record(
    con: duckdb.DuckDBPyConnection,
    build_id: str,
    started_at: datetime,
    seconds: float,
    code_version: str,
    rows: Mapping[str, int],
    mark: str | None,
) -> None:
    """Make `ops.builds`, the one table that no SELECT can make: it tells of the build itself."""
    marts = {name.partition(".")[2]: n for name, n in sorted(rows.items()) if name.startswith("marts.")}
    con.execute(
        "create table build.ops.builds as select ? as build_id, ?::timestamptz as started_at, "
        "?::timestamptz as finished_at, ? as code_version, map(?::varchar[], ?::bigint[]) as mart_rows, "
        "?::varchar as inputs_sha256",
        [
            build_id,
            started_at,
            started_at + timedelta(seconds=seconds),
            code_version,
            list(marts),
            list(marts.values()),
            mark,
        ],
    )


def _timed(step: str, tell: Progress, work: Callable[[], T]) -> T:
    began = time.monotonic()
    result = work()
    tell(step, time.monotonic() - began)
    return result
