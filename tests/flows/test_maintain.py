"""Maintenance makes the data folder smaller and changes no row; killed anywhere, it harms nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from flows import batches, lease, maintaining, pipeline
from flows.manifest import FILE_NAME, opened
from flows.printed import unfinished
from tests.flows.ingest_help import TOML, append, check_balance, config, ids, label, labels, rows, write
from tests.flows.maintain_help import COMMAND, LATER, NOW, fragmented, landed, parts, scramble
from warehouse import publish


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "exports").mkdir()
    return tmp_path


def everything(home: Path) -> dict[str, int]:
    return {str(p): p.stat().st_size for p in sorted((home / "data").rglob("*")) if p.is_file()}


def test_small_parts_are_merged_and_no_row_changes(home: Path) -> None:
    fragmented(home)
    before, told, rejected = parts(home), rows(home), rows(home, "rejects")
    report = pipeline.maintain(config(home))
    assert (len(before), len(parts(home))) == (24, 6), "five days and the rejects, each four times"
    assert (report.merged_parts, report.merged_into) == (24, 6)
    assert report.merged_bytes == report.bytes_freed > 0
    assert (rows(home), rows(home, "rejects")) == (told, rejected)
    check_balance(home)


def test_nothing_is_left_to_do_afterwards_and_nothing_is_to_be_built(home: Path) -> None:
    fragmented(home)
    with opened(home / "data") as manifest:
        content = manifest.content()
    pipeline.maintain(config(home))
    kept = parts(home)
    again = pipeline.maintain(config(home))
    assert (again.merged_parts, again.removed, again.notes, again.bytes_freed) == (0, [], [], 0)
    assert parts(home) == kept
    with opened(home / "data") as manifest:
        assert manifest.content() == content, "merging is no reason to build"


def test_files_go_on_growing_after_it(home: Path) -> None:
    """An unterminated last line is taken out when it goes on, though its part was merged with another."""
    write(home, "other.jsonl", label(928)[:-1])
    fragmented(home)
    path = write(home, "grows.jsonl", label(900) + label(901)[:-1])
    pipeline.ingest(config(home))
    pipeline.maintain(config(home))
    append(path, "\n" + label(902))
    report = pipeline.ingest(config(home))
    assert report.lines == 2
    assert [i for i in ids(home) if i.startswith("i9")] == ["i900", "i901", "i902", "i928"]
    check_balance(home)


def test_unterminated_last_lines_stay_apart(home: Path) -> None:
    """Only their rows leave the lake again: a build that goes on from the one before looks for such rows there only."""
    for name in "ab":
        write(home, f"{name}.jsonl", label(ord(name) * 28) + label(ord(name) * 28 + 28)[:-1])
        pipeline.ingest(config(home))
    pipeline.maintain(config(home))
    with opened(home / "data") as manifest:
        assert sorted((p.rows, p.is_tail) for p in manifest.parts().values()) == [(2, False), (2, True)]
    append(home / "exports/a.jsonl", "\n")
    pipeline.ingest(config(home))
    with opened(home / "data") as manifest:
        assert sorted((p.rows, p.is_tail) for p in manifest.parts().values()) == [(1, False), (1, True), (2, False)]
    check_balance(home)


def test_what_was_read_is_not_read_again(home: Path) -> None:
    fragmented(home)
    pipeline.maintain(config(home))
    assert pipeline.ingest(config(home)).lines == 0


def test_a_merged_part_that_is_lost_is_read_again_as_a_whole(home: Path) -> None:
    fragmented(home)
    told = rows(home)
    pipeline.maintain(config(home))
    (home / "data/lake" / parts(home)[0]).unlink()
    pipeline.ingest(config(home))
    assert rows(home) == told
    check_balance(home)


@pytest.mark.parametrize("damaged", [1, 3, 4])
def test_a_part_that_cannot_be_read_is_set_aside_and_all_others_are_merged(home: Path, damaged: int) -> None:
    """Damage that leaves the length as it was is met only here: it is told like any other, and stops nothing."""
    fragmented(home)
    told, before = rows(home), parts(home)
    folder = Path(before[0]).parent
    bad = [p for p in before if Path(p).parent == folder][:damaged]
    for part in bad:
        scramble(home / "data/lake" / part)
    report = pipeline.maintain(config(home))
    [note] = report.notes
    assert all(f"{part} cannot be read (" in note for part in bad)
    assert "`goodput ingest` reads their exports again" in note
    assert all((home / "data/quarantine" / part).exists() for part in bad)
    whole = 4 - damaged if damaged < 3 else 0
    assert (report.merged_parts, report.merged_into) == (20 + whole, 5 + bool(whole))
    pipeline.ingest(config(home))
    assert rows(home) == told
    check_balance(home)
    assert pipeline.maintain(config(home)).notes == [], "once"


def test_large_parts_are_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fragmented(home)
    monkeypatch.setattr(batches, "MERGE_ROWS", 2)
    pipeline.maintain(config(home))
    with opened(home / "data") as manifest:
        assert {p.rows for p in manifest.parts().values()} == {2}


def test_the_lease_is_given_up_between_merges(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer waits for one merge, not for all of them."""
    fragmented(home)
    held: list[str] = []
    real = lease.hold

    @contextmanager
    def hold(data: Path, command: str, **more: object) -> Iterator[None]:
        held.append(command)
        with real(data, command, **more):  # type: ignore[arg-type]
            yield

    monkeypatch.setattr(lease, "hold", hold)
    monkeypatch.setattr(maintaining, "BETWEEN_SECONDS", 0.0)
    pipeline.maintain(config(home), turn_seconds=0.0)
    assert held == ["maintain"] * 8, "once to tidy up, once for each of six merges, once to see that none is left"


