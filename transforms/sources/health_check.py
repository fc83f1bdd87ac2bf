"""Failed node health checks: the log and the syslog lines of LBNL NHC, and what its helpers write -> hardware events.

NHC prints no time into its own log; the helper that takes the node out does (`20240603 08:00:01 ... node-mark-offline`),
and so does syslog. A failure without a stamp is an event without a time, flagged. A check that ran well, or a node
that is found healthy, makes no event. What a check prints beside its result is passed over (`check_output`): `die` always
writes `Health check failed:` when a check fails.

In a syslog file that also holds the kernel's lines the format is `kernel_log`, which passes over NHC's: select NHC's lines
into a file of their own (`grep nhc`). Sources: nhc and helpers/node-mark-offline of mej/nhc (1.3 to 1.5), `pass` of
Azure/azurehpc-health-checks, rsyslog's and RFC 5424's forms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from transforms.outcome import Context, Parsed
from transforms.parsing.documents import encodable
from transforms.parsing.health_checks import EVENT_CLASSES, KINDS, failure
from transforms.parsing.lines import Line, lines_of
from transforms.parsing.log_stamps import MONTHS, Instant, StampError, StampReader
from transforms.records import record_id
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import HARDWARE_EVENTS, UTC

MAX_TEXT = 2_000
SNIFF_LINES = 500
CHUNK_BYTES = 2 << 20

_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_YEARLESS = rf"(?:{'|'.join(MONTHS)}) [ \d]\d (?:\d{{4}} )?\d\d:\d\d:\d\d(?:\.\d{{1,9}})?"
_STAMP = re.compile(
    rf"(?:<\d{{1,3}}>)?(?:1 (?=\d))?\[?(?:(?P<iso>{_ISO})|(?P<yearless>{_YEARLESS})|(?P<own>\d{{8}} \d\d:\d\d:\d\d))\]?(?: -)?\s+",
    re.ASCII,
)
_HOST = r"(?P<host>[A-Za-z0-9][\w.-]*)"
_NHC = r"(?:\[\w+\] )?(?:\S*/)?nhc(?:-\w+)?(?:\{[^}]*\})?(?:\[\d+\])?"
_TAGGED = re.compile(rf"(?:{_HOST} )?{_NHC}(?:: ?| \d+ \S+ (?:-|\[.*?\]) )(?P<message>.*)", re.ASCII)
_OTHER_TAG = re.compile(r"[A-Za-z0-9][\w.-]* (?P<tag>[\w./@()-]+)(?:\[\d+\])?: ", re.ASCII)
_HELPER = re.compile(
    rf"(?:\[\w+\] )?\S*node-mark-(?P<state>offline|online|reboot)(?P<said>:)?\s+(?:{_HOST})?\s*(?P<message>.*)",
    re.ASCII,
)
_BEFORE = re.compile(
    rf"(?!ERROR|SUCCESS|NHC|Health|Node)(?:{_HOST}(?: \| |:diagnosis:|:? (?=ERROR\b|NHC:|Health check|Node Health|SUCCESS)))(?P<message>.*)"
)
_LEAD = re.compile(r"(?:(?:ERROR|FATAL):?\s+|nhc:\s+|NHC:\s+|Health check failed:\s*)+", re.ASCII)
_FAILED_CHECK = re.compile(r"Node Health Check failed\.\s+(?P<message>.*)", re.ASCII)
_IS_FAILURE = re.compile(r"ERROR\b|NHC: (?!HEALTHY)|Health check failed:|Node Health Check failed\.|FATAL:", re.ASCII)
_JSON = '{"progname":"nhc"'

_IGNORED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("summary", re.compile(r"(?:ERROR:\s+\S+\s+)?\d+ health checks? failed\.|\S+:healthy:|begin$|end$")),
    ("started", re.compile(r"Node Health Check starting|Running check\b")),
    ("passed", re.compile(
        r"(?:SUCCESS:\s+\S+\s+)?Health check passed:|Node Health Check (?:detached parent )?completed|Node OK|Healthy$"
        r"|Health checks? completed|NHC: HEALTHY|\S+ \| Healthy$"
    )),
    ("watchdog", re.compile(r"NHC (?:subprocess .*)?(?:watchdog timer|process) ")),
    ("debug", re.compile(r"DEBUG:|\[\d+\] - DEBUG:")),
)  # fmt: skip
_WORDS = re.compile(
    rb"Node Health Check |Health checks? (?:failed|passed|completed)|node-mark-o(?:ff|n)line|NHC: check_"
    rb"|:diagnosis:NHC: |:healthy:(?:true|false)|NHC:  FATAL: |\bnhc(?:\[\d+\])?: "
    rb'|Running check\b|\bcheck_[a-z]+_\w+:  |"progname":"nhc"'
)


class _Read(NamedTuple):
    """A line taken apart: form of its stamp, the stamp, the host it names, the message, the rule that passes over it."""

    clock: str | None
    stamp: str
    host: str | None
    message: str
    rule: str | None = None


def sniff(head: bytes) -> bool:
    """Tell a log of NHC: most of its lines are NHC's, and none is the kernel's."""
    lines = [line for line in head.split(b"\n")[:SNIFF_LINES] if line.strip()]
    own = sum(_WORDS.search(line) is not None for line in lines)
    return 2 * own > len(lines) and not any(b" kernel: " in line for line in lines)


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield hardware events of class `health_check_failed_<kind>`, a piece for each chunk of the stream.

    Raises:
        MissingSettingError: no cluster is configured, or stamps have no zone.
    """
    reader = _Reader(context)
    for chunk in stream.chunks():
        for line in lines_of(chunk):
            reader.read(line)
        yield reader.take()
    is_open = reader.settle()
    last = reader.take()
    last.is_open = is_open
    last.rejects += stream.long_lines
    yield last


