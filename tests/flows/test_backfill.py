"""A backfill does what its plan says, each window once, whoever else is at work and whatever fails."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from flows import backfill, lease, pipeline
from flows.backfill_plan import by_day
from flows.manifest import opened
from tests.flows.backfill_help import (
    DAILY,
    END,
    OTHER,
    START,
    at,
    backfilled,
    config,
    planned,
    start_one,
    todo,
    told,
    worked_on,
    write,
)
from tests.flows.ingest_help import check_balance, ids, label
from tests.flows.ingest_help import rows as lake_rows

BROKEN = b"\x1f\x8b\x08 this is no gzip"
FORMATTED = DAILY + 'format = "annotations"\n'


def days(*numbers: int, name: str = "daily") -> list[str]:
    return [f"{name} 2026-01-0{n}" for n in numbers]


def test_missing_and_stale_windows_are_loaded_and_done_ones_left(tmp_path: Path) -> None:
    write(tmp_path, 1)
    changes = write(tmp_path, 2)
    pipeline.ingest(config(tmp_path))
    changes.write_text(label(2) + label(22))
    write(tmp_path, 4)
    assert todo(tmp_path) == days(2, 4)
    report = backfilled(tmp_path)
    assert worked_on(report) == [f"{w} loaded" for w in days(2, 4)]
    assert set(ids(tmp_path)) == {"i1", "i2", "i22", "i4"}
    assert todo(tmp_path) == []
    assert worked_on(backfilled(tmp_path)) == []


def test_files_of_windows_outside_are_not_touched(tmp_path: Path) -> None:
    for day in (1, 7, 8):
        write(tmp_path, day)
    (tmp_path / "exports/daily_2025-12-31.jsonl").write_text(label(31))
    backfilled(tmp_path)
    assert set(ids(tmp_path)) == {"i1", "i7"}
    with opened(tmp_path / "data") as manifest:
        assert sorted(Path(p).name for p, _ in manifest.by_file()) == [
            "daily_2026-01-01.jsonl",
            "daily_2026-01-07.jsonl",
        ]


def test_only_the_sources_that_are_named(tmp_path: Path) -> None:
    write(tmp_path, 1)
    write(tmp_path, 1, 11, name="other")
    report = backfilled(tmp_path, DAILY + OTHER, sources=["other"])
    assert worked_on(report) == ["other 2026-01-01 loaded"]
    assert ids(tmp_path) == ["i11"]


def test_a_failed_window_fails_alone_and_is_tried_again_only_when_asked(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        write(tmp_path, day)
    broken = tmp_path / "exports/daily_2026-01-02.jsonl"
    broken.write_bytes(BROKEN)
    report = backfilled(tmp_path, FORMATTED)
    assert [o.status for o in report.outcomes] == ["loaded", "failed", "loaded"]
    assert [str(o.window) for o in report.failed] == ["2026-01-02"]
    assert "cannot be read" in report.failed[0].message
    assert todo(tmp_path, FORMATTED) == []
    assert todo(tmp_path, FORMATTED, "failed") == days(2)
    broken.write_text(label(2))
    report = backfilled(tmp_path, FORMATTED, reprocess="failed")
    assert worked_on(report) == ["daily 2026-01-02 loaded"]
    assert todo(tmp_path, FORMATTED, "failed") == []
    assert set(ids(tmp_path)) == {"i1", "i2", "i3"}


def test_all_loads_everything_again_and_nothing_is_there_twice(tmp_path: Path) -> None:
    for day in (1, 2):
        write(tmp_path, day, day, day + 10)
    write(tmp_path, 3, text="")
    pipeline.ingest(config(tmp_path))
    before = lake_rows(tmp_path)
    report = backfilled(tmp_path, reprocess="all")
    assert worked_on(report) == [f"{w} loaded" for w in days(1, 2, 3)]
    assert sum(e.lines for o in report.outcomes for e in o.exports) == 4
    assert lake_rows(tmp_path) == before
    check_balance(tmp_path)


def test_a_file_of_several_windows_is_read_once(tmp_path: Path) -> None:
    """A log without a known time was read day by day; loading one of its windows again loads the file, and that once."""
    import os

    text = DAILY.replace("daily_{collected_at}", "log")
    path = write(tmp_path, 1)
    path = path.rename(path.with_name("log.jsonl"))
    os.utime(path, (at(2, 12).timestamp(),) * 2)
    pipeline.ingest(config(tmp_path, text))
    path.write_text(path.read_text() + label(2))
    os.utime(path, (at(4, 12).timestamp(),) * 2)
    pipeline.ingest(config(tmp_path, text))
    report = backfilled(tmp_path, text, reprocess="all")
    assert worked_on(report) == [f"{w} loaded" for w in days(2, 4)]
    assert [len(o.exports) for o in report.outcomes] == [1, 0]
    assert ids(tmp_path) == ["i1", "i2"]


def test_an_open_window_is_loaded_as_far_as_it_goes_and_never_done(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    noon = at(2, 12)
    assert worked_on(backfilled(tmp_path, now=noon)) == ["daily 2026-01-02 loaded"]
    assert told(tmp_path, now=noon)["daily 2026-01-02"] == "open: the window is not over"
    assert todo(tmp_path, now=noon) == []
    path.write_text(path.read_text() + label(22))
    assert worked_on(backfilled(tmp_path, now=at(3))) == ["daily 2026-01-02 loaded"]
    assert ids(tmp_path) == ["i2", "i22"]


def test_backwards_begins_with_the_newest_and_ends_with_the_same_rows(tmp_path: Path) -> None:
    text = DAILY + OTHER
    for home in (tmp_path / "a", tmp_path / "b"):
        for day in (1, 2, 3):
            write(home, day, day, 50)
            write(home, day, day + 10, name="other")
    assert worked_on(backfilled(tmp_path / "a", text)) == [
        f"{name} 2026-01-0{day} loaded" for day in (1, 2, 3) for name in ("daily", "other")
    ]
    assert worked_on(backfilled(tmp_path / "b", text, run_backwards=True)) == [
        f"{name} 2026-01-0{day} loaded" for day in (3, 2, 1) for name in ("daily", "other")
    ]
    assert lake_rows(tmp_path / "a") == lake_rows(tmp_path / "b")


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, 1)
    planned(tmp_path)
    assert not (tmp_path / "data").exists()


def test_damaged_parts_are_mended_first_and_their_windows_loaded_again(tmp_path: Path) -> None:
    write(tmp_path, 1)
    backfilled(tmp_path)
    (part,) = (tmp_path / "data/lake").rglob("*.parquet")
    part.write_bytes(b"")
    assert todo(tmp_path) == [], "nobody has noticed yet"
    report = backfilled(tmp_path)
    assert worked_on(report) == ["daily 2026-01-01 loaded"]
    assert report.notes[0].startswith("1 damaged part of the lake was moved"), "one is no plural"
    assert ids(tmp_path) == ["i1"]


def test_the_right_to_write_is_given_up_so_that_others_get_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule that waits is let in between two windows; what it loads meanwhile is not loaded again."""
    monkeypatch.setattr(backfill, "TURN_SECONDS", 0.0)
    for day in (1, 2, 3, 4):
        write(tmp_path, day)
    settings = config(tmp_path)
    others: list[pipeline.IngestReport] = []

    def schedule() -> None:
        others.append(pipeline.ingest(settings, wait_seconds=30))

    waiting = threading.Thread(target=schedule)

    def progress(done: int, _total: int, _step: backfill.Step, outcome: backfill.Outcome | None) -> None:
        if outcome is not None and done == 1:
            waiting.start()
            time.sleep(0.5)  # it waits by now

    report = backfilled(tmp_path, progress=progress)
    waiting.join()
    assert worked_on(report) == ["daily 2026-01-01 loaded"]
    assert [e.status for e in others[0].exports] == ["unchanged", "loaded", "loaded", "loaded"]
    assert ids(tmp_path) == ["i1", "i2", "i3", "i4"]


