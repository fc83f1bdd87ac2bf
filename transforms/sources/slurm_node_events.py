"""`sacctmgr show event -P`: when nodes were down or drained, why, and who said so.

Columns may stand in any order and be missing; `-p` (a delimiter at the end of each line) and other delimiters are read. Each
node of a host list gets its row. Source: sacctmgr(1), "show event"; event_functions.c for what it prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from transforms.outcome import Context, Parsed, UnreadableExportError
from transforms.parsing.lines import Line, lines_of
from transforms.parsing.nodelist import BadHostListError, expand
from transforms.parsing.timestamps import slurm_utc
from transforms.records import record_id
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import NODE_STATES

_NAMES = frozenset(
    (
        "cluster", "clusternodes", "cpus", "cpucount", "duration", "end", "event", "eventraw", "nodename", "reason", "start",
        "state", "stateraw", "timeend", "timestart", "tres", "user",
    )
)  # fmt: skip
_SYNONYMS = {"start": "timestart", "end": "timeend"}
_WORD = r"[A-Za-z](?:[A-Za-z ]*[A-Za-z])?"
_HEADER = re.compile(rf"{_WORD}([^A-Za-z ]{{1,8}})(?:{_WORD}\1)*{_WORD}(?:\1)?")
_LONGEST_HEADER = 1_000
_SUFFIXES = "*~#!%$@^-+"
_USER = re.compile(r"(.*)\((\d{1,10})\)")
_RECORD = ("cluster", "node", "started_at", "state", "ended_at", "reason")
_TEXT_SCHEMA = {
    "cluster": pl.String(), "node": pl.List(pl.String), "start": pl.String(), "end": pl.String(), "state_raw": pl.String(),
    "reason": pl.String(), "set_by": pl.String(), "set_by_uid": pl.Int64(), "line": pl.Int64(), "is_decoded": pl.Boolean(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Layout:
    """Column names in lower case, in order; what stands between them; whether each line ends with it."""

    names: tuple[str, ...]
    delimiter: str
    is_closed: bool = False

    def split(self, text: str) -> dict[str, str]:
        """Return the fields of a line; delimiters that are too many belong to the reason.

        Raises:
            ValueError: there are too few fields, or too many and no reason column to hold them.
        """
        parts = text.split(self.delimiter)
        if self.is_closed and parts[-1] == "":
            parts.pop()
        extra = len(parts) - len(self.names)
        if extra > 0 and "reason" in self.names:
            at = self.names.index("reason")
            parts[at : at + extra + 1] = [self.delimiter.join(parts[at : at + extra + 1])]
        elif extra:
            raise ValueError(f"{len(parts)} fields where {len(self.names)} columns are expected")
        return dict(zip(self.names, parts, strict=True))


def _header(text: str, delimiter: str | None) -> _Layout | None:
    """Return the columns if the line is a header of `sacctmgr show event`."""
    if len(text) > _LONGEST_HEADER or "nodename" not in text.lower():
        return None
    if delimiter is None:
        found = _HEADER.fullmatch(text)
        if found is None:
            return None
        delimiter = found[1]
    is_closed = text.endswith(delimiter)
    cells = text.removesuffix(delimiter).split(delimiter)
    names = tuple(c.replace(" ", "").lower() for c in cells)
    if not _NAMES.issuperset(names) or len(set(names)) < len(names):
        return None
    names = tuple(_SYNONYMS.get(n, n) for n in names)
    return _Layout(names, delimiter, is_closed) if "nodename" in names and "timestart" in names else None


def sniff(head: bytes) -> bool:
    """Tell node events by their header: known columns only, among them NodeName and TimeStart."""
    first = head.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0]
    return _header(first.decode("utf-8", "replace").rstrip("\r"), None) is not None


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield rows of `node_states`.

    Ignored are headers, blank lines, and rows without a node (`cluster_event`: "Cluster Registered TRES" and the like). An
    end of `Unknown` is null and flagged `open_end`. Rejected are lines with too few fields, host lists and times that
    cannot be read, and local times that the clocks of the zone never showed.

    Raises:
        UnreadableExportError: there is neither a header nor a configured column list.
        MissingSettingError: times have no zone, or rows no cluster.
    """
    layout = None
    if context.columns:
        names = tuple(c.replace(" ", "").lower() for c in context.columns)
        layout = _Layout(tuple(_SYNONYMS.get(n, n) for n in names), context.delimiter or "|", is_closed=True)
    for chunk in stream.chunks():
        parsed = Parsed()
        rows: list[dict[str, Any]] = []
        lines: dict[int, Line] = {}
        for line in lines_of(chunk):
            text = line.text.removeprefix("\ufeff") if line.number == 1 else line.text
            if not text.strip():
                parsed.ignored["blank"] += 1
            elif header := _header(text, context.delimiter):
                layout = header
                parsed.ignored["header"] += 1
            elif layout is None:
                raise UnreadableExportError("it has no header: export it with one, or set `columns` on the source")
            else:
                _read(line, layout, context, parsed, rows)
                lines[line.number] = line
        _finish(parsed, rows, lines, context)
        yield parsed


