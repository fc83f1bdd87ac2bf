"""One open snapshot of the warehouse, for people who ask many questions of it: answers, what there is, and interruption."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from warehouse import publish
from warehouse.formats import FORMATS
from warehouse.query import answering
from warehouse.session import PUBLISHED_SCHEMAS, identifier, reading
from warehouse.statements import split
from warehouse.values import BATCH_ROWS, printable, tuples

FEW = 60
"""Columns of more different values than this are not offered value by value."""
_CHEAP_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type, and what it means where somebody wrote it."""

    name: str
    kind: str
    meaning: str | None


@dataclass(frozen=True, slots=True)
class Relation:
    """A published table: what one row is, about how many rows, and its columns in order."""

    schema: str
    table: str
    grain: str | None
    rows: int
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """Name as queries write it."""
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro of the published file; `example` is a whole query."""

    name: str
    parameters: tuple[str, ...]
    meaning: str | None
    example: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The first rows of an answer.

    Attributes:
        columns: its names, no two alike.
        rows: values in their order.
        total: rows read; of a long answer more may follow.
        is_whole: whether all rows were counted.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    total: int
    is_whole: bool


class Snapshot:
    """A session on the build that was published when it was opened; it stays there whatever is published later."""

    def __init__(self, link: Path, folders: Sequence[Path] = ()) -> None:
        """Open the published build.

        Args:
            link: `data/warehouse.duckdb`.
            folders: as `warehouse.query.query`.

        Raises:
            NoWarehouseError: nothing has been published, or it cannot be opened.
        """
        self._link = link
        self._open = ExitStack()
        self.file = publish.resolve(link)
        self._con = self._open.enter_context(reading(self.file, folders=folders))
        self._aside = self._con.cursor()  # for what is looked up while a statement is typed
        self._values: dict[tuple[str, str], tuple[str, ...]] = {}

    @property
    def build_id(self) -> str:
        """Id of the build that is read."""
        return self.file.stem

    def published(self) -> str | None:
        """Return the id of another build that readers see by now; None = this one is still it, or there is none."""
        try:
            file = publish.resolve(self._link)
        except publish.NoWarehouseError:
            return None
        return None if file == self.file else file.stem

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        self._open.close()

    def interrupt(self) -> None:
        """Stop the statement that runs in another thread."""
        self._con.interrupt()

    def split(self, sql: str) -> list[str]:
        """Return the statements of a text.

        Raises:
            QueryError: DuckDB cannot read one of them.
        """
        return split(self._con, sql)

    def ask(self, sql: str, *, most: int, count_seconds: float) -> Answer:
        """Run a statement, keep its first rows, and count the others for a while.

        Raises:
            QueryError: DuckDB refuses it, or it was interrupted.
        """
        rows: list[tuple[Any, ...]] = []
        total = 0
        with answering(self._con, sql) as relation:
            reader = printable(relation).to_arrow_reader(BATCH_ROWS)
            until = time.monotonic() + count_seconds
            for batch in reader:
                if total < most:
                    rows.extend(tuples(batch.slice(0, most - total)))
                total += batch.num_rows
                if total > most and time.monotonic() > until:
                    return Answer(tuple(reader.schema.names), rows, total, is_whole=False)
            return Answer(tuple(reader.schema.names), rows, total, is_whole=True)

    def write(self, sql: str, out: BinaryIO, format: str, most: int | None = None) -> None:  # noqa: A002
        """Run a statement and write its answer, no two columns under one name.

        Args:
            sql: one statement.
            out: stream to write to.
            format: `csv` (nested values as JSON), `json` (one array of objects; null for NaN and infinity) or `parquet`
                (as text what it has no type for, such as intervals).
            most: rows to write; None = all.

        Raises:
            QueryError: DuckDB refuses it, or it was interrupted.
        """
        with answering(self._con, sql) as relation:
            FORMATS[format](relation if most is None else relation.limit(most), out)

    def relations(self) -> list[Relation]:
        """Return the published tables in the order of their names, marts first."""
        found = self._aside.execute(
            "select c.schema_name, c.table_name, any_value(t.comment), any_value(t.estimated_size), "
            "list((c.column_name, c.data_type, c.comment) order by c.column_index) "
            "from duckdb_columns() as c inner join duckdb_tables() as t using (database_name, schema_name, table_name) "
            "where c.database_name = 'warehouse' group by c.schema_name, c.table_name"
        ).fetchall()
        order = {schema: position for position, schema in enumerate(PUBLISHED_SCHEMAS)}
        return [
            Relation(schema, table, grain, rows, tuple(Column(*column) for column in columns))
            for schema, table, grain, rows, columns in sorted(found, key=lambda r: (order.get(r[0], len(order)), r[1]))
        ]

    def macros(self) -> list[Macro]:
        """Return the macros of the file."""
        found = self._aside.execute(
            "select function_name, parameters, comment from duckdb_functions() "
            "where not internal and database_name = 'warehouse' order by all"
        ).fetchall()
        return [Macro(name, tuple(given), *_meaning_and_example(text)) for name, given, text in found]

    def words(self) -> tuple[list[str], list[str]]:
        """Return SQL's keywords, and the names of the functions that are no operators."""
        keywords = self._aside.execute("select keyword_name from duckdb_keywords() order by all").fetchall()
        functions = self._aside.execute(
            "select distinct function_name from duckdb_functions() "
            "where internal and regexp_full_match(function_name, '[a-z][a-z0-9_]*') order by all"
        ).fetchall()
        return [k for (k,) in keywords], [f for (f,) in functions]

    def values(self, relation: Relation, column: Column) -> tuple[str, ...]:
        """Return the values of a column of texts where they are few and cheap to find, else none."""
        key = (relation.name, column.name)
        if key not in self._values:
            self._values[key] = tuple(self._look_up(relation, column))
        return self._values[key]

    def _look_up(self, relation: Relation, column: Column) -> Iterator[str]:
        if column.kind != "VARCHAR" or relation.rows > _CHEAP_ROWS:
            return
        table = f"warehouse.{identifier(relation.schema)}.{identifier(relation.table)}"
        name = identifier(column.name)
        found = self._aside.execute(
            f"select {name} from {table} where {name} is not null group by all order by all limit {FEW + 1}"
        ).fetchall()
        if len(found) <= FEW:
            yield from (value for (value,) in found)


def _meaning_and_example(text: str | None) -> tuple[str | None, str | None]:
    """Take a macro's comment apart."""
    if text is None:
        return None, None
    meaning, _, example = text.partition("Example:")
    return meaning.strip(), example.strip() or None
