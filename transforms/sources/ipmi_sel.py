"""`ipmitool sel elist` and `sel list`: what the management controllers of nodes recorded -> hardware events.

One node's log, or those of many with the node before each line as pdsh and clush print it. A record without a usable time is
kept, its time null and flagged. An assertion and its deassertion have the same node, class and unit; the latter's severity is
`info`. Sources: ipmitool lib/ipmi_sel.c for the columns; IPMI 2.0 specification, section 32, for records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from transforms.outcome import Context, Parsed
from transforms.parsing.lines import Line, lines_of
from transforms.parsing.sel_classes import OEM, PANIC, meaning
from transforms.parsing.sel_times import MISSING, PRE_INIT_ALONE, SelTime, SelTimes, has_date
from transforms.records import record_id
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import HARDWARE_EVENTS, TEXTS, UTC

MAX_TEXT = 2_000
SNIFF_LINES = 500
_PREFIX = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*):(?: (.*))?", re.DOTALL)
_ID = re.compile(r"[0-9a-fA-F]{1,4}", re.ASCII)
_DIRECTIONS = {"asserted": "Asserted", "deasserted": "Deasserted"}
_NO_ENTRIES = "SEL has no entries"
# What ipmitool, ssh, pdsh and clush say where there was no log to read.
_UNREACHABLE = re.compile(
    r"ssh: |ssh_exchange_identification|kex_exchange_identification|pdsh@|clush: |Could not open device|Error: |"
    r"Unable to (?:establish|open|send|get)|Get (?:SEL|Device|HPM)|Invalid user name|No data available|"
    r"Connection (?:closed|reset|refused|timed out)|Permission denied|Host key verification failed|bash: |sh: |sudo: |"
    r"mcmd: |command timed out|Warning: Permanently added"
)
_FIELDS = {
    "node": pl.String(), "occurred_at": pl.Int64(), "event_class": pl.String(), "device_kind": pl.String(),
    "device": pl.String(), "severity": pl.String(), "unit": pl.String(), "monotonic_us": pl.Int64(), "text": pl.String(),
    "flags": TEXTS, "line": pl.Int64(), "id": pl.String(), "date": pl.String(), "clock": pl.String(), "sensor": pl.String(),
    "event": pl.String(), "direction": pl.String(),
}  # fmt: skip
_IDENTITY = ("cluster", "node", "id", "date", "clock", "sensor", "event", "direction")
_Row = tuple[object, ...]


class SelRecord:
    """The columns of one record, as printed, without blanks around them.

    Attributes:
        number: record id, hexadecimal, lower case; it starts anew when the log is cleared.
        date, clock: two columns of time; empty where the record has none.
        sensor: sensor's type and name; `OEM record c0` where there is none.
        event: what it tells; may be empty.
        direction: Asserted, Deasserted or None.
    """

    __slots__ = ("clock", "date", "direction", "event", "number", "sensor")

    def __init__(self, columns: list[str]) -> None:
        """Read a record.

        Raises:
            ValueError: the columns make no record; the message says why.
        """
        self.number = columns[0].lower()
        rest = columns[1:]
        self.date = self.clock = ""
        if rest[0] == PRE_INIT_ALONE:
            self.date, rest = rest[0], rest[1:]
        elif has_date(rest[0]):
            self.date, self.clock, rest = rest[0], (rest[1] if len(rest) > 1 else ""), rest[2:]
        elif not rest[0].startswith((OEM, PANIC)):
            raise ValueError(f"{rest[0][:40]!r} is no date")
        if not rest or not rest[0]:
            raise ValueError("the record names no sensor")
        self.sensor, self.direction = rest[0], None
        if self.sensor.startswith(PANIC):
            self.sensor, _, self.event = self.sensor.partition(":")
        elif self.sensor.startswith(OEM):
            self.event = " | ".join(rest[1:])
        else:
            self.event = rest[1] if len(rest) > 1 else ""
            self.direction = _DIRECTIONS.get(rest[2].lower()) if len(rest) > 2 else None

    @property
    def is_whole(self) -> bool:
        """Whether nothing can be missing at its end."""
        return self.direction is not None or not self.date or self.sensor.startswith(OEM)


def _columns(text: str) -> list[str] | None:
    """Return the columns of a line that looks like a record: `a | 05/04/2025 | ...`."""
    columns = [c.strip() for c in text.split("|")]
    return columns if len(columns) > 1 and _ID.fullmatch(columns[0]) else None


def _parted(text: str) -> tuple[str | None, str]:
    """Return the node that stands before a line, and the rest."""
    found = _PREFIX.fullmatch(text)
    return (found[1], found[2] or "") if found else (None, text)


def _is_record(columns: list[str] | None) -> bool:
    return columns is not None and (has_date(columns[1]) or columns[1].startswith((OEM, PANIC)))


def sniff(head: bytes) -> bool:
    """Tell whether most lines are records of a system event log, or say that there are none."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines()[:SNIFF_LINES] if line.strip()]
    known = told = 0
    for line in lines:
        _, rest = _parted(line)
        if _is_record(_columns(rest)) or rest.strip() == _NO_ENTRIES:
            told += 1
        elif _UNREACHABLE.match(rest) or _UNREACHABLE.match(line) or not rest.strip():
            known += 1
    return told > 0 and 2 * (told + known) > len(lines)


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield hardware events.

    Ignored are blank lines, `SEL has no entries` (`no_entries`), and what the tools say where a node's log could not be read
    (`not_read`). Rejected are lines that are no record, and a last line cut short.

    Raises:
        MissingSettingError: no cluster, or times without a zone word and no zone.
    """
    reader = _Reader(context)
    for chunk in stream.chunks():
        is_cut = not chunk.data.endswith(b"\n")
        line = None
        for following in lines_of(chunk):
            if line:
                reader.read(line)
            line = following
        if line:
            reader.read(line, is_cut=is_cut)
        yield reader.take()
    yield Parsed(rejects=list(stream.long_lines))


class _Reader:
    """Gives lines their fate and gathers rows."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._cluster = context.require_cluster()
        self._times = SelTimes(context)
        self._rows: list[_Row] = []
        self._parsed = Parsed()

    def read(self, line: Line, *, is_cut: bool = False) -> None:
        text = line.text.removeprefix("\ufeff") if line.number == 1 else line.text
        node, rest = _parted(text)
        columns = _columns(rest)
        if columns:
            self._record(line, node or self._context.node, columns, is_cut=is_cut)
        elif not rest.strip():
            self._parsed.ignored["blank"] += 1
        elif rest.strip() == _NO_ENTRIES:
            self._parsed.ignored["no_entries"] += 1
        elif _UNREACHABLE.match(rest) or _UNREACHABLE.match(text):
            self._parsed.ignored["not_read"] += 1
        else:
            self._parsed.rejects.append(line.reject("is no record of a system event log"))

    def _record(self, line: Line, node: str | None, columns: list[str], *, is_cut: bool) -> None:
        try:
            record = SelRecord(columns)
        except ValueError as error:
            self._parsed.rejects.append(line.reject(str(error)))
            return
        if is_cut and not record.is_whole:
            self._parsed.rejects.append(line.reject("the record is cut short"))
            return
        when = self._times.read(record.date, record.clock) if record.date else MISSING
        self._rows.append(_row(line, node, record, when, " | ".join(columns)[:MAX_TEXT]))

    def take(self) -> Parsed:
        """Return what was gathered, and hold nothing."""
        parsed, self._parsed = self._parsed, Parsed()
        rows, self._rows = self._rows, []
        parsed.used = len(rows)
        if rows:
            frame = pl.DataFrame(rows, schema=_FIELDS, orient="row").with_columns(
                cluster=pl.lit(self._cluster),
                occurred_at=pl.col("occurred_at").cast(UTC),
                collected_at=pl.lit(self._context.collected_at, UTC),
            )
            named = frame.with_columns(record_id=record_id(_IDENTITY))
            kept = named.select(c for c in named.columns if c in HARDWARE_EVENTS.schema)
            parsed.frames[HARDWARE_EVENTS.name] = HARDWARE_EVENTS.enforce(kept).drop("export_id")
        return parsed


def _row(line: Line, node: str | None, record: SelRecord, when: SelTime, text: str) -> _Row:
    told = meaning(record.sensor, record.event, record.direction)
    flags = [*when.flags, *(() if node else ("node_missing",)), *(("decoded",) if line.is_decoded else ())]
    return (
        node, when.us, told.event_class, told.device_kind, told.device, told.severity, told.unit, when.monotonic_us, text,
        flags, line.number, record.number, record.date, record.clock, record.sensor, record.event, record.direction,
    )  # fmt: skip


SOURCE = Source(
    name="ipmi_sel",
    tables=(HARDWARE_EVENTS,),
    sniff=sniff,
    parse=parse,
    doc="`ipmitool sel elist` or `sel list`, of one node or of many through pdsh or clush",
    version=2,
)
