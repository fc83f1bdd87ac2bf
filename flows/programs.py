"""Run a program without a shell: what it prints handed on as it comes, its time limited, it and its children stopped."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

STDERR_BYTES = 16 << 10
"""What is kept of the end of standard error."""
_BLOCK = 64 << 10  # what a pipe holds
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 2.0


class StoppedError(Exception):
    """The caller no longer wants the program; it was stopped."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        code: its exit code, negative for the number of a signal; None = it ran too long and was stopped.
        stderr: the end of what it said on standard error.
        is_cut: standard error began before that.
    """

    code: int | None
    stderr: bytes
    is_cut: bool


def run(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    write: Callable[[bytes], object],
    stop: Event,
) -> Ended:
    """Run a program to its end, with an empty standard input, in a session of its own (so that it can ask nobody anything).

    It has ended once it has and nothing it started holds its standard output any more: what comes late counts too.

    Args:
        words: program and arguments.
        folder: where it runs; a program named with a relative path is looked for from there.
        environment: all variables it gets.
        timeout: seconds after which it is stopped, with everything it started.
        write: takes each block of standard output.
        stop: once set, the program is stopped.

    Raises:
        OSError: it cannot be started.
        ValueError: a word or variable cannot be given to a program.
        StoppedError: `stop` was set.
    """
    deadline = time.monotonic() + timeout
    process = subprocess.Popen(
        list(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
    )
    reading = _Reading(process, write)
    is_stopped = True
    try:
        while not reading.is_done:
            left = deadline - time.monotonic()
            if stop.is_set():
                raise StoppedError
            if left <= 0:
                return Ended(None, *reading.stderr())
            reading.go_on(min(left, _POLL_SECONDS))
        is_stopped = False
    finally:
        if is_stopped:
            _stop(process)
        code = process.wait()
        reading.close()
    return Ended(code, *reading.stderr())


class _Reading:
    """The two pipes of a program."""

    def __init__(self, process: subprocess.Popen[bytes], write: Callable[[bytes], object]) -> None:
        self._process, self._write = process, write
        self._pipes = [p for p in (process.stdout, process.stderr) if p is not None]
        self._out, self._err = (p.fileno() for p in self._pipes)
        self._open = {self._out, self._err}
        self._selector = selectors.DefaultSelector()
        for pipe in self._open:
            self._selector.register(pipe, selectors.EVENT_READ)
        self._tail, self._is_cut = bytearray(), False

    @property
    def is_done(self) -> bool:
        return self._out not in self._open and _has_ended(self._process)

    def go_on(self, seconds: float) -> None:
        """Read what is there, waiting for it at most so long."""
        if not self._open:
            time.sleep(min(seconds, 0.01))
            return
        for key, _ in self._selector.select(seconds):
            self._read(key.fd)

    def _read(self, pipe: int) -> None:
        block = os.read(pipe, _BLOCK)
        if not block:
            self._selector.unregister(pipe)
            self._open.discard(pipe)
        elif pipe == self._out:
            self._write(block)
        else:
            self._tail += block
            self._is_cut |= len(self._tail) > STDERR_BYTES
            del self._tail[:-STDERR_BYTES]

    def stderr(self) -> tuple[bytes, bool]:
        """Return the end of standard error, and whether that is not all of it."""
        return bytes(self._tail), self._is_cut

    def close(self) -> None:
        """Read what standard error still holds, whoever else may hold it open, and close the pipes."""
        while self._err in self._open and any(key.fd == self._err for key, _ in self._selector.select(0)):
            self._read(self._err)
        self._selector.close()
        for pipe in self._pipes:
            pipe.close()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether a program has ended, leaving it to be waited for: until then its number is no other process's."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a program with everything in its group: asked first, then made to."""
    _signal(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and not _has_ended(process):
        time.sleep(0.02)
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # nobody is left, or it now belongs to another user (sudo)
        return
