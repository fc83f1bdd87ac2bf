"""Rows of a CSV listing with a header, in batches of text columns; every line has its fate.

Fields may be quoted, have blanks around them and be separated by commas, semicolons or tabs; columns stand in any order,
their names in any case. `pci.bus_id`, `PCI Bus-ID` and `pci_bus_id` are one name, and a unit (`memory.total [MiB]`) is
no part of it. Blank lines and lines that begin with `#` are passed over; a header may be repeated, as `cat` of several
listings does.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from transforms.outcome import Context, MissingSettingError, Parsed, UnreadableExportError
from transforms.parsing.lines import Line, lines_of
from transforms.stream import ExportStream

Fields = Mapping[str, tuple[str, ...]]
"""What a source reads, by our name, and the column names it may stand under, the first present one."""
Required = Sequence[tuple[str, ...]]

_DELIMITERS = ",;\t"
_LONGEST_HEADER = 4_000
_UNIT = re.compile(r"\s*\[[^\]]*\]\s*$")
_NO_WORD = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Layout:
    """Column names in order, as `column_name` writes them, and what stands between fields."""

    names: tuple[str, ...]
    delimiter: str

    def split(self, text: str) -> list[str]:
        """Return the fields of a line, without surrounding blanks.

        Raises:
            ValueError: a quote is left open, or there are more or fewer fields than columns.
        """
        cells = cells_of(text, self.delimiter)
        while len(cells) > len(self.names) and not cells[-1]:
            cells.pop()
        if len(cells) != len(self.names):
            raise ValueError(f"{len(cells)} fields where {len(self.names)} columns are expected")
        return cells


@dataclass(slots=True)
class Batch:
    """Some rows of a listing.

    Attributes:
        parsed: what was ignored and rejected among their lines; the rows themselves are not yet counted.
        rows: `line` (Int64), `is_decoded` (Boolean), and each field as String; an absent column is null.
        lines: the line of each row, in the order of `rows`.
    """

    parsed: Parsed
    rows: pl.DataFrame
    lines: list[Line] = field(default_factory=list)


def column_name(text: str) -> str:
    """Return a column's name in lower case, words joined by `_`, without its unit."""
    return _NO_WORD.sub("_", _UNIT.sub("", text.strip()).lower()).strip("_")


def cells_of(text: str, delimiter: str) -> list[str]:
    """Return the fields of one line of CSV, without surrounding blanks.

    Raises:
        ValueError: a quote is left open; a field never goes on in the next line.
    """
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    # The csv module takes no blank after a quoted field.
    closed = re.sub(rf'" +(?={re.escape(delimiter)}|$)', '"', text.rstrip(" "))
    try:
        [cells] = csv.reader([closed], delimiter=delimiter, skipinitialspace=True, strict=True)
    except (csv.Error, TypeError, ValueError) as error:
        raise ValueError(f"no CSV: {error}") from None
    return [cell.strip() for cell in cells]


def header_of(head: bytes, delimiter: str | None = None) -> Layout | None:
    """Return the columns that the first line of a listing names; None = that line is no list of names.

    Args:
        head: first bytes of the listing.
        delimiter: what stands between names; None = found from the line.
    """
    return _layout(_first_line(head), delimiter)


