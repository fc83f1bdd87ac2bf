"""Times as Slurm prints them: local time without a zone, words for "no time", sometimes an offset."""

from __future__ import annotations

from datetime import UTC as PYTHON_UTC
from datetime import date, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from transforms.tables import UTC

NO_TIME = ("", "None", "Unknown", "N/A", "n/a", "NONE", "(null)", "NULL", "none", "unknown")
# Polars knows no clock changes after 2099.
_OLDEST, _NEWEST = 1990, 2090
_LAST_YEAR = 9998  # so that no zone puts a time beyond the year 9999
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of the years 1 to 9999, since 1970."""
_PLAIN_US = tuple(int(datetime(y, 1, 1, tzinfo=PYTHON_UTC).timestamp()) * 1_000_000 for y in (_OLDEST, _NEWEST + 1))
_ISO = "%Y-%m-%dT%H:%M:%S"
_NAIVE = pl.Datetime("us")
# Digits are told as such: Polars takes those of every script for `\d`, and reads only these.
_WRITTEN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"


class Times(NamedTuple):
    """Expressions over one text column of times.

    Attributes:
        instant: UTC time; the earlier one where the clock shows it twice; null where there is none.
        latest: UTC time; the later one where the clock shows it twice.
        is_ambiguous: the local time occurs twice (clock set back).
        is_nonexistent: the local time occurs never (clock set forward); `instant` is null.
        is_unreadable: the text is neither a time nor a word for "no time"; `instant` is null.
    """

    instant: pl.Expr
    latest: pl.Expr
    is_ambiguous: pl.Expr
    is_nonexistent: pl.Expr
    is_unreadable: pl.Expr


def slurm_utc(column: str, zone: str) -> Times:
    """Return expressions that read the String column `column` as times printed by Slurm.

    Read are `2025-05-04T08:00:00` (local time in `zone`), the same with a blank for the T or a fraction of a
    second, with `Z` or an offset (`+02:00`, `+0200`: an instant, whatever `zone`), and seconds since 1970
    (SLURM_TIME_FORMAT=%s). Null, empty, `None`, `Unknown` and the like are no time and not unreadable. Years before 1990
    are unreadable: Slurm is younger.

    Args:
        column: name of a String column.
        zone: IANA zone of times without an offset.

    Returns:
        Expressions of types Datetime("us", "UTC") twice and Boolean (never null) three times.
    """
    text = pl.col(column)
    text = pl.when(text.is_in(NO_TIME).not_()).then(text)
    wall = _old_as_null(text.str.to_datetime(_ISO, time_unit="us", strict=False))
    rest = pl.when(wall.is_null()).then(text.str.strip_chars())
    rest = pl.when(rest.is_in(NO_TIME).not_()).then(rest)
    wall = pl.coalesce(wall, _old_as_null(_unusual_wall(rest)))
    fixed = _old_as_null(_with_offset(rest))
    earliest, latest = _in_zone(wall, zone, "earliest"), _in_zone(wall, zone, "latest")
    return Times(
        instant=pl.coalesce(earliest, fixed),
        latest=pl.coalesce(latest, fixed),
        is_ambiguous=earliest.ne_missing(latest),
        is_nonexistent=wall.is_not_null() & earliest.is_null(),
        is_unreadable=rest.is_not_null() & wall.is_null() & fixed.is_null(),
    )


def read_times(text: pl.Series, zone: str) -> pl.DataFrame:
    """Return what `slurm_utc` says of a String series, quickly: only unusual texts and days with a clock change go its way.

    Returns:
        Columns named as the fields of `Times`, in the order of `text`.
    """
    wall = text.str.to_datetime(_ISO, time_unit="us", strict=False, cache=False)  # reading is quicker than looking up
    us = wall.to_physical()  # Python has no datetime for the year 0, which Polars reads
    is_plain = us.is_between(_PLAIN_US[0], _PLAIN_US[1]).fill_null(False)
    if not is_plain.all():
        wall = pl.DataFrame({"wall": wall}).select(pl.when(is_plain).then("wall")).to_series()
    low, high = wall.min(), wall.max()
    instant = wall.dt.replace_time_zone("UTC")
    if isinstance(low, datetime) and isinstance(high, datetime):
        years = range(low.year, high.year + 1)
        changes = [d for y in years for d in _change_days(zone, y) if low.date() <= d <= high.date()]
        if changes:
            is_plain &= wall.dt.date().is_in(changes).not_()
            instant = wall.to_frame().select(_in_zone(pl.first(), zone, "earliest")).to_series()
        else:
            instant = (wall - low.replace(tzinfo=ZoneInfo(zone)).utcoffset()).dt.replace_time_zone("UTC")
    no = pl.repeat(False, len(text), dtype=pl.Boolean, eager=True)
    columns = [instant.alias(n) for n in Times._fields[:2]] + [no.alias(n) for n in Times._fields[2:]]
    at = (is_plain.not_() & text.is_not_null()).arg_true()
    if len(at):
        unusual = pl.DataFrame({"text": text.gather(at)}).select(**slurm_utc("text", zone)._asdict())
        columns = [c.scatter(at, unusual.get_column(c.name)) for c in columns]
    return pl.DataFrame(columns)


@cache
def _change_days(zone: str, year: int) -> frozenset[date]:
    """Return the days of a year on and beside which the zone's offset changes."""
    info, day = ZoneInfo(zone), timedelta(days=1)
    now = datetime(year, 1, 1, tzinfo=PYTHON_UTC) - 2 * day
    found: list[date] = []
    before = info.utcoffset(now.astimezone(info))
    while now.year <= year:
        now += day
        after = info.utcoffset(now.astimezone(info))
        if after != before:
            found += [now.date() - day, now.date(), now.date() + day]
            before = after
    return frozenset(found)


def _unusual_wall(text: pl.Expr) -> pl.Expr:
    found = text.str.extract(rf"^({_WRITTEN})$").str.replace(" ", "T", literal=True)
    return found.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)


def _with_offset(text: pl.Expr) -> pl.Expr:
    stamp = text.str.replace(r"[Zz]$", "+0000").str.replace(r"([+-][0-9]{2}):([0-9]{2})$", "${1}${2}")
    stamp = stamp.str.extract(rf"^({_WRITTEN}[+-][0-9]{{4}})$")
    stamp = stamp.str.replace(" ", "T", literal=True)
    offset = stamp.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", time_zone="UTC", strict=False)
    epoch = text.str.extract(r"^([0-9]{9,10})$").cast(pl.Int64).mul(1_000_000).cast(_NAIVE).dt.replace_time_zone("UTC")
    return pl.coalesce(offset, epoch).cast(UTC)


def _old_as_null(time: pl.Expr) -> pl.Expr:
    return pl.when(time.dt.year().is_between(_OLDEST, _LAST_YEAR)).then(time)


def _in_zone(wall: pl.Expr, zone: str, ambiguous: str) -> pl.Expr:
    if zone == "UTC":
        return wall.dt.replace_time_zone("UTC")
    local = wall.dt.replace_time_zone(zone, ambiguous=pl.lit(ambiguous), non_existent="null")
    return local.dt.convert_time_zone("UTC")
