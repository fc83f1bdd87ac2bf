"""`goodput sql`: ad-hoc SQL on the published warehouse, one query or a shell."""

from __future__ import annotations

import io
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
    from collections.abc import Sequence

    from flows.config import Config
    from warehouse.console import Snapshot

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
    if sys.stdout is None:  # as Python has it where the descriptor is closed
        raise CommandError("standard output is closed: there is nowhere to write the answer to", 2)
    is_terminal = sys.stdout.isatty()
    if query is None and file is None and is_terminal and _is_typed():
        if format == "parquet":
            raise CommandError("Parquet is not for a terminal; in the shell `output FILE.parquet` writes an answer", 2)
        from flows.cli.shell import run_shell

        return run_shell(settings.data, folders, format)
    statement = _statement(query, file)
    if format == "parquet" and is_terminal:
        raise CommandError("Parquet is not for a terminal; add `> answer.parquet`", 2)
    from warehouse import publish
    from warehouse.console import Snapshot
    from warehouse.statements import NoStatementError, QueryError

    try:
        with Snapshot(publish.link_of(settings.data), folders) as snapshot:
            _answer(snapshot, statement, format)
    except publish.NoWarehouseError as error:
        raise CommandError(str(error)) from None
    except NoStatementError as error:
        raise CommandError(f"{error}; {_HOW}", 2) from None
    except QueryError as error:
        from flows.cli.query_errors import in_short, is_interrupt

        if is_interrupt(str(error)):
            raise KeyboardInterrupt from None
        raise CommandError(in_short(str(error))) from None
    return 0


def _folders(settings: Config, given: Sequence[Path]) -> list[Path]:
    """Return the folders that queries may use, links resolved.

    Raises:
        CommandError: one is none, or what it opens would hold files of the warehouse.
    """
    from warehouse.publish import places

    held = places(settings.data)
    for folder in given:
        if not folder.is_dir():
            raise CommandError(f"--allow-files {folder}: there is no such folder", 2)
        found = folder.resolve()
        if place := next((p for p in held if found.is_relative_to(p) or p.is_relative_to(found)), None):
            raise CommandError(
                f"--allow-files {folder}: queries could then write to the warehouse in {place}; name a folder apart from it",
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
    if query is None and _is_typed():
        raise CommandError(f"no query; {_HOW}", 2)
    statement = _piped() if query is None else query
    if not statement.strip():
        where = "standard input is empty" if query is None else "the query is empty"
        raise CommandError(f"{where}; {_HOW}", 2)
    try:
        statement.encode()
    except UnicodeEncodeError:  # bytes of an argument that are no text are half characters to Python
        raise CommandError("the query is no text in UTF-8", 2) from None
    return statement


def _is_typed() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _piped() -> str:
    """Return what stands on standard input, in UTF-8 whatever the locale; a closed one is empty."""
    if sys.stdin is None:
        return ""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise CommandError("standard input is no text in UTF-8", 2) from None


def _answer(snapshot: Snapshot, statement: str, format: str) -> None:  # noqa: A002
    from flows.cli.stoppable import stoppable, stoppable_writing

    if format == "table":
        _table(snapshot, statement)
    elif sys.stdout.isatty():
        held = io.BytesIO()
        stoppable(snapshot.interrupt, lambda: snapshot.write(statement, held, format), is_all=True)
        for line in held.getvalue().decode("utf-8", "replace").splitlines():  # to be made fit for a terminal
            sys.stdout.write(clean(line) + "\n")
    else:
        stoppable_writing(snapshot.interrupt, lambda out: snapshot.write(statement, out, format), sys.stdout.buffer)


def _table(snapshot: Snapshot, statement: str) -> None:
    from flows.cli.answers import say_answer
    from flows.cli.described import called, say_relation
    from flows.cli.shell_words import command_of
    from flows.cli.stoppable import stoppable

    word, argument = command_of(statement) or ("", "")
    if word == "describe" and (relation := called(snapshot.relations(), argument)):
        say_relation(relation)  # as in the shell, with what its columns mean
        return
    answer = stoppable(
        snapshot.interrupt, lambda: snapshot.ask(statement, most=MAX_ROWS, count_seconds=math.inf), is_all=True
    )
    say_answer(answer.columns, answer.rows, hint="--format csv or json gives all")
    total = answer.total
    note(
        counted(total, "row") + (f", the first {MAX_ROWS:,} shown; --format csv gives all" if total > MAX_ROWS else "")
    )
