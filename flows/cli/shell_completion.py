"""Completion of SQL as it is typed: tables, the columns of those named, macros, keywords, and values of few kinds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from flows.cli.shell_words import WORDS
from flows.cli.terminal import clean

if TYPE_CHECKING:
    from warehouse.console import Relation, Snapshot

_WORD = re.compile(r"[A-Za-z_][\w.]*$")
_VALUE = re.compile(
    r"""([A-Za-z_][\w.]*)\s*(?:=|<>|!=|\bin\s*\((?:\s*'(?:[^']|'')*'\s*,)*)\s*'((?:[^']|'')*)$""", re.IGNORECASE
)
_FROM = re.compile(r"\b(?:from|join|describe|summarize|table)\s+[\w.]*$", re.IGNORECASE)
_ALIAS = re.compile(r"\b(\w+)\.(\w+)(?:\s+(?:as\s+)?(\w+))?", re.IGNORECASE)
_COMMAND = re.compile(r"\s*(\.?[a-z]*)$")
_ARGUMENT = re.compile(r"\s*\.?(describe)\s+([\w.]*)$", re.IGNORECASE)


class SqlCompleter(Completer):
    """Completes from a snapshot of the warehouse; what tables and columns mean stands beside them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.use(snapshot)

    def use(self, snapshot: Snapshot) -> None:
        """Complete from another snapshot."""
        self._snapshot = snapshot
        self._relations = snapshot.relations()
        self._macros = snapshot.macros()
        self._keywords, self._functions = snapshot.words()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may stand at the cursor, most fitting first."""
        before = document.text_before_cursor
        if found := _VALUE.search(before):
            yield from self._values(document.text, found[1], found[2])
            return
        if before.count("'") % 2:
            return  # within a text
        if _COMMAND.fullmatch(before):
            yield from _commands(before.strip(), is_asked=complete_event.completion_requested)
        word = match[0] if (match := _WORD.search(before)) else ""
        if _FROM.search(before) or _ARGUMENT.fullmatch(before):
            yield from self._tables(word)
            yield from self._macro_names(word)
            return
        yield from self._columns(document.text, word)
        if word:
            yield from self._macro_names(word)
            yield from self._tables(word)
            yield from _plain(self._keywords, word, "keyword")
            yield from _plain(self._functions, word, "function")

    def _tables(self, word: str) -> Iterator[Completion]:
        wanted = word.lower()
        for relation in self._relations:
            if relation.name.startswith(wanted) or relation.table.startswith(wanted):
                yield Completion(relation.name, -len(word), display_meta=clean(relation.grain or "table"))

    def _macro_names(self, word: str) -> Iterator[Completion]:
        for macro in self._macros:
            if macro.name.startswith(word.lower()):
                given = f"({', '.join(macro.parameters)})"
                yield Completion(f"{macro.name}(", -len(word), macro.name + given, clean(macro.meaning or "macro"))

    def _columns(self, text: str, word: str) -> Iterator[Completion]:
        named = self._named(text)
        alias, dot, part = word.rpartition(".")
        relations = [r for name, r in named if not dot or name == alias.lower()]
        if dot and alias.lower() in {r.schema for r in self._relations}:
            return
        if not named and word and not dot:
            relations = [r for r in self._relations if r.schema == "marts"]
        seen: set[str] = set()
        for relation in relations:
            for column in relation.columns:
                if column.name.startswith(part.lower()) and column.name not in seen:
                    seen.add(column.name)
                    yield Completion(column.name, -len(part), display_meta=clean(column.meaning or column.kind.lower()))

    def _values(self, text: str, name: str, typed: str) -> Iterator[Completion]:
        alias, dot, part = name.rpartition(".")
        for key, relation in self._named(text):
            if dot and key != alias.lower():
                continue
            for column in relation.columns:
                if column.name == part.lower():
                    yield from _texts(self._snapshot.values(relation, column), typed)
                    return

    def _named(self, text: str) -> list[tuple[str, Relation]]:
        """Return the tables that a statement names, each by its alias, or by its own name."""
        tables = {(r.schema, r.table): r for r in self._relations}
        named = []
        for schema, table, alias in _ALIAS.findall(text):
            if relation := tables.get((schema.lower(), table.lower())):
                named.append((relation.table, relation))
                if alias:
                    named.append((alias.lower(), relation))
        return named


def _commands(typed: str, *, is_asked: bool) -> Iterator[Completion]:
    if not typed and not is_asked:
        return
    for word, meaning in WORDS.items():
        if word.startswith(typed.removeprefix(".")):
            yield Completion(word, -len(typed.removeprefix(".")), display_meta=meaning)


def _texts(values: Sequence[str], typed: str) -> Iterator[Completion]:
    for value in values:
        quoted = value.replace("'", "''")
        if quoted.startswith(typed) and clean(value) == value:  # what cannot be typed is not offered
            yield Completion(f"{quoted}'", -len(typed), value)


def _plain(words: Sequence[str], word: str, kind: str) -> Iterator[Completion]:
    for candidate in words:
        if candidate.startswith(word.lower()):
            yield Completion(
                candidate.upper() if word.isupper() and len(word) > 1 else candidate, -len(word), display_meta=kind
            )
