"""`sacct -P` text, any columns, any delimiter: job attempts and host lists.

Source: sacct(1) of Slurm 17.11 to 25.11, `--parsable` (`-p`), `--parsable2` (`-P`), `--delimiter`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import polars as pl

from transforms.foreign import foreign
from transforms.outcome import Context, MissingSettingError, Parsed, Reject, UnreadableExportError
from transforms.parsing.attempts import host_lists
from transforms.parsing.sacct_columns import Layout, configured_layout, read_header
from transforms.parsing.sacct_lines import Section, read_section
from transforms.parsing.sacct_values import Typist
from transforms.registry import Source
from transforms.stream import HEAD_BYTES, ExportStream
from transforms.tables import HOST_LISTS, JOB_ATTEMPTS, UTC

CHUNK_BYTES = 16 << 20
_HEADER_WITHIN = 20
_SHOWN = 120
_MAX_SECTION_LINES = 400_000
_MAX_LAYOUTS = 1000
_TYPISTS = 2
_MAX_SEEN = 200_000


def _first_lines(head: bytes) -> list[str]:
    return head.decode("utf-8", "replace").split("\n")[:_HEADER_WITHIN]


def _no_header(head: bytes) -> str:
    """Return what to do about an export without a header, and how it begins: often that is a message of sacct's own."""
    if told := foreign(head):
        return told
    first = next((line.strip() for line in _first_lines(head) if line.strip()), "")
    shown = repr(first[:_SHOWN]) + ("..." if len(first) > _SHOWN else "")
    return (
        f"no header of sacct in the first lines, it begins with {shown}: if that is a message of sacct, export again once it "
        "works; else export with a header (without -n), or set `columns` on the source to the names after --format, for "
        'example columns = ["JobID", "State", "Start", "End"]'
    )


def sniff(head: bytes) -> bool:
    """Tell whether a header of sacct stands in the first lines: JobID or JobIDRaw and other columns of sacct.

    JOBID in capitals is what squeue prints.
    """
    return any(read_header(line) is not None and "JOBID" not in line for line in _first_lines(head))


def parse(stream: ExportStream, ctx: Context) -> Iterator[Parsed]:
    """Read sacct output: a header, here or in `stream.head`, names its columns, else `ctx.columns`.

    Steps, headers and blank lines are ignored as `job_step`, `header`, `blank`.

    Raises:
        UnreadableExportError: there is no header and no columns are configured.
        MissingSettingError: the cluster or its zone is not known.
    """
    export, typists = _Export(ctx), deque(Typist() for _ in range(_TYPISTS))
    waiting: deque[tuple[_Lines, Future[list[pl.DataFrame]]]] = deque()
    with ThreadPoolExecutor(_TYPISTS) as pool:  # lines are split, typed and written at once: each waits now and then
        for lines in export.lines(stream):
            waiting.append((lines, pool.submit(_typed, typists[0], lines.section.rows, ctx)))
            typists.rotate()  # the next is free: no more are at work than there are
            if len(waiting) == _TYPISTS:
                yield from export.parsed(*_done(waiting))
        while waiting:
            yield from export.parsed(*_done(waiting))


@dataclass
class _Lines:
    """Lines that were split, and where they stand."""

    section: Section
    data: bytes
    line: int
    offset: int


def _done(waiting: deque[tuple[_Lines, Future[list[pl.DataFrame]]]]) -> tuple[_Lines, list[pl.DataFrame]]:
    lines, future = waiting.popleft()
    return lines, future.result()


def _typed(typist: Typist, rows: pl.DataFrame, ctx: Context) -> list[pl.DataFrame]:
    """Return job attempts, a frame for each cluster."""
    return [typist.attempts(part, cluster, ctx.zone_of(cluster)) for cluster, part in _by_cluster(rows, ctx)]


