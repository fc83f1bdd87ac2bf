"""Ingest: every file has a fate, pieces and order do not matter, and it may be killed anywhere."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from flows import ingesting, pipeline
from flows.config import Config, parse
from flows.config_errors import ConfigError
from flows.manifest import opened
from flows.reports import ExportReport
from transforms import lake
from transforms.outcome import Context, Parsed
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import ANNOTATIONS, TABLES

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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "exports").mkdir()
    return tmp_path


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


def balanced(home: Path) -> None:
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
    balanced(home)


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
    balanced(home)
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
    balanced(home)


def test_a_file_that_was_overwritten_is_read_anew_and_keeps_its_old_rows(home: Path) -> None:
    path = write(home, "a.jsonl", labels(1, 2))
    pipeline.ingest(config(home))
    path.write_text(labels(3))
    assert pipeline.ingest(config(home)).lines == 1
    assert ids(home) == ["i1", "i2", "i3"], "what a file said once is not unsaid"
    path.write_text(labels(1, 2))
    pipeline.ingest(config(home))
    assert ids(home) == ["i1", "i2", "i3"], "the same content again is the same piece"
    balanced(home)


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
    balanced(home)


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
    balanced(home)


def test_files_reached_twice_are_read_once(home: Path) -> None:
    write(home, "a.jsonl", labels(1))
    (home / "exports/b.jsonl").symlink_to("a.jsonl")
    (home / "exports/again").symlink_to(".")
    twice = TOML + '[[sources]]\npath = "exports/a*"\n'
    report = pipeline.ingest(config(home, twice))
    assert [(Path(e.path).name, e.status) for e in report.exports if e.status != "skipped"] == [("a.jsonl", "loaded")]


def test_a_source_that_matches_nothing_is_an_error_that_names_its_line(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"goodput.toml line 4: no file matches .*/exports/\*\*"):
        pipeline.ingest(config(home))


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


def fake(**changes: object) -> Source:
    """A format of lines that begin with `fake`; each line makes an annotation."""

    def parse_fake(stream: ExportStream, context: Context) -> Iterator[Parsed]:
        for chunk in stream.chunks():
            texts = chunk.data.decode().splitlines()
            frame = pl.DataFrame({"cluster": context.cluster, "interruption_id": texts})
            yield Parsed({"annotations": frame}, used=len(texts))

    known = {
        "name": "fake",
        "tables": (ANNOTATIONS,),
        "sniff": lambda head: head.startswith(b"fake"),
        "parse": parse_fake,
        "doc": "",
    }
    return Source(**{**known, **changes})  # type: ignore[arg-type]


def use(monkeypatch: pytest.MonkeyPatch, *sources: Source) -> None:
    monkeypatch.setattr(ingesting, "all_sources", lambda: {s.name: s for s in sources})
    monkeypatch.setattr(ingesting, "sniff", lambda head: [s for s in sources if s.sniff(head)])


def test_a_parser_that_loses_a_line_fails_the_export(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(stream: ExportStream, _context: Context) -> Iterator[Parsed]:
        for chunk in stream.chunks():
            yield Parsed(used=chunk.data.count(b"\n") - 1)

    use(monkeypatch, fake(parse=losing))
    write(home, "a.txt", "fake 1\nfake 2\n")
    [export] = pipeline.ingest(config(home)).exports
    assert export.status == "failed"
    assert "1 used + 0 ignored + 0 rejected lines, but read 2" in str(export.message)


def test_a_fault_in_a_parser_fails_its_exports_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(stream: ExportStream, context: Context) -> Iterator[Parsed]:
        yield from fake().parse(stream, context)
        raise ZeroDivisionError("division by zero")

    use(monkeypatch, fake(parse=faulty), fake(name="other", sniff=lambda head: head.startswith(b"other")))
    write(home, "a.txt", "fake 1\n")
    write(home, "b.txt", "other 1\n")
    report = pipeline.ingest(config(home))
    assert [e.status for e in report.exports] == ["failed", "loaded"]
    assert "ZeroDivisionError: division by zero" in str(report.exports[0].message)
    assert ids(home) == ["other 1"], "rows that came before the fault are not kept"
    use(monkeypatch, fake())
    assert not pipeline.ingest(config(home)).failed
    assert ids(home) == ["fake 1", "other 1"]
    balanced(home)


def test_a_failure_after_rows_were_written_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(stream: ExportStream, context: Context) -> Iterator[Parsed]:
        yield from fake().parse(stream, context)
        raise ZeroDivisionError

    use(monkeypatch, fake(parse=faulty))
    write(home, "a.txt", "fake 1\n")
    assert pipeline.ingest(config(home), batch_bytes=1).failed
    assert lake.parts_on_disk(home / "data/lake") == []
    balanced(home)


def test_two_parsers_that_claim_a_file_are_an_error_of_that_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, fake(), fake(name="twin"))
    write(home, "a.txt", "fake 1\n")
    [export] = pipeline.ingest(config(home)).exports
    assert export.status == "failed"
    assert "several formats fit (fake, twin): set `format`" in str(export.message)
    configured = TOML.replace('exports/**"', 'exports/**"\nformat = "annotations"')
    use(monkeypatch, fake(name="annotations"), fake(name="twin"))
    [export] = pipeline.ingest(config(home, configured)).exports
    assert (export.status, export.source) == ("loaded", "annotations")


def test_a_new_parser_version_reads_old_pieces_again_with_their_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = TOML.replace("collected_at = 2026-11-30T03:05:00Z", "")
    use(monkeypatch, fake())
    path = write(home, "a.txt", "fake 1\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    pipeline.ingest(config(home, without))
    append(path, "fake 2\nfake 3")
    pipeline.ingest(config(home, without))
    with opened(home / "data") as manifest:
        before = manifest.exports()
    use(monkeypatch, fake(version=2))
    assert pipeline.ingest(config(home, without)).lines == 3
    with opened(home / "data") as manifest:
        assert manifest.exports() == before, "the same pieces, cut and dated as before"
    assert ids(home) == ["fake 1", "fake 2", "fake 3"], "none twice"
    balanced(home)


def test_other_settings_read_a_file_again_but_a_new_cluster_does_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, fake())
    write(home, "a.txt", "fake 1\n")
    named = TOML.replace('exports/**"', 'exports/**"\ncluster = "c1"')
    pipeline.ingest(config(home, named))
    more = named + '[clusters.c2]\nzone = "Asia/Tokyo"\n'
    assert pipeline.ingest(config(home, more)).lines == 0
    other_zone = named.replace('"UTC"', '"Europe/Berlin"')
    assert pipeline.ingest(config(home, other_zone)).lines == 1, "its times may mean something else now"
    assert ids(home) == ["fake 1"]


def test_one_large_export_is_written_in_parts(home: Path) -> None:
    write(home, "a.jsonl", labels(*range(60)))
    write(home, "b.jsonl", labels(*range(60, 70)))
    pipeline.ingest(config(home), batch_bytes=1)
    assert len(ids(home)) == 70
    balanced(home)


def test_many_small_parts_are_merged(home: Path) -> None:
    for number in range(40):
        write(home, f"{number}.jsonl", labels(1) + label(number))
    report = pipeline.ingest(config(home), batch_bytes=1)
    assert report.merged_parts >= 40
    per_folder = Counter(p.rpartition("/")[0] for p in lake.parts_on_disk(home / "data/lake"))
    assert max(per_folder.values()) < 16
    assert sum(rows(home).values()) == 80, "no row was lost or doubled by merging"
    balanced(home)
    write(home, "7.jsonl", labels(1) + label(7) + label(99))
    pipeline.ingest(config(home))
    assert len(ids(home)) == 81, "pieces can still be told apart in a merged part"


KILLER = """
import os, signal, sqlite3, sys
from pathlib import Path
from flows import manifest, pipeline
from flows.config import load
from transforms import lake

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

