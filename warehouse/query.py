"""Ad-hoc SQL on a published build: read-only, without access to files, network or settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from warehouse import publish
from warehouse.session import reading
from warehouse.statements import QueryError, the_only
from warehouse.values import BATCH_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ask", "QueryError", "Values", "answering", "asking", "query", "rows"]

Values = Sequence[Any] | Mapping[str, Any]
Ask = Callable[[str, Values | None], list[dict[str, Any]]]
"""Takes a query and its values, and returns its answer as `rows` does."""


@contextmanager
def query(
    path: Path, sql: str, params: Values | None = None, *, folders: Sequence[Path] = ()
) -> Iterator[pa.RecordBatchReader]:
    """Run a query on the warehouse and give its answer as a stream of Arrow batches.

    Args:
        path: `data/warehouse.duckdb`, or the file of one build.
        sql: one statement.
        params: values for its `?` or `$name`.
        folders: existing folders whose files the query may read and write; elsewhere it may not.

    Raises:
        NoWarehouseError: nothing has been published.
        QueryError: DuckDB refuses the query, also while its answer is read; or it is not one statement.
    """
    with reading(publish.resolve(path), folders=folders) as con, answering(con, sql, params) as relation:
        yield relation.to_arrow_reader(BATCH_ROWS)


def rows(path: Path, sql: str, params: Values | None = None) -> list[dict[str, Any]]:
    """Run a query of ours and return its answer as dictionaries; times are aware datetimes in UTC.

    The answer is meant to be small, and so is what it is made of.

    Raises:
        NoWarehouseError, QueryError: as `query`.
    """
    with asking(path) as ask:
        return ask(sql, params)


@contextmanager
def asking(path: Path) -> Iterator[Ask]:
    """Give what `rows` does, in one session for several queries: all of them are asked of the same build.

    Raises:
        NoWarehouseError: nothing has been published.
    """
    with reading(publish.resolve(path), is_small=True) as con:

        def ask(sql: str, params: Values | None) -> list[dict[str, Any]]:
            with answering(con, sql, params) as relation:
                names = relation.columns
                return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]

        yield ask


@contextmanager
def answering(
    con: duckdb.DuckDBPyConnection, sql: str, params: Values | None = None
) -> Iterator[duckdb.DuckDBPyRelation]:
    """Give the answer to one statement, to be read before the context ends.

    Raises:
        QueryError: as `query`.
    """
    try:
        sql = the_only(con, sql)
        relation = con.sql(sql, params=params) if params else con.sql(sql)
        if relation is None:
            relation = con.sql("select 'done' as status where false")
        yield relation
    except _refusals() as error:
        raise QueryError(str(error)) from error
    except OSError as error:
        if error.errno is not None:  # a real one, such as a broken pipe; Arrow has none for DuckDB's errors
            raise
        raise QueryError(str(error)) from error


def _refusals() -> tuple[type[Exception], ...]:
    """Return what DuckDB raises, and Arrow where somebody has loaded it, which takes a while."""
    arrow = sys.modules.get("pyarrow")
    return (duckdb.Error, arrow.ArrowException) if arrow else (duckdb.Error,)
