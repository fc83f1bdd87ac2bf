"""Kinds of value in the configuration: durations, zones, instants, run keys, paths with captures."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Annotated, Any
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BeforeValidator, Field

from flows.config_errors import did_you_mean

CAPTURES = ("cluster", "node", "job_id", "collected_at")

JOB_COLUMNS = (
    "cluster", "job_id", "job_id_raw", "array_job_id", "het_job_id", "job_name", "user", "account", "partition", "qos",
    "reservation", "comment", "gpu_type",
)  # fmt: skip
"""Columns of `job_attempts` that a run may be matched and keyed by."""

PLACEHOLDERS = ("start", "end", "start_utc", "end_utc", "start_epoch", "end_epoch")
"""What a command may contain: the limits of the window it is asked for, in the source's zone, in UTC, in seconds since 1970."""
DAY = 86400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MAX_SECONDS = 36500 * 86400
MAX_WHOLE = 2**31 - 1
MAX_THREADS = 1024
MIN_MEMORY_BYTES = 64 * 1000**2
"""Below this no build can begin."""
_MAX_DIGITS = 15  # more are out of every range
_POWERS = "KMGT"
_DURATION = re.compile(r"\s*(\d+)\s*([smhd])\s*")


def shown(value: object) -> str:
    """Return a value as TOML would write it, cut to 60 characters."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, date | time):
        text = value.isoformat()
    else:
        text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def seconds(value: object) -> int:
    """Return a duration in seconds: "90s", "45m", "24h", "7d", or a whole number of seconds.

    Raises:
        ValueError: it is neither, or negative, or longer than a hundred years.
    """
    found = value if isinstance(value, int) and not isinstance(value, bool) else -1
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        found = int(match[1][:_MAX_DIGITS]) * _UNITS[match[2]]
    if found > MAX_SECONDS:
        raise ValueError(f"{shown(value)} is too long; the longest is {MAX_SECONDS // 86400}d")
    if found >= 0:
        return found
    raise ValueError(f'{shown(value)} is no duration; write "90s", "45m", "24h", "7d" or whole seconds')


def zone(value: object) -> str:
    """Return the name of an IANA time zone.

    Raises:
        ValueError: there is none of that name.
    """
    if isinstance(value, str):
        try:
            ZoneInfo(value)
        except (ValueError, OSError, KeyError):
            pass
        else:
            return value
    hint = did_you_mean(str(value), available_timezones(), quote='"')
    raise ValueError(f"{shown(value)} is no IANA time zone" + (hint or '; write one such as "UTC" or "Europe/Berlin"'))


def moment(value: object) -> datetime:
    """Return a time as written; the zone is absent where the text has none.

    Raises:
        ValueError: it is no time.
    """
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError(f"{shown(value)} is no time; write it as 2026-05-04T13:30:00Z")


def instant(value: object) -> datetime:
    """Return a UTC time.

    Raises:
        ValueError: it is no time, or has no zone.
    """
    found = moment(value)
    if found.tzinfo is None:
        raise ValueError(f"{found.isoformat()} has no zone; end it with Z or an offset such as +02:00")
    return found.astimezone(UTC)


def job_column(name: str) -> str:
    """Return the name of a job column.

    Raises:
        ValueError: runs cannot be told apart by such a column.
    """
    if name not in JOB_COLUMNS:
        raise ValueError(f'"{name}" is no job column' + did_you_mean(name, JOB_COLUMNS, quote='"'))
    return name


def key_item(value: object) -> str:
    """Return an item of a run key: a job column, or "column:regex" whose first group is taken.

    Raises:
        ValueError: the column is unknown, or the expression is broken or has no group.
    """
    if not isinstance(value, str):
        raise ValueError(f'{shown(value)} is no run key; write "user" or "job_name:^(.*)-v[0-9]+$"')
    column, colon, pattern = value.partition(":")
    job_column(column)
    if colon:
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise ValueError(f'"{pattern}" is no regular expression: {error}') from None
        if groups == 0:
            raise ValueError(f'"{pattern}" has no group; put round brackets round the part that names the run')
    return value


def match_table(value: object) -> dict[str, str]:
    """Return globs by job column.

    Raises:
        ValueError: a column is unknown or its glob is no text.
    """
    if not isinstance(value, dict):
        raise ValueError(f'{shown(value)} is no table; write match = {{ user = "alice", job_name = "llama-*" }}')
    for name, glob in value.items():
        job_column(name)
        if not isinstance(glob, str):
            raise ValueError(f"{name} = {shown(glob)} is no text with * and ?")
    return dict(value)


def source_path(value: object) -> str:
    """Return a path or glob; `{cluster}`, `{node}`, `{job_id}` and `{collected_at}` capture from the path.

    Raises:
        ValueError: it is empty, an address, or captures something else.
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f'{shown(value)} is no path; write one such as "exports/sacct-*.txt"')
    if "://" in value:
        raise ValueError(f"{shown(value)} is an address; fetch it with a `command` such as curl, or into a file")
    for name in re.findall(r"\{([^{}]*)\}", value):
        if name not in CAPTURES:
            raise ValueError(f"a path cannot capture {{{name}}}" + did_you_mean(name, CAPTURES))
    return value