os.replace = mortal(os.replace)
os.fsync = mortal(os.fsync)
Path.unlink = mortal(Path.unlink)
manifest.Manifest._mark = mortal(manifest.Manifest._mark)
manifest.Manifest._store_parts = mortal(manifest.Manifest._store_parts)
manifest.Manifest.commit = mortal(manifest.Manifest.commit)
pipeline.ingest(load(sys.argv[1]), batch_bytes=2_000)
"""


def ingest_killed_after(home: Path, calls: int) -> int:
    """Ingest in another process that kills itself (SIGKILL) around its n-th call that changes the disk; its exit code."""
    command = [sys.executable, "-c", KILLER, str(home / "goodput.toml"), str(calls)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, timeout=120).returncode


def prepared(home: Path) -> None:
    """Files that were read once, and then went on, changed or came."""
    home.mkdir(exist_ok=True)
    (home / "goodput.toml").write_text(TOML)
    write(home, "grows.jsonl", labels(1, 2) + label(3)[:20])
    write(home, "changes.jsonl", labels(*range(20, 30)))
    pipeline.ingest(config(home))
    append(home / "exports/grows.jsonl", label(3)[20:] + labels(4))
    write(home, "changes.jsonl", labels(*range(30, 40)))
    write(home, "new.jsonl", labels(*range(50, 60)) + "broken\n")


def undisturbed(tmp_path: Path) -> tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]:
    prepared(tmp_path / "calm")
    pipeline.ingest(config(tmp_path / "calm"))
    return rows(tmp_path / "calm"), rows(tmp_path / "calm", "rejects")


def check_after_kill(home: Path, expected: tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]) -> None:
    pipeline.ingest(config(home))
    assert (rows(home), rows(home, "rejects")) == expected
    balanced(home)


@pytest.mark.parametrize("calls", [0, 3, 17, 40])
def test_killed_and_run_again_is_as_if_never_killed(tmp_path: Path, calls: int) -> None:
    prepared(tmp_path / "killed")
    assert ingest_killed_after(tmp_path / "killed", calls) == -9
    check_after_kill(tmp_path / "killed", undisturbed(tmp_path))


@pytest.mark.slow
def test_killed_at_every_point_one_after_the_other(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path)
    calls, killed = 0, 0
    while True:
        home = tmp_path / f"killed{calls}"
        prepared(home)
        code = ingest_killed_after(home, calls)
        check_after_kill(home, expected)
        if code == 0:
            break
        assert code == -9
        killed += 1
        calls += 1
    assert killed > 50, "the points of danger were really met"


def test_damaged_parts_are_named_set_aside_and_made_anew(home: Path, shared: Path) -> None:
    """Case ST3: one part cut, one empty, one missing; the run is not lost and nothing else is."""
    write(home, "a.jsonl", labels(1, 2, 3, 4))
    pipeline.ingest(config(home))
    whole = rows(home)
    first, second, third, _ = lake.parts_on_disk(home / "data/lake")
    folder = home / "data/lake"
    (folder / first).write_bytes((shared / "cases/ST3/events/part-0002.parquet").read_bytes())
    (folder / second).write_bytes((shared / "cases/ST3/events/part-0003.parquet").read_bytes())
    (folder / third).unlink()
    report = pipeline.ingest(config(home))
    [note] = report.notes
    assert f"{first} is cut short" in note
    assert f"{second} is empty" in note
    assert f"{third} is missing" in note
    assert rows(home) == whole
    quarantine = home / "data/quarantine"
    assert sorted(p.relative_to(quarantine).as_posix() for p in quarantine.rglob("*.parquet")) == [first, second]
    assert pipeline.ingest(config(home)).notes == (), "once"
    balanced(home)


def test_a_lost_part_whose_file_is_gone_stays_visible(home: Path) -> None:
    path = write(home, "a.jsonl", labels(1))
    write(home, "b.jsonl", "")
    pipeline.ingest(config(home))
    [part] = lake.parts_on_disk(home / "data/lake")
    (home / "data/lake" / part).write_bytes(b"")
    path.rename(home / "away")
    report = pipeline.ingest(config(home))
    assert any("may be lost" in n and "a.jsonl" in n for n in report.notes)
    with opened(home / "data") as manifest:
        assert [e["status"] for e in manifest.exports() if e["path"].endswith("a.jsonl")] == ["failed"]
    (home / "away").rename(path)
    pipeline.ingest(config(home))
    assert ids(home) == ["i1"], "restored, it is read again"
    balanced(home)


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
        balanced(home)
        assert report.unknown == []
        found = (lake.scan(home / "data/lake", t).collect() for t in TABLES if "record_id" in TABLES[t].schema)
        return {str(i): set(f["record_id"]) for i, f in enumerate(found)}

    expected = records(tmp_path / "whole", len(data))
    assert any(expected.values())
    cuts = [len(b"".join(lines[:n])) for n in range(1, len(lines), max(1, len(lines) // 12))]
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
        for _ in range(1_000):
            handle.write(block)
    size = len(block) * 1_000 / 2**20
    command = [sys.executable, "-c", MEASURE, str(home / "goodput.toml")]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=600)
    lines, used, peak = map(int, done.stdout.split())
    assert lines == used == 1_000_000
    assert peak < size * 0.8, f"{peak} MiB of memory for an export of {size:.0f} MiB"
