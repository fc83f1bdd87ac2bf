"""Operators' labels: `annotations.jsonl`, one JSON object a line, appended by `goodput annotate`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import polars as pl

from transforms.outcome import Context, Parsed
from transforms.parsing.lines import lines_of
from transforms.records import record_id
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import ANNOTATIONS

_REQUIRED = ("interruption_id", "cause", "made_at")
_TEXTS = ("cluster", "interruption_id", "cause", "node", "why", "author")
_RECORD = ("cluster", "interruption_id", "cause", "node", "why", "author", "made_at")


def sniff(head: bytes) -> bool:
    """Tell a file of labels by its first line: a JSON object with `interruption_id` and `cause`."""
    first = head.lstrip().split(b"\n", 1)[0]
    if not first.startswith(b"{"):
        return False
    try:
        found = json.loads(first)
    except ValueError:
        return False
    return isinstance(found, dict) and {"interruption_id", "cause"} <= found.keys()


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield rows of `annotations`, one for each line that is a label.

    Lines that are no JSON object, lack an interruption, a cause or a time, or whose time has no zone are rejected.
    """
    for chunk in stream.chunks():
        parsed, rows = Parsed(), list[dict[str, Any]]()
        for line in lines_of(chunk):
            if not line.text.strip():
                parsed.ignored["blank"] += 1
                continue
            try:
                rows.append(_label(line.text, context) | {"line": line.number})
                parsed.used += 1
            except ValueError as error:
                parsed.rejects.append(line.reject(str(error)))
        if rows:
            frame = pl.DataFrame(rows, schema={**ANNOTATIONS.schema, "record_id": pl.String})
            parsed.frames[ANNOTATIONS.name] = frame.with_columns(record_id=record_id(_RECORD))
        yield parsed


def _label(line: str, context: Context) -> dict[str, Any]:
    """Return the columns of one label.

    Raises:
        ValueError: it is none; the message is the reason of the reject.
    """
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    row = {"cluster": context.cluster} | {k: found[k] for k in _TEXTS if found.get(k) is not None}
    for key in _REQUIRED:
        if not found.get(key):
            raise ValueError(f"has no `{key}`")
    for key, value in row.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"`{key}` is not text")
    return {**row, "made_at": _instant(found["made_at"]), "flags": [], "collected_at": context.collected_at}


def _instant(text: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        raise ValueError("`made_at` is no ISO 8601 time") from None
    if moment.tzinfo is None:
        raise ValueError("`made_at` has no zone; write it with Z or an offset")
    return moment.astimezone(UTC)


SOURCE = Source(
    name="annotations",
    tables=(ANNOTATIONS,),
    sniff=sniff,
    parse=parse,
    doc="labels that `goodput annotate` keeps, one JSON object a line",
)
