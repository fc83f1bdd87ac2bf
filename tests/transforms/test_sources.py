"""Every case of every source: `tests/fixtures/sources/<source>/<case>/`.

A case is `input.*` (the export), `case.toml` (why it is there, where it comes from, what is configured, the fate of its
lines) and `expected.jsonl` (its rows: the table, and the columns that matter; in the order of lines).
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from transforms.outcome import Context, Reject
from transforms.registry import all_sources, sniff
from transforms.stream import ExportStream
from transforms.tables import FLAGS, TABLES

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "sources"
CASES = sorted(p.parent for p in FIXTURES.glob("*/*/case.toml"))
SETTINGS = ("collected_at", "cluster", "zones", "zone", "node", "job_id", "columns", "delimiter")


@pytest.fixture(params=CASES, ids=lambda c: f"{c.parent.name}/{c.name}")
def case(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


class Read:
    """What a parser made of an export."""

    def __init__(self, folder: Path, **stream: int) -> None:
        self.source = all_sources()[folder.parent.name]
        self.case = tomllib.loads((folder / "case.toml").read_text())
        [self.path] = folder.glob("input.*")
        settings = {k: self.case[k] for k in SETTINGS if k in self.case}
        if "columns" in settings:
            settings["columns"] = tuple(settings["columns"])
        export = ExportStream.of(self.path.read_bytes(), **stream)
        self.used, self.ignored = 0, Counter[str]()
        self.rejects: list[Reject] = []
        frames: dict[str, list[pl.DataFrame]] = {}
        for parsed in self.source.parse(export, Context(**settings)):
            self.used += parsed.used
            self.ignored += parsed.ignored
            self.rejects += parsed.rejects
            for name, frame in parsed.frames.items():
                frames.setdefault(name, []).append(TABLES[name].enforce(frame))
        self.lines = export.lines
        self.frames = {name: pl.concat(found) for name, found in frames.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Every row with the name of its table; by table, then in order of lines."""
        return [{"table": name, **row} for name, frame in self.frames.items() for row in frame.iter_rows(named=True)]


def plain(value: object) -> object:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


def test_rows_are_as_expected(case: Path) -> None:
    expected = [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in Read(case).rows():
        found.setdefault(row["table"], []).append({k: plain(v) for k, v in row.items()})
    wanted: dict[str, list[dict[str, Any]]] = {}
    for row in expected:
        wanted.setdefault(row["table"], []).append(row)
    kept = {name: [r for r in rows if r] for name, rows in found.items() if rows}
    assert {name: len(rows) for name, rows in kept.items()} == {name: len(rows) for name, rows in wanted.items()}
    for name, rows in wanted.items():
        seen = [{k: row[k] for k in want} for want, row in zip(rows, kept[name], strict=True)]
        assert seen == rows


def test_every_line_has_one_fate(case: Path) -> None:
    read = Read(case)
    assert read.used == read.case["used"]
    assert dict(read.ignored) == read.case.get("ignored", {})
    reasons = {r.line: r.reason for r in read.rejects}
    expected = {int(line): reason for line, reason in read.case.get("rejected", {}).items()}
    assert reasons.keys() == expected.keys(), reasons
    for line, part in expected.items():
        assert part in reasons[line]
    assert read.used + read.ignored.total() + len(read.rejects) == read.lines


def test_rejects_hold_the_line_itself(case: Path) -> None:
    read = Read(case)
    data = read.path.read_bytes()
    for reject in read.rejects:
        raw = data[reject.byte_offset : reject.byte_offset + reject.byte_length]
        assert raw.decode("utf-8", "replace") == reject.text
        assert data[: reject.byte_offset].count(b"\n") + 1 == reject.line


@pytest.mark.parametrize("chunk_bytes", [1, 64, 300])
def test_small_chunks_make_the_same_rows(case: Path, chunk_bytes: int) -> None:
    whole, cut = Read(case), Read(case, chunk_bytes=chunk_bytes)
    assert sorted(map(str, cut.rows())) == sorted(map(str, whole.rows()))
    assert (cut.used, cut.ignored, cut.lines) == (whole.used, whole.ignored, whole.lines)
    assert sorted(r.line for r in cut.rejects) == sorted(r.line for r in whole.rejects)


def test_the_source_alone_recognizes_it(case: Path) -> None:
    [path] = case.glob("input.*")
    expected = [] if tomllib.loads((case / "case.toml").read_text()).get("is_not_recognized") else [case.parent.name]
    assert [s.name for s in sniff(path.read_bytes()[: 64 << 10])] == expected


def test_rows_are_of_declared_tables_and_flags(case: Path) -> None:
    read = Read(case)
    assert read.frames.keys() <= {t.name for t in read.source.tables}
    for frame in read.frames.values():
        if "flags" in frame.columns:
            assert set(frame["flags"].explode().drop_nulls()) <= FLAGS.keys()
        if "record_id" in frame.columns:
            assert frame["record_id"].str.contains("^[0-9a-f]{32}$").all()
