"""Times of a system event log as the versions of ipmitool print them.

Until 1.8.18 it prints `05/04/2025 | 11:02:07`, month first, without a zone. Later versions follow the locale and add a zone
word: `05/04/25 | 11:02:07 UTC`, `04.05.2025 | 11:02:07 CEST`, `05/04/2025 | 12:30:00 PM CEST`. Which of two numbers is the day is
then told only where one of them is above 12, where both are the same, or where the 12-hour clock shows an American locale.
Before a controller knows the time it counts the seconds since its own start. Sources: ipmitool lib/ipmi_sel.c, lib/ipmi_time.c.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from transforms.outcome import Context
from transforms.parsing.log_stamps import EPOCH, MICROSECOND, StampError, StampReader

RESET_YEAR = 2000
"""Clocks that lost their battery start in this year or before."""

PRE_INIT = "Pre-Init"
PRE_INIT_ALONE = "Pre-Init Time-stamp"
UNSPECIFIED = "Unspecified"
_NUMERIC = re.compile(r"(\d{1,4})([/.-])(\d{1,2})\2(\d{2}|\d{4})", re.ASCII)
_UPTIME = re.compile(r"S\+ ?(\d\d)/(\d{3})", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?: ?([AP]M))?(?: (\S{1,8}))?", re.IGNORECASE | re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,10}")
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)?", re.ASCII)
# Zone words that mean one offset wherever they are used, in hours. CST, IST, BST and the like are not among them.
_OFFSETS = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9,
    "HKT": 8, "EDT": -4, "CDT": -5, "MDT": -6, "PDT": -7, "PST": -8, "AKST": -9, "AKDT": -8, "HST": -10, "NZST": 12, "NZDT": 13,
}  # fmt: skip
_LOCAL_MIDNIGHT = 12


class SelTime(NamedTuple):
    """When a record was written.

    Attributes:
        us: UTC, microseconds since 1970; None where the record does not tell it.
        monotonic_us: microseconds since the controller's start, where told instead.
        flags: what had to be assumed, or `time_missing`, with `value_unreadable` where a time is printed but names no instant.
    """

    us: int | None
    monotonic_us: int | None
    flags: tuple[str, ...]


MISSING = SelTime(None, None, ("time_missing",))
_UNREADABLE = SelTime(None, None, ("time_missing", "value_unreadable"))


def has_date(text: str) -> bool:
    """Tell whether a column of a record holds a date, or a word for none."""
    return text in {PRE_INIT, PRE_INIT_ALONE, UNSPECIFIED} or bool(_NUMERIC.fullmatch(text) or _UPTIME.fullmatch(text))


class SelTimes:
    """Reads the times of one export.

    Args:
        context: tells the zone of times without a zone word.
    """

    def __init__(self, context: Context) -> None:
        self._stamps = StampReader(context)
        self._zone = context.zone or context.zones.get(context.cluster or "")
        self.read = lru_cache(4096)(self._read)

    def _read(self, date: str, clock: str) -> SelTime:
        """Return the time that date and clock name.

        Raises:
            MissingSettingError: neither the record nor the configuration names a zone.
        """
        if date in {PRE_INIT, PRE_INIT_ALONE, UNSPECIFIED}:
            return SelTime(None, int(clock) * 1_000_000, ("time_missing",)) if _SECONDS.fullmatch(clock) else MISSING
        found = _CLOCK.fullmatch(clock)
        if found is None or not (0 <= int(found[1]) < 24):
            return _UNREADABLE
        hour = int(found[1])
        if found[4]:
            hour = hour % _LOCAL_MIDNIGHT + _LOCAL_MIDNIGHT * (found[4].upper() == "PM")
        rest = (hour, int(found[2]), int(found[3]))
        if uptime := _UPTIME.fullmatch(date):
            return _since_start(int(uptime[1]), int(uptime[2]), *rest)
        walls = _readings(date, rest, zone_word=found[5], is_american=bool(found[4]))
        if len(walls) != 1:
            return _UNREADABLE
        [wall] = walls
        if wall.year <= RESET_YEAR:
            return MISSING
        return self._instant(wall, found[5])

    def _instant(self, wall: datetime, word: str | None) -> SelTime:
        if word is None:
            try:
                us, flags = self._stamps.iso(wall.isoformat(" "))
            except StampError:
                return _UNREADABLE
            return SelTime(us, None, flags)
        offset = self._offset(wall, word)
        if offset is None:
            return _UNREADABLE
        try:
            return SelTime((wall.replace(tzinfo=UTC) - offset - EPOCH) // MICROSECOND, None, ())
        except OverflowError:  # a zone puts it beyond the year 9999
            return _UNREADABLE

    def _offset(self, wall: datetime, word: str) -> timedelta | None:
        """Return what a zone word means: first in the configured zone, as many words have several meanings."""
        if self._zone:
            for fold in (0, 1):
                local = wall.replace(tzinfo=ZoneInfo(self._zone), fold=fold)
                if local.tzname() == word:
                    return local.utcoffset()
        if found := _OFFSET.fullmatch(word):
            minutes = int(found[2]) * 60 + int(found[3] or 0)
            return timedelta(minutes=minutes if found[1] == "+" else -minutes)
        return timedelta(hours=_OFFSETS[word]) if word in _OFFSETS else None


def _since_start(year: int, day: int, hour: int, minute: int, second: int) -> SelTime:
    """Return a time that counts from the controller's start as if that were the first of January 1970."""
    try:
        passed = datetime(1900 + year, 1, 1, hour, minute, second, tzinfo=UTC) + timedelta(days=day - 1) - EPOCH
    except ValueError:
        return _UNREADABLE
    return SelTime(None, passed // MICROSECOND, ("time_missing",))


def _readings(date: str, clock: tuple[int, int, int], *, zone_word: str | None, is_american: bool) -> set[datetime]:
    """Return every instant on the wall that the date can mean."""
    found = _NUMERIC.fullmatch(date)
    if found is None:
        return set()
    first, mark, second, third = int(found[1]), found[2], int(found[3]), int(found[4])
    if len(found[1]) == 4:
        orders = [(first, second, third)]
    elif len(found[1]) > 2:
        return set()
    else:
        year = third if len(found[4]) == 4 else 2000 + third
        by_month, by_day = (year, first, second), (year, second, first)
        is_month_first = mark == "/" and len(found[4]) == 4 and (is_american or zone_word is None)
        orders = [by_day] if mark == "." else [by_month] if is_month_first else [by_month, by_day]
    walls = set()
    for year, month, day in orders:
        try:
            walls.add(datetime(year, month, day, *clock))  # noqa: DTZ001 - wall clock
        except ValueError:
            continue
    return walls
