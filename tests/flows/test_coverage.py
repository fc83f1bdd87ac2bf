"""The state of a window is what manifest and files say of it, and nothing else."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows import coverage, pipeline
from flows.config import parse
from flows.manifest import Change, Pull, opened
from tests.flows.backfill_help import DAILY, END, NOW, START, at, config, states, told, write
from tests.flows.ingest_help import label
from transforms import lake
from transforms.registry import all_sources


def ingest(home: Path, text: str = DAILY) -> None:
    pipeline.ingest(config(home, text))


def touch(path: Path, moment: datetime) -> None:
    os.utime(path, (moment.timestamp(), moment.timestamp()))


def test_a_window_without_a_file_is_a_gap_and_one_with_an_unread_file_is_missing(tmp_path: Path) -> None:
    write(tmp_path, 2)
    found = states(tmp_path)
    assert [str(s.window) for s in found] == [f"2026-01-0{d}" for d in range(1, 8)]
    assert {s.state for s in found if str(s.window) != "2026-01-02"} == {"none"}
    assert told(tmp_path) == {"daily 2026-01-02": "missing: not read yet"}


def test_what_was_read_is_done_and_stays_so_when_the_file_is_gone(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    ingest(tmp_path)
    assert told(tmp_path) == {"daily 2026-01-02": "done"}
    path.unlink()
    assert told(tmp_path) == {"daily 2026-01-02": "done"}, "its rows are in the lake"


def test_a_file_that_grew_or_changed_is_stale_until_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    write(tmp_path, 3)
    ingest(tmp_path)
    path.write_text(path.read_text() + label(9))
    assert told(tmp_path) == {"daily 2026-01-02": "stale: the file changed", "daily 2026-01-03": "done"}
    ingest(tmp_path)
    assert told(tmp_path)["daily 2026-01-02"] == "done"


@pytest.mark.parametrize("change", ['zone = "Asia/Tokyo"\n', 'node = "n1"\n', 'cluster = "c1"\njob_id = "7"\n'])
def test_other_settings_make_a_window_stale(tmp_path: Path, change: str) -> None:
    write(tmp_path, 2)
    ingest(tmp_path)
    assert "stale: read with other code or settings" in told(tmp_path, DAILY + change).values()


def test_another_version_of_the_parser_makes_a_window_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 2)
    ingest(tmp_path)
    newer = {n: replace(s, version=s.version + 1) for n, s in all_sources().items()}
    monkeypatch.setattr("flows.contexts.all_sources", lambda: newer)
    assert told(tmp_path) == {"daily 2026-01-02": "stale: read with other code or settings"}


def test_a_file_that_could_not_be_read_makes_its_window_fail(tmp_path: Path) -> None:
    write(tmp_path, 2)
    write(tmp_path, 3)
    settings = DAILY + 'format = "annotations"\n'
    (tmp_path / "exports/daily_2026-01-02.jsonl").write_bytes(b"\x1f\x8b\x08 this is no gzip")
    ingest(tmp_path, settings)
    found = told(tmp_path, settings)
    assert found["daily 2026-01-02"].startswith("failed: cannot be read")
    assert found["daily 2026-01-03"] == "done"


def test_a_failed_file_that_was_written_again_is_stale_so_that_it_is_loaded(tmp_path: Path) -> None:
    unreadable = b"\x1f\x8b\x08 this is no gzip"
    write(tmp_path, 2).write_bytes(unreadable)
    path = write(tmp_path, 3, text="what is this\n")
    ingest(tmp_path)
    assert [s.split(":")[0] for s in told(tmp_path).values()] == ["failed", "failed"]
    write(tmp_path, 2)
    touch(path, at(9))  # of the same size, but of another time
    assert told(tmp_path) == {f"daily 2026-01-0{day}": "stale: the file changed" for day in (2, 3)}


def test_a_file_that_no_parser_knows_is_not_called_loaded(tmp_path: Path) -> None:
    write(tmp_path, 2, text="what is this\n")
    ingest(tmp_path)
    assert told(tmp_path)["daily 2026-01-02"].startswith("failed: no parser knows its format: it begins with")


def test_a_path_with_no_date_fails_in_the_window_of_the_files_time(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    wrong = path.rename(path.with_name("daily_yesterday.jsonl"))
    touch(wrong, at(4, 12))
    assert told(tmp_path)["daily 2026-01-04"].startswith("failed: {collected_at} in the path is 'yesterday'")


def test_an_empty_file_is_done(tmp_path: Path) -> None:
    write(tmp_path, 2, text="")
    ingest(tmp_path)
    assert told(tmp_path) == {"daily 2026-01-02": "done"}


def test_lost_rows_are_stale_where_the_file_is_there_and_failed_where_it_is_gone(tmp_path: Path) -> None:
    first = write(tmp_path, 2)
    ingest(tmp_path)
    write(tmp_path, 3)
    ingest(tmp_path)
    with opened(tmp_path / "data") as manifest:
        parts = lake.parts_on_disk(tmp_path / "data/lake")
        batches = {b for p in parts for b in manifest.batches_of(p)}
        shutil.rmtree(tmp_path / "data/lake")
        manifest.commit(Change(removed_parts=set(parts), lost=batches))
    first.unlink()
    assert told(tmp_path) == {
        "daily 2026-01-02": "failed: rows were lost, and the file is gone: restore it",
        "daily 2026-01-03": "stale: rows were lost",
    }


def test_a_window_that_is_not_over_is_open_whatever_was_read(tmp_path: Path) -> None:
    write(tmp_path, 2)
    assert told(tmp_path, now=at(2, 12)) == {
        f"daily 2026-01-0{d}": "open: the window is not over; " + ("not read yet" if d == 2 else "no file")
        for d in range(2, 8)
    }
    ingest(tmp_path)
    assert told(tmp_path, now=at(2, 12))["daily 2026-01-02"] == "open: the window is not over"
    assert told(tmp_path, now=at(3))["daily 2026-01-02"] == "done", "at its very end it is over"


def test_the_worst_file_decides_and_how_many_are_so_bad_is_told(tmp_path: Path) -> None:
    text = DAILY.replace("daily_{collected_at}", "*_{collected_at}")
    for name in ("a", "b", "c"):
        write(tmp_path, 2, name=name)
    ingest(tmp_path, text)
    for name in ("a", "b"):
        write(tmp_path, 2, 7, 8, name=name)
    assert told(tmp_path, text) == {"daily 2026-01-02": "stale: 2 of 3 files: the file changed"}


def test_a_file_without_a_known_time_belongs_to_the_windows_in_which_it_was_written(tmp_path: Path) -> None:
    """A log that is appended to every day was read day by day: yesterday's window stays done when today's lines come."""
    text = DAILY.replace("daily_{collected_at}", "log")
    path = tmp_path / "exports/log.jsonl"
    path.parent.mkdir()
    path.write_text(label(1))
    touch(path, at(2, 12))
    assert told(tmp_path, text) == {"daily 2026-01-02": "missing: not read yet"}
    ingest(tmp_path, text)
    path.write_text(label(1) + label(2))
    touch(path, at(4, 12))
    assert told(tmp_path, text) == {"daily 2026-01-02": "done", "daily 2026-01-04": "stale: the file changed"}
    ingest(tmp_path, text)
    assert told(tmp_path, text) == {"daily 2026-01-02": "done", "daily 2026-01-04": "done"}


def test_a_file_named_for_a_day_belongs_to_that_day_and_a_time_to_the_window_that_ends_with_it(tmp_path: Path) -> None:
    text = DAILY + 'window = "6h"\n'
    write(tmp_path, 2)
    (tmp_path / "exports/daily_20260103T060000Z.jsonl").write_text(label(3))
    (tmp_path / "exports/daily_20260103T060001Z.jsonl").write_text(label(4))
    assert list(told(tmp_path, text)) == [
        "daily 2026-01-02T18:00:00Z/2026-01-03T00:00:00Z",
        "daily 2026-01-03T00:00:00Z/2026-01-03T06:00:00Z",
        "daily 2026-01-03T06:00:00Z/2026-01-03T12:00:00Z",
    ]


def test_nothing_is_opened_or_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 2)
    ingest(tmp_path)
    settings = config(tmp_path)

    def refuse(path: Path, *_: object, **__: object) -> None:
        raise AssertionError(f"{path} was opened")

    with opened(settings.data) as manifest:
        monkeypatch.setattr(Path, "open", refuse)
        assert "done" in {s.state for s in coverage.coverage(settings, manifest, START, END, NOW)}


def test_coverage_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, 2)
    states(tmp_path)
    assert not (tmp_path / "data").exists()


def test_an_unknown_source_is_asked_back(tmp_path: Path) -> None:
    with pytest.raises(coverage.UnknownSourceError, match=r'is called "dayly"; did you mean "daily"\?'):
        coverage.coverage(config(tmp_path), None, START, END, NOW, ["dayly"])


COMMAND = """
[clusters.c1]
zone = "UTC"
[[sources]]
name = "pulled"
command = ["cat", "exports/{start_epoch}.jsonl"]
window = "1d"
delay = "1h"
"""


def pulled(home: Path, day: int, text: str = COMMAND, **change: object) -> Pull:
    """A try that failed, unless it is changed."""
    from flows.due_windows import settings_of

    settings = config(home, text)
    found = Pull(
        "pulled",
        at(day),
        at(day + 1),
        "failed",
        at(day + 1, 2),
        settings=settings_of(settings, settings.sources[0]),
        message="exit code 3",
    )
    found = Pull(**{name: getattr(found, name) for name in Pull.__slots__} | change)
    with opened(settings.data) as manifest:
        manifest.store_pull(found)
    return found


def keep(home: Path, day: int, content: str) -> str:
    """Keep output as a pull does."""
    import zstandard

    folder = home / "data/landing/pulled"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{at(day):%Y%m%dT%H%M%SZ}-{at(day + 1):%Y%m%dT%H%M%SZ}_{at(day + 1, 2):%Y%m%dT%H%M%S.%fZ}.zst"
    path.write_bytes(zstandard.compress(content.encode()))
    return str(path)


def test_windows_of_a_command_are_missing_until_asked_and_open_until_due(tmp_path: Path) -> None:
    found = told(tmp_path, COMMAND, now=at(3, 0) + timedelta(minutes=59))
    assert found == {"pulled 2026-01-01": "missing: not asked for yet"} | {
        f"pulled 2026-01-0{d}": "open: not due yet" for d in range(2, 8)
    }
    assert told(tmp_path, COMMAND, now=at(3, 1))["pulled 2026-01-02"] == "missing: not asked for yet"


def test_a_failed_pull_is_no_empty_day_and_an_empty_output_is(tmp_path: Path) -> None:
    pulled(tmp_path, 1)
    pulled(tmp_path, 2, status="loaded", path=keep(tmp_path, 2, ""))
    pulled(tmp_path, 3, status="loaded", path=keep(tmp_path, 3, label(3)))
    found = told(tmp_path, COMMAND)
    assert found["pulled 2026-01-01"] == "failed: exit code 3"
    assert found["pulled 2026-01-02"] == "missing: not read yet"
    with opened(tmp_path / "data") as manifest:
        assert manifest.pulls("pulled")
    read_landing(tmp_path)
    found = told(tmp_path, COMMAND)
    assert (found["pulled 2026-01-02"], found["pulled 2026-01-03"]) == ("done", "done")


def read_landing(home: Path, text: str = COMMAND) -> None:
    """Read what was kept, without asking for anything: the command of these tests does not exist."""
    settings = parse(text.replace('"cat"', '"true"') + "since = 2026-01-19T00:00:00Z\n", home / "goodput.toml")
    pipeline.ingest(settings, until=at(3))


def test_output_of_another_command_is_stale_and_so_is_one_that_is_gone(tmp_path: Path) -> None:
    pulled(tmp_path, 1, status="loaded", path=keep(tmp_path, 1, label(1)), settings="other")
    gone = pulled(tmp_path, 2, status="loaded", path=keep(tmp_path, 2, label(2)))
    Path(gone.path or "").unlink()
    found = told(tmp_path, COMMAND)
    assert found["pulled 2026-01-01"] == "stale: asked with another command"
    assert found["pulled 2026-01-02"] == "stale: what the command printed is gone and was not read"


def test_output_that_was_read_and_then_removed_is_done(tmp_path: Path) -> None:
    path = keep(tmp_path, 1, label(1))
    pulled(tmp_path, 1, status="loaded", path=path)
    read_landing(tmp_path)
    Path(path).unlink()
    assert told(tmp_path, COMMAND)["pulled 2026-01-01"] == "done"


def test_before_since_there_is_nothing_to_load(tmp_path: Path) -> None:
    found = states(tmp_path, COMMAND + "since = 2026-01-03T00:00:00Z\n")
    assert [(s.state, s.reason) for s in found[:3]] == [("none", "before `since`")] * 2 + [
        ("missing", "not asked for yet")
    ]


def test_a_command_that_tells_only_of_now_has_lost_the_windows_nobody_asked_for(tmp_path: Path) -> None:
    text = COMMAND.replace("{start_epoch}", "now") + "since = 2026-01-01T00:00:00Z\n"
    found = told(tmp_path, text, now=at(4, 2))
    assert found["pulled 2026-01-03"] == "missing: not asked for yet"
    assert "pulled 2026-01-02" not in found
    reasons = {str(s.window): s.reason for s in states(tmp_path, text, now=at(4, 2))}
    assert reasons["2026-01-02"] == "nobody asked in time, and the command tells only of now"


def test_extent_is_from_the_first_window_with_anything_to_the_last(tmp_path: Path) -> None:
    assert coverage.Survey(config(tmp_path), None).extent() is None
    write(tmp_path, 2)
    write(tmp_path, 6)
    assert coverage.Survey(config(tmp_path), None).extent() == (at(2), at(7))


@pytest.mark.slow
def test_many_files_take_seconds(tmp_path: Path) -> None:
    """20,000 files take 3 s of one core: 100,000 take a quarter of a minute. The limit leaves room for slower machines."""
    folder = tmp_path / "exports"
    for day in range(250):
        (folder / f"{day:03d}").mkdir(parents=True)
        stamp = f"{datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=day):%Y-%m-%d}"
        for node in range(80):
            (folder / f"{day:03d}" / f"n{node:03d}_{stamp}.jsonl").touch()
    settings = config(tmp_path, DAILY.replace("daily_{collected_at}", "*/{node}_{collected_at}"))
    pipeline.ingest(settings)
    began = time.process_time()
    with opened(settings.data) as manifest:
        found = coverage.coverage(settings, manifest, at(1) - timedelta(days=400), at(1), NOW)
    assert time.process_time() - began < 15
    assert sum(s.state == "done" for s in found) == 250
