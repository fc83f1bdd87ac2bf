"""Ingest: every file has a fate, and pieces, growth, rotation and repetition do not matter."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from flows import pipeline
from flows.manifest import opened
from flows.nearest import nearest
from tests.flows.ingest_help import (
    ROOT,
    TOML,
    append,
    check_balance,
    config,
    ids,
    label,
    labels,
    report_of,
    rows,
    write,
)
from transforms import lake
from transforms.tables import TABLES


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "exports").mkdir()
    return tmp_path


def test_every_kind_of_file_has_a_fate_and_none_stops_the_others(home: Path) -> None:
    write(home, "good.jsonl", labels(1, 2) + "{broken\n\n")
    write(home, "garbage.bin", hashlib.shake_128(b"noise").digest(5_000))
    write(home, "empty.txt", "")
    write(home, "cut.jsonl.gz", gzip.compress(labels(8, 9).encode())[:-9])
    write(home, "no.jsonl.gz", b"\x1f\x8bno gzip at all")
    write(home, "tree/deeper/more.jsonl.gz", gzip.compress(labels(7).encode()))
    os.mkfifo(home / "exports/pipe")
    (home / "exports/loop").symlink_to("loop")
    report = pipeline.ingest(config(home))
    fates = {e.path.rpartition("exports/")[2]: e.status for e in report.exports}
    assert fates == {
        "good.jsonl": "loaded",
        "garbage.bin": "unknown_format",
        "empty.txt": "loaded",
        "cut.jsonl.gz": "loaded",
        "no.jsonl.gz": "failed",
        "tree/deeper/more.jsonl.gz": "loaded",
        "pipe": "failed",
        "loop": "failed",
    }
    assert report_of(report, "cut.jsonl.gz").rejected == 1, "what can be unpacked is read, the break is told"
    assert report_of(report, "good.jsonl").ignored_by == {"blank": 1}
    assert "no regular file" in str(report_of(report, "pipe").message)
    assert report_of(report, "empty.txt").message == "is empty"
    assert str(report_of(report, "garbage.bin").message).isprintable(), "a foreign line must not reach a terminal raw"
    assert report.lines == report.used + report.ignored + report.rejected
    assert {"i1", "i2", "i7"} <= set(ids(home)) <= {"i1", "i2", "i7", "i8", "i9"}
    [reject] = lake.scan(home / "data/lake", "rejects").filter(pl.col("text") == "{broken").collect().to_dicts()
    assert (reject["line"], reject["byte_offset"]) == (3, len(labels(1, 2)))
    check_balance(home)


def test_a_folder_that_the_pattern_matches_is_named_and_is_no_failure(home: Path) -> None:
    write(home, "a.jsonl", labels(1))
    (home / "exports/folder").mkdir()
    report = pipeline.ingest(config(home, TOML.replace("exports/**", "exports/*")))
    assert report_of(report, "folder").status == "skipped"
    assert not report.failed


def test_a_file_that_may_not_be_read_fails_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = write(home, "secret.jsonl", labels(1))
    write(home, "open.jsonl", labels(2))
    real = Path.open

    def guarded(self: Path, *args: object, **kwargs: object) -> object:
        if self == secret:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *args, **kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", guarded)
        report = pipeline.ingest(config(home))
    assert report_of(report, "secret.jsonl").status == "failed"
    assert "Permission denied" in str(report_of(report, "secret.jsonl").message)
    assert ids(home) == ["i2"]
    assert not pipeline.ingest(config(home)).failed, "once it may be read, it is read"
    assert ids(home) == ["i1", "i2"]
    with opened(home / "data") as manifest:
        assert {e["status"] for e in manifest.exports()} == {"loaded"}, "no trace of the failure is left"


def test_a_second_ingest_reads_nothing(home: Path) -> None:
    write(home, "a.jsonl", labels(1, 2))
    pipeline.ingest(config(home))
    before = lake.parts_on_disk(home / "data/lake")
    report = pipeline.ingest(config(home))
    assert [e.status for e in report.exports] == ["unchanged"]
    assert report.lines == 0
    assert lake.parts_on_disk(home / "data/lake") == before


def test_a_touched_file_is_not_read_again_and_keeps_its_time(home: Path) -> None:
    path = write(home, "a.jsonl", labels(1))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    without = TOML.replace("collected_at = 2026-11-30T03:05:00Z", "")
    pipeline.ingest(config(home, without))
    os.utime(path, (1_800_000_000, 1_800_000_000))
    assert pipeline.ingest(config(home, without)).exports[0].status == "unchanged"
    append(path, label(2))
    os.utime(path, (1_800_000_000, 1_800_000_000))
    pipeline.ingest(config(home, without))
    found = lake.scan(home / "data/lake", "annotations").collect()
    times = dict(found.select("interruption_id", "collected_at").rows())
    assert times["i1"] == datetime.fromtimestamp(1_700_000_000, UTC), "the time when it was first seen, for ever"
    assert times["i2"] == datetime.fromtimestamp(1_800_000_000, UTC)


@pytest.mark.parametrize("cut", [0, 1, 40, len(label(1)) - 1, len(label(1)), len(label(1)) + 1, len(labels(1, 2)) - 1])
def test_a_file_cut_anywhere_that_grows_is_as_if_read_at_once(home: Path, cut: int) -> None:
    whole = labels(1, 2, 3)
    path = write(home, "a.jsonl", whole[:cut])
    pipeline.ingest(config(home))
    assert ids(home) == [f"i{n}" for n in (1, 2, 3)][: (whole[:cut] + "\n").count("}\n")]
    append(path, whole[cut:])
    pipeline.ingest(config(home))
    check_balance(home)
    grown = rows(home)
    assert not rows(home, "rejects"), "the cut line was dropped when the file went on"
    other = home / "other"
    (other / "exports").mkdir(parents=True)
    write(other, "a.jsonl", whole)
    pipeline.ingest(config(other))
    assert grown == rows(other), "the same rows with the same line numbers"


def test_only_what_was_added_is_read(home: Path) -> None:
    path = write(home, "a.jsonl", labels(*range(100)))
    pipeline.ingest(config(home))
    append(path, labels(100, 101))
    report = pipeline.ingest(config(home))
    assert report.lines == 2
    assert len(ids(home)) == 102


def test_a_rejected_last_line_is_read_again_with_what_follows(home: Path) -> None:
    """It may be the beginning of a record over several lines, so it is not final while it is the last."""
    path = write(home, "a.jsonl", labels(1) + "{half\n")
    pipeline.ingest(config(home))
    append(path, labels(2))
    report = pipeline.ingest(config(home))
    assert (report.lines, report.rejected) == (3, 1)
    assert ids(home) == ["i1", "i2"]
    assert sum(rows(home, "rejects").values()) == 1
    check_balance(home)


def test_a_file_that_was_overwritten_is_read_anew_and_keeps_its_old_rows(home: Path) -> None:
    path = write(home, "a.jsonl", labels(1, 2))
    pipeline.ingest(config(home))
    path.write_text(labels(3))
    assert pipeline.ingest(config(home)).lines == 1
    assert ids(home) == ["i1", "i2", "i3"], "what a file said once is not unsaid"
    path.write_text(labels(1, 2))
    pipeline.ingest(config(home))
    assert ids(home) == ["i1", "i2", "i3"], "the same content again is the same piece"
    check_balance(home)


def test_rotation_by_copy_and_truncate_loses_and_doubles_nothing(home: Path) -> None:
    path = write(home, "kern.jsonl", labels(1, 2))
    pipeline.ingest(config(home))
    write(home, "kern.jsonl.1", path.read_bytes())
    path.write_text("")
    pipeline.ingest(config(home))
    append(path, labels(3))
    pipeline.ingest(config(home))
    assert set(ids(home)) == {"i1", "i2", "i3"}
    records = lake.scan(home / "data/lake", "annotations").collect()["record_id"]
    assert records.n_unique() == 3
    check_balance(home)


def test_a_deleted_file_keeps_its_rows(home: Path) -> None:
    path = write(home, "a.jsonl", labels(1))
    write(home, "b.jsonl", labels(2))
    pipeline.ingest(config(home))
    path.unlink()
    pipeline.ingest(config(home))
    assert ids(home) == ["i1", "i2"]


def test_a_compressed_file_is_read_anew_when_it_changes(home: Path) -> None:
    first, second = (gzip.compress(label(n).encode(), mtime=0) for n in (1, 2))
    path = write(home, "a.jsonl.gz", first)
    pipeline.ingest(config(home))
    path.write_bytes(first + second)
    report = pipeline.ingest(config(home))
    assert report.lines == 2
    assert ids(home) == ["i1", "i2"], "the first member is not there twice"
    check_balance(home)


def test_files_reached_twice_are_read_once(home: Path) -> None:
    write(home, "a.jsonl", labels(1))
    (home / "exports/b.jsonl").symlink_to("a.jsonl")
    (home / "exports/again").symlink_to(".")
    twice = TOML + '[[sources]]\npath = "exports/a*"\n'
    report = pipeline.ingest(config(home, twice))
    assert [(Path(e.path).name, e.status) for e in report.exports if e.status != "skipped"] == [("a.jsonl", "loaded")]


def test_a_source_that_matches_nothing_is_an_error_and_keeps_no_other_from_loading(home: Path) -> None:
    write(home, "a.jsonl", labels(1))
    more = '[[sources]]\npath = "exprots/**/b-{collected_at}.jsonl"\n[[sources]]\npath = "exports/a.jsn"\n'
    report = pipeline.ingest(config(home, TOML + more))
    assert ids(home) == ["i1"]
    assert [(Path(e.path).name, e.status) for e in report.exports] == [
        ("a.jsonl", "loaded"),
        ("b-{collected_at}.jsonl", "no_file"),
        ("a.jsn", "no_file"),
    ]
    first, second = report.failed
    assert first.path == "exprots/**/b-{collected_at}.jsonl"
    assert (
        first.message
        == "goodput.toml line 7: no file matches this path; did you mean exports/**/b-{collected_at}.jsonl?"
    )
    assert second.message == "goodput.toml line 9: no file matches this path; did you mean exports/a.jsonl?"
    check_balance(home)


def test_a_source_whose_files_went_away_leaves_what_was_read(home: Path) -> None:
    path = write(home, "a.jsonl", labels(1))
    pipeline.ingest(config(home))
    path.unlink()
    assert [e.status for e in pipeline.ingest(config(home)).failed] == ["no_file"]
    assert ids(home) == ["i1"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("exports/sacct/jobs-2026.txt", "did you mean exports/sacct/jobs-2025.txt?"),
        ("exports/sacct/jobs-{collected_at}.csv", "did you mean exports/sacct/jobs-2025.txt?"),
        ("exports/sact/*.txt", "did you mean exports/sacct/*.txt?"),
        ("exports/empty/*", "exports/empty is empty"),
        ("exports/empty/**", "there is no file below exports/empty"),
        ("exports/**/zzzzzzz", "exports with what is below it holds empty, sacct, jobs-2025.txt"),
        ("exports/sacct", "exports/sacct is a folder; end the path with /* or /** to read what is in it"),
        ("qqqqqqqqq/*", "the configuration's folder holds exports"),
    ],
)
def test_the_nearest_existing_path_is_named(home: Path, pattern: str, expected: str) -> None:
    write(home, "sacct/jobs-2025.txt", "x")
    (home / "exports/empty").mkdir()
    assert nearest(str(home / pattern), home) == expected


def test_labels_in_the_data_folder_are_read_without_being_configured(home: Path) -> None:
    write(home, "a.jsonl", labels(1))
    (home / "data").mkdir()
    (home / "data/annotations.jsonl").write_text(labels(2))
    pipeline.ingest(config(home))
    assert ids(home) == ["i1", "i2"]


def test_what_we_keep_ourselves_is_no_export(home: Path) -> None:
    write(home, "a.jsonl", labels(1))
    everything = TOML.replace("exports/**", "**/*.*")
    pipeline.ingest(config(home, everything))
    report = pipeline.ingest(config(home, everything))
    assert [Path(e.path).name for e in report.exports] == ["a.jsonl"]


def test_hostile_names_cannot_leave_the_lake(home: Path) -> None:
    names = ["../../x", "/etc/passwd", "..", "a/b", "x" * 400, "*?[", "\u202e\n", "c=d"]
    write(home, "a.jsonl", "".join(label(n, cluster=name) for n, name in enumerate(names)))
    pipeline.ingest(config(home))
    parts = lake.parts_on_disk(home / "data/lake")
    assert {len(Path(p).parts) for p in parts} == {4}, "table, cluster, date, file"
    assert {p.name for p in home.iterdir()} == {"exports", "data"}
    found = lake.scan(home / "data/lake", "annotations").collect()["cluster"]
    assert set(found) == set(names), "the name itself stays as it was"


def test_one_large_export_is_written_in_parts(home: Path) -> None:
    write(home, "a.jsonl", labels(*range(60)))
    write(home, "b.jsonl", labels(*range(60, 70)))
    pipeline.ingest(config(home), batch_bytes=1)
    assert len(ids(home)) == 70
    check_balance(home)


def test_many_small_parts_are_merged(home: Path) -> None:
    for number in range(40):
        write(home, f"{number}.jsonl", labels(1) + label(number))
    report = pipeline.ingest(config(home), batch_bytes=1)
    assert report.merged_parts >= 40
    per_folder = Counter(p.rpartition("/")[0] for p in lake.parts_on_disk(home / "data/lake"))
    assert max(per_folder.values()) < 16
    assert sum(rows(home).values()) == 80, "no row was lost or doubled by merging"
    check_balance(home)
    write(home, "7.jsonl", labels(1) + label(7) + label(99))
    pipeline.ingest(config(home))
    assert len(ids(home)) == 81, "pieces can still be told apart in a merged part"


@pytest.mark.parametrize("name", ["sacct_alloc.txt", "sacct_all.txt", "sacctmgr_events.txt", "kern.log"])
def test_split_at_any_line_gives_the_same_records(tmp_path: Path, shared: Path, name: str) -> None:
    """An export of a real Slurm, met half-written and then whole, holds the same records as read at once."""
    folder = shared / "exports/slurm_22_05"
    data = (folder / name if name == "kern.log" else folder / "export_final" / name).read_bytes()
    lines = data.splitlines(keepends=True)

    def records(home: Path, *sizes: int) -> dict[str, set[str]]:
        (home / "exports").mkdir(parents=True)
        toml = TOML.replace("[clusters.c1]", "[clusters.llm]")
        for size in sizes:
            write(home, name, data[:size])
            report = pipeline.ingest(config(home, toml))
            assert not report.failed
        check_balance(home)
        assert report.unknown == []
        found = (lake.scan(home / "data/lake", t).collect() for t in TABLES if "record_id" in TABLES[t].schema)
        return {str(i): set(f["record_id"]) for i, f in enumerate(found)}

    expected = records(tmp_path / "whole", len(data))
    assert any(expected.values())
    cuts = [len(b"".join(lines[:n])) for n in range(1, len(lines), max(1, len(lines) // 6))]
    for cut in cuts:
        assert records(tmp_path / f"line{cut}", cut, len(data)) == expected
        assert records(tmp_path / f"mid{cut}", cut + 7, len(data)) == expected


MEASURE = """
import resource, sys
from flows import pipeline
from flows.config import load
report = pipeline.ingest(load(sys.argv[1]))
print(report.lines, report.used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_an_export_larger_than_its_memory_streams(home: Path) -> None:
    (home / "goodput.toml").write_text(TOML)
    block = "".join(label(n, why="w" * 800) for n in range(1_000)).encode()
    with (home / "exports/big.jsonl").open("wb") as handle:
        for _ in range(1_500):
            handle.write(block)
    size = len(block) * 1_500 / 2**20
    command = [sys.executable, "-c", MEASURE, str(home / "goodput.toml")]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=600)
    lines, used, peak = map(int, done.stdout.split())
    assert lines == used == 1_500_000
    assert peak < size * 0.8, f"{peak} MiB of memory for an export of {size:.0f} MiB"
