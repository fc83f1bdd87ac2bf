"""Periods on the command line: `--start` and `--end`."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.terminal import CommandError

MAX_WINDOWS = 1_000_000
_DAY = re.compile(r"\s*\d{4}-?\d\d-?\d\d\s*")

SourceOption = Annotated[
    tuple[str, ...], Parameter(name="--source", help="Name of a source; may be given several times. All if not given.")
]


def period(start: str, end: str | None) -> tuple[datetime, datetime]:
    """Return a period in UTC, its end excluded: a day given as the end is in it as a whole, no end is now.

    Raises:
        CommandError: one is no time, or the end is not after the start (exit 2).
    """
    first = facts.moment(start)
    last = datetime.now(UTC) if end is None else facts.moment(end)
    if end is not None and _DAY.fullmatch(end):
        try:
            last += timedelta(days=1)
        except OverflowError:
            raise CommandError(f"--end {end}: there is no day after it; write a nearer one", 2) from None
    if last <= first:
        until = f"now, {last:%Y-%m-%dT%H:%M:%SZ}" if end is None else end
        raise CommandError(f"--end {until} is not after --start {start}", 2)
    return first, last


def check_sources(settings: facts.Config, sources: Collection[str]) -> None:
    """Check that there are sources of these names.

    Raises:
        CommandError: a name is unknown, or there are no sources at all (exit 2).
    """
    from flows.coverage import UnknownSourceError, selected

    if not settings.sources:
        raise CommandError(
            "no exports are configured: add [[sources]] with a path, or let `goodput init PATHS...` write the file", 2
        )
    try:
        selected(settings, sources)
    except UnknownSourceError as error:
        raise CommandError(str(error), 2) from None


def check(settings: facts.Config, sources: Collection[str], start: datetime, end: datetime) -> None:
    """Check that there are sources of these names, and not too many windows.

    Raises:
        CommandError: a name is unknown, or the period is too long (exit 2).
    """
    from flows.coverage import selected

    check_sources(settings, sources)
    lengths = [timedelta(seconds=s.window) for s in selected(settings, sources)]

    def windows(until: datetime) -> int:
        return sum((until - start) // length for length in lengths)

    if (number := windows(end)) > MAX_WINDOWS:
        is_past = windows(min(end, datetime.now(UTC))) > MAX_WINDOWS
        other = "a later --start" if is_past else "an earlier --end, as this one is long after now"
        raise CommandError(f"that period has {number:,} windows; write {other}, or give a --source", 2)