def _read(line: Line, layout: _Layout, context: Context, parsed: Parsed, rows: list[dict[str, Any]]) -> None:
    """Give one line its fate, but for its times."""
    try:
        fields = {name: value.strip() for name, value in layout.split(line.text).items()}
        if not fields["nodename"]:
            parsed.ignored["cluster_event"] += 1
            return
        nodes = expand(fields["nodename"])
        if not nodes:
            raise ValueError(f"{fields['nodename']!r} names no node")
    except (ValueError, BadHostListError) as error:
        parsed.rejects.append(line.reject(str(error)))
        return
    user = _USER.fullmatch(fields.get("user", ""))
    rows.append(
        {
            "cluster": context.cluster_of(fields.get("cluster")),
            "node": nodes,
            "start": fields["timestart"],
            "end": fields.get("timeend"),
            "state_raw": fields.get("state") or None,
            "reason": fields.get("reason") or None,
            "set_by": (user[1] if user else fields.get("user")) or None,
            "set_by_uid": int(user[2]) if user else None,
            "line": line.number,
            "is_decoded": line.is_decoded,
        }
    )


def _finish(parsed: Parsed, rows: list[dict[str, Any]], lines: dict[int, Line], context: Context) -> None:
    """Read the times of `rows`, reject those without, and add the others to `parsed`."""
    if not rows:
        return
    frame = pl.DataFrame(rows, schema=_TEXT_SCHEMA)
    frames = [
        _timed(part, context.zone_of(cluster))
        for (cluster,), part in frame.partition_by("cluster", as_dict=True).items()
    ]
    timed = pl.concat(frames).sort("line", maintain_order=True)
    bad = timed.filter(pl.col("problem").is_not_null())
    parsed.rejects += [lines[n].reject(reason) for n, reason in bad.select("line", "problem").iter_rows()]
    good = timed.filter(pl.col("problem").is_null())
    parsed.used += good.height
    parsed.frames[NODE_STATES.name] = (
        good.with_columns(
            state=pl.col("state_raw").str.strip_chars_end(_SUFFIXES).str.to_uppercase(),
            collected_at=pl.lit(context.collected_at),
        )
        .explode("node")
        .with_columns(record_id=record_id(_RECORD))
        .select(c for c in NODE_STATES.schema if c != "export_id")
    )


def _timed(frame: pl.DataFrame, zone: str) -> pl.DataFrame:
    """Return rows of one cluster with UTC times, flags, and `problem` where a time cannot be read."""
    start, end = slurm_utc("start", zone), slurm_utc("end", zone)
    has_end = pl.col("end").is_not_null()
    flags = {
        "time_missing": has_end.not_(),
        "open_end": has_end & end.instant.is_null(),
        "time_ambiguous": start.is_ambiguous | end.is_ambiguous,
        "decoded": pl.col("is_decoded"),
    }
    listed = pl.concat_list(pl.when(on).then(pl.lit(flag)) for flag, on in flags.items()).list.drop_nulls()
    problem = (
        pl.when(start.is_unreadable | start.instant.is_null() & start.is_nonexistent.not_())
        .then(pl.format("TimeStart {} is no time", pl.col("start")))
        .when(end.is_unreadable)
        .then(pl.format("TimeEnd {} is no time", pl.col("end")))
        .when(start.is_nonexistent | end.is_nonexistent)
        .then(pl.lit(f"a time that clocks in {zone} never showed; is the zone right?"))
    )
    return frame.with_columns(
        started_at=start.instant,
        ended_at=pl.when(end.instant < start.instant).then(end.latest).otherwise(end.instant),
        flags=listed,
        problem=problem,
    )


SOURCE = Source(
    name="slurm_node_events",
    tables=(NODE_STATES,),
    sniff=sniff,
    parse=parse,
    doc="`sacctmgr show event -P`: nodes down or drained, with reasons",
    is_document=True,
    version=3,
    names_clusters=True,
)