def test_another_writer_is_waited_for_or_named(tmp_path: Path) -> None:
    write(tmp_path, 1)
    with lease.hold(tmp_path / "data", "ingest"), pytest.raises(lease.BusyError, match="`ingest`"):
        backfilled(tmp_path)
    assert worked_on(backfilled(tmp_path)) == ["daily 2026-01-01 loaded"]


def test_a_plan_is_cut_into_days_that_do_not_share_a_window(tmp_path: Path) -> None:
    text = DAILY + 'window = "6h"\n' + OTHER
    for day in (1, 3):
        write(tmp_path, day)
    write(tmp_path, 3, name="other")
    assert by_day(planned(tmp_path, text)) == [(at(1), at(2), 1), (at(3), at(4), 2)]
    weekly = text + 'window = "7d"\n'
    ((begin, end, windows),) = by_day(planned(tmp_path, weekly))
    assert (begin, end, windows) == (START, END, 3), (
        "a week from Thursday to Thursday, as weeks of seconds since 1970 are"
    )


def test_two_at_once_share_the_work(tmp_path: Path) -> None:
    for day in range(1, 8):
        write(tmp_path, day)
    config(tmp_path)
    with start_one(tmp_path) as one, start_one(tmp_path) as other:
        assert [p.wait(timeout=60) for p in (one, other)] == [0, 0]
    assert ids(tmp_path) == [f"i{d}" for d in range(1, 8)]
    check_balance(tmp_path)
    with opened(tmp_path / "data") as manifest:
        assert manifest.next_batch() == 8, "seven windows, seven commits"


def test_outcomes_are_plain_values_for_json(tmp_path: Path) -> None:
    from flows.cli.backfill_text import outcome_json, plan_json
    from flows.cli.terminal import _plain

    write(tmp_path, 1)
    before = planned(tmp_path)
    (outcome,) = backfilled(tmp_path).outcomes
    made = json.loads(json.dumps({"plan": plan_json(before), "outcome": outcome_json(outcome)}, default=_plain))
    assert made["outcome"]["lines"] == 1
    assert [w["to_load"] for w in made["plan"]["windows"]] == [True] + [False] * 6
    assert made["plan"]["end"] == END.isoformat()
