"""What the shell's own words do."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from flows.cli import shell_statements
from flows.cli.described import called, say_relation
from flows.cli.shell_state import State
from flows.cli.shell_words import WORDS
from flows.cli.tables import say_table
from flows.cli.terminal import CommandError, note, say, say_wrapped
from warehouse import publish, questions
from warehouse.console import Relation, Snapshot

SHOWN = ("table", "record", "csv", "json")
WRITTEN = (".csv", ".json", ".parquet")


def carry_out(state: State, word: str, argument: str) -> None:
    """Do what a word says.

    Raises:
        CommandError: it cannot be done; the message says what to do next.
    """
    if word not in _DONE:
        near = difflib.get_close_matches(word, list(WORDS), 1)
        raise CommandError(f"no such word: {word}; " + (f"`{near[0]}`?" if near else "`help` lists them"))
    _DONE[word](state, argument)


def _help(_state: State, _argument: str) -> None:
    width = max(map(len, WORDS)) + 2
    for word, meaning in WORDS.items():
        say_wrapped(f"{word:<{width}}{meaning}", width)
    say_wrapped(
        f"{'SQL;':<{width}}any statement of DuckDB that reads; it may go over many lines and ends with ;", width
    )


def _tables(state: State, _argument: str) -> None:
    rows = [{"table": r.name, "rows": r.rows, "holds": r.grain} for r in state.snapshot.relations()]
    say_table(rows, ["table", "rows", "holds"])
    note("`describe TABLE` tells what its columns mean")


def _describe(state: State, argument: str) -> None:
    say_relation(_relation(state, argument.replace('"', "").lower()))


def _relation(state: State, name: str) -> Relation:
    if not name:
        raise CommandError("describe what? `tables` lists the tables")
    relations = state.snapshot.relations()
    if relation := called(relations, name):  # marts come first
        return relation
    full = {n: [r.name for r in relations if n in (r.name, r.table)] for r in relations for n in (r.name, r.table)}
    close = difflib.get_close_matches(name, full, 2)
    near = list(dict.fromkeys(whole for n in close for whole in full[n]))[:2]
    raise CommandError(f"no table {name}; " + (f"did you mean {' or '.join(near)}?" if near else "`tables` lists them"))


def _macros(state: State, _argument: str) -> None:
    clusters = _clusters(state)
    for macro in state.snapshot.macros():
        say(f"{macro.name}({', '.join(macro.parameters)})")
        if macro.meaning:
            say_wrapped(f"    {macro.meaning}", 4)
        if macro.example:
            say_wrapped(f"    {questions.fitted(macro.example, clusters)};", 6)


def _questions(state: State, argument: str) -> None:
    asked = questions.read()
    if not argument:
        say_table([{"number": n, "question": q.title} for n, q in asked.items()], ["number", "question"])
        note("`questions NUMBER` shows its query and runs it")
        return
    if argument not in asked:
        raise CommandError(f"no question {argument}; there are {', '.join(asked)}")
    sql = questions.fitted(asked[argument].sql, _clusters(state))
    say(sql)
    shell_statements.run(state, sql)


def _clusters(state: State) -> list[str]:
    answer = state.snapshot.ask("select distinct cluster from marts.runs order by all", most=1, count_seconds=0)
    return [str(cluster) for (cluster,) in answer.rows]


def _format(state: State, argument: str) -> None:
    if not argument:
        note(f"answers are shown as {state.form}; `format` with one of {', '.join(SHOWN)} changes that")
        return
    if argument == "parquet":
        raise CommandError("Parquet is not for a terminal; `output FILE.parquet` writes the next answer to a file")
    if argument not in SHOWN:
        raise CommandError(f"no such format: {argument}; it is one of {', '.join(SHOWN)}")
    state.form = argument
    note(f"answers are shown as {argument}")


def _rows(state: State, argument: str) -> None:
    if not argument:
        note(f"the first {state.rows:,} rows are shown; `rows NUMBER` changes that")
        return
    if not argument.isascii() or not argument.isdigit() or not 0 < int(argument) <= 1_000_000:
        raise CommandError("`rows` wants a number from 1 to 1000000")
    state.rows = int(argument)


def _output(state: State, argument: str) -> None:
    if not argument:
        note("answers are shown" if state.output is None else f"answers are shown again, {state.output} is not written")
        state.output = None
        return
    name, _, more = argument.partition(" ") if argument.endswith(" overwrite") else (argument, "", "")
    path = Path(name.strip("'\"")).expanduser().absolute()
    if path.suffix.lower() not in WRITTEN:
        raise CommandError(f"the ending of {path.name} says the format: it is one of {', '.join(WRITTEN)}")
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}; make it first")
    if path.resolve().is_relative_to(state.data.resolve()):
        raise CommandError(f"{path} lies in the warehouse's folder; name another")
    if path.exists() and more.strip() != "overwrite":
        raise CommandError(f"{path} is there; `output {name} overwrite` replaces it")
    state.output = path
    note(f"the next answer goes to {path}, whole")


def _refresh(state: State, _argument: str) -> None:
    if state.snapshot.published() is None:
        note(f"{state.snapshot.build_id} is the published build")
        return
    try:
        fresh = Snapshot(publish.link_of(state.data), state.folders)
    except publish.NoWarehouseError as error:
        raise CommandError(f"{error}; this shell stays at {state.snapshot.build_id}") from None
    state.snapshot.close()
    state.snapshot = fresh
    note(f"now at build {fresh.build_id}; temporary tables of this shell are gone")


def _quit(state: State, _argument: str) -> None:
    state.is_left = True


_DONE: Mapping[str, Callable[[State, str], None]] = MappingProxyType(
    {
        "help": _help,
        "tables": _tables,
        "describe": _describe,
        "macros": _macros,
        "questions": _questions,
        "format": _format,
        "rows": _rows,
        "output": _output,
        "refresh": _refresh,
        "quit": _quit,
    }
)
