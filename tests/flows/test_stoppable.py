"""Work that Ctrl-C stops: its answer and its errors come through, and neither DuckDB nor a pipe that nobody reads holds it up."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

import pytest

from flows.cli.stoppable import CHUNK_BYTES, PATIENCE_SECONDS, stoppable, stoppable_writing
from tests.flows.terminal_help import ROOT


class StoppedError(Exception):
    """What a query says that was interrupted."""


class Endless:
    """Work that goes on until it is interrupted, as a query does."""

    def __init__(self) -> None:
        self.is_interrupted = threading.Event()
        self.has_ended = threading.Event()

    def interrupt(self) -> None:
        self.is_interrupted.set()

    def wait(self) -> None:
        self.is_interrupted.wait(30)
        self.has_ended.set()
        raise StoppedError

    def write(self, out: BinaryIO) -> None:
        while not self.is_interrupted.is_set():
            out.write(b"x" * CHUNK_BYTES)
        self.has_ended.set()
        raise StoppedError


def never() -> None:
    raise AssertionError("nobody pressed Ctrl-C")


def pressed(seconds: float) -> None:
    """Press Ctrl-C in a moment."""
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


def failing() -> int:
    raise ValueError("refused")


def test_what_work_returns_and_raises_comes_through() -> None:
    assert stoppable(never, lambda: 5) == 5
    with pytest.raises(ValueError, match="refused"):
        stoppable(never, failing)


def test_ctrl_c_interrupts_work_and_waits_for_its_end() -> None:
    work = Endless()
    pressed(0.2)
    with pytest.raises(StoppedError):
        stoppable(work.interrupt, work.wait)
    assert work.has_ended.is_set()  # the connection is free again


def test_ctrl_c_while_python_still_starts_the_thread_interrupts_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Thread.start` waits for the thread: Ctrl-C in that moment once left the work running behind a shell that went on."""
    start = threading.Thread.start
    began: list[int] = []

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        began.append(1)
        if len(began) == 1:
            raise KeyboardInterrupt

    runs: list[int] = []
    work = Endless()

    def counted() -> None:
        runs.append(1)
        work.wait()

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(StoppedError):
        stoppable(work.interrupt, counted)
    assert runs == [1]
    assert len(began) == 2


def test_ctrl_c_before_anything_is_written_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stoppable_writing(never, lambda _out: never(), io.BytesIO())


def test_all_that_is_written_arrives_in_order() -> None:
    lines = [b"%d\n" % n for n in range(500_000)]  # many chunks more than wait at once
    out = io.BytesIO()
    stoppable_writing(never, lambda to: to.writelines(lines), out)
    assert out.getvalue() == b"".join(lines)


def test_what_was_written_before_a_failure_arrives_and_the_failure_too() -> None:
    def write(to: BinaryIO) -> None:
        to.write(b"first")
        failing()

    out = io.BytesIO()
    with pytest.raises(ValueError, match="refused"):
        stoppable_writing(never, write, out)
    assert out.getvalue() == b"first"


class Gone(io.RawIOBase):
    """A stream whose reader left."""

    def writable(self) -> bool:
        return True

    def write(self, _data: object) -> int:
        raise BrokenPipeError


def test_a_reader_who_leaves_ends_the_work() -> None:
    work = Endless()
    with pytest.raises(BrokenPipeError):
        stoppable_writing(work.interrupt, work.write, io.BufferedWriter(Gone()))
    assert work.has_ended.is_set()


def piped(use: Callable[[BinaryIO], None]) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as out:
        use(out)
    os.close(reader)


def test_ctrl_c_ends_what_waits_for_a_reader() -> None:
    """A pager that shows its first page reads no more: the pipe is full, and nothing may be left to be written at the end."""
    work = Endless()

    def write(out: BinaryIO) -> None:
        pressed(0.3)
        with pytest.raises(KeyboardInterrupt):
            stoppable_writing(work.interrupt, work.write, out)

    piped(write)  # closes it, which would wait for ever for what a buffer held
    assert work.has_ended.is_set()


DEAF = """
import sys, time
from flows.cli.stoppable import stoppable, stoppable_writing
def work(*_):
    print("begun", flush=True)
    time.sleep(60)
if sys.argv[1] == "writing":
    stoppable_writing(lambda: None, work, sys.stdout.buffer)
else:
    stoppable(lambda: None, work, is_all=sys.argv[1] == "all")
"""


@pytest.mark.parametrize(("way", "is_ended"), [("all", True), ("writing", True), ("shell", False)])
def test_ctrl_c_pressed_again_ends_a_program_whose_work_does_not_stop(way: str, is_ended: bool) -> None:
    """DuckDB hears nothing within one function on one huge value; a shell waits all the same, it has more to lose."""
    running = subprocess.Popen([sys.executable, "-c", DEAF, way], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(PATIENCE_SECONDS + 0.5)
        running.send_signal(signal.SIGINT)
        if is_ended:
            assert running.wait(5) == -signal.SIGINT  # as any program that Ctrl-C ends: 130 to a shell
        else:
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(1)
    finally:
        running.kill()
        running.communicate()