class _Export:
    """One export as it streams by."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.layout = Layout((), "|")
        self.layouts = 0
        self.carried = b""
        self.line, self.offset = 0, 0
        self.seen: set[tuple[str, str]] = set()

    def lines(self, stream: ExportStream) -> Iterator[_Lines]:
        """Yield lines as they are split, every line once."""
        for chunk in stream.chunks():
            data, lines = chunk.data, stream.first_line + stream.lines - chunk.first_line
            if not self.layout.names:
                self.layout = self._first_layout(stream.head or data[:HEAD_BYTES])
            if self.carried and self.offset + len(self.carried) == chunk.byte_offset:
                data, lines, self.carried = self.carried + data, lines + _count(self.carried), b""
            else:
                yield from self._left_over()
                self.line, self.offset = chunk.first_line, chunk.byte_offset
            yield from self._split(data, lines, is_last=False)
        yield from self._left_over()

    def _left_over(self) -> Iterator[_Lines]:
        """Split what may have been the beginning of a record: nothing completes it."""
        data, self.carried = self.carried, b""
        if data:
            yield from self._split(data, _count(data), is_last=True)

    def _first_layout(self, head: bytes) -> Layout:
        for line in _first_lines(head):
            found = read_header(line, self.ctx.delimiter)
            if found is not None:
                return found
        if not self.ctx.columns:
            raise UnreadableExportError(_no_header(head))
        layout = configured_layout(self.ctx.columns, self.ctx.delimiter, head.decode("utf-8", "replace"))
        if "job_id" not in layout.wanted:
            raise UnreadableExportError(
                "`columns` of the source names neither JobID nor JobIDRaw: without one nothing can be read"
            )
        return layout

    def _split(self, data: bytes, lines: int, *, is_last: bool) -> Iterator[_Lines]:
        """Split whole lines, a bounded number at a time, with the layout that holds for them."""
        while data:
            part, lines = _head(data, lines)
            section = read_section(
                part,
                lines,
                self.layout,
                is_last=is_last and len(part) == len(data),
                needs_cluster=self.ctx.cluster is None,
            )
            rest = len(part) if section.rest is None else _starts(part)[section.rest]
            yield _Lines(section, part, self.line, self.offset)
            self.line += lines if section.rest is None else section.rest
            self.offset += rest
            is_open = section.rest is not None and section.next_layout is None and len(part) == len(data)
            data = data[rest:]
            lines = _count(data)
            if section.next_layout is not None:
                self._change(section.next_layout)
            elif is_open:
                self.carried = data
                return

    def _change(self, layout: Layout) -> None:
        self.layout = layout
        self.layouts += 1
        if self.layouts > _MAX_LAYOUTS:
            raise UnreadableExportError(
                f"the header changes more than {_MAX_LAYOUTS} times: is this one export of sacct?"
            )

    def parsed(self, lines: _Lines, typed: list[pl.DataFrame]) -> Iterator[Parsed]:
        """Yield what became of lines: host lists in bounded batches, then the attempts and every line's fate."""
        section = lines.section
        parsed = Parsed(used=section.used, ignored=+section.ignored, rejects=_rejects(lines))
        frames = []
        for frame in typed:
            bad: list[str] = []
            for hosts, unread in host_lists(frame.item(0, "cluster"), self._new_lists(frame)):
                bad += unread
                if hosts.height:
                    yield Parsed(frames={HOST_LISTS.name: hosts})
            frames.append(_with_bad_lists(frame, bad))
        if frames:
            parsed.frames[JOB_ATTEMPTS.name] = self._complete(pl.concat(frames), lines.line)
        yield parsed

    def _new_lists(self, frame: pl.DataFrame) -> list[str]:
        if "node_list" not in frame.columns:
            return []
        texts = frame.get_column("node_list").drop_nulls().unique(maintain_order=True).to_list()
        cluster = frame.item(0, "cluster")
        if len(self.seen) > _MAX_SEEN:
            self.seen.clear()
        new = [t for t in texts if (cluster, t) not in self.seen]
        self.seen.update((cluster, t) for t in new)
        return new

    def _complete(self, frame: pl.DataFrame, line: int) -> pl.DataFrame:
        frame = frame.with_columns(
            (pl.col("position").cast(pl.Int64) + line).alias("line"),
            pl.lit(self.ctx.collected_at).cast(UTC).alias("collected_at"),
        ).drop("position")
        return JOB_ATTEMPTS.enforce(frame).drop("export_id")


def _rejects(lines: _Lines) -> list[Reject]:
    if not lines.section.rejects:
        return []
    starts = _starts(lines.data)
    found = []
    for position, reason in lines.section.rejects:
        raw = lines.data[starts[position] : starts[position + 1]].rstrip(b"\n")
        found.append(Reject.of(lines.line + position, reason, raw, lines.offset + starts[position]))
    return found


def _count(data: bytes) -> int:
    """Return the number of lines; the last may lack its newline."""
    return data.count(b"\n") + (not data.endswith(b"\n")) if data else 0


def _head(data: bytes, lines: int) -> tuple[bytes, int]:
    """Return at most `_MAX_SECTION_LINES` first lines of `data`: rubbish of short lines stays bounded in memory."""
    if lines <= _MAX_SECTION_LINES:
        return data, lines
    end = 0
    for _ in range(_MAX_SECTION_LINES):
        end = data.index(b"\n", end) + 1
    return data[:end], _MAX_SECTION_LINES


def _starts(data: bytes) -> list[int]:
    """Return where each line of `data` begins, and where the last one ends."""
    starts = [0]
    for part in data.split(b"\n"):
        starts.append(starts[-1] + len(part) + 1)
    return starts


def _by_cluster(rows: pl.DataFrame, ctx: Context) -> Iterator[tuple[str, pl.DataFrame]]:
    if rows.is_empty():
        return
    if "cluster" in rows.columns:
        for name, part in _named(rows, ctx).items():
            yield name, part.drop("cluster")
    elif ctx.cluster is not None:
        yield ctx.cluster, rows
    else:
        raise MissingSettingError(
            "this export has no column Cluster: set `cluster` on the source, or export it with sacct --format"
        )


def _named(rows: pl.DataFrame, ctx: Context) -> dict[str, pl.DataFrame]:
    """Return rows by their cluster; several names of the export may stand for one."""
    rows = rows.with_columns(pl.col("cluster").fill_null(""))
    names = rows.get_column("cluster").unique(maintain_order=True)
    ours = [ctx.cluster_of(name) for name in names]
    if len(set(ours)) == 1:
        return {ours[0]: rows}
    renamed = rows.with_columns(pl.col("cluster").replace_strict(names, pl.Series(ours, dtype=pl.String)))
    return {
        str(name): part for (name,), part in renamed.partition_by("cluster", as_dict=True, maintain_order=True).items()
    }


def _with_bad_lists(frame: pl.DataFrame, bad: list[str]) -> pl.DataFrame:
    if not bad:
        return frame
    is_bad = pl.col("node_list").is_in(bad) & pl.col("flags").list.contains("value_unreadable").not_()
    marked = pl.when(is_bad).then(pl.col("flags").list.concat(pl.lit(["value_unreadable"]))).otherwise("flags")
    return frame.with_columns(marked.alias("flags"))


SOURCE = Source(
    name="slurm_sacct",
    tables=(JOB_ATTEMPTS, HOST_LISTS),
    sniff=sniff,
    parse=parse,
    doc="sacct -P (Slurm accounting): job attempts; set `columns` where it was printed without a header (-n)",
    chunk_bytes=CHUNK_BYTES,
    version=3,
    names_clusters=True,
)
