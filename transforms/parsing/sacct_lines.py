"""Lines of `sacct -P` output to text columns, with the fate of every line."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

import polars as pl

from transforms.parsing.anchoring import UnsplittableLineError, anchored
from transforms.parsing.sacct_columns import JOB_ID, STEP_ID, Layout, read_header
from transforms.parsing.text import repaired, unused_character

MAX_JOINED = 200
_REGULAR, _STEP, _ODD = 0, 1, 2


@dataclass
class Section:
    """What a run of lines holds.

    Attributes:
        rows: String column per wanted field (empty = null), `position` (of the row's first line, from 0),
            `is_free_text_lost`, `is_decoded`; in order of position.
        used: lines that made rows.
        ignored: lines passed over, by rule.
        rejects: (position, reason) of lines that could not be read.
        rest: position from which lines are not read: a record that may go on after the section, or another header.
        next_layout: what that other header declares.
    """

    rows: pl.DataFrame
    used: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejects: list[tuple[int, str]] = field(default_factory=list)
    rest: int | None = None
    next_layout: Layout | None = None


@dataclass(frozen=True)
class _Text:
    """Lines as Polars reads them: `data` with one-character `mark` between fields; `is_plain` where Polars can."""

    data: bytes
    mark: str
    decoded: frozenset[int]
    is_plain: bool


def read_section(data: bytes, lines: int, layout: Layout, *, is_last: bool, needs_cluster: bool) -> Section:
    """Read lines of one layout.

    Args:
        data: whole lines; the last may lack its newline.
        lines: how many.
        layout: their columns.
        is_last: nothing follows that could complete a record.
        needs_cluster: a row must name its cluster.
    """
    text = _prepared(data, layout)
    is_cut = not data.endswith(b"\n")
    needs_cluster = needs_cluster and "cluster" in layout.wanted
    fields = _fields(text, layout, lines, needs_cluster=needs_cluster) if text.is_plain else None
    if fields is None:
        items = list(enumerate(text.data.decode("utf-8").split("\n")[:lines]))
        return _Reader(
            items, text, layout, is_last=is_last, is_cut=is_cut, lines=lines, needs_cluster=needs_cluster
        ).read()
    kind = fields.get_column("kind")
    odd = (kind == _ODD).arg_true().to_list()
    items = _lines_at(text.data, odd)
    section = _Reader(
        items, text, layout, is_last=is_last, is_cut=is_cut, lines=lines, needs_cluster=needs_cluster
    ).read()
    rows = fields if (kind == _REGULAR).all() else fields.filter(kind == _REGULAR)
    if section.next_layout is not None and section.rest is not None:
        rows, kind = rows.filter(pl.col("position") < section.rest), kind.head(section.rest)
    section.used += rows.height
    section.ignored["job_step"] += int((kind == _STEP).sum())
    rows = _marked(rows.drop("kind"), text)
    section.rows = rows if section.rows.is_empty() else _both(rows, section.rows)
    return section


def _lines_at(data: bytes, positions: list[int]) -> list[tuple[int, str]]:
    lines = data.split(b"\n") if positions else []
    return [(i, lines[i].decode("utf-8")) for i in positions]


def _both(rows: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([rows, more.select(rows.columns)]).sort("position")


def _marked(rows: pl.DataFrame, text: _Text) -> pl.DataFrame:
    decoded = pl.col("position").is_in(list(text.decoded)) if text.decoded else pl.lit(False)
    return rows.with_columns(decoded.alias("is_decoded"), pl.lit(False).alias("is_free_text_lost"))


def _prepared(data: bytes, layout: Layout) -> _Text:
    clean, decoded = repaired(data)
    mark, spare = layout.delimiter, unused_character(clean)
    if len(mark.encode()) > 1 and spare is not None:
        clean, mark = clean.replace(mark.encode(), spare.encode()), spare
    return _Text(clean, mark, frozenset(decoded), spare is not None)


def _scan(data: bytes, separator: str, names: list[str]) -> pl.LazyFrame:
    return pl.scan_csv(
        data,
        has_header=False,
        separator=separator,
        quote_char=None,
        schema=dict.fromkeys(names, pl.String()),
        extra_columns="ignore",
        missing_columns="insert",
    )


def _fields(text: _Text, layout: Layout, lines: int, *, needs_cluster: bool) -> pl.DataFrame | None:
    """Return the wanted fields of each line with its position and kind; None if Polars counts the lines otherwise."""
    fields = _scan(text.data, text.mark, [f"c{i}" for i in range(layout.width)])
    wanted = fields.select(pl.col(f"c{i}").alias(ours) for ours, i in layout.wanted.items())
    if _is_even(text, layout, lines):
        values, is_whole = wanted.collect(), None
    else:
        values, is_whole = pl.collect_all([wanted, _whole(text, layout)])
    if not (values.height == lines and (is_whole is None or is_whole.height == lines)):
        return None
    job = pl.col("job_id")
    is_odd = pl.lit(False) if is_whole is None else pl.lit(is_whole.to_series().fill_null(value=False)).not_()
    if needs_cluster:
        is_odd = is_odd | pl.col("cluster").is_null()
    kind = (
        pl.when(is_odd)
        .then(_ODD)
        .when(job.str.contains(f"^{JOB_ID.pattern}$"))
        .then(_REGULAR)
        .when(job.str.contains(f"^{STEP_ID.pattern}$"))
        .then(_STEP)
        .otherwise(_ODD)
    )
    return values.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("position"), kind.cast(pl.Int8).alias("kind")
    )


def _is_even(text: _Text, layout: Layout, lines: int) -> bool:
    """Tell whether every line has a field for each column and no carriage return, at one look."""
    if b"\r" in text.data or len(text.mark.encode()) > 1:
        return False
    line = text.mark.encode() * (layout.width - 1) + b"\n"
    marks = text.data.translate(None, _all_but(text.mark))
    return marks + b"\n" * (not text.data.endswith(b"\n")) == line * lines


@cache
def _all_but(mark: str) -> bytes:
    """Return every byte but `mark` and the line feed."""
    return bytes(set(range(256)) - {ord(mark), ord("\n")})


def _whole(text: _Text, layout: Layout) -> pl.LazyFrame:
    """Tell for each line whether it has a field for each column."""
    line = pl.col("text")
    is_whole = line.str.count_matches(text.mark, literal=True) == layout.width - 1
    if b"\r" in text.data:  # inside a line; Polars would drop it from the end of a field
        is_whole = is_whole & line.str.contains("\r", literal=True).not_()
    return _scan(text.data, unused_character(text.data) or "", ["text"]).select(is_whole)


class _Reader:
    """Reads irregular lines: blanks, headers, records over several lines, delimiters in free text, and rubbish."""

    def __init__(
        self,
        items: list[tuple[int, str]],
        text: _Text,
        layout: Layout,
        *,
        is_last: bool,
        is_cut: bool,
        lines: int,
        needs_cluster: bool,
    ) -> None:
        self.positions = [p for p, _ in items]
        self.texts = [t for _, t in items]
        self.mark, self.layout, self.is_last = text.mark, layout, is_last
        self.cut = lines - 1 if is_cut else -1
        self.lines, self.needs_cluster = lines, needs_cluster
        self.marks = list(accumulate((t.count(self.mark) for t in self.texts), initial=0))
        self.run_end = self._run_ends()
        self.decoded = text.decoded
        self.records: list[dict[str, str | int | bool | None]] = []
        self.section = Section(pl.DataFrame())

    def _run_ends(self) -> list[int]:
        """Return for each item the index after the last item whose line follows without a gap."""
        ends = [0] * len(self.positions)
        end = len(self.positions)
        for i in range(len(self.positions) - 1, -1, -1):
            if i + 1 < len(self.positions) and self.positions[i + 1] != self.positions[i] + 1:
                end = i + 1
            ends[i] = end
        return ends

    def read(self) -> Section:
        i = 0
        while i < len(self.texts) and self.section.rest is None:
            i += self._read_at(i)
        schema = {ours: pl.String() for ours in self.layout.wanted}
        self.section.rows = pl.DataFrame(
            self.records,
            schema={**schema, "position": pl.UInt32(), "is_decoded": pl.Boolean(), "is_free_text_lost": pl.Boolean()},
        )
        return self.section

    def _read_at(self, i: int) -> int:
        """Give the line at `i`, and those that continue it, their fate; return how many."""
        text = self.texts[i]
        if not text.strip():
            self.section.ignored["blank"] += 1
            return 1
        header = self._header(text)
        if header is not None and header != self.layout:
            self.section.rest, self.section.next_layout = self.positions[i], header
            return 0
        if header is not None:
            self.section.ignored["header"] += 1
            return 1
        if text.count(self.mark) + 1 >= self.layout.width:
            return self._take(i, 1)
        return self._rejoin(i)

    def _header(self, text: str) -> Layout | None:
        """Return the layout that the line declares: exports that were concatenated may differ in their columns."""
        if "jobid" not in text.lower():
            return None
        text = text.replace(self.mark, self.layout.delimiter)
        return read_header(text, self.layout.delimiter) or read_header(text)

    def _rejoin(self, i: int) -> int:
        """Join the line at `i` with those after it until there is a field for each column."""
        target = self.marks[i] + self.layout.width - 1
        last = min(self.run_end[i], i + MAX_JOINED)
        j = bisect_left(self.marks, target, i + 1, last + 1)
        if j <= last and self.marks[j] == target:
            return self._take(i, j - i)
        is_open = j > last and last < i + MAX_JOINED and self.positions[last - 1] == self.lines - 1
        if is_open and not self.is_last:
            self.section.rest = self.positions[i]
            return 0
        found = self.texts[i].count(self.mark) + 1
        reason = f"{found} fields where {self.layout.width} columns are expected"
        if self.positions[i] == self.cut:
            reason = f"line is cut: the export ends in the middle of it, {reason}"
        self.section.rejects.append((self.positions[i], reason))
        return 1

    def _take(self, i: int, lines: int) -> int:
        """Read `lines` lines from `i` as one record."""
        parts = "\n".join(self.texts[i : i + lines]).split(self.mark)
        if lines == 1 and len(parts) == self.layout.width:
            return self._record(i, 1, {ours: parts[at] for ours, at in self.layout.wanted.items()}, is_lost=False)
        try:
            fields, is_lost = anchored(parts, self.layout)
        except UnsplittableLineError as error:
            fields, is_lost = {"job_id": self._sure_id(parts)}, False
            if not STEP_ID.fullmatch(fields["job_id"] or ""):
                self.section.rejects.append((self.positions[i], str(error)))
                return 1
        return self._record(i, lines, fields, is_lost=is_lost)

    def _record(self, i: int, lines: int, fields: dict[str, str | None], *, is_lost: bool) -> int:
        """Keep the record, unless its job id says that it is a step or no record at all."""
        job = fields["job_id"] or ""
        if STEP_ID.fullmatch(job):
            self.section.ignored["job_step"] += lines
        elif self.needs_cluster and not fields["cluster"]:
            self.section.rejects.append((self.positions[i], "the row names no cluster: set `cluster` on the source"))
            return 1
        elif JOB_ID.fullmatch(job):
            self.section.used += lines
            values = {ours: value or None for ours, value in fields.items()}
            decoded = not self.decoded.isdisjoint(self.positions[i : i + lines])
            self.records.append(
                {**values, "position": self.positions[i], "is_decoded": decoded, "is_free_text_lost": is_lost}
            )
        else:
            self.section.rejects.append((self.positions[i], f"{job[:80]!r} is no job id"))
            return 1
        return lines

    def _sure_id(self, parts: list[str]) -> str | None:
        """Return the job id of a line that cannot be split, where no free text stands before it."""
        position = self.layout.wanted["job_id"]
        is_sure = len(parts) >= self.layout.width and not any(self.layout.flexible[:position])
        return parts[position] if is_sure else None
