"""`goodput sql`: ad-hoc SQL on the published warehouse, one query or a shell."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption
from flows.cli.terminal import CommandError, clean, note
from flows.cli.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flows.config import Config

MAX_ROWS = 1000

_HOW = """give one in quotes:
  `goodput sql "select cause, count(*) as n from marts.interruptions group by all order by n desc"`
or in a file (--file FILE), or on standard input; on a terminal, none at all starts a shell; `goodput sql "show all tables"` lists what there is"""


def sql(
    query: Annotated[
        str | None,
        Parameter(
            help="One SQL statement, in quotes; without it and --file, from standard input; on a terminal, a shell."
        ),
    ] = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(help="File that holds the statement.")] = None,
    format: Annotated[Literal["table", "csv", "json", "parquet"], Parameter(help="How to print the answer.")] = "table",  # noqa: A002
    allow_files: Annotated[
        list[Path] | None,
        Parameter(
            help="Folder whose files queries may read and write; not the warehouse's. Can be given several times."
        ),
    ] = None,
    config: ConfigOption = None,
) -> int:
    """Query the published warehouse, read-only, also while a build runs. Schemas: marts, ops, reference, settings."""
    settings = facts.configuration(config)
    folders = _folders(settings, allow_files or [])
    is_terminal = sys.stdout.isatty()
    if query is None and file is None and is_terminal and sys.stdin.isatty():
        if format == "parquet":
            raise CommandError("Parquet is not for a terminal; in the shell `output FILE.parquet` writes an answer", 2)
        from flows.cli.shell import run_shell

        return run_shell(settings.data, folders, format)
    statement = _statement(query, file)
    if format == "parquet" and is_terminal:
        raise CommandError("Parquet is not for a terminal; add `> answer.parquet`", 2)
    from warehouse import publish
    from warehouse.query import QueryError

    try:
        _answer(publish.link_of(settings.data), statement, format, folders)
    except publish.NoWarehouseError as error:
        raise CommandError(str(error)) from None
    except QueryError as error:
        from flows.cli.query_errors import in_short

        raise CommandError(in_short(str(error))) from None
    return 0


def _folders(settings: Config, given: Sequence[Path]) -> list[Path]:
    """Return the folders that queries may use, links resolved.

    Raises:
        CommandError: one is none, or what it opens would hold files of the warehouse.
    """
    data = settings.data.resolve()
    for folder in given:
        if not folder.is_dir():
            raise CommandError(f"--allow-files {folder}: there is no such folder", 2)
        found = folder.resolve()
        if found.is_relative_to(data) or data.is_relative_to(found):
            raise CommandError(
                f"--allow-files {folder}: queries could then write to the warehouse in {data}; name a folder apart from it",
                2,
            )
    return [folder.resolve() for folder in given]


def _statement(query: str | None, file: Path | None) -> str:
    if query is not None and file is not None:
        raise CommandError("give a query or --file, not both", 2)
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise CommandError(f"--file {file}: there is no such file", 2) from None
        except OSError as error:
            raise CommandError(f"--file {file} cannot be read: {error.strerror}", 2) from None
        except UnicodeDecodeError:
            raise CommandError(f"--file {file} is no text in UTF-8", 2) from None
    if query is None and sys.stdin.isatty():
        raise CommandError(f"no query; {_HOW}", 2)
    statement = sys.stdin.read() if query is None else query
    if not statement.strip():
        where = "standard input is empty" if query is None else "the query is empty"
        raise CommandError(f"{where}; {_HOW}", 2)
    return statement


def _answer(path: Path, statement: str, format: str, folders: Sequence[Path]) -> None:  # noqa: A002
    from warehouse import query

    if format == "table":
        _table(path, statement, folders)
    elif sys.stdout.isatty():
        for line in _lines(path, statement, format, folders):
            sys.stdout.write(clean(line) + "\n")
    else:
        query.write(path, statement, sys.stdout.buffer, format, folders=folders)


def _table(path: Path, statement: str, folders: Sequence[Path]) -> None:
    from flows.cli.answers import say_answer
    from warehouse.console import Snapshot

    with Snapshot(path, folders) as snapshot:
        answer = snapshot.ask(statement, most=MAX_ROWS, count_seconds=math.inf)
    say_answer(answer.columns, answer.rows, hint="--format csv or json gives all")
    total = answer.total
    note(
        counted(total, "row") + (f", the first {MAX_ROWS:,} shown; --format csv gives all" if total > MAX_ROWS else "")
    )


def _lines(path: Path, statement: str, format: str, folders: Sequence[Path]) -> Iterator[str]:  # noqa: A002
    """Yield lines of CSV or JSON, to be made fit for a terminal."""
    import io

    from warehouse import query

    held = io.BytesIO()
    query.write(path, statement, held, format, folders=folders)
    yield from held.getvalue().decode("utf-8", "replace").splitlines()
