"""Ingest asks for what is due and reads what was printed: each window once, whoever asks and whatever comes between."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flows import catching_up, lease, pipeline
from flows.catching_up import CatchingUp
from flows.config import Config
from flows.lease import BusyError
from flows.manifest import Pull, opened
from flows.pulling import pull, store
from tests.flows.ingest_help import check_balance
from tests.flows.pulling_help import (
    DAILY,
    NO_DELAY,
    NOON,
    WINDOW,
    config,
    days_ago,
    everything,
    home_of,
    hours,
    one,
    python,
    sacct,
    sh,
    since,
    toml,
)
from transforms import lake

if TYPE_CHECKING:
    from tests.flows.conftest import Goodput

ROOT = Path(__file__).resolve().parents[2]


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def pulls(settings: Config, name: str = "src") -> list[Pull]:
    with opened(settings.data) as manifest:
        return manifest.pulls(name)


def jobs(home: Path) -> list[str]:
    return sorted(lake.scan(home / "data/lake", "job_attempts").collect()["job_id"])


def files(home: Path) -> list[Path]:
    return sorted((home / "data/landing/src").glob("*.zst"))


def test_after_an_outage_of_five_windows_each_is_asked_for_once_oldest_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    settings, _ = one(tmp_path, sacct(log), NO_DELAY)
    first = hours(6)
    pipeline.ingest(settings, until=first + timedelta(hours=1))
    assert len(lines(log)) == 1
    report = pipeline.ingest(settings, until=NOON)
    starts = [f"{first + timedelta(hours=h):%Y-%m-%dT%H:%M:%S}" for h in range(6)]
    assert lines(log) == starts
    assert [f"{p.window_start:%Y-%m-%dT%H:%M:%S}" for p in report.pulls] == starts[1:]
    assert {p.status for p in report.pulls} == {"loaded"}
    assert report.is_complete
    assert report.changed
    assert (report.used, len(jobs(tmp_path))) == (5, 6)
    again = pipeline.ingest(settings, until=NOON)
    assert (again.pulls, again.changed, len(lines(log))) == ((), False, 6)
    check_balance(tmp_path)


def test_what_was_pulled_was_collected_when_its_command_began(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sacct(tmp_path / "log"))
    with opened(settings.data) as manifest:
        found = store(manifest, pull(settings, source, WINDOW, now=NOON + timedelta(microseconds=5)))
    pipeline.ingest(settings, until=WINDOW.end)
    with opened(settings.data) as manifest:
        (piece,) = manifest.pieces(found.path or "")
    assert piece.collected_at == NOON + timedelta(microseconds=5)
    assert piece.cluster == "c1"


def test_a_window_that_is_not_over_is_not_asked_for_even_if_a_caller_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    settings, _ = one(tmp_path, sacct(log), DAILY + since(days_ago(1)))
    report = pipeline.ingest(settings, until=datetime.now(UTC) + timedelta(days=2))
    assert len(report.pulls) == len(lines(log))
    assert all(p.window_end <= p.pulled_at for p in report.pulls)


def test_a_command_that_was_not_asked_yet_is_no_missing_file(tmp_path: Path) -> None:
    settings, _ = one(tmp_path, sh(":"), since(datetime.now(UTC) + timedelta(days=1)))
    report = pipeline.ingest(settings, until=NOON)
    assert (report.exports, report.pulls, report.is_complete) == ((), (), True)


def test_a_failed_window_is_asked_for_again_and_the_others_are_loaded(tmp_path: Path) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    bad = f"{hours(2):%Y-%m-%dT%H:%M:%S}"
    before = f"if [ {{start}} = {bad} ] && [ ! -e {gate} ]; then echo down >&2; exit 1; fi;"
    settings, _ = one(tmp_path, sacct(log, before=before), NO_DELAY + since(hours(3)))
    report = pipeline.ingest(settings, until=NOON)
    assert [p.status for p in report.pulls] == ["loaded", "failed", "loaded"]
    assert [p.message for p in report.failed_pulls] == ["`sh` ended with exit code 1: down"]
    assert not report.is_complete
    assert len(jobs(tmp_path)) == 2
    assert [p.tries for p in pipeline.ingest(settings, until=NOON).failed_pulls] == [2]
    gate.touch()
    last = pipeline.ingest(settings, until=NOON)
    assert [(p.status, p.tries) for p in last.pulls] == [("loaded", 3)]
    assert last.is_complete
    assert len(jobs(tmp_path)) == 3


def test_after_three_failures_in_a_row_a_source_waits_for_the_next_call_and_the_others_do_not(tmp_path: Path) -> None:
    down, up = tmp_path / "down", tmp_path / "up"
    settings = config(
        tmp_path,
        toml(sh(f"echo {{start}} >> {down}; exit 1"), NO_DELAY + since(hours(8)), name="down"),
        toml(sacct(up), NO_DELAY + since(hours(5)), name="up"),
    )
    report = pipeline.ingest(settings, until=NOON)
    assert (len(lines(down)), len(lines(up))) == (3, 5)
    assert list(report.notes) == [
        "down: 5 more windows are left for the next `goodput ingest`, since 3 in a row failed"
    ]
    pipeline.ingest(settings, until=NOON)
    assert [p.tries for p in pulls(settings, "down")] == [1] * 6, "those never asked for come first"


def test_one_source_that_hangs_does_not_hold_up_another(tmp_path: Path) -> None:
    log = tmp_path / "log"
    settings = config(
        tmp_path,
        toml(sh("sleep 30"), "timeout = 1", name="hangs"),
        toml(sacct(log, before=f"echo $(date +%s.%N) >> {tmp_path}/time;"), name="works"),
    )
    began = time.time()
    report = pipeline.ingest(settings, until=NOON)
    assert [p.status for p in report.pulls] == ["failed", "loaded"], "in the order of the configuration"
    assert float((tmp_path / "time").read_text()) - began < 0.9


def test_while_a_command_runs_others_may_write(tmp_path: Path) -> None:
    started = tmp_path / "started"
    settings, _ = one(tmp_path, sh(f"touch {started}; sleep 1"))
    thread = threading.Thread(target=pipeline.ingest, args=(settings,), kwargs={"until": NOON, "wait_seconds": 10})
    thread.start()
    while not started.exists():
        time.sleep(0.01)
    with lease.hold(settings.data, "test"):
        assert started.exists()
    thread.join()
    assert [p.status for p in pulls(settings)] == ["loaded"]


def test_what_was_pulled_while_another_wrote_is_recorded_later(tmp_path: Path) -> None:
    settings, _ = one(tmp_path, sacct(tmp_path / "log"), NO_DELAY + since(hours(2)))
    with lease.hold(settings.data, "test"):
        asked = CatchingUp(settings, NOON).run()
        assert (len(files(tmp_path)), pulls(settings), asked.pulls) == (2, [], ())
        with opened(settings.data) as manifest:
            asked.store(manifest)
    assert pulls(settings) == list(asked.pulls)
    assert len(asked.pulls) == 2


def test_killed_before_it_was_recorded_a_window_is_asked_for_again_and_nothing_counts_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, _ = one(tmp_path, sacct(tmp_path / "log"), NO_DELAY)
    with monkeypatch.context() as patch:
        patch.setattr(catching_up.CatchingUp, "_record", lambda *_: None)
        patch.setattr(catching_up, "store", lambda *_: None)
        pipeline.ingest(settings, until=NOON)
    assert (len(files(tmp_path)), pulls(settings)) == (1, [])
    pipeline.ingest(settings, until=NOON)
    assert (len(files(tmp_path)), len(pulls(settings)), len(jobs(tmp_path))) == (2, 1, 2)
    ids = lake.scan(tmp_path / "data/lake", "job_attempts").collect()["record_id"]
    assert len(set(ids)) == 1, "one record, whatever file says it: marts have it once"


def test_of_two_processes_that_ask_at_once_each_window_is_loaded_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    file = home_of(tmp_path, toml(sacct(log, before="sleep 0.3;"), DAILY + since(days_ago(4))))
    command = [sys.executable, "-m", "flows.cli", "ingest", "--config", str(file)]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
    said = [p.communicate(timeout=60)[0].decode() for p in both]
    assert [p.returncode for p in both] == [0, 0], said
    settings, _ = one(tmp_path, sacct(log, before="sleep 0.3;"), DAILY + since(days_ago(4)))
    found = pulls(settings)
    assert len(found) >= 4
    assert len({p.window_start for p in found}) == len(found)
    assert {p.status for p in found} == {"loaded"}
    assert len(set(jobs(tmp_path))) == len(found)
    with opened(settings.data) as manifest:
        for path in files(tmp_path):
            assert manifest.pieces(str(path)), "a second file was dropped, or was read before that could be"
    check_balance(tmp_path)


def recorded(home: Path, printed: str) -> tuple[Config, Pull]:
    """A window that is loaded, and not read yet."""
    settings, source = one(home, sh(printed))
    with opened(settings.data) as manifest:
        return settings, store(manifest, pull(settings, source, WINDOW, now=NOON))


def test_a_window_that_another_loaded_meanwhile_keeps_its_file(tmp_path: Path) -> None:
    settings, held = recorded(tmp_path, "echo a")
    with opened(settings.data) as manifest:
        second = pull(settings, settings.sources[0], WINDOW)
        assert store(manifest, second) == held
    assert [str(p) for p in files(tmp_path)] == [held.path]
    assert pulls(settings) == [held]


def test_a_second_file_that_was_read_already_stays(tmp_path: Path) -> None:
    """Its rows stand in the lake: without the file they could not be read again by a newer parser."""
    settings, _ = recorded(tmp_path, "date +%N")
    second = pull(settings, settings.sources[0], WINDOW)
    pipeline.ingest(settings, until=WINDOW.end)
    with opened(settings.data) as manifest:
        store(manifest, second)
    assert Path(second.path or "").exists()


def test_a_try_that_failed_does_not_take_the_place_of_one_that_succeeded(tmp_path: Path) -> None:
    settings, held = recorded(tmp_path, "echo a")
    failed = replace(held, status="failed", path=None, sha256=None, byte_length=None, message="down")
    with opened(settings.data) as manifest:
        for seen in (None, held):
            assert store(manifest, failed, seen) == held


def test_asked_again_on_purpose_other_output_takes_the_place_and_the_same_keeps_its_file(tmp_path: Path) -> None:
    settings, held = recorded(tmp_path, "echo a")
    with opened(settings.data) as manifest:
        again = store(manifest, pull(settings, settings.sources[0], WINDOW), held)
        assert (again.path, again.tries) == (held.path, 2)
        assert again.pulled_at > held.pulled_at
        other, source = one(tmp_path, sh("echo b"))
        third = store(manifest, pull(other, source, WINDOW), again)
        assert (third.tries, third.settings == again.settings) == (3, False)
        assert manifest.pulls("src") == [third]
    assert len(files(tmp_path)) == 2, "what was said once is not unsaid"


def test_a_wide_path_does_not_take_what_a_command_printed(tmp_path: Path) -> None:
    settings = config(
        tmp_path, '[[sources]]\npath = "**"\nnode = "n9"\n', toml(sacct(tmp_path / "log"), NO_DELAY, name="src")
    )
    report = pipeline.ingest(settings, until=NOON)
    assert {e.source for e in report.exports if "landing" in e.path} == {"slurm_sacct"}
    with opened(settings.data) as manifest:
        (path,) = files(tmp_path)
        (piece,) = manifest.pieces(str(path))
        (found,) = manifest.pulls("src")
    assert piece.collected_at == found.pulled_at


def test_the_value_of_a_secret_is_nowhere_after_an_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goodput: Goodput
) -> None:
    value = "hunter2-hunter2"
    monkeypatch.setenv("TOKEN", value)
    code = "import os, sys; sys.stderr.write('denied for ' + os.environ['TOKEN']); sys.exit(1)"
    file = home_of(tmp_path, toml(python(code), 'secrets = ["TOKEN"]'))
    said = [goodput(*words, "--config", file) for words in (["ingest"], ["ingest", "--json"], ["sources"], ["doctor"])]
    assert all("denied for ***" in ran.out + ran.err for ran in said)
    assert not any(value in ran.out + ran.err for ran in said)
    assert value.encode() not in everything(tmp_path)


def test_a_deployments_secrets_come_through_the_callable(tmp_path: Path) -> None:
    settings, _ = one(tmp_path, sh('test -n "$DB_TOKEN" || exit 1'), 'secrets = ["DB_TOKEN"]')
    assert [p.status for p in pipeline.ingest(settings, until=NOON).pulls] == ["failed"]
    assert [p.status for p in pipeline.ingest(settings, until=NOON, secrets={"DB_TOKEN": "x"}.get).pulls] == ["loaded"]


def test_a_snapshot_says_once_what_it_missed(tmp_path: Path) -> None:
    settings, _ = one(tmp_path, sh(":"), NO_DELAY)
    pipeline.ingest(settings, until=hours(4))
    report = pipeline.ingest(settings, until=NOON)
    assert len(report.pulls) == 1
    (note,) = report.notes
    assert "3 windows from" in note
    assert "tells only of now" in note
    assert pipeline.ingest(settings, until=NOON).notes == ()


def test_an_interrupted_ingest_stops_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches this process only, since commands have a session of their own."""
    settings = config(tmp_path, toml(sh(f"echo $$ > {tmp_path}/pid; exec sleep 60")))

    def interrupted(_: object) -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(catching_up, "as_completed", interrupted)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        pipeline.ingest(settings, until=NOON)
    assert time.monotonic() - began < 10
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
    assert pulls(settings) == []


def test_two_writers_at_the_end_leave_by_a_clear_error_and_lose_nothing(tmp_path: Path) -> None:
    settings, _ = one(tmp_path, sacct(tmp_path / "log"), NO_DELAY)
    with lease.hold(settings.data, "test"), suppress(BusyError):
        pipeline.ingest(settings, until=NOON)
        pytest.fail("another one was writing")
    report = pipeline.ingest(settings, until=NOON)
    assert [p.status for p in report.pulls] == ["loaded"]
    assert len(set(jobs(tmp_path))) == 1
