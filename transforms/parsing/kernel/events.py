"""Turn the lines that hold a signature into rows of `hardware_events`, and count what becomes of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from transforms.outcome import Context, Parsed, Reject
from transforms.parsing.kernel.event import Event
from transforms.parsing.kernel.headers import Clock, Header, HeaderReader
from transforms.parsing.kernel.lost_gpu import LostGpus, Told
from transforms.parsing.kernel.messages import UNREADABLE_XID, bare_message, read_message
from transforms.parsing.kernel.signatures import LOST_HEAD, LOST_MIDDLE, LOST_TAIL
from transforms.parsing.log_stamps import Instant, StampError, StampReader
from transforms.records import record_id
from transforms.tables import HARDWARE_EVENTS, UTC

MAX_TEXT = 2_000
OPEN_LINES = 1_000
RING_BUFFER_US = 120_000_000
_ROW = {
    "index": pl.UInt32,
    "node": pl.String,
    "occurred_at": pl.Int64,
    "monotonic_us": pl.Int64,
    "line": pl.Int64,
    "flags": pl.String,
}
_TOLD = (*Event._fields[:-1], "text")


NO_TIME: tuple[int | None, tuple[str, ...]] = (None, ("time_missing",))
PART = Event("", "")  # the middle of a report: says nothing by itself


class Line(NamedTuple):
    """A line of the export: its number, where it begins, its bytes."""

    number: int
    byte_offset: int
    raw: bytes

    def rejected(self, reason: str) -> Reject:
        """Return the line as one that cannot be read."""
        return Reject.of(self.number, reason, self.raw, self.byte_offset)


class EventReader:
    """Reads hits in the order of the file; holds rows and fates until they are taken.

    Args:
        ctx: what is known of the export.
        has_headers: its lines have headers, so one without is broken; False = it was written without (`dmesg -t`).

    Raises:
        MissingSettingError: the source has no cluster.
    """

    def __init__(self, ctx: Context, *, has_headers: bool = True) -> None:
        self._ctx = ctx
        self._has_headers = has_headers
        self._cluster = ctx.require_cluster()
        self._headers = HeaderReader()
        self._stamps = StampReader(ctx)
        self._minute = ""
        self._clocks: dict[Clock, Callable[[str], Instant | None]] = {
            Clock.ISO: self._stamps.iso,
            Clock.YEARLESS: self._stamps.yearless,
            Clock.RELTIME: self._stamps.yearless,
            Clock.CTIME: self._stamps.ctime,
            Clock.UNIX: self._stamps.unix,
            Clock.DELTA: self._after_minute,
        }
        self._lost = LostGpus()
        self._reset()

    def _reset(self) -> None:
        self._events: dict[tuple[Event, str], int] = {}
        self._rows: list[tuple[int, str | None, int | None, int | None, int, str]] = []
        self._used = 0
        self._ignored: Counter[str] = Counter()
        self._rejects: list[Reject] = []

    @property
    def held(self) -> int:
        """Rows and rejects held."""
        return len(self._rows) + len(self._rejects)

    def ignore(self, rule: str, lines: int = 1) -> None:
        """Count lines passed over by a rule."""
        if lines:
            self._ignored[rule] += lines

    def reject(self, rejects: list[Reject]) -> None:
        """Take lines that nobody can read."""
        self._rejects += rejects

    def read(self, line: int, byte_offset: int, raw: bytes) -> None:
        """Read one line; decide its fate."""
        text, flags = _decode(raw)
        header = self._headers.split(text) or Header(Clock.ABSENT, "", None, True, None, text.strip())
        if header.clock is Clock.RELTIME:
            self._minute = header.stamp
        if not header.is_kernel:
            self.ignore("not_kernel")
            return
        is_broken = self._has_headers and header.clock is Clock.ABSENT
        if not is_broken and not header.message.startswith(
            "NVRM: Xid"
        ):  # every other message may have something before it
            header = header._replace(message=bare_message(header.message))
        found = _read_anywhere(header.message) if is_broken else read_message(header.message)
        if found is None:
            self.ignore("no_signature")
        elif found == UNREADABLE_XID:
            self._rejects.append(
                Line(line, byte_offset, raw).rejected("an Xid message without a code that can be read")
            )
        elif isinstance(found, str) and found != LOST_MIDDLE:
            self.ignore(found)
        else:
            self._signature(Line(line, byte_offset, raw), header, found, flags)

    def _signature(self, line: Line, header: Header, found: Event | str, flags: tuple[str, ...]) -> None:
        """Decide on a line that has a signature."""
        event = found if isinstance(found, Event) else PART
        try:
            when = self._when(header)
        except StampError as error:
            self._rejects.append(line.rejected(f"time stamp {header.stamp!r}: {error}"))
            return
        node = header.host or self._ctx.node
        told = Told(event, node, when, header.monotonic_us, line.number, header.message, flags)
        has_header = header.clock is not Clock.ABSENT
        if event is PART:
            if not self._lost.middle(told, has_header=has_header):
                self.ignore("gpu_probe_message")
        elif event.event_class == LOST_HEAD and (has_header or not self._has_headers):
            if before := self._lost.begin(told):
                self.ignore("gpu_probe_message", before.lines)
        else:
            whole = self._lost.end(told, has_header=has_header) if event.event_class == LOST_TAIL else told
            if whole is told and self._has_headers and not has_header:
                self._rejects.append(line.rejected("the time stamp has no known form"))
            else:
                self._add(whole)

    def _when(self, header: Header) -> Instant | None:
        read = self._clocks.get(header.clock)
        return read(header.stamp) if read else None

    def _after_minute(self, _stamp: str) -> Instant | None:
        """Return the time of a line that shows how long after the line before it came: the minute printed last."""
        if not self._minute:
            return None
        minute = self._stamps.yearless(self._minute)
        return Instant(minute.us, (*minute.flags, "time_derived"))

    def _add(self, told: Told) -> None:
        event = told.event
        if event.event_class in {LOST_HEAD, LOST_TAIL}:
            event = event._replace(event_class="gpu_lost")
        key = (event, told.text[:MAX_TEXT])
        index = self._events.setdefault(key, len(self._events))
        us, flags = told.when or NO_TIME
        if told.flags or event.flags or told.node is None:
            flags = (*told.flags, *event.flags, *flags, *(() if told.node else ("node_missing",)))
        self._rows.append((index, told.node, us, told.monotonic_us, told.line, ",".join(flags)))
        self._used += told.lines

    def finish(self, end_line: int) -> Parsed:
        """Return what is held at the end of the export, `end_line` being the number of the line after its last.

        A report that began in the last lines may go on in lines still to come: the piece is then open.
        """
        rest = self._lost.unfinished()
        for told in rest:
            self.ignore("gpu_probe_message", told.lines)
        parsed = self.take()
        parsed.is_open = any(told.line + OPEN_LINES >= end_line for told in rest)
        return parsed

    def take(self) -> Parsed:
        """Return the rows and fates held, and hold none."""
        frames = {HARDWARE_EVENTS.name: self._frame()} if self._rows else {}
        parsed = Parsed(frames, self._used, self._ignored, self._rejects)
        self._reset()
        return parsed

    def _frame(self) -> pl.DataFrame:
        """Return the rows held; what a message says is kept once, as storms repeat it."""
        rows = pl.DataFrame(
            [pl.Series(n, c, t) for (n, t), c in zip(_ROW.items(), zip(*self._rows, strict=True), strict=True)]
        )
        texts = zip(*((*event[:-1], text) for event, text in self._events), strict=True)
        schema = HARDWARE_EVENTS.schema
        told = pl.DataFrame([pl.Series(n, c, schema[n]) for n, c in zip(_TOLD, texts, strict=True)])
        no_flags = pl.lit([], pl.List(pl.String))
        flags = pl.when(pl.col("flags") == "").then(no_flags).otherwise(pl.col("flags").str.split(","))
        frame = rows.hstack(told[rows["index"]].get_columns()).with_columns(
            flags=flags,
            occurred_at=pl.col("occurred_at").cast(UTC),
            cluster=pl.lit(self._cluster),
            collected_at=pl.lit(self._ctx.collected_at, UTC),
        )
        return HARDWARE_EVENTS.enforce(frame.drop("index").with_columns(record_id=_identity())).drop("export_id")


def _identity() -> pl.Expr:
    """Return the record id.

    The kernel keeps its messages in a ring buffer, and a logger that starts again reads all of it again, under later
    wall times. So where a monotonic stamp is printed it stands for the time: node, stamp and text do not recur. Soon after
    a boot they do (a driver says the same at the same microsecond of each boot), so there the wall time decides.
    """
    is_monotonic = pl.col("occurred_at").is_null() | (pl.col("monotonic_us") >= RING_BUFFER_US).fill_null(value=False)
    return record_id(
        [
            "cluster",
            "node",
            "event_class",
            pl.when(is_monotonic).then(pl.col("monotonic_us")),
            pl.when(~is_monotonic).then(pl.col("occurred_at")),
            "text",
        ]
    )


_BEFORE_MESSAGE = ("kernel: ", "] ", "NVRM: ")


def _read_anywhere(text: str) -> Event | str | None:
    """Return what the message in a line says whose header nobody can read."""
    found = read_message(text)
    for mark in _BEFORE_MESSAGE:
        at = text.find(mark)
        if found is None and at >= 0:
            found = read_message(text[at if mark == "NVRM: " else at + len(mark) :].strip())
    return found


def _decode(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """Return a line as text; bytes that are not UTF-8 are read as Latin-1, flagged."""
    try:
        return raw.decode().rstrip("\r"), ()
    except UnicodeDecodeError:
        return raw.decode("latin-1").rstrip("\r"), ("decoded",)
