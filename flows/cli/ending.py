"""End a command that was asked to by a signal as Ctrl-C ends it: programs it started are stopped, and what it wrote is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130
"""What a shell calls a program that Ctrl-C ended: 128 + SIGINT."""


class Asked:
    """Which signal, if any, asked the command to end."""

    def __init__(self) -> None:
        self.number: int | None = None

    @property
    def code(self) -> int:
        """The exit code: 128 and the number of the signal."""
        return INTERRUPTED if self.number is None else 128 + self.number

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal: the first one interrupts, others leave the ending alone that is under way."""
        if self.number is None:
            self.number = number
            raise KeyboardInterrupt


@contextmanager
def in_order() -> Iterator[Asked]:
    """Turn SIGTERM, and the SIGHUP of a terminal that is closed, into `KeyboardInterrupt`. One that is ignored (nohup) stays so."""
    asked = Asked()
    taken = []
    if threading.current_thread() is threading.main_thread():  # no other may set handlers
        taken = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, asked)
    try:
        yield asked
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
