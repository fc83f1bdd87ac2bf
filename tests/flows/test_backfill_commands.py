"""A backfill asks commands, each window once, and may be killed while they run."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from flows import backfill, pipeline
from tests.flows.backfill_help import (
    COMMAND,
    DAILY,
    OTHER,
    PRINTS,
    asked,
    asking,
    at,
    backfilled,
    config,
    start_one,
    todo,
    told,
    worked_on,
    write,
)
from tests.flows.command_help import Command, until
from tests.flows.ingest_help import ROOT, check_balance, ids
from tests.flows.ingest_help import rows as lake_rows
from transforms import lake


def test_a_command_is_asked_for_each_window_once(tmp_path: Path) -> None:
    asking(tmp_path, PRINTS)
    report = backfilled(tmp_path, COMMAND)
    assert worked_on(report) == [f"pulled 2026-01-0{d} loaded" for d in range(1, 8)]
    assert sorted(asked(tmp_path)) == [f"2026-01-0{d}" for d in range(1, 8)]
    assert ids(tmp_path) == [f"2026-01-0{d}T00:00:00Z" for d in range(1, 8)]
    assert worked_on(backfilled(tmp_path, COMMAND)) == []


def test_a_failed_pull_is_tried_again_alone_when_asked(tmp_path: Path) -> None:
    asking(tmp_path, f'case "$1" in 2026-01-03*) echo "no connection" >&2; exit 3;; esac\n{PRINTS}')
    report = backfilled(tmp_path, COMMAND)
    assert [(str(o.window), o.status) for o in report.failed] == [("2026-01-03", "failed")]
    assert "no connection" in report.failed[0].message
    assert told(tmp_path, COMMAND)["pulled 2026-01-03"].startswith("failed: ")
    (tmp_path / "asked").unlink()
    asking(tmp_path, PRINTS)
    assert worked_on(backfilled(tmp_path, COMMAND)) == []
    assert worked_on(backfilled(tmp_path, COMMAND, reprocess="failed")) == ["pulled 2026-01-03 loaded"]
    assert asked(tmp_path) == ["2026-01-03"]
    assert len(ids(tmp_path)) == 7


def test_a_source_whose_system_is_down_is_left_alone_and_the_others_go_on(tmp_path: Path) -> None:
    asking(tmp_path, "exit 3")
    write(tmp_path, 7)
    text = COMMAND + DAILY.partition('zone = "UTC"\n')[2]
    report = backfilled(tmp_path, text, max_active=1)
    assert [o.status for o in report.outcomes if o.source == "pulled"] == ["failed"] * 3 + ["left"] * 4
    assert len(asked(tmp_path)) == 3
    assert ids(tmp_path) == ["i7"]


def test_at_most_so_many_commands_run_at_once(tmp_path: Path) -> None:
    count = 'mkdir -p running; touch "running/$1"; ls running | wc -l >> most; sleep 0.2; rm "running/$1"\n'
    asking(tmp_path, count + PRINTS)
    backfilled(tmp_path, COMMAND, max_active=3)
    most = [int(n) for n in (tmp_path / "most").read_text().split()]
    assert 1 < max(most) <= 3


def test_all_asks_again_and_the_rows_stay_the_same(tmp_path: Path) -> None:
    asking(tmp_path, PRINTS)
    backfilled(tmp_path, COMMAND)
    before = lake_rows(tmp_path)
    report = backfilled(tmp_path, COMMAND, reprocess="all")
    assert len(report.outcomes) == 7
    assert sorted(asked(tmp_path)) == sorted([f"2026-01-0{d}" for d in range(1, 8)] * 2)
    assert lake_rows(tmp_path) == before


def test_what_was_asked_ahead_is_not_missed_when_it_turns_out_to_be_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others write meanwhile the plan is made anew, and sees the files of windows that were asked ahead; those that
    hold what was known go away, which is no failure."""
    asking(tmp_path, PRINTS)
    backfilled(tmp_path, COMMAND)
    stamps = itertools.count()
    monkeypatch.setattr(backfill, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(backfill, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(backfill._Work, "_stamp_now", lambda _self: (next(stamps), 0))
    report = backfilled(tmp_path, COMMAND, reprocess="all")
    assert [str(o) for o in report.failed] == []
    assert len(report.outcomes) == 7
    assert len(list((tmp_path / "data/landing/pulled").iterdir())) == 7


def set_aside(home: Path) -> int:
    return len(list((home / "data/quarantine/landing/pulled").glob("*.zst")))


def test_asked_again_what_a_command_prints_takes_the_place_of_what_it_printed(tmp_path: Path) -> None:
    """Who mends a wrong filter in a command, and has all windows asked again, is rid of the wrong rows: also after an ingest."""
    asking(tmp_path, PRINTS.replace('"$1" "$1"', '"wrong-$1" "$1"'))
    backfilled(tmp_path, COMMAND)
    asking(tmp_path, PRINTS)
    report = backfilled(tmp_path, COMMAND, reprocess="all")
    assert not report.failed
    assert ids(tmp_path) == [f"2026-01-0{d}T00:00:00Z" for d in range(1, 8)]
    assert "7 files with former outputs of commands were replaced" in report.notes[-1]
    assert set_aside(tmp_path) == 7
    check_balance(tmp_path)
    pipeline.ingest(config(tmp_path, COMMAND), until=at(8))
    assert len(ids(tmp_path)) == 7
    assert backfilled(tmp_path, COMMAND, reprocess="all").notes == [], "the same output again replaces nothing"


def test_what_was_replaced_can_be_put_back(tmp_path: Path) -> None:
    asking(tmp_path, PRINTS.replace('"$1" "$1"', '"former-$1" "$1"'))
    backfilled(tmp_path, COMMAND)
    asking(tmp_path, PRINTS)
    backfilled(tmp_path, COMMAND, reprocess="all")
    for path in (tmp_path / "data/quarantine/landing/pulled").iterdir():
        path.rename(tmp_path / "data/landing/pulled" / path.name)
    pipeline.ingest(config(tmp_path, COMMAND), until=at(8))
    assert len(ids(tmp_path)) == 14


def test_a_command_that_now_tells_nothing_takes_nothing_away(tmp_path: Path) -> None:
    """A system that keeps a year answers with nothing for what is older: what it told in time is the only copy."""
    asking(tmp_path, PRINTS)
    backfilled(tmp_path, COMMAND)
    asking(tmp_path, f'case "$1" in 2026-01-0[1-5]*) ;; *) {PRINTS};; esac')
    report = backfilled(tmp_path, COMMAND, reprocess="all")
    assert not report.failed
    assert len(ids(tmp_path)) == 7
    assert "5 files with former outputs of commands, and their rows, stay" in report.notes[-1]
    assert set_aside(tmp_path) == 0


def test_output_that_cannot_be_read_takes_nothing_away(tmp_path: Path) -> None:
    asking(tmp_path, PRINTS)
    backfilled(tmp_path, COMMAND)
    asking(tmp_path, "echo 'no such cluster'")
    backfilled(tmp_path, COMMAND, reprocess="all")
    assert len(ids(tmp_path)) == 7
    assert set_aside(tmp_path) == 0


def test_another_command_takes_the_place_of_the_former(tmp_path: Path) -> None:
    asking(tmp_path, f'case "$2" in -v) {PRINTS};; *) {PRINTS.replace(chr(34) + "$1" + chr(34), "wrong", 1)};; esac')
    backfilled(tmp_path, COMMAND)
    backfilled(tmp_path, COMMAND.replace('"{start_utc}"', '"{start_utc}", "-v"'))
    assert ids(tmp_path) == [f"2026-01-0{d}T00:00:00Z" for d in range(1, 8)]


def test_another_command_is_asked_for_what_the_former_printed(tmp_path: Path) -> None:
    asking(tmp_path, PRINTS)
    backfilled(tmp_path, COMMAND)
    assert len(todo(tmp_path, COMMAND.replace('"{start_utc}"', '"{start_utc}", "-v"'))) == 7


def test_an_open_window_of_a_command_is_not_asked_for(tmp_path: Path) -> None:
    asking(tmp_path, PRINTS)
    report = backfilled(tmp_path, COMMAND + 'delay = "1h"\n', now=at(3, 0) + timedelta(minutes=30))
    assert worked_on(report) == ["pulled 2026-01-01 loaded"]


@pytest.mark.slow
def test_killed_at_any_moment_the_rest_is_done_by_the_next(tmp_path: Path) -> None:
    """Killed (SIGKILL) at eight moments one after the other, in work or in waiting for a command, then left in peace."""
    text = COMMAND + DAILY.partition('zone = "UTC"\n')[2] + OTHER
    asking(tmp_path, f"sleep 0.1; {PRINTS}")
    for day in range(1, 8):
        write(tmp_path, day, *range(day, 40))
        write(tmp_path, day, *range(day * 2, 30), name="other")
    config(tmp_path, text)
    for number in range(8):
        with start_one(tmp_path) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.15 * number)
            process.kill()
    report = backfilled(tmp_path, text, reprocess="failed")
    assert not report.failed
    assert todo(tmp_path, text, "failed") == []
    calm = tmp_path / "calm"
    asking(calm, PRINTS)
    (calm / "exports").mkdir()
    for path in (tmp_path / "exports").iterdir():
        (calm / "exports" / path.name).write_bytes(path.read_bytes())
    backfilled(calm, text)
    assert distinct(tmp_path) == distinct(calm)
    check_balance(tmp_path)


def distinct(home: Path) -> set[tuple[object, ...]]:
    """Records, without when they were collected: a command is asked when it is asked, and once more if it was killed."""
    frame = lake.scan(home / "data/lake", "annotations").drop("export_id", "collected_at").unique().collect()
    return {tuple(tuple(v) if isinstance(v, list) else v for v in row) for row in frame.rows()}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_commands_that_run_and_loses_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Ctrl-C, `kill`, a terminal that is closed: what a command started would else run on with nobody to limit its time."""
    asking(tmp_path, f'case "$1" in 2026-01-0[1-3]*) {PRINTS};; *) echo $$ >> pids; exec sleep 60;; esac')
    config(tmp_path, COMMAND)
    command = [sys.executable, "-m", "flows.cli", "backfill", "--here", "--start", "2026-01-01", "--end", "2026-01-07"]
    with subprocess.Popen(
        [*command, "--config", str(tmp_path / "goodput.toml")], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        text=True,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 60
        while not (tmp_path / "pids").exists() or len((tmp_path / "pids").read_text().splitlines()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.0)
        process.send_signal(number)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == code
    assert "run the command again to go on" in said
    for pid in (tmp_path / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists(), "nothing of it runs on"
    asking(tmp_path, PRINTS)
    (tmp_path / "asked").unlink()
    assert len(backfilled(tmp_path, COMMAND, reprocess="failed").outcomes) == 4
    assert sorted(asked(tmp_path)) == [f"2026-01-0{d}" for d in (4, 5, 6, 7)]


@pytest.mark.parametrize("word", ["ingest", "run"])
def test_sigterm_ends_what_other_commands_ask_too(tmp_path: Path, word: str) -> None:
    asking(tmp_path, "trap '' TERM; echo $$ >> pids; sleep 60")  # one that does not end when it is asked to
    config(tmp_path, COMMAND)
    command = Command(tmp_path, word)
    until(lambda: (tmp_path / "pids").exists() and bool((tmp_path / "pids").read_text().strip()))
    command.process.send_signal(signal.SIGTERM)
    command.process.send_signal(signal.SIGTERM)  # the second leaves the ending alone that is under way
    assert command.ended() == 143
    assert "stopped; nothing published is touched" in command.output
    (pid,) = (tmp_path / "pids").read_text().split()
    assert not Path(f"/proc/{pid}").exists(), "nothing of it runs on"