def test_another_writer_is_waited_for_or_named(home: Path) -> None:
    fragmented(home, 1)
    with lease.hold(home / "data", "ingest"), pytest.raises(pipeline.BusyError, match="ingest"):
        pipeline.maintain(config(home))


def test_before_anything_was_read_there_is_nothing_to_do(home: Path) -> None:
    report = pipeline.maintain(config(home))
    assert (report.notes, report.removed, report.merged_parts) == (["nothing was read yet"], [], 0)
    assert not (home / "data").exists()


def test_what_killed_runs_left_is_removed_and_counted(home: Path) -> None:
    fragmented(home)
    builds = publish.folder_of(home / "data")
    builds.mkdir()
    orphan = home / "data/lake" / Path(parts(home)[0]).parent / "b00000999-00001.parquet"
    for path in (orphan, orphan.with_name(f"{orphan.name}.unfinished"), builds / "x.duckdb.part"):
        path.write_bytes(b"123")
    report = pipeline.maintain(config(home))
    assert sorted((r.kind, r.size_bytes) for r in report.removed) == [
        (maintaining.BUILD, 3),
        (maintaining.ORPHAN, 3),
        (maintaining.ORPHAN, 3),
    ]
    assert report.bytes_freed == report.merged_bytes + 9
    assert not any(r.path.exists() for r in report.removed)
    check_balance(home)


def test_empty_folders_of_the_lake_go(home: Path) -> None:
    fragmented(home, 1)
    empty = home / "data/lake/annotations/cluster=c9/date=2020-01-01"
    empty.mkdir(parents=True)
    pipeline.maintain(config(home))
    assert not empty.parent.exists()
    assert (home / "data/lake").is_dir()


def test_old_builds_go_the_published_one_never(home: Path) -> None:
    fragmented(home, 1)
    builds = publish.folder_of(home / "data")
    builds.mkdir()
    for number in range(5):
        (builds / f"2026010{number}T000000000000Z.duckdb").write_bytes(b"1")
    publish.rollback(home / "data", "20260100T000000000000Z")
    few = TOML + "[warehouse]\nkeep_builds = 2\n"
    report = pipeline.maintain(config(home, few))
    assert [r.path.stem[:8] for r in report.removed] == ["20260101", "20260102"]
    assert [b.build_id[:8] for b in publish.builds(home / "data")] == ["20260100", "20260103", "20260104"]


def test_the_manifest_gives_room_back(home: Path) -> None:
    fragmented(home, 1)
    with sqlite3.connect(home / "data" / FILE_NAME) as db:
        db.execute("create table junk as with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) "
                   "select i, hex(randomblob(20)) from n")  # fmt: skip
        db.execute("drop table junk")
    db.close()
    before = (home / "data" / FILE_NAME).stat().st_size
    report = pipeline.maintain(config(home))
    assert report.manifest_bytes == before - (home / "data" / FILE_NAME).stat().st_size > 500_000
    check_balance(home)


def test_an_output_that_a_later_try_replaced_goes_once_it_is_a_day_old(home: Path) -> None:
    settings, [first, second] = landed(home)
    told = rows(home)
    assert pipeline.maintain(settings, now=NOW).removed == [], "it may belong to a pull that is under way"
    [removed] = pipeline.maintain(settings, now=LATER).removed
    assert (removed.kind, removed.path) == (maintaining.LANDING, first)
    assert second.exists(), "kept for ever unless configured otherwise"
    pipeline.ingest(settings)
    assert rows(home) == told