def source_name(value: object) -> str:
    """Return a name that can stand in a path and on a command line.

    Raises:
        ValueError: it is empty, longer than 60 characters, or has others than letters, digits, dot, dash and underscore.
    """
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}", value):
        return value
    raise ValueError(f'{shown(value)} is no name; write letters, digits, ".", "-" and "_", such as "sacct"')


def command(value: object) -> tuple[str, ...]:
    """Return a program and its arguments.

    Raises:
        ValueError: it is no list of texts, or empty, or has a placeholder that is not of `PLACEHOLDERS`.
    """
    if isinstance(value, str):
        raise ValueError(f'{shown(value)} is one text, and no shell reads it; write a list: ["sacct", "--allusers"]')
    words = _texts(value, text)
    if not words:
        raise ValueError("it is empty; write the program and its arguments")
    for word in words:
        for name in re.findall(r"\{(\w+)\}", word):
            if name not in PLACEHOLDERS:
                raise ValueError(f"a command has no {{{name}}}" + did_you_mean(name, PLACEHOLDERS))
    return words


def window_length(value: object) -> int:
    """Return the length of windows in seconds: a part of a day without remainder, or whole days.

    Raises:
        ValueError: it is none.
    """
    found = seconds(value)
    if found and (DAY % found == 0 or found % DAY == 0):
        return found
    raise ValueError(f'{shown(value)} does not divide a day into equal windows; write "15m", "1h", "6h", "1d" or "7d"')


def memory(value: object) -> str:
    """Return a memory limit such as "4GB".

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, str) and (
        match := re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT])(i?)B\s*", value, re.IGNORECASE)
    ):
        unit = (1024 if match[3] else 1000) ** (_POWERS.index(match[2].upper()) + 1)
        if float(match[1]) * unit < MIN_MEMORY_BYTES:
            raise ValueError(
                f"{shown(value)} is too little; a build needs 64MB at least, and some GB for large exports"
            )
        return value.strip()
    raise ValueError(f'{shown(value)} is no amount of memory; write one such as "4GB"')


def whole(value: object) -> int:
    """Return a whole number from 1 up.

    Raises:
        ValueError: it is none, or too large.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        if value > MAX_WHOLE:
            raise ValueError(f"{shown(value)} is too large; the largest is {MAX_WHOLE}")
        return value
    raise ValueError(f"{shown(value)} is no whole number above 0")


def threads(value: object) -> int:
    """Return a number of threads.

    Raises:
        ValueError: it is none, or more than any machine serves.
    """
    found = whole(value)
    if found > MAX_THREADS:
        raise ValueError(f"{shown(value)} is too large; the largest is {MAX_THREADS}")
    return found


def text(value: object) -> str:
    """Return a text that is not empty.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, str) and value:
        return value
    raise ValueError(f"{shown(value)} is no text; put it in quotes")


def delimiter(value: object) -> str:
    """Return the one character between columns.

    Raises:
        ValueError: it is longer or no text.
    """
    if isinstance(value, str) and len(value) == 1:
        return value
    raise ValueError(f'{shown(value)} is no delimiter; write one character such as "|" or "\\t"')


def _texts(value: object, item: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f'{shown(value)} is no list; write ["one", "two"]')
    return tuple(item(v) for v in value)


Duration = Annotated[int, BeforeValidator(seconds)]
Zone = Annotated[str, BeforeValidator(zone)]
Moment = Annotated[datetime, BeforeValidator(moment)]
Instant = Annotated[datetime, BeforeValidator(instant)]
Command = Annotated[tuple[str, ...], BeforeValidator(command)]
SourceName = Annotated[str, BeforeValidator(source_name)]
WindowLength = Annotated[int, BeforeValidator(window_length)]
SourcePath = Annotated[str, BeforeValidator(source_path)]
Text = Annotated[str, BeforeValidator(text)]
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda v: _texts(v, text))]
KeyItems = Annotated[tuple[str, ...], BeforeValidator(lambda v: _texts(v, key_item)), Field(min_length=1)]
Match = Annotated[dict[str, str], BeforeValidator(match_table)]
Memory = Annotated[str, BeforeValidator(memory)]
Delimiter = Annotated[str, BeforeValidator(delimiter)]
Whole = Annotated[int, BeforeValidator(whole)]
Threads = Annotated[int, BeforeValidator(threads)]
