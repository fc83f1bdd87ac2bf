"""Read the time stamps of log lines: with or without zone, with or without year.

Stamps with an offset are taken as such; others are local times of the configured zone. A stamp without a year gets the
latest year that puts it at or before the collection time (one day of clock skew is allowed).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from transforms.outcome import Context
from transforms.parsing.timestamps import FIRST_US, LAST_US

SKEW = timedelta(days=1)
OLD = timedelta(days=180)
WIDEST_OFFSET = timedelta(hours=14)
CACHE = 1 << 12
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LONGEST_UNIX = 20
LEAP_SPAN = 8  # 1896 and 1904, 2096 and 2104: the longest wait between two 29ths of February

MONTHS = {m: i + 1 for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())}

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|z|[+-]\d\d:?\d\d)?", re.ASCII)
_YEARLESS = re.compile(
    r"([A-Z][a-z]{2}) {0,2}(\d{1,2}) (?:(\d{4}) )?(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?", re.ASCII
)
_CTIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})", re.ASCII)


class StampError(ValueError):
    """The stamp names no instant; the message says why."""


class Instant(NamedTuple):
    """A UTC time in microseconds since 1970, and the flags that say what was assumed to get it."""

    us: int
    flags: tuple[str, ...] = ()


def _micros(digits: str | None) -> int:
    return int(((digits or "") + "000000")[:6])


def _since_epoch(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND


def _offset(text: str) -> tzinfo:
    if text in {"Z", "z"}:
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    if minutes >= 24 * 60:
        raise StampError(f"offset {text} is none")
    return timezone(timedelta(minutes=minutes if text[0] == "+" else -minutes))


def _clock(*parts: int, tz: tzinfo | None = None) -> datetime:
    """Return a datetime; a leap second is the last microsecond before it, as a log must stay in order."""
    year, month, day, hour, minute, second, micro = parts
    if second == 60:
        second, micro = 59, 999_999
    try:
        return datetime(year, month, day, hour, minute, second, micro, tzinfo=tz)
    except ValueError as error:
        raise StampError(str(error)) from error


class StampReader:
    """Reads stamps of one export.

    Args:
        ctx: tells the collection time and, when first needed, the zone.

    Every method takes the stamp as text and returns an Instant.

    Raises (every method):
        StampError: the stamp is no date, or a local time that the zone's clocks skipped.
        MissingSettingError: the stamp has no zone and none is configured.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._tz: ZoneInfo | None = None
        cached: Callable[[Callable[[str], Instant]], Callable[[str], Instant]] = lru_cache(CACHE)
        self.iso = cached(self._iso)
        self.yearless = cached(self._yearless)
        self.ctime = cached(self._ctime)
        self.unix = cached(self._unix)

    def _zone(self) -> ZoneInfo:
        if self._tz is None:
            self._tz = ZoneInfo(self._ctx.zone_of(self._ctx.cluster))
        return self._tz

    def _local(self, wall: datetime, flags: tuple[str, ...] = ()) -> Instant:
        """Return the instant of a naive local time; where clocks were set back the earlier one, flagged."""
        zone = self._zone()
        first = wall.replace(tzinfo=zone, fold=0)
        second = wall.replace(tzinfo=zone, fold=1)
        try:
            at = first.astimezone(UTC)
            if first.utcoffset() == second.utcoffset():
                return Instant(_since_epoch(at), flags)
            if at.astimezone(zone).replace(tzinfo=None) != wall:
                raise StampError(f"local time {wall.isoformat(' ')} does not exist in {zone.key}")
        except OverflowError as error:
            raise StampError(str(error)) from error
        return Instant(_since_epoch(at), (*flags, "time_ambiguous"))

    def _iso(self, text: str) -> Instant:
        found = _ISO.fullmatch(text)
        if found is None:
            raise StampError("no ISO 8601 time")
        *date, fraction, offset = found.groups()
        tz = _offset(offset) if offset else None
        wall = _clock(*map(int, date), _micros(fraction), tz=tz)
        if tz is None:
            return self._local(wall)
        try:
            return Instant(_since_epoch(wall.astimezone(UTC)))
        except OverflowError as error:
            raise StampError(str(error)) from error

    def _ctime(self, text: str) -> Instant:
        found = _CTIME.fullmatch(text)
        if found is None or found[1] not in MONTHS:
            raise StampError("no date as ctime() prints it")
        month, day, hour, minute, second, year = found.groups()
        return self._local(_clock(int(year), MONTHS[month], int(day), int(hour), int(minute), int(second), 0))

    def _unix(self, text: str) -> Instant:
        seconds, _, fraction = text.partition(".")
        us = int(seconds) * 1_000_000 + _micros(fraction) if len(seconds) < LONGEST_UNIX else LAST_US + 1
        if not FIRST_US <= us <= LAST_US:
            raise StampError("it is outside the years 1 to 9999")
        return Instant(us)

    def _yearless(self, text: str) -> Instant:
        found = _YEARLESS.fullmatch(text)
        if found is None or found[1] not in MONTHS:
            raise StampError("no date as syslog prints it")
        month, day, year, hour, minute, second, fraction = found.groups()
        rest = (MONTHS[month], int(day), int(hour), int(minute), int(second or 0), _micros(fraction))
        if year:
            return self._local(_clock(int(year), *rest))
        return self._latest(rest)

    def _latest(self, rest: tuple[int, ...]) -> Instant:
        """Return the latest instant that a date without a year can mean."""
        limit = self._ctx.collected_at + SKEW
        for year in range(limit.year + 1, limit.year - LEAP_SPAN - 1, -1):
            try:
                wall = _clock(year, *rest)
            except StampError:  # 29 February
                continue
            if wall.replace(tzinfo=UTC) > limit + WIDEST_OFFSET:
                continue
            found = self._local(wall, ("year_inferred",))
            if found.us <= _since_epoch(limit):
                is_old = found.us < _since_epoch(self._ctx.collected_at - OLD)
                return Instant(found.us, (*found.flags, "year_old") if is_old else found.flags)
        raise StampError("no year has this date")
