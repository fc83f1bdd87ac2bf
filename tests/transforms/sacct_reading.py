"""Read sacct text in tests, and hold every reading to the balance of its lines."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import polars as pl

from transforms.outcome import Context, Parsed, Reject
from transforms.sources.slurm_sacct import SOURCE
from transforms.stream import ExportStream
from transforms.tables import HOST_LISTS, JOB_ATTEMPTS

CTX = Context(collected_at=datetime(2026, 1, 1, tzinfo=UTC), cluster="c1", zone="UTC")
HEADER = "JobID|JobName|State|Start|End|Elapsed|Comment\n"
LINE = "7|train|COMPLETED|2025-05-04T08:00:00|2025-05-04T09:00:00|01:00:00|note\n"


class Result:
    """What an export gave, put together."""

    def __init__(self, pieces: list[Parsed], stream: ExportStream) -> None:
        frames = [p.frames[JOB_ATTEMPTS.name] for p in pieces if JOB_ATTEMPTS.name in p.frames]
        hosts = [p.frames[HOST_LISTS.name] for p in pieces if HOST_LISTS.name in p.frames]
        empty = JOB_ATTEMPTS.schema.to_frame().drop("export_id")
        self.jobs: pl.DataFrame = pl.concat([empty, *frames])
        self.hosts = dict(pl.concat(hosts).select("node_list", "nodes").iter_rows()) if hosts else {}
        self.used = sum(p.used for p in pieces)
        self.ignored = sum((p.ignored for p in pieces), start=Counter[str]())
        self.rejects: list[Reject] = [r for p in pieces for r in p.rejects] + stream.long_lines
        self.lines = stream.lines
        assert self.used + self.ignored.total() + len(self.rejects) == self.lines, "a line was lost"

    def column(self, name: str) -> list[Any]:
        return self.jobs.get_column(name).to_list()


def read(data: bytes | str, ctx: Context = CTX, **stream: Any) -> Result:
    raw = data.encode() if isinstance(data, str) else data
    source = ExportStream.of(raw, **stream)
    return Result(list(SOURCE.parse(source, ctx)), source)