class _Reader:
    """Gives each line its fate; holds rows until they are taken.

    NHC writes a failure into its log up to four times: bare, then as the helper's call (the one with a stamp), then as what the
    helper did, then as `ERROR:`. The call makes the event; a bare line with the same words before or after it is `repeated`.
    """

    def __init__(self, context: Context) -> None:
        self._cluster, self._context, self._stamps = context.require_cluster(), context, StampReader(context)
        self._parsed, self._rows = Parsed(), list[dict[str, Any]]()
        self._bare: tuple[Line, _Read] | None = None
        self._stamped = ""

    def read(self, line: Line) -> None:
        """Read one line."""
        read = _taken_apart(line.text)
        if read.rule is not None:
            self._parsed.ignored[read.rule] += 1
        elif read.clock is None and read.message == self._stamped:
            self._parsed.ignored["repeated"] += 1
        elif read.clock is None:
            self.settle()
            self._bare = line, read
        else:
            if self._bare and self._bare[1].message == read.message:
                self._parsed.ignored["repeated"] += 1
                self._bare = None
            self.settle()
            self._stamped = read.message
            self._add(line, read)

    def settle(self) -> bool:
        """Make an event of the bare line that is held, if there is one; tell whether there was."""
        held, self._bare = self._bare, None
        if held:
            self._add(*held)
        return held is not None

    def take(self) -> Parsed:
        """Return the rows and fates held, and hold none but a bare line."""
        parsed, rows = self._parsed, self._rows
        self._parsed, self._rows = Parsed(), []
        parsed.used = len(rows)
        if rows:
            parsed.frames[HARDWARE_EVENTS.name] = _frame(rows, self._cluster, self._context)
        return parsed

    def _add(self, line: Line, read: _Read) -> None:
        try:
            self._rows.append(_row(line, read, _when(read, self._stamps), self._context))
        except StampError as error:
            self._parsed.rejects.append(line.reject(f"time stamp {read.stamp!r}: {error}"))


