"""Stamps at the edges of the calendar: a time, or an error that says why there is none; never a number without a date."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from transforms.outcome import Context
from transforms.parsing.log_stamps import Instant, StampError, StampReader
from transforms.parsing.sel_times import SelTimes
from transforms.parsing.timestamps import FIRST_US, LAST_US

CONTEXT = Context(datetime(2025, 5, 5, tzinfo=UTC), cluster="c1", zone="UTC")


@pytest.mark.parametrize("text", ["9" * 30, "9" * 5000, "253402300800", "-62135596801", "99999999999999"])
def test_seconds_outside_the_calendar_are_no_time(text: str) -> None:
    with pytest.raises(StampError, match="outside the years 1 to 9999"):
        StampReader(CONTEXT).unix(text)


def test_the_first_and_the_last_second_are_times() -> None:
    reader = StampReader(CONTEXT)
    assert reader.unix("-62135596800") == Instant(FIRST_US)
    assert reader.unix("253402300799.999999") == Instant(LAST_US)


@pytest.mark.parametrize(
    ("date", "clock"),
    [
        ("12/31/9999", "23:59:59 PST"),
        ("12/31/9999", "23:59:59 UTC-12:00"),
        ("Pre-Init", "9" * 5000),
        ("Pre-Init", "٣"),
        ("05/04/2025", "1٣:00:00"),
    ],
)
def test_a_controllers_clock_that_cannot_be_is_no_time(date: str, clock: str) -> None:
    read = SelTimes(CONTEXT).read(date, clock)
    assert (read.us, read.monotonic_us) == (None, None)
    assert "time_missing" in read.flags
