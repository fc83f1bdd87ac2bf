"""`scontrol show reservation`, with or without `-o`: reservations, among them maintenance.

Source: scontrol(1), "show reservation"; reservation_info.c for the order of the keys, in which the comment comes last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from transforms.outcome import Context, Parsed
from transforms.parsing.lines import Line, lines_of
from transforms.parsing.nodelist import BadHostListError, expand
from transforms.parsing.timestamps import slurm_utc
from transforms.records import record_id
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import HOST_LISTS, WINDOWS

_FIRST = "ReservationName="
_NONE = "No reservations in the system"
_HEADING = re.compile(r"Reservation data as of .*, record count \d+")
_KEYS = (
    "ReservationName", "StartTime", "EndTime", "Duration", "Nodes", "NodeCnt", "CoreCnt", "Features", "PartitionName", "Flags",
    "NodeName", "CoreIDs", "TRES", "Users", "Groups", "Accounts", "AllowedPartitions", "QOS", "Licenses", "State", "BurstBuffer",
    "Watts", "MaxStartDelay", "Comment",
)  # fmt: skip
_KEY = re.compile(rf"(?:^|(?<=\s))({'|'.join(_KEYS)})=")
_ABSENT = ("(null)", "N/A", "n/a", "")
_ENDLESS = ("UNLIMITED", "Unlimited", "INFINITE", "infinite")
_RECORD = ("cluster", "kind", "name", "started_at", "ended_at", "node_list", "users", "detail")
_TEXT_SCHEMA = {
    "name": pl.String(), "start": pl.String(), "end": pl.String(), "node_list": pl.String(), "nodes": pl.List(pl.String),
    "is_maintenance": pl.Boolean(), "users": pl.String(), "detail": pl.String(), "is_decoded": pl.Boolean(), "line": pl.Int64(),
}  # fmt: skip


def sniff(head: bytes) -> bool:
    """Tell reservations by their first key, or by the answer that there are none."""
    text = head.lstrip(b"\xef\xbb\xbf\r\n\t ")
    return text.startswith((_FIRST.encode(), _NONE.encode())) or (
        text.startswith(b"Reservation data as of ") and b"record count" in text[:100]
    )


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield rows of `windows` (kind `reservation`) and the host lists they name.

    A reservation for licences only has an empty node list (null would mean the whole cluster). Ignored are blank lines,
    the heading, and the answer "No reservations in the system". A reservation whose times or nodes cannot be read is
    rejected with all its lines.

    Raises:
        MissingSettingError: the source names no cluster, or its times have no zone.
    """
    block: list[Line] = []
    rows: list[tuple[dict[str, Any], list[Line]]] = []
    parsed = Parsed()
    for chunk in stream.chunks():
        for line in lines_of(chunk):
            block = _take(line, block, parsed, rows)
        yield _finished(parsed, rows, context)
        parsed, rows = Parsed(), []
    _close(block, parsed, rows)
    yield _finished(parsed, rows, context)


def _take(line: Line, block: list[Line], parsed: Parsed, rows: list[tuple[dict[str, Any], list[Line]]]) -> list[Line]:
    """Give a line its fate, or keep it as part of the open reservation; return the lines of that."""
    text = line.text.strip().removeprefix("\ufeff")
    if block and line.text[:1].isspace() and text:
        return [*block, line]
    if not text.startswith(_FIRST) and text and text != _NONE and not _HEADING.fullmatch(text):
        parsed.rejects.append(line.reject("is no part of a reservation"))
        return block
    _close(block, parsed, rows)
    if text.startswith(_FIRST):
        return [line]
    parsed.ignored["blank" if not text else "no_reservations" if text == _NONE else "heading"] += 1
    return []


def _close(block: list[Line], parsed: Parsed, rows: list[tuple[dict[str, Any], list[Line]]]) -> None:
    """Read the lines of one reservation."""
    if not block:
        return
    fields = _fields("\n".join(line.text for line in block))
    try:
        rows.append((_row(fields, block), block))
    except (ValueError, BadHostListError) as error:
        parsed.rejects += [line.reject(str(error)) for line in block]


