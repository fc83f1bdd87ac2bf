"""One statement of the shell: run so that Ctrl-C stops it, shown or written to a file, and timed."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.answers import say_answer, say_records
from flows.cli.stoppable import stoppable
from flows.cli.terminal import CommandError, note, say
from flows.cli.words import counted

if TYPE_CHECKING:
    from flows.cli.shell_state import State

COUNT_SECONDS = 2.0
"""How long the rows that are not shown are counted."""
_HINT = "`format record` shows all, one value a line"


def run(state: State, statement: str) -> None:
    """Run one statement and show its answer, or write it to the file that was asked for.

    Raises:
        QueryError: DuckDB refuses it, or the user stopped it.
        OSError, CommandError: the file cannot be written.
    """
    began = time.monotonic()
    if state.output is not None:
        _to_file(state, statement, state.output)
    elif state.form in {"table", "record"}:
        _to_screen(state, statement, began)
    else:
        held = io.BytesIO()
        stoppable(state.snapshot.interrupt, lambda: state.snapshot.write(statement, held, state.form, state.rows))
        say(held.getvalue().decode("utf-8", "replace").rstrip("\n"))
        note(
            f"{time.monotonic() - began:.2f} s; at most {counted(state.rows, 'row')} shown (`rows NUMBER`, or `output FILE` for all)"
        )


def _to_screen(state: State, statement: str, began: float) -> None:
    answer = stoppable(
        state.snapshot.interrupt, lambda: state.snapshot.ask(statement, most=state.rows, count_seconds=COUNT_SECONDS)
    )
    seconds = time.monotonic() - began
    if state.form == "record":
        say_records(answer.columns, answer.rows)
    else:
        say_answer(answer.columns, answer.rows, hint=_HINT)
    total = counted(answer.total, "row") if answer.is_whole else f"more than {counted(answer.total, 'row')}"
    if answer.total > len(answer.rows):
        total += f", the first {len(answer.rows):,} shown (`rows NUMBER` for more, `output FILE` for all)"
    note(f"{total}; {seconds:.2f} s")


def _to_file(state: State, statement: str, path: Path) -> None:
    """Write an answer whole or not at all; the file that was there stays if it fails."""
    began = time.monotonic()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as out:
            stoppable(
                state.snapshot.interrupt,
                lambda: state.snapshot.write(statement, out, path.suffix.removeprefix(".").lower()),
            )
        size = part.stat().st_size
        part.replace(path)
    except FileExistsError:
        raise CommandError(f"{part} is in the way; remove it") from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    state.output = None
    note(f"{counted(size, 'byte')} written to {path}; {time.monotonic() - began:.2f} s. Answers are shown again")
