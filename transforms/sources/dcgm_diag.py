"""`dcgmi diag -j`: diagnostics that failed or passed -> hardware events, one per test and device that failed.

- `diagnostic_failed`: a test of the device failed. `unit` is the test, `text` its warning, `code` DCGM's error code.
- `diagnostic_warned`: it ended with a warning, or with a status that is not documented (flagged).
- `diagnostic_passed`: at least one test that makes the device work passed, and none failed or warned; `unit` lists the tests.
- `diagnostic_software_failed`, `diagnostic_software_passed`: the same of the host's settings, libraries and permissions (all that
  level 1 looks at); they say nothing about a device's health.

A test that was skipped or not run is neither. The document names neither time nor node by itself: the time is the export's
collection time, the node that of the source, unless whatever wrote the file added them (`hostname`, `timestamp`, at the top or
under `metadata`). Sources: NVIDIA/DCGM, dcgmi and dcgmlib/dcgm_errors.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from transforms.outcome import Context, Parsed, UnreadableExportError
from transforms.parsing.diag_results import ROOTS, Entity, Result, is_document, results
from transforms.parsing.documents import Document, documents
from transforms.parsing.lines import Line, lines_of
from transforms.parsing.log_stamps import EPOCH, MICROSECOND, StampError, StampReader
from transforms.records import record_id
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import HARDWARE_EVENTS, TEXTS, UTC

MAX_TEXT = 2_000
_NODE_KEYS = ("hostname", "host", "node")
_TIME_KEYS = ("timestamp", "time", "end_time", "start_time")
_FIELDS = {
    "node": pl.String(), "occurred_at": pl.Int64(), "event_class": pl.String(), "code": pl.Int64(), "device_kind": pl.String(),
    "device": pl.String(), "unit": pl.String(), "text": pl.String(), "flags": TEXTS, "line": pl.Int64(),
}  # fmt: skip
_IDENTITY = ("cluster", "node", "occurred_at", "event_class", "code", "device_kind", "device", "unit", "text")
_Row = tuple[object, ...]


def sniff(head: bytes) -> bool:
    """Tell the document by its first key, which may stand after lines of other text."""
    text = head.decode("utf-8", "replace")
    start = text.find("{")
    while start >= 0:
        rest = text[start + 1 :].lstrip()
        if rest.startswith(tuple(f'"{root}"' for root in ROOTS)):
            return True
        if rest.startswith('"'):  # JSON, but of another kind, or with other keys first
            return any(f'"{root}"' in text for root in ROOTS) and '"test_categories"' in text
        start = text.find("{", start + 1)
    return False


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield hardware events; several documents may follow each other.

    A document's lines are used where it tells anything, else ignored (`nothing_ran`). Text outside documents is ignored
    (`banner`), as are blank lines. A document that breaks off, or is another one, is rejected with all its lines: what it does not
    say is no pass. Of one that is too large the first line is rejected, the others are ignored (`too_large`).

    Raises:
        UnreadableExportError: there is no document at all.
        MissingSettingError: the source names no cluster, or a time in a document has no zone.
    """
    reader = _Reader(context)
    for found in documents(line for chunk in stream.chunks() for line in lines_of(chunk)):
        reader.read(found)
        if len(reader.rows) >= 10_000:
            yield reader.take()
    if not reader.seen and stream.lines and not stream.long_lines:
        raise UnreadableExportError("it holds no JSON document: write it with `dcgmi diag -r 3 -j`, or leave it out")
    parsed = reader.take()
    parsed.rejects += stream.long_lines
    yield parsed


