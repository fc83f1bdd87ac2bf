"""Windows of time: what coverage, backfill and pulls count in. All times are UTC; windows of one length lie end to end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, order=True, slots=True)
class Window:
    """A stretch of time in UTC. An export collected at `end` still belongs to it: it tells of the time before."""

    start: datetime
    end: datetime

    def __str__(self) -> str:
        if self.start.time() == self.end.time() == datetime.min.time():
            days = (self.end - self.start).days
            last = self.end - timedelta(days=1)
            return f"{self.start:%Y-%m-%d}" if days == 1 else f"{self.start:%Y-%m-%d} to {last:%Y-%m-%d}"
        return f"{self.start:%Y-%m-%dT%H:%M:%SZ}/{self.end:%Y-%m-%dT%H:%M:%SZ}"


def floor(moment: datetime, length: int) -> datetime:
    """Return the last limit of a window of `length` seconds that is not after `moment`."""
    return _EPOCH + (moment - _EPOCH) // timedelta(seconds=length) * timedelta(seconds=length)


def holding(moment: datetime, length: int) -> Window:
    """Return the window of `length` seconds that an export collected at `moment` belongs to."""
    start = floor(moment - timedelta(microseconds=1), length)
    return Window(start, start + timedelta(seconds=length))


def between(start: datetime, end: datetime, length: int) -> list[Window]:
    """Return the windows of `length` seconds that lie in [start, end) at least in part, oldest first."""
    step, begin, found = timedelta(seconds=length), floor(start, length), list[Window]()
    while begin < end:
        found.append(Window(begin, begin + step))
        begin += step
    return found
