"""Work that Ctrl-C stops. DuckDB looks at no signals while it works: it does so in a thread, and this one waits for Ctrl-C."""

from __future__ import annotations

import errno
import io
import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO, Generic, TypeVar

T = TypeVar("T")

LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 1.0
"""Ctrl-C counts as pressed again from then on: DuckDB is mostly stopped sooner, but not within one function on one huge value."""
CHUNK_BYTES = 1 << 17
_CHUNKS = 8
"""Chunks of an answer that wait to be written."""


def stoppable(interrupt: Callable[[], None], work: Callable[[], T], *, is_all: bool = False) -> T:
    """Do what may take long; Ctrl-C stops it.

    Args:
        interrupt: stops what `work` does in another thread.
        work: what to do.
        is_all: whether the program does nothing else: then Ctrl-C, pressed again, ends it where `work` does not stop.

    Raises:
        Exception: what `work` raises, also when it was stopped.
    """
    task = _Task(work)
    is_begun = False
    pressed: float | None = None
    while True:
        try:
            if not is_begun:
                task.begin()
                is_begun = True
            if task.finished.wait(LOOK_SECONDS):
                return task.result()
            if pressed is not None:
                interrupt()  # again and again: one that comes before the query has begun is lost
        except KeyboardInterrupt:
            pressed = _pressed(pressed, is_all=is_all)


def stoppable_writing(interrupt: Callable[[], None], write: Callable[[BinaryIO], None], out: BinaryIO) -> None:
    """Write what may be long and take long to `out`, from this thread: Ctrl-C ends it also while nobody reads.

    The program is to do nothing else, as `is_all` of `stoppable`.

    Args:
        interrupt: stops what `write` does in another thread.
        write: writes to the stream it is given.
        out: where that goes.

    Raises:
        KeyboardInterrupt: it was stopped.
        Exception: what `write` raises, or writing to `out`.
    """
    chunks = _Chunks()
    task = _Task(lambda: chunks.filled_by(write))
    try:
        task.begin()
        while (chunk := chunks.waiting.get()) is not None:
            _put(chunk, out)
    except BaseException:
        began = time.monotonic()
        task.drop()
        while not task.finished.is_set():
            try:
                interrupt()
                chunks.drop()
                task.finished.wait(LOOK_SECONDS)
            except KeyboardInterrupt:
                _pressed(began, is_all=True)
        raise
    task.result()


def _pressed(before: float | None, *, is_all: bool) -> float:
    """Return when Ctrl-C was first pressed; end the program, as without us, where it has waited long enough since."""
    now = time.monotonic()
    if before is None:
        return now
    if is_all and now - before > PATIENCE_SECONDS:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)  # a thread within DuckDB cannot be ended in any other way
    return before


class _Task(Generic[T]):
    """Work in a thread of its own, and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        # Not Thread.join: interrupted by Ctrl-C, Python 3.11 takes the thread for ended.
        self.finished = threading.Event()
        self._done: list[T] = []
        self._failed: list[BaseException] = []
        self._work = work
        self._taken = threading.Lock()

    def begin(self) -> None:
        """Start; again where Ctrl-C came while Python waited for the thread: only the first one works."""
        threading.Thread(target=self._run, daemon=True).start()

    def drop(self) -> None:
        """Let it be if it has not begun."""
        if self._taken.acquire(blocking=False):
            self.finished.set()

    def _run(self) -> None:
        if not self._taken.acquire(blocking=False):
            return
        try:
            self._done.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again where the user sees it
            self._failed.append(error)
        finally:
            self.finished.set()

    def result(self) -> T:
        if self._failed:
            raise self._failed[0]
        return self._done[0]


class _Chunks(io.RawIOBase):
    """A stream whose bytes wait, a few chunks of them, until another thread takes them; None ends them."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[bytes | None] = queue.Queue(_CHUNKS)

    def filled_by(self, write: Callable[[BinaryIO], None]) -> None:
        buffer = io.BufferedWriter(self, CHUNK_BYTES)
        try:
            write(buffer)
        finally:
            buffer.flush()
            self.waiting.put(None)

    def drop(self) -> None:
        """Make room for one that still writes."""
        while not self.waiting.empty():
            self.waiting.get()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        chunk = bytes(data)
        self.waiting.put(chunk)
        return len(chunk)


def _put(chunk: bytes, out: BinaryIO) -> None:
    """Write all of a chunk past any buffer: what stayed there would be waited for again when the program ends."""
    out.flush()
    raw = getattr(out, "raw", out)
    rest = memoryview(chunk)
    while rest:
        written = raw.write(rest)
        if written is None:
            raise BlockingIOError(errno.EAGAIN, "nobody reads it now")
        rest = rest[written:]
