"""Date the lines that print no time: from the last stamped line, and the steps' own times since.

What is kept is little: the last stamp, the time and number of the last step. A step ends its own seconds times the steps since
the last logged one after that one, and not before the last stamped line. Time in which a checkpoint was saved is in no step's own
time, and is added where a timer tells it.

The identity of a line without a stamp cannot hold the time worked out here: two copies cut at different places may work out
different ones. It holds the last stamp and the last step after it instead, which any copy that begins before that stamp agrees
on. A copy that begins after it knows no time: its records are others, are flagged `time_missing` and enter no ledger.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_STEPS = 100_000
LATEST = 253_402_300_799_999_999
"""The last microsecond of the year 9999: a time beyond it, added up from garbled ones, is none."""


class Dated(NamedTuple):
    """Time of a line in microseconds since 1970, None = not known; and what its identity holds instead of a stamp."""

    us: int | None
    identity: str


class Clock:
    """Follows the lines of one export in order."""

    def __init__(self) -> None:
        self._stamp: int | None = None
        self._now: int | None = None
        self._step: int | None = None
        self._step_at: int | None = None
        self._last_step: int | None = None

    def stamped(self, us: int) -> None:
        """See a line with a stamp."""
        self._stamp = self._now = us
        self._last_step = None

    def started(self, *, is_process: bool) -> None:
        """See a process begin, or (False) be about to make its first step."""
        self._step_at = None
        if is_process:  # which says nothing of how long after the last line that was
            self._step, self._now = 0, None

    def counted_from(self, step: int) -> None:
        """See that the next step is the one after `step`."""
        self._step, self._step_at = step, None

    def paused(self, seconds: float) -> None:
        """See time told that no step's own time holds."""
        us = round(seconds * 1_000_000)
        if self._now is not None:
            self._now = _possible(self._now + us)
        if self._step_at is not None:
            self._step_at = _possible(self._step_at + us)

    def step(self, step: int | None, seconds: float | None, *, is_stamped: bool) -> Dated:
        """See the line of a step, and return its time; `stamped` was called before where the line has a stamp."""
        if not is_stamped and self._now is not None:
            steps = 1 if step is None or self._step is None else step - self._step
            took = round((seconds or 0.0) * 1_000_000) * (steps if 0 < steps <= MAX_STEPS else 1)
            began = self._now if self._step_at is None else self._step_at
            self._now = _possible(max(self._now, began + took))
        self._step, self._step_at, self._last_step = step, self._now, step
        return self.line()

    def line(self) -> Dated:
        """Return the time of a line without a stamp."""
        return Dated(self._now, f"~{self._stamp or ''}~{'' if self._last_step is None else self._last_step}")


def _possible(us: int) -> int | None:
    return us if us <= LATEST else None
