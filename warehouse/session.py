"""The build's DuckDB session: two catalogs that models see as one, in UTC, within the container's limits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from warehouse import limits
from warehouse import spill as spilling
from warehouse.publish import NoWarehouseError

STORAGE_VERSION = "v1.0.0"
"""Oldest DuckDB whose clients can open a published file; the clients people have lag behind the library."""
WORK_SCHEMAS = ("staging", "intermediate")
PUBLISHED_SCHEMAS = ("marts", "ops", "reference", "settings")
WORK_ROWS = 16384
"""Rows of a row group in the tables that are not published: the last one is written anew when rows are added."""
SLICE = "slice"
_SCHEMAS = ("lake", *WORK_SCHEMAS, *PUBLISHED_SCHEMAS)


class DamagedBuildError(NoWarehouseError):
    """The published build cannot be opened."""


def catalog_of(schema: str) -> str:
    """Return the catalog that holds `schema` while a build runs."""
    if schema in PUBLISHED_SCHEMAS:
        return "build"
    return "work" if schema in WORK_SCHEMAS else "memory"


@contextmanager
def building(
    target: Path,
    spill: Path,
    *,
    work: Path | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session whose `marts`, `ops`, `reference` and `settings` are written to `target`, all other models to `work`.

    Models name tables as `schema.table` only: every schema stands on the search path with its catalog.

    Args:
        target: file to make, or the copy of a build to change.
        spill: existing folder for data that does not fit in memory.
        work: like `target`, for the tables that are not published; None = they are forgotten with the session.
        memory_limit: as DuckDB reads it; None = from the control group.
        threads: None = from the control group.
    """
    found = limits.detect(spill)
    config = _config(found, spill) | {"preserve_insertion_order": False}
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    if threads is not None:
        config["threads"] = threads
    with duckdb.connect(":memory:", config=config) as con:
        _utc(con)
        con.execute("set global parquet_metadata_cache = true")  # parts never change, and several models read them
        # Without a log what is written counts from the checkpoint at the end: ended before, a file stays as it was.
        con.execute("pragma disable_checkpoint_on_shutdown")
        options = f"storage_version {literal(STORAGE_VERSION)}, recovery_mode no_wal_writes"
        con.execute(f"attach {literal(str(target))} as build ({options})")
        if work is None:
            con.execute("attach ':memory:' as work")
        else:
            options = f"recovery_mode no_wal_writes, row_group_size {WORK_ROWS}"
            con.execute(f"attach {literal(str(work))} as work ({options})")
        con.execute("create schema memory.delta")
        for schema in _SCHEMAS:
            con.execute(f"create schema if not exists {catalog_of(schema)}.{schema}")
        con.execute(
            f"set search_path = {literal(','.join(['build.main', *(f'{catalog_of(s)}.{s}' for s in _SCHEMAS)]))}"
        )
        yield con


def aside(con: duckdb.DuckDBPyConnection, number: int) -> duckdb.DuckDBPyConnection:
    """Return another session on what `building` opened, to be used by another thread.

    Before each schema stands the one of the same name in a catalog of its own, `slice<number>`: a view there hides the table,
    so that a model reads a part of it.
    """
    other = con.cursor()
    _utc(other)
    own = f"{SLICE}{number}"
    other.execute(f"attach ':memory:' as {own}")
    for schema in _SCHEMAS:
        other.execute(f"create schema {own}.{schema}")
    path = [f"{c}.{s}" for s in _SCHEMAS for c in (own, catalog_of(s))]
    other.execute(f"set search_path = {literal(','.join(['build.main', *path, 'memory.delta']))}")
    return other


@contextmanager
def reading(
    file: Path, *, beside: Path | None = None, folders: Sequence[Path] = (), is_small: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a read-only session on a build, attached as `warehouse`, shut off from files, network and settings.

    Args:
        file: a build, its link resolved.
        beside: another build, attached as `former`.
        folders: existing folders whose files may be read and written nevertheless; the caller sees to it that no build
            lies in them.
        is_small: only questions of ours will be asked, which fit in memory: nothing is written beside the build.

    Raises:
        DamagedBuildError: it is no build, or a damaged one.
    """
    with _temporary() if is_small else spilling.folder(beside=file) as spill:
        found = limits.detect(spill, share=limits.READER_SHARE)
        config = _config(found, spill) | {"python_enable_replacements": False}  # no variables of ours as tables
        with duckdb.connect(":memory:", config=config) as con:
            _utc(con)
            for path, name in ((file, "warehouse"), (beside, "former")):
                if path is not None:
                    _attach(con, path, name)
            con.execute("use warehouse")
            if folders:
                allowed = ", ".join(literal(f"{folder.resolve()}/") for folder in folders)
                con.execute(f"set allowed_directories = [{allowed}]")
            con.execute("set enable_external_access = false")
            con.execute("set lock_configuration = true")
            yield con


def columns_of(con: duckdb.DuckDBPyConnection, catalog: str, name: str) -> set[str]:
    """Return the columns that a build has for `schema.table`; none where it has no such table, as those of former versions."""
    schema, _, table = name.partition(".")
    sql = "select column_name from duckdb_columns() where database_name = ? and schema_name = ? and table_name = ?"
    return {column for (column,) in con.execute(sql, [catalog, schema, table]).fetchall()}


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="goodput-") as folder:
        yield Path(folder)


def _attach(con: duckdb.DuckDBPyConnection, file: Path, name: str) -> None:
    try:
        con.execute(f"attach {literal(str(file))} as {name} (read_only)")
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise DamagedBuildError(
            f"{file} cannot be opened ({reason}): run `goodput build` to make another, or `goodput rollback` to go "
            "back to the build before"
        ) from error


def _config(found: limits.Limits, spill: Path) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "memory_limit": found.memory_limit,
        "threads": found.threads,
        "temp_directory": str(spill),
        "max_temp_directory_size": found.max_temp_directory_size,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }


def _utc(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("set TimeZone = 'UTC'")
    con.execute("set enable_progress_bar = false")


def literal(text: str) -> str:
    """Return `text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return `name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
