"""The interactive shell of `goodput sql`: statements and its own words, on one snapshot of the warehouse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from flows.cli import shell_commands
from flows.cli.query_errors import in_short, is_interrupt
from flows.cli.shell_completion import SqlCompleter
from flows.cli.shell_history import history_file
from flows.cli.shell_state import State
from flows.cli.shell_statements import run
from flows.cli.shell_words import command_of
from flows.cli.terminal import CommandError, fail, note
from warehouse import publish
from warehouse.console import Snapshot
from warehouse.statements import QueryError, is_complete

PROMPT = "goodput> "


def run_shell(data: Path, folders: Sequence[Path], form: str) -> int:
    """Ask for statements until the user leaves.

    Args:
        data: folder of the warehouse.
        folders: folders whose files queries may read and write.
        form: how answers are shown at first.

    Raises:
        CommandError: nothing has been published.
    """
    try:
        snapshot = Snapshot(publish.link_of(data), folders)
    except publish.NoWarehouseError as error:
        raise CommandError(str(error)) from None
    state = State(data=data, folders=tuple(folders), snapshot=snapshot, form=form)
    try:
        _loop(state)
    finally:
        state.snapshot.close()
    return 0


def _loop(state: State) -> None:
    completer = SqlCompleter(state.snapshot)
    session = _session(state, completer)
    note(
        f"Build {state.snapshot.build_id}, read-only. Statements end with ; (help, tables and questions need none). "
        "Tab completes, Ctrl-C stops a query, Ctrl-D leaves."
    )
    while not state.is_left:
        _tell_of_other_build(state)
        try:
            text = session.prompt(PROMPT)
        except KeyboardInterrupt:  # what was typed is dropped
            continue
        except EOFError:
            return
        began = state.snapshot
        _handle(state, text)
        if state.snapshot is not began:
            completer.use(state.snapshot)


def _handle(state: State, text: str) -> None:
    """Carry out what was typed; whatever goes wrong is told, and the shell goes on."""
    try:
        if command := command_of(text):
            shell_commands.carry_out(state, *command)
            return
        for statement in state.snapshot.split(text):
            run(state, statement)
    except QueryError as error:
        if is_interrupt(str(error)):
            note("interrupted")
        else:
            fail(in_short(str(error), known=state.names(), is_shell=True))
    except CommandError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or 'the answer'}: {error.strerror or error}")
    except KeyboardInterrupt:  # pressed while an answer was shown, after its query had ended
        note("interrupted")


def _tell_of_other_build(state: State) -> None:
    """Say once of each build that was published meanwhile."""
    other = state.snapshot.published()
    if other is not None and other != state.told:
        state.told = other
        note(f"build {other} was published; this shell stays at {state.snapshot.build_id} until you say `refresh`")


_NO_TEXT = re.compile("[\\ud800-\\udfff]")
"""What stands for a byte that is no UTF-8 in what a terminal sent."""


def _session(state: State, completer: SqlCompleter) -> PromptSession[str]:
    path = history_file(state.data)
    if path is None:
        note("the history of this session is not kept: its folder cannot be written (XDG_STATE_HOME says where)")
    history: History = InMemoryHistory() if path is None else FileHistory(str(path))
    return PromptSession(
        history=history,
        multiline=True,
        completer=completer,
        complete_in_thread=True,
        complete_while_typing=False,
        enable_history_search=True,
        lexer=PygmentsLexer(SqlLexer),
        key_bindings=_keys(),
        prompt_continuation=lambda width, _line, _wraps: " " * (width - 4) + "..> ",
    )


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _NO_TEXT.search(buffer.text):
            buffer.text = _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", buffer.text)
            run_in_terminal(
                lambda: fail("bytes that are no UTF-8 are shown as \N{REPLACEMENT CHARACTER}: type them again")
            )
        elif buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None  # the choice is taken
        elif not buffer.text.strip() or command_of(buffer.text) or is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
