"""Ingest may be killed anywhere, and parts may be damaged: the next ingest completes the work."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from flows import pipeline
from flows.batches import MERGE_AT
from flows.manifest import opened
from tests.flows.ingest_help import MORTAL, ROOT, TOML, append, check_balance, config, ids, label, labels, rows, write
from tests.flows.maintain_help import parts, scramble
from transforms import lake
from warehouse import publish, runner
from warehouse.runner import ModelError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "exports").mkdir()
    return tmp_path


KILLER = f"""{MORTAL}
from pathlib import Path
from flows import manifest, pipeline
from flows.config import load
from transforms import lake

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
    check_balance(home)


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
    check_balance(home)


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
    check_balance(home)


def test_files_of_others_are_moved_out_of_the_lake_and_not_deleted(home: Path) -> None:
    write(home, "a.jsonl", label(1))
    pipeline.ingest(config(home))
    theirs = home / "data/lake/annotations/theirs.parquet"
    theirs.write_bytes(b"PAR1 something PAR1")
    [note] = pipeline.ingest(config(home)).notes
    assert "annotations/theirs.parquet was not written by ingest" in note
    assert (home / "data/quarantine/annotations/theirs.parquet").exists()
    check_balance(home)


def test_the_merge_at_the_end_passes_over_a_part_that_cannot_be_read(home: Path) -> None:
    for number in range(MERGE_AT - 1):
        write(home, f"e{number}.jsonl", label(number * 28))
        pipeline.ingest(config(home))
    bad = parts(home)[3]
    scramble(home / "data/lake" / bad)
    write(home, "last.jsonl", label(999 * 28))
    report = pipeline.ingest(config(home))
    assert any(f"{bad} cannot be read (" in note for note in report.notes)
    assert (report.merged_parts, report.lines, len(parts(home))) == (MERGE_AT - 1, 1, 1)
    assert len(ids(home)) == MERGE_AT - 1
    pipeline.ingest(config(home))
    assert len(ids(home)) == MERGE_AT, "read again"
    check_balance(home)


def test_a_file_goes_on_though_the_part_of_its_last_line_cannot_be_read(home: Path) -> None:
    """The part is looked into to take that line out of it; what else was in it is read again next time."""
    path = write(home, "a.jsonl", label(1) + label(2)[:20])
    write(home, "b.jsonl", label(3) + label(4)[:-1])
    write(home, "c.jsonl", label(5) + label(4 + 28)[:-1])
    pipeline.ingest(config(home))
    append(path, label(2)[20:])
    for part in parts(home):
        if "t-" in part:
            scramble(home / "data/lake" / part)
    report = pipeline.ingest(config(home))
    assert any("cannot be read (" in note for note in report.notes)
    pipeline.ingest(config(home))
    assert ids(home) == ["i1", "i2", "i3", "i32", "i4", "i5"]
    check_balance(home)


@pytest.mark.parametrize("is_forced", [True, False], ids=["of everything", "increment"])
def test_a_build_that_fails_on_a_part_names_it_and_the_next_run_mends_it(home: Path, *, is_forced: bool) -> None:
    """It must not blame a model, and what it says must help: the exports are read again."""
    write(home, "a.jsonl", labels(1, 2, 3))
    pipeline.ingest(config(home))
    built = pipeline.build(config(home))
    write(home, "b.jsonl", labels(29, 30))
    pipeline.ingest(config(home))
    bad = next(part for part in parts(home) if "/b00000002-" in part)  # what is new: an increment reads no other
    scramble(home / "data/lake" / bad)
    with pytest.raises(pipeline.BuildError, match=r"cannot be read \(.*`goodput run`") as told:
        pipeline.build(config(home), force=is_forced)
    assert bad in str(told.value)
    assert ".sql" not in str(told.value)
    assert publish.published(home / "data") == built.path
    with pytest.raises(pipeline.BuildError, match="not read again yet"):
        pipeline.build(config(home), force=is_forced)
    _, again = pipeline.run(config(home))
    assert again.published
    assert ids(home) == ["i1", "i2", "i29", "i3", "i30"]
    check_balance(home)


def test_a_build_that_fails_on_something_else_says_so_and_leaves_the_lake_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ModelError("model.sql: there is something wrong")

    write(home, "a.jsonl", labels(1, 2, 3))
    pipeline.ingest(config(home))
    monkeypatch.setattr(runner, "create", fail)
    with pytest.raises(pipeline.BuildError, match=r"^model.sql: there is something wrong$"):
        pipeline.build(config(home))
    assert len(parts(home)) == 3
