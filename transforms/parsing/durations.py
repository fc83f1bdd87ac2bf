"""Durations and time limits as Slurm prints them: `[DD-[HH:]]MM:SS[.fraction]`."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from transforms.parsing.text import by_shape

_NO_DURATION = ("", "None", "Unknown", "N/A", "(null)")
_NO_LIMIT = ("Partition_Limit", "NOT_SET", "INVALID", *_NO_DURATION)
_CLOCK = r"^(?:(\d{1,6})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,2})(\.\d+)?$"
_USUAL = r"^(?:[0-9]{1,6}-)?[0-9][0-9]:[0-9][0-9]:[0-9][0-9]$"
_DAY_HOUR = r"^(\d{1,6})-(\d{1,2})(?::(\d{1,2}))?$"


class Reading(NamedTuple):
    """Expressions for a value and for whether the text held something that could not be read.

    Attributes:
        value: the value; null where there is none or it is unreadable.
        is_unreadable: Boolean, never null.
    """

    value: pl.Expr
    is_unreadable: pl.Expr


class LimitReading(NamedTuple):
    """Expressions for a time limit.

    Attributes:
        seconds: Int64; null = unlimited, set by the partition, or unreadable.
        is_unlimited: true, false, or null where no limit is told.
        is_unreadable: Boolean, never null.
    """

    seconds: pl.Expr
    is_unlimited: pl.Expr
    is_unreadable: pl.Expr


def seconds(column: str) -> Reading:
    """Return expressions that read the String column `column` as a duration in whole seconds (Int64).

    `10:00` is ten minutes, `1-02:03:04` a day and more; a fraction is cut off.
    """
    exact = exact_seconds(column)
    return Reading(exact.value.floor().cast(pl.Int64), exact.is_unreadable)


def add_seconds(frame: pl.DataFrame, column: str, value: str, is_unreadable: str) -> pl.DataFrame:
    """Return `frame` with what `seconds` says of `column`, quickly where the text is `[D-]HH:MM:SS`.

    Args:
        frame: rows.
        column: String column.
        value: name of the column of seconds.
        is_unreadable: name of the Boolean column.
    """
    text = pl.col(column)
    clock, days = text.str.tail(8), text.str.head(-9).cast(pl.Int64, strict=False).fill_null(0)
    hours, minutes, secs = (clock.str.slice(at, 2).cast(pl.Int64, strict=False) for at in (0, 3, 6))
    quick = {value: days * 86_400 + hours * 3_600 + minutes * 60 + secs, is_unreadable: pl.lit(False)}
    reading = seconds(column)
    full = {value: reading.value, is_unreadable: reading.is_unreadable}
    return by_shape(frame, column, text.str.contains(_USUAL), quick, full)


def exact_seconds(column: str) -> Reading:
    """Return expressions that read the String column `column` as a duration in seconds (Float64)."""
    text = _worded(pl.col(column), _NO_DURATION)
    value = _clock_seconds(text)
    return Reading(value, text.is_not_null() & value.is_null())


def whole_number(column: str) -> Reading:
    """Return expressions that read the String column `column` as a whole number (Int64), as in ElapsedRaw."""
    text = _worded(pl.col(column), _NO_DURATION)
    value = text.str.extract(r"^(\d{1,12})$").cast(pl.Int64)
    return Reading(value, text.is_not_null() & value.is_null())


def limit_seconds(column: str, *, is_minutes: bool = False) -> LimitReading:
    """Return expressions that read the String column `column` as Timelimit, or TimelimitRaw where `is_minutes`.

    `UNLIMITED` is a limit told; `Partition_Limit` and empty say nothing.
    """
    text = _worded(pl.col(column), _NO_LIMIT)
    unlimited = text.str.to_uppercase() == "UNLIMITED"
    if is_minutes:
        value = text.str.extract(r"^(\d{1,12})$").cast(pl.Int64) * 60
    else:
        value = pl.coalesce(_clock_seconds(text).floor(), _day_hour_seconds(text)).cast(pl.Int64)
    return LimitReading(value, unlimited, (text.is_not_null() & value.is_null() & unlimited.not_()).fill_null(False))


def _worded(text: pl.Expr, words: tuple[str, ...]) -> pl.Expr:
    text = text.str.strip_chars()
    return pl.when(text.is_in(words).not_()).then(text)


def _clock_seconds(text: pl.Expr) -> pl.Expr:
    part = text.str.extract_groups(_CLOCK).struct
    days, hours, minutes, secs = (part.field(str(i)).cast(pl.Int64) for i in range(1, 5))
    fraction = part.field("5").cast(pl.Float64)
    whole = days.fill_null(0) * 86_400 + hours.fill_null(0) * 3_600 + minutes * 60 + secs
    return whole + fraction.fill_null(0.0)


def _day_hour_seconds(text: pl.Expr) -> pl.Expr:
    part = text.str.extract_groups(_DAY_HOUR).struct
    days, hours, minutes = (part.field(str(i)).cast(pl.Int64) for i in range(1, 4))
    return (days * 86_400 + hours * 3_600 + minutes.fill_null(0) * 60).cast(pl.Float64)