def test_outputs_are_kept_as_long_as_configured(home: Path) -> None:
    settings, [first, second] = landed(home, COMMAND + '[warehouse]\nkeep_landing = "30d"\n')
    told = rows(home)
    soon = [r.path for r in pipeline.maintain(settings, now=NOW + timedelta(days=29)).removed]
    assert soon == [first]
    assert [r.path for r in pipeline.maintain(settings, now=NOW + timedelta(days=31)).removed] == [second]
    (home / "told.jsonl").write_text(labels(7))
    pipeline.ingest(settings)
    assert rows(home) == told, "its rows stay, and the window is not asked for again"


def test_an_output_that_was_not_read_to_its_end_is_never_removed(home: Path) -> None:
    settings, [first, second] = landed(home, COMMAND + '[warehouse]\nkeep_landing = "1h"\n')
    first.write_bytes(first.read_bytes()[:-3])
    later = second.with_name(second.name.replace("_21", "_22"))
    shutil.copy2(second, later)
    assert [r.path for r in pipeline.maintain(settings, now=LATER).removed] == [second]
    assert first.exists()
    assert later.exists()


def test_what_a_killed_command_had_printed_goes_what_one_prints_now_stays(home: Path) -> None:
    """Also of a source that is configured no more, which no ingest looks at."""
    settings, _ = landed(home)
    (home / "data/landing/former").mkdir()
    rests = [home / "data/landing" / name / ".0123.unfinished" for name in ("told", "former")]
    with unfinished(home / "data/landing/told") as (path, _):
        for rest in (*rests, path):
            rest.write_bytes(b"123")
            os.utime(rest, (1e9, 1e9))
        foreseen = pipeline.maintain(settings, is_dry_run=True)
        assert all(rest.exists() for rest in rests)
        report = pipeline.maintain(settings)
        assert path.exists()
    assert sorted(r.path for r in report.removed) == sorted(r.path for r in foreseen.removed) == sorted(rests)
    assert {(r.kind, r.size_bytes) for r in report.removed} == {(maintaining.LANDING, 3)}
    assert not any(rest.exists() for rest in rests)


def test_quarantine_is_emptied_when_it_is_old_and_no_row_is_missing(home: Path) -> None:
    fragmented(home, 1)
    part, cut = parts(home)[0], home / "data/lake" / parts(home)[0]
    cut.write_bytes(cut.read_bytes()[:-9])
    files = sorted((home / "exports").iterdir())
    files[0].rename(home / "away")
    write(home, "other.jsonl", labels(800))
    pipeline.ingest(config(home))
    aside = home / "data/quarantine" / part
    report = pipeline.maintain(config(home), now=LATER)
    assert report.removed == []
    told = "1 file stays in quarantine: rows of 1 file were lost"
    assert any(note.startswith(told) for note in report.notes), "one is no plural"
    (home / "away").rename(files[0])
    pipeline.ingest(config(home))
    assert pipeline.maintain(config(home), now=NOW + timedelta(days=89)).removed == []
    [removed] = pipeline.maintain(config(home), now=LATER).removed
    assert (removed.kind, removed.path) == (maintaining.QUARANTINE, aside)
    assert not list((home / "data/quarantine").rglob("*.parquet"))


def test_a_dry_run_says_what_would_be_done_and_does_nothing(home: Path) -> None:
    settings, [first, _] = landed(home, COMMAND + '[[sources]]\npath = "exports/**"\n')
    for number in range(3):
        write(home, f"e{number}.jsonl", labels(number))
        pipeline.ingest(settings)
    before = everything(home)
    foreseen = pipeline.maintain(settings, now=LATER, is_dry_run=True)
    assert everything(home) == before
    done = pipeline.maintain(settings, now=LATER)
    assert [r.path for r in foreseen.removed] == [r.path for r in done.removed] == [first]
    assert (foreseen.merged_parts, foreseen.merged_into) == (done.merged_parts, done.merged_into)
    assert (foreseen.is_dry_run, done.is_dry_run) == (True, False)


@pytest.mark.slow
def test_the_marts_are_the_same_before_and_after(
    tmp_path: Path, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warehouse.digest import digest

    home = tmp_path / "d"
    shutil.copytree(demo_folder, home, ignore=shutil.ignore_patterns("data"), symlinks=True)
    settings = config(home, (home / "goodput.toml").read_text())
    with monkeypatch.context() as patched:
        patched.setattr(batches.Batch, "merge", lambda _self: 0)
        pipeline.ingest(settings, batch_bytes=3_000)
    pipeline.build(settings)
    before, many = digest(publish.link_of(settings.data)), len(parts(home))
    report = pipeline.maintain(settings)
    assert report.merged_parts > 5
    assert len(parts(home)) < many
    assert not pipeline.needs_build(settings)
    pipeline.build(settings, force=True)
    assert digest(publish.link_of(settings.data)) == before == digest(publish.link_of(demo_folder / "data"))
