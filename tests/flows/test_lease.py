"""One writer at a time, named to those who come second, and gone with its process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows import lease
from flows.lease import BusyError

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys, time
from pathlib import Path
from flows import lease
with lease.hold(Path(sys.argv[1]), "ingest"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def holding(data: Path, seconds: float = 60) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(data), str(seconds)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def ended(process: subprocess.Popen[str], how: signal.Signals = signal.SIGKILL) -> None:
    process.send_signal(how)
    process.communicate(timeout=30)


def test_the_second_writer_is_told_who_holds_it(tmp_path: Path) -> None:
    process = holding(tmp_path)
    try:
        with pytest.raises(BusyError, match=rf"process {process.pid} on \S+ \(`ingest`, since 20\d\d-.*wait until"):
            lease.hold(tmp_path, "build").__enter__()
    finally:
        ended(process)


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    process = holding(tmp_path)
    ended(process)
    with lease.hold(tmp_path, "build"):
        held = lease.holder(tmp_path)
    assert held is not None
    assert held.command == "build"


def test_waiting_is_bounded_and_pays_off(tmp_path: Path) -> None:
    process = holding(tmp_path, seconds=0.7)
    began = time.monotonic()
    with pytest.raises(BusyError), lease.hold(tmp_path, "build", wait_seconds=0.1):
        pass
    assert time.monotonic() - began < 0.6
    with lease.hold(tmp_path, "build", wait_seconds=30):
        assert time.monotonic() - began < 25
    process.communicate(timeout=30)


def test_a_wait_is_told_once_after_a_second_with_the_holder(tmp_path: Path) -> None:
    process = holding(tmp_path, seconds=2.5)
    told: list[lease.Holder] = []
    with lease.hold(tmp_path, "build", wait_seconds=60, on_wait=told.append):
        pass
    assert [(h.pid, h.command) for h in told] == [(process.pid, "ingest")]
    process.communicate(timeout=30)
    with lease.hold(tmp_path, "build", wait_seconds=60, on_wait=told.append):
        pass
    assert len(told) == 1, "nobody was waited for"


def test_two_calls_in_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    with lease.hold(tmp_path, "ingest"), pytest.raises(BusyError), lease.hold(tmp_path, "build"):
        pass
    with lease.hold(tmp_path, "build"):
        pass


def test_what_stands_in_the_lock_file_is_only_for_the_message(tmp_path: Path) -> None:
    (tmp_path / lease.FILE_NAME).write_text("rubbish " * 100)
    assert lease.holder(tmp_path) is None
    with lease.hold(tmp_path, "ingest"):
        assert lease.holder(tmp_path) is not None