class _Reader:
    """Gives documents their fate and gathers rows."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._cluster = context.require_cluster()
        self._stamps = StampReader(context)
        self._parsed = Parsed()
        self.rows: list[_Row] = []
        self.seen = 0

    def read(self, found: Document) -> None:
        """Decide on a document, or on a line outside of one."""
        if found.problem is None and not found.values and not found.is_too_large:
            [line] = found.lines
            self._parsed.ignored["banner" if line.text.strip("\ufeff \t") else "blank"] += 1
            return
        self.seen += 1
        problem = found.problem
        if found.is_too_large:
            # One reject for all of it: it may have a million lines.
            rejected = [line.reject(problem) for line in found.lines[:1] if problem]
            self._parsed.rejects += rejected
            self._parsed.ignored["too_large"] += len(found.lines) - len(rejected)
            return
        if problem is None and not all(map(is_document, found.values)):
            problem = "is no answer of `dcgmi diag -j`"
        if problem:
            self._parsed.rejects += [line.reject(problem) for line in found.lines]
            return
        rows = [row for value in found.values for row in self._rows(value, found.lines)]
        self.rows += rows
        if rows:
            self._parsed.used += len(found.lines)
        else:
            self._parsed.ignored["nothing_ran"] += len(found.lines)

    def _rows(self, document: dict[str, Any], lines: list[Line]) -> Iterator[_Row]:
        node = _told(document, _NODE_KEYS)
        node = node if isinstance(node, str) else self._context.node
        us, flags = self._time(_told(document, _TIME_KEYS))
        if node is None:
            flags = [*flags, "node_missing"]
        if any(line.is_decoded for line in lines):
            flags = [*flags, "decoded"]
        for event, result in events(list(results(document))):
            more = ["value_unreadable"] if result.status is None else []
            code = result.errors[0] if result.errors else None
            text = result.text[:MAX_TEXT] if result.text else None
            entity = result.entity
            yield node, us, event, code, entity.kind, entity.device, result.test, text, [*flags, *more], lines[0].number

    def _time(self, told: object) -> tuple[int, list[str]]:
        """Return the document's own time, or the collection time where it has none that can be read."""
        collected = (self._context.collected_at - EPOCH) // MICROSECOND
        if told is None:
            return collected, []
        try:
            is_number = isinstance(told, int | float) and not isinstance(told, bool)
            instant = self._stamps.unix(str(told)) if is_number else self._stamps.iso(str(told).strip())
        except (StampError, ValueError):
            return collected, ["value_unreadable"]
        return instant.us, list(instant.flags)

    def take(self) -> Parsed:
        """Return what was gathered, and hold nothing."""
        parsed, self._parsed = self._parsed, Parsed()
        rows, self.rows = self.rows, []
        if rows:
            frame = pl.DataFrame(rows, schema=_FIELDS, orient="row").with_columns(
                cluster=pl.lit(self._cluster),
                occurred_at=pl.col("occurred_at").cast(UTC),
                collected_at=pl.lit(self._context.collected_at, UTC),
            )
            named = frame.with_columns(record_id=record_id(_IDENTITY))
            parsed.frames[HARDWARE_EVENTS.name] = HARDWARE_EVENTS.enforce(named).drop("export_id")
        return parsed


def events(found: list[Result]) -> Iterator[tuple[str, Result]]:
    """Yield what the results of one document mean: event class, and the result that stands for it.

    A pass stands for all tests of its device; its text names them.
    """
    by_entity: dict[Entity, list[Result]] = {}
    for result in found:
        by_entity.setdefault(result.entity, []).append(result)
    for entity, told in by_entity.items():
        bad = [r for r in told if r.status not in {"pass", "skip"}]
        for result in bad:
            yield _class_of(result), result
        good = [r for r in told if r.status == "pass"]
        worked = sorted({r.test for r in good if r.is_exercise})
        if worked and all(r.is_software for r in bad):
            yield "diagnostic_passed", _passed(entity, worked)
        elif good and not bad:
            yield "diagnostic_software_passed", _passed(entity, sorted({r.test for r in good}))


def _class_of(result: Result) -> str:
    if result.status != "fail":
        return "diagnostic_warned"
    return "diagnostic_software_failed" if result.is_software else "diagnostic_failed"


def _passed(entity: Entity, tests: list[str]) -> Result:
    return Result(", ".join(tests), entity, "pass")


def _told(document: dict[str, Any], keys: tuple[str, ...]) -> object:
    """Return the first of `keys` that stands at the top, beside the tests or in either's metadata."""
    roots = [document, *(document[r] for r in ROOTS if isinstance(document.get(r), dict))]
    places = [p for r in roots for p in (r, r.get("metadata")) if isinstance(p, dict)]
    told = (p.get(k) for k in keys for p in places)
    return next((value for value in told if isinstance(value, str | int | float) and value != ""), None)


EVENT_CLASSES = frozenset(
    f"diagnostic_{word}" for word in ("failed", "passed", "warned", "software_failed", "software_passed")
)

SOURCE = Source(
    name="dcgm_diag",
    tables=(HARDWARE_EVENTS,),
    sniff=sniff,
    parse=parse,
    doc="`dcgmi diag -j`: diagnostics of GPUs, of DCGM 2 to 4",
    version=2,
    is_document=True,
)
