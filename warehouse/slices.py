"""How a model can be made anew in part: what its header says of keys, as `-- Slice:`, `-- Dirty:`, `-- Settles:` lines.

    -- Slice: cluster, node

says that the rows with one value of these columns (or expressions over columns) depend only on those rows of the inputs
which have the same value; inputs without such columns count as a whole. What must be made anew are the values that stand
in rows of an input which came, went or changed; where that is not all of it, a query over those rows says what is:

    -- Dirty: select cluster, job_id_raw from delta.intermediate__runs__tracked

where `_times` of a row tells how many more of it there are than before, negative = fewer.

Inputs named in `-- Whole:` are read as a whole although they have the columns. The other kind,

    -- Settles: occurred_at, 1 day

says that a row depends only on rows of the inputs, where those have the column, that are at most this much earlier, or
any later: what changed then leaves everything before its earliest time, less that stretch, as it was. A `-- Dirty:` query
gives such times there; rows without a time are made anew in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE = re.compile(r"^-- (Slice|Dirty|Whole|Settles): ?(.*)$")


Key = tuple[str, tuple[str, ...]]
"""An expression of a `-- Slice:`, and the columns that it reads."""


class SliceError(Exception):
    """A header line cannot be read."""


@dataclass(frozen=True, slots=True)
class Slice:
    """How a model can be made anew in part.

    Attributes:
        parsed: expressions whose values its rows are told apart by, each with the columns that it reads; empty = by time.
        dirty: query over `delta` for the values to make anew; None = those in the rows that changed.
        whole: inputs that are read as a whole in any case.
        settles: column of the time from which on rows are made anew; None = by keys.
        margin: interval that this time lies before the earliest change.
    """

    parsed: tuple[Key, ...] = ()
    dirty: str | None = None
    whole: frozenset[str] = frozenset()
    settles: str | None = None
    margin: str = "0 seconds"

    @property
    def keys(self) -> tuple[str, ...]:
        """The expressions."""
        return tuple(key for key, _ in self.parsed)

    @property
    def columns(self) -> frozenset[str]:
        """Columns that an input must have to be read in part."""
        return frozenset([self.settles] if self.settles else (c for _, columns in self.parsed for c in columns))


def read(sql: str, known: Sequence[Key] | None = None) -> Slice | None:
    """Return what the header of a model says; None = it can only be made as a whole.

    Args:
        sql: the model.
        known: what `keys` gave for it before, since parsing takes a while.

    Raises:
        SliceError: the header cannot be read.
    """
    found: dict[str, str] = {}
    for line in sql.split("\n"):
        if not line.startswith("--"):
            break
        if match := _LINE.match(line):
            found[match[1]] = f"{found[match[1]]}\n{match[2]}" if match[1] in found else match[2]
    whole = frozenset(filter(None, re.split(r"[\s,]+", found.get("Whole", ""))))
    if "Settles" in found:
        column, _, margin = found["Settles"].partition(",")
        return Slice((), found.get("Dirty"), whole, column.strip(), margin.strip() or "0 seconds")
    if "Slice" not in found:
        if found:
            raise SliceError(f"`-- {next(iter(found))}:` stands without `-- Slice:`")
        return None
    parsed = keys(found["Slice"]) if known is None else known
    return Slice(tuple(parsed), found.get("Dirty"), whole)


def keys(text: str) -> list[Key]:
    """Return the expressions of a `-- Slice:`.

    Raises:
        SliceError: it is no list of expressions over columns.
    """
    import sqlglot
    from sqlglot import exp

    try:
        select = sqlglot.parse_one(f"select {text}", dialect="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise SliceError(f"`-- Slice:` is no list of columns: {error}") from error
    if not select.expressions:
        raise SliceError("`-- Slice:` names no column")
    return [
        (e.sql(dialect="duckdb"), tuple(sorted({c.name for c in e.find_all(exp.Column)}))) for e in select.expressions
    ]
