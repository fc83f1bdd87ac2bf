"""Make a build from the lake, check it, and publish it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import duckdb

from warehouse import checks, making, publish, runner
from warehouse.checks import FailedCheck
from warehouse.fingerprint import basis, fingerprint
from warehouse.inputs import Inputs
from warehouse.making import Files, Made, Maker
from warehouse.runner import Progress
from warehouse.session import DamagedBuildError, reading

MEMORY = ".models.json"
"""File beside the builds that keeps what the models select from."""


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
        made_from: id of the build that it was made out of; None = of everything.
        fell_back: why it could not be made out of the one before, where that was tried.
    """

    build_id: str
    path: Path | None
    seconds: float
    rows: dict[str, int] = field(default_factory=dict)
    failed_checks: tuple[FailedCheck, ...] = ()
    published: bool = False
    is_current: bool = False
    made_from: str | None = None
    fell_back: str | None = None


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
    mark = fingerprint(inputs, code_version)
    with publish.lock(data):
        publish.remove_unfinished(data)
        if not force and (newest := current(data, mark)):
            return replace(newest, seconds=time.monotonic() - began)
        build_id = publish.new_id(data, started_at)
        maker = Maker(
            inputs, runner.load(models, publish.folder_of(data) / MEMORY), check_files, basis(inputs, code_version), started_at, code_version, mark, began,
            progress or (lambda _step, _seconds: None), memory_limit, threads,
        )  # fmt: skip
        former = None if force or models != runner.MODELS else publish.former(data)
        with making.files(data, build_id) as files:
            made, fell_back = _made(maker, files, former)
            if made.failed_checks:
                return BuildReport(build_id, None, time.monotonic() - began, made.rows, made.failed_checks)
            if files.fresh_work.exists():
                publish.replace_work(data, files.fresh_work)
            publish.finish(files.unfinished, files.final)
            publish.switch(data, files.final)
            publish.prune(data, keep)
    return BuildReport(
        build_id,
        files.final,
        time.monotonic() - began,
        made.rows,
        published=True,
        made_from=made.made_from,
        fell_back=fell_back,
    )


def _made(maker: Maker, files: Files, former: Path | None) -> tuple[Made, str | None]:
    """Make a build out of the one before; of everything where there is none, or where that does not succeed.

    Returns:
        what was made, and why going on from the build before failed.
    """
    reason = None
    try:
        made = maker.out_of(files, former) if former else None
        if made is not None and not made.failed_checks:
            return made, None
        if made is not None:
            reason = f"check {made.failed_checks[0].name} failed"
    except (duckdb.Error, runner.ModelError) as error:  # it is damaged, or what it left is not as it should be
        reason = str(error).splitlines()[0]
    try:
        return maker.whole(files), reason
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise BuildFailedError(
            f"the build could not be finished ({reason}): the build before stays published. Is there room in {files.final.parent.parent}, and "
            "is memory_limit under [warehouse] large enough?"
        ) from error


def current(data: Path, mark: str | None) -> BuildReport | None:
    """Return the newest build, if it was made from the inputs whose fingerprint is `mark`.

    It may not be the published one: a rollback holds until there is something new.
    """
    newest = next(reversed(publish.builds(data)), None)
    if newest is None or mark is None or not publish.link_of(data).exists():
        return None
    if not newest.is_published and publish.held_back(data) != newest.build_id:
        return None  # nobody rolled it back: its maker was killed before readers could see it
    try:
        with reading(newest.path, is_small=True) as con:
            row = con.execute("select inputs_sha256, mart_rows from ops.builds").fetchone()
    except (duckdb.Error, DamagedBuildError):  # of a version that kept no such hash, or damaged: build anew
        return None
    if row is None or row[0] != mark:
        return None
    rows = {f"marts.{name}": int(n) for name, n in row[1].items()}
    return BuildReport(newest.build_id, newest.path, 0.0, rows, published=newest.is_published, is_current=True)