def _fields(text: str) -> dict[str, str]:
    """Return the values by key; a key that comes a second time, or after the comment, belongs to the value before."""
    starts: dict[str, re.Match[str]] = {}
    for found in _KEY.finditer(text.removeprefix("\ufeff")):
        if "Comment" in starts:
            break
        starts.setdefault(found[1], found)
    places = sorted(starts.values(), key=lambda m: m.start())
    ends = [m.start() for m in places[1:]] + [len(text)]
    return {m[1]: " ".join(text[m.end() : end].split()) for m, end in zip(places, ends, strict=True)}


def _row(fields: dict[str, str], block: list[Line]) -> dict[str, Any]:
    missing = [k for k in ("ReservationName", "StartTime", "EndTime") if fields.get(k, "") in _ABSENT]
    if missing:
        raise ValueError(f"has no {missing[0]}")
    nodes = fields.get("Nodes", "")
    flags = fields.get("Flags", "")
    known = {"Flags": flags, "State": fields.get("State", ""), "Comment": fields.get("Comment", "")}
    return {
        "name": fields["ReservationName"],
        "start": fields["StartTime"],
        "end": None if fields["EndTime"] in _ENDLESS else fields["EndTime"],
        "node_list": "" if nodes in _ABSENT else nodes,
        "nodes": expand(nodes),
        "is_maintenance": "MAINT" in re.split(r"[,+\s]", flags),
        "users": _present(fields.get("Users", "")),
        "detail": " ".join(f"{k}={v}" for k, v in known.items() if v not in _ABSENT) or None,
        "is_decoded": any(line.is_decoded for line in block),
        "line": block[0].number,
    }


def _present(text: str) -> str | None:
    return None if text in _ABSENT else text


def _finished(parsed: Parsed, rows: list[tuple[dict[str, Any], list[Line]]], context: Context) -> Parsed:
    """Read the times of `rows`, reject those without, and add the others to `parsed`."""
    if not rows:
        return parsed
    cluster = context.require_cluster()
    zone = context.zone_of(cluster)
    start, end = slurm_utc("start", zone), slurm_utc("end", zone)
    flags = {
        "open_end": pl.col("end").is_null(),
        "time_ambiguous": start.is_ambiguous | end.is_ambiguous,
        "decoded": pl.col("is_decoded"),
    }
    frame = pl.DataFrame([row for row, _ in rows], schema=_TEXT_SCHEMA).with_columns(
        cluster=pl.lit(cluster),
        kind=pl.lit("reservation"),
        started_at=start.instant,
        ended_at=pl.when(end.instant < start.instant).then(end.latest).otherwise(end.instant),
        flags=pl.concat_list(pl.when(on).then(pl.lit(flag)) for flag, on in flags.items()).list.drop_nulls(),
        is_bad=start.instant.is_null() | (pl.col("end").is_not_null() & end.instant.is_null()),
        collected_at=pl.lit(context.collected_at),
    )
    for (_, block), is_bad in zip(rows, frame["is_bad"], strict=True):
        if is_bad:
            parsed.rejects += [line.reject("StartTime or EndTime is no time") for line in block]
        else:
            parsed.used += len(block)
    good = frame.filter(pl.col("is_bad").not_())
    windows = good.with_columns(record_id=record_id(_RECORD))
    parsed.frames[WINDOWS.name] = windows.select(c for c in WINDOWS.schema if c != "export_id")
    lists = good.filter(pl.col("node_list") != "").select("cluster", "node_list", "nodes")
    parsed.frames[HOST_LISTS.name] = lists.unique("node_list", maintain_order=True)
    return parsed


SOURCE = Source(
    name="slurm_reservations",
    tables=(WINDOWS, HOST_LISTS),
    sniff=sniff,
    parse=parse,
    doc="`scontrol show reservation`, with or without `-o`",
    version=2,
    is_document=True,
)
