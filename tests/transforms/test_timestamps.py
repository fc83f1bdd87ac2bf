"""Times as Slurm prints them, to UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.parsing import timestamps


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


TIMES = [
    # text, instant, latest, ambiguous, nonexistent, unreadable; zone Europe/Berlin
    ("2025-05-04T08:00:00", utc(2025, 5, 4, 6), utc(2025, 5, 4, 6), False, False, False),
    ("2025-10-26T02:30:00", utc(2025, 10, 26, 0, 30), utc(2025, 10, 26, 1, 30), True, False, False),
    ("2025-10-26T03:00:00", utc(2025, 10, 26, 2), utc(2025, 10, 26, 2), False, False, False),
    ("2025-03-30T02:30:00", None, None, False, True, False),
    ("2025-05-04T08:00:00+02:00", utc(2025, 5, 4, 6), utc(2025, 5, 4, 6), False, False, False),
    ("2025-05-04T08:00:00-0430", utc(2025, 5, 4, 12, 30), utc(2025, 5, 4, 12, 30), False, False, False),
    ("2025-10-26T02:30:00Z", utc(2025, 10, 26, 2, 30), utc(2025, 10, 26, 2, 30), False, False, False),
    (
        "2025-05-04 08:00:00.25",
        utc(2025, 5, 4, 6, 0, 0, 250_000),
        utc(2025, 5, 4, 6, 0, 0, 250_000),
        False,
        False,
        False,
    ),
    (" 2025-05-04T08:00:00 ", utc(2025, 5, 4, 6), utc(2025, 5, 4, 6), False, False, False),
    ("1746345600", utc(2025, 5, 4, 8), utc(2025, 5, 4, 8), False, False, False),
    *((word, None, None, False, False, False) for word in (None, "", "None", "Unknown", "N/A", "  ")),
    *(
        (bad, None, None, False, False, True)
        for bad in ("x", "2025-02-30T08:00:00", "1970-01-01T01:00:00", "08:00:00", "2025-05-04")
    ),
]


def frame_of(text: str | None) -> pl.DataFrame:
    return pl.DataFrame({"x": [text]}, schema={"x": pl.String})


@pytest.mark.parametrize("row", TIMES, ids=lambda row: str(row[0]))
def test_times(row: tuple[Any, ...]) -> None:
    assert frame_of(row[0]).select(**timestamps.slurm_utc("x", "Europe/Berlin")._asdict()).rows() == [row[1:]]


def test_reading_many_times_at_once_says_the_same() -> None:
    """`read_times` is the quick way: all together and each alone, it gives what `slurm_utc` gives."""
    series = pl.Series("x", [row[0] for row in TIMES], pl.String)
    assert timestamps.read_times(series, "Europe/Berlin").rows() == [row[1:] for row in TIMES]
    for position, row in enumerate(TIMES):
        assert timestamps.read_times(series[position : position + 1], "Europe/Berlin").rows() == [row[1:]]


STAMPS = st.datetimes(datetime(1985, 1, 1), datetime(2140, 1, 1)).map(lambda t: t.isoformat(timespec="seconds"))  # noqa: DTZ001
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"]
)


@given(st.lists(STAMPS, min_size=1, max_size=4), ZONES)
@settings(deadline=None)
def test_the_quick_way_is_right_in_every_zone(stamps: list[str], zone: str) -> None:
    frame = pl.DataFrame({"x": stamps})
    slow = frame.select(**timestamps.slurm_utc("x", zone)._asdict())
    assert timestamps.read_times(frame["x"], zone).equals(slow)


def test_the_loading_machines_zone_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        series = pl.Series("x", ["2025-05-04T08:00:00"])
        assert timestamps.read_times(series, "Europe/Berlin").item(0, 0) == utc(2025, 5, 4, 6)
    finally:
        monkeypatch.undo()
        time.tzset()