def _first_line(head: bytes) -> str:
    """Return the first line that is neither blank nor a comment; empty where there is none."""
    texts = (raw.decode("utf-8", "replace").strip() for raw in head.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    return next((text for text in texts if text and not text.startswith("#")), "")


def _layout(text: str, delimiter: str | None) -> Layout | None:
    """Return the columns that a line names; None where it is no list of names, or names one twice."""
    found = _named(text, delimiter)
    return found if found and len(set(found.names)) == len(found.names) else None


def _named(text: str, delimiter: str | None) -> Layout | None:
    if len(text) > _LONGEST_HEADER:
        return None
    delimiter = delimiter or next((d for d in _DELIMITERS if d in text), _DELIMITERS[0])
    try:
        names = tuple(column_name(cell) for cell in cells_of(text, delimiter))
    except ValueError:
        return None
    while names and not names[-1]:
        names = names[:-1]
    return Layout(names, delimiter) if names and all(names) else None


def batches(stream: ExportStream, context: Context, fields: Fields, required: Required) -> Iterator[Batch]:
    """Yield the rows of a listing, a batch for each chunk of the stream.

    Lines with too many or too few fields are rejected. A piece that begins after the header takes it from the file's
    head; where a later header names other columns, the last batch is open, so that lines still to come are read under it.

    Args:
        stream: the listing.
        context: `columns` stands for a header that is absent, `delimiter` for one that is unusual.
        fields: what to read.
        required: groups of fields of which one must have a column.

    Raises:
        UnreadableExportError: there is no header, or it lacks a required column.
        MissingSettingError: what it lacks is a column for the node.
    """
    vocabulary = frozenset(name for names in fields.values() for name in names)
    first = _first_layout(stream.head, context, vocabulary)
    _require(first, fields, required)
    layout, is_last = first, False
    chunks = stream.chunks()
    chunk = next(chunks, None)
    while chunk is not None:
        following = next(chunks, None)
        is_last = following is None
        batch = _Reader(fields, layout)
        for line in lines_of(chunk):
            if header := batch.read(line, vocabulary):
                _require(header, fields, required)
        layout = batch.layout
        batch.parsed.is_open = is_last and layout != first
        yield batch.finish()
        chunk = following


def _first_layout(head: bytes, context: Context, vocabulary: frozenset[str]) -> Layout:
    if context.columns:
        return Layout(tuple(map(column_name, context.columns)), context.delimiter or _DELIMITERS[0])
    layout = _named(_first_line(head), context.delimiter)
    twice = sorted(name for name, times in Counter(layout.names).items() if times > 1) if layout else []
    if layout and twice and not vocabulary.isdisjoint(layout.names):
        raise UnreadableExportError(
            f"its header names the column {', '.join(f'`{name}`' for name in twice)} more than once, and which one counts is not "
            "known: export it with each column once, or set `columns` on the source and remove the header"
        )
    if layout is None or twice or vocabulary.isdisjoint(layout.names):
        raise UnreadableExportError("it has no header: export it with one, or set `columns` on the source")
    return layout


def _require(layout: Layout, fields: Fields, required: Required) -> None:
    """Raise where a required field has no column."""
    for group in required:
        names = [name for field_name in group for name in fields[field_name]]
        if not set(names) & set(layout.names):
            wanted = " or ".join(f"`{fields[name][0]}`" for name in group)
            if group == ("node",):
                raise MissingSettingError(
                    "this export does not name its nodes: set `node` on the source, capture {node} in its path, or "
                    f"export it with a column named {', '.join(names)}"
                )
            raise UnreadableExportError(
                f"its header has no column {wanted}: export it with one (names it may have: {', '.join(names)}; "
                f"the header's are {', '.join(layout.names)})"
            )


class _Reader:
    """Collects the rows of one chunk."""

    def __init__(self, fields: Fields, layout: Layout) -> None:
        self.parsed = Parsed()
        self._fields = fields
        self._rows: list[list[str | None]] = []
        self._lines: list[Line] = []
        self._use(layout)

    def _use(self, layout: Layout) -> None:
        self.layout = layout
        places = {name: i for i, name in enumerate(layout.names)}
        found = ((places[n] for n in names if n in places) for names in self._fields.values())
        self._places = [next(f, None) for f in found]

    def read(self, line: Line, vocabulary: frozenset[str]) -> Layout | None:
        """Give one line its fate; return the columns if it is a header."""
        text = line.text.removeprefix("\ufeff") if line.number == 1 else line.text
        if not text.strip():
            self.parsed.ignored["blank"] += 1
        elif text.lstrip().startswith("#"):
            self.parsed.ignored["comment"] += 1
        elif header := _repeated(text, self.layout, vocabulary):
            self.parsed.ignored["header"] += 1
            self._use(header)
            return header
        else:
            try:
                cells = self.layout.split(text)
            except ValueError as error:
                self.parsed.rejects.append(line.reject(str(error)))
            else:
                self._rows.append([None if i is None else cells[i] for i in self._places])
                self._lines.append(line)
        return None

    def finish(self) -> Batch:
        schema = dict.fromkeys(self._fields, pl.String())
        rows = pl.DataFrame(self._rows, schema=schema, orient="row").with_columns(
            line=pl.Series([x.number for x in self._lines], dtype=pl.Int64),
            is_decoded=pl.Series([x.is_decoded for x in self._lines], dtype=pl.Boolean),
        )
        return Batch(self.parsed, rows, self._lines)


def _repeated(text: str, layout: Layout, vocabulary: frozenset[str]) -> Layout | None:
    """Return the columns if a line is a header: the names it should have, or one that begins with two known names."""
    first = column_name(text.partition(layout.delimiter)[0])
    if first != layout.names[0] and first not in vocabulary:
        return None
    found = _layout(text.strip(), layout.delimiter)
    if found is None or found.names == layout.names:
        return found
    return found if len(found.names) > 1 and vocabulary.issuperset(found.names[:2]) else None