def _taken_apart(text: str) -> _Read:
    """Return the parts of a line that tells a failure; of any other one the rule that passes over it."""
    clock, stamp, rest = None, "", text.strip()
    if not rest:
        return _Read(None, "", None, "", "blank")
    if found := _STAMP.match(rest):
        clock = found.lastgroup
        stamp, rest = found[clock or 0], rest[found.end() :]
    host, message, rule = _addressed(rest, has_stamp=clock is not None)
    rule = rule or _rule(message)
    return _Read(clock, stamp, host, message if rule else _message(message), rule)


def _addressed(rest: str, *, has_stamp: bool) -> tuple[str | None, str, str | None]:
    """Return the host that a line names, its message, and the rule that passes over it by its tag alone."""
    if found := _HELPER.fullmatch(rest):
        is_call = found["state"] == "offline" and found["said"] is None and found["message"]
        return found["host"], f"NHC: {found['message']}", None if is_call else "helper"
    if found := _TAGGED.fullmatch(rest):
        host, message = found["host"], found["message"]
        return host, message, None
    if found := _BEFORE.fullmatch(rest):
        return found["host"], found["message"], None
    if has_stamp and (found := _OTHER_TAG.match(rest)):
        is_own = found["tag"].lower() in {"error", "nhc"} or found["tag"].startswith("check_")
        return None, rest, None if is_own else "other_program"
    return None, rest, None


def _rule(message: str) -> str | None:
    """Return the rule that passes over a message; None = it tells a failure."""
    if message.startswith(_JSON):
        return None if '"healthy":"false"' in message else "passed"
    for rule, pattern in _IGNORED:
        if pattern.match(message):
            return rule
    return None if _IS_FAILURE.match(message) else "check_output"


def _when(read: _Read, stamps: StampReader) -> Instant | None:
    if read.clock == "iso":
        return stamps.iso(read.stamp)
    if read.clock == "yearless":
        return stamps.yearless(read.stamp)
    if read.clock == "own":
        day = read.stamp
        return stamps.iso(f"{day[:4]}-{day[4:6]}-{day[6:]}")
    return None


def _row(line: Line, read: _Read, when: Instant | None, context: Context) -> dict[str, Any]:
    message = read.message
    found = failure(message)
    node = read.host or context.node
    us, flags = when or Instant(0, ("time_missing",))
    flags = (*flags, *(() if node else ("node_missing",)), *(("decoded",) if line.is_decoded else ()))
    return {
        "node": node,
        "occurred_at": None if when is None else us,
        "event_class": EVENT_CLASSES[found.kind],
        "device_kind": KINDS[found.kind],
        "device": found.device,
        "severity": found.severity,
        "unit": found.check,
        "text": message[:MAX_TEXT],
        "flags": list(flags),
        "line": line.number,
    }


def _message(text: str) -> str:
    """Return what failed, without the words that lead to it, blanks made single."""
    if text.startswith(_JSON):
        try:
            text = str(encodable(json.loads(text)["message"]))
        except (ValueError, KeyError, RecursionError):  # cut short
            text = text.partition('"message":"')[2] or text
    if found := _FAILED_CHECK.search(text):
        text = found["message"]
    if found := _LEAD.match(text):
        text = text[found.end() :]
    return " ".join(text.split())


def _frame(rows: list[dict[str, Any]], cluster: str, context: Context) -> pl.DataFrame:
    schema = HARDWARE_EVENTS.schema
    frame = pl.DataFrame(
        rows, schema={c: pl.Int64() if c == "occurred_at" else schema[c] for c in rows[0]}
    ).with_columns(
        cluster=pl.lit(cluster),
        occurred_at=pl.col("occurred_at").cast(UTC),
        collected_at=pl.lit(context.collected_at, UTC),
    )
    identity = record_id(["cluster", "node", "occurred_at", "event_class", "text"])
    return HARDWARE_EVENTS.enforce(frame.with_columns(record_id=identity)).drop("export_id")


SOURCE = Source(
    name="health_check",
    tables=(HARDWARE_EVENTS,),
    sniff=sniff,
    parse=parse,
    doc="LBNL Node Health Check: /var/log/nhc.log, its syslog lines, node-mark-offline's lines",
    version=2,
    chunk_bytes=CHUNK_BYTES,
)
