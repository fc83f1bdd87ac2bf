"""The build's DuckDB session: two catalogs that models see as one, in UTC, within the container's limits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from warehouse import limits
from warehouse.publish import NoWarehouseError

STORAGE_VERSION = "v1.0.0"
"""Oldest DuckDB whose clients can open a published file; the clients people have lag behind the library."""
WORK_SCHEMAS = ("lake", "staging", "intermediate")
PUBLISHED_SCHEMAS = ("marts", "ops", "reference", "settings")
_SEARCH_PATH = ",".join(
    ["build.main", *(f"build.{s}" for s in PUBLISHED_SCHEMAS), *(f"memory.{s}" for s in WORK_SCHEMAS)]
)


class DamagedBuildError(NoWarehouseError):
    """The published build cannot be opened."""


def catalog_of(schema: str) -> str:
    """Return the catalog that holds `schema` while a build runs."""
    return "build" if schema in PUBLISHED_SCHEMAS else "memory"


@contextmanager
def building(
    target: Path, spill: Path, *, memory_limit: str | None = None, threads: int | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session whose `marts`, `ops`, `reference` and `settings` are written to `target`.

    Models name tables as `schema.table` only: every schema stands on the search path with its catalog.

    Args:
        target: file to make; must not exist.
        spill: existing folder for data that does not fit in memory.
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
        con.execute(f"attach {literal(str(target))} as build (storage_version {literal(STORAGE_VERSION)})")
        for schema in WORK_SCHEMAS + PUBLISHED_SCHEMAS:
            con.execute(f"create schema {catalog_of(schema)}.{schema}")
        con.execute(f"set search_path = {literal(_SEARCH_PATH)}")
        yield con


@contextmanager
def reading(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a read-only session on a build, attached as `warehouse`, shut off from files, network and settings.

    Args:
        file: a build, its link resolved.

    Raises:
        DamagedBuildError: it is no build, or a damaged one.
    """
    with tempfile.TemporaryDirectory(prefix="goodput-") as spill:
        found = limits.detect(Path(spill), share=limits.READER_SHARE)
        with duckdb.connect(":memory:", config=_config(found, Path(spill))) as con:
            _utc(con)
            try:
                con.execute(f"attach {literal(str(file))} as warehouse (read_only)")
                con.execute("use warehouse")
            except duckdb.Error as error:
                reason = str(error).splitlines()[0]
                raise DamagedBuildError(
                    f"{file} cannot be opened ({reason}): run `goodput build` to make another, or `goodput rollback` to go "
                    "back to the build before"
                ) from error
            con.execute("set enable_external_access = false")
            con.execute("set lock_configuration = true")
            yield con


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
