"""`goodput sql`: ad-hoc SQL on the published warehouse."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption
from flows.cli.tables import say_table
from flows.cli.terminal import CommandError, clean, note
from flows.cli.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ROWS = 1000

_HOW = """give one in quotes:
  `goodput sql "select cause, count(*) as n from marts.interruptions group by all order by n desc"`
or in a file (--file FILE), or on standard input; `goodput sql "show all tables"` lists what there is"""


def sql(
    query: Annotated[
        str | None,
        Parameter(help="One SQL statement, in quotes; from standard input if neither this nor --file is given."),
    ] = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(help="File that holds the statement.")] = None,
    format: Annotated[Literal["table", "csv", "json", "parquet"], Parameter(help="How to print the answer.")] = "table",  # noqa: A002
    config: ConfigOption = None,
) -> int:
    """Query the published warehouse, read-only, also while a build runs. Schemas: marts, ops, reference, settings."""
    settings = facts.configuration(config)
    statement = _statement(query, file)
    if format == "parquet" and sys.stdout.isatty():
        raise CommandError("Parquet is not for a terminal; add `> answer.parquet`", 2)
    from warehouse import publish
    from warehouse.query import QueryError

    try:
        _answer(publish.link_of(settings.data), statement, format)
    except publish.NoWarehouseError as error:
        raise CommandError(str(error)) from None
    except QueryError as error:
        raise CommandError(f'{error}\n`goodput sql "show all tables"` lists what there is.') from None
    return 0


def _statement(query: str | None, file: Path | None) -> str:
    if query is not None and file is not None:
        raise CommandError("give a query or --file, not both", 2)
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file}: {error}", 2) from None
    if query is None and sys.stdin.isatty():
        raise CommandError(f"no query; {_HOW}", 2)
    statement = sys.stdin.read() if query is None else query
    if not statement.strip():
        where = "standard input is empty" if query is None else "the query is empty"
        raise CommandError(f"{where}; {_HOW}", 2)
    return statement


def _answer(path: Path, statement: str, format: str) -> None:  # noqa: A002
    from warehouse import query

    if format == "table":
        _table(path, statement)
    elif sys.stdout.isatty():
        for line in _lines(path, statement, format):
            sys.stdout.write(clean(line) + "\n")
    else:
        query.write(path, statement, sys.stdout.buffer, format)


def _table(path: Path, statement: str) -> None:
    from warehouse import query

    shown: list[facts.Row] = []
    total = 0
    with query.query(path, statement) as reader:
        names = reader.schema.names
        for batch in reader:
            shown.extend(batch.slice(0, max(MAX_ROWS - total, 0)).to_pylist())
            total += batch.num_rows
    say_table(shown, names)
    note(
        counted(total, "row") + (f", the first {MAX_ROWS:,} shown; --format csv gives all" if total > MAX_ROWS else "")
    )


def _lines(path: Path, statement: str, format: str) -> Iterator[str]:  # noqa: A002
    """Yield lines of CSV or JSON, to be made fit for a terminal."""
    import io

    from warehouse import query

    held = io.BytesIO()
    query.write(path, statement, held, format)
    yield from held.getvalue().decode("utf-8", "replace").splitlines()
