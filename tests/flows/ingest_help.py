"""A data folder with exports, and what ingest makes of them: shared by the tests of ingest."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from flows import pipeline
from flows.config import Config, parse
from flows.manifest import opened
from flows.reports import ExportReport
from transforms import lake

ROOT = Path(__file__).resolve().parents[2]
TOML = """
[clusters.c1]
zone = "UTC"
[[sources]]
path = "exports/**"
collected_at = 2026-11-30T03:05:00Z
"""


def label(number: int, **more: str) -> str:
    """One line of annotations.jsonl."""
    made_at = f"2026-01-{number % 28 + 1:02d}T00:00:00Z"
    return json.dumps({"interruption_id": f"i{number}", "cause": "gpu_faulty", "made_at": made_at, **more}) + "\n"


def labels(*numbers: int) -> str:
    return "".join(label(n) for n in numbers)


def config(home: Path, text: str = TOML) -> Config:
    return parse(text, home / "goodput.toml")


def write(home: Path, name: str, text: str | bytes) -> Path:
    path = home / "exports" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def append(path: Path, text: str) -> None:
    with path.open("a") as handle:
        handle.write(text)


def rows(home: Path, table: str = "annotations") -> Counter[tuple[object, ...]]:
    """The rows of a table, without the piece they were read in, however often each is there."""
    frame = lake.scan(home / "data/lake", table).drop("export_id").collect()
    return Counter(tuple(tuple(v) if isinstance(v, list) else v for v in row) for row in frame.rows())


def ids(home: Path) -> list[str]:
    return sorted(lake.scan(home / "data/lake", "annotations").collect()["interruption_id"])


def report_of(report: pipeline.IngestReport, name: str) -> ExportReport:
    return next(e for e in report.exports if e.path.endswith(name))


def check_balance(home: Path) -> None:
    """Parts on disk are those the manifest owns, and rejects and fates agree with what it says."""
    with opened(home / "data") as manifest:
        parts, exports = manifest.parts(), manifest.exports()
    assert sorted(parts) == lake.parts_on_disk(home / "data/lake")
    assert sum(p.rows for p in parts.values() if p.table == "rejects") == sum(e["lines_rejected"] or 0 for e in exports)
    for export in exports:
        if export["status"] == "loaded":
            fates = export["lines_used"] + export["lines_ignored"] + export["lines_rejected"]
            assert fates == export["lines"]
            assert sum(json.loads(export["ignored_by"]).values()) == export["lines_ignored"]


MORTAL = """
import os, signal, sys

left = int(sys.argv[2])

def mortal(real):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **kwargs)
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call
"""
"""Code for a process: it kills itself (SIGKILL) around the n-th call, by its second argument, of what `mortal` wraps."""
