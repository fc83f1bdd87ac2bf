"""`goodput status --coverage`: a calendar with the state of every source, a letter for each day or week."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from flows.cli import facts, periods
from flows.cli.tables import say_table
from flows.cli.terminal import clean, note, say, say_json, title

if TYPE_CHECKING:
    from flows.coverage import State, Survey

LETTERS = {"failed": "F", "missing": "M", "stale": "S", "open": "o", "done": ".", "none": "-"}
"""A letter for each state, the worst first; what needs nothing is small."""
MEANINGS = {
    "failed": "a file or command failed",
    "missing": "not loaded yet",
    "stale": "to be loaded again",
    "open": "not over yet",
    "done": "loaded",
    "none": "no file",
}
_STYLES = {"F": "bold red", "M": "yellow", "S": "magenta", "o": "cyan", ".": "green", "-": "dim"}
LONG_DAYS = 190
"""A longer period has a letter for each week."""
SHOWN_DAYS = 92
"""Days shown where no start is given."""
MAX_LISTED = 20
_LONGEST_NAME = 28
_PLAIN_WIDTH = 100


def say_coverage(
    settings: facts.Config, start: str | None, end: str | None, sources: tuple[str, ...], *, json: bool
) -> int:
    """Print the calendar."""
    periods.check_sources(settings, sources)
    now = datetime.now(UTC)
    limits = periods.period(start, end) if start else None
    states, shown = _states(settings, sources, limits, now)
    if json:
        say_json({"start": shown[0], "end": shown[1], "windows": [_plain(s) for s in states]})
        return 0
    title(f"Coverage from {shown[0]:%Y-%m-%d} to {shown[1] - timedelta(microseconds=1):%Y-%m-%d}, days in UTC")
    weeks = (shown[1] - shown[0]).days > LONG_DAYS
    rows = by_column(states, days=7 if weeks else 1)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PLAIN_WIDTH
    for line in calendar(rows, columns(shown[0], shown[1], days=7 if weeks else 1), width):
        _say_coloured(line)
    _say_legend(states, weeks=weeks)
    _say_bad(states)
    if not start:
        note("another period: `goodput status --coverage --start 2026-05-01 --end 2026-05-31`")
    return 0


def _states(
    settings: facts.Config, sources: tuple[str, ...], limits: tuple[datetime, datetime] | None, now: datetime
) -> tuple[list[State], tuple[datetime, datetime]]:
    """Return the states in the period that was asked for, else in the last months that hold anything."""
    from flows.coverage import Survey
    from flows.manifest import opened_to_read

    with facts.expected_errors(), opened_to_read(settings.data) as manifest:
        survey = Survey(settings, manifest, sources)
        chosen = limits or _latest(settings, survey, sources, now)
        periods.check(settings, sources, *chosen)
        return survey.states(*chosen, now), chosen


def _latest(
    settings: facts.Config, survey: Survey, sources: tuple[str, ...], now: datetime
) -> tuple[datetime, datetime]:
    """Return the last months of what there is; until now where a command is asked, since it may lag behind."""
    has_command = any(s.command and (not sources or s.name in sources) for s in settings.sources)
    first, last = survey.extent() or (now - timedelta(days=1), now)
    last = max(last, now) if has_command else last
    return max(first, last - timedelta(days=SHOWN_DAYS)), last


def by_column(states: Sequence[State], *, days: int) -> dict[str, dict[date, str]]:
    """Return for each source the worst state of each day, or of each week, named by its first day."""
    worst = {state: rank for rank, state in enumerate(LETTERS)}
    rows: dict[str, dict[date, str]] = {}
    for state in states:
        row = rows.setdefault(state.source, {})
        last = (state.window.end - timedelta(microseconds=1)).date()
        day = state.window.start.date()
        while day <= last:
            column = first_day(day, days)
            if column not in row or worst[state.state] < worst[row[column]]:
                row[column] = state.state
            day += timedelta(days=1)
    return rows


def first_day(day: date, days: int) -> date:
    """Return the first day of the column that a day is in: the Monday where a column is a week."""
    return day if days == 1 else day - timedelta(days=day.weekday())


def columns(start: datetime, end: datetime, *, days: int) -> list[date]:
    """Return the columns of a period, oldest first."""
    day, last = first_day(start.date(), days), (end - timedelta(microseconds=1)).date()
    found = []
    while day <= last:
        found.append(day)
        day += timedelta(days=days)
    return found


def calendar(rows: dict[str, dict[date, str]], shown: Sequence[date], width: int) -> Iterator[str]:
    """Yield the lines of a calendar that fits into `width` characters: blocks of months, side by side where there is room."""
    is_weekly = len(shown) > 1 and (shown[1] - shown[0]).days == 7
    names = {name: clean(name)[:_LONGEST_NAME] for name in rows}
    margin = max((len(n) for n in names.values()), default=0) + 2
    for block in _blocks(shown, max(width - margin - 1, 7), is_weekly=is_weekly):
        for head in _heads(block, is_weekly=is_weekly):
            yield (" " * margin + head).rstrip()
        for name, row in rows.items():
            letters = "".join(" " if d is None else LETTERS.get(row.get(d, ""), " ") for d in block)
            yield (names[name].ljust(margin) + letters).rstrip()
        yield ""


def _blocks(shown: Sequence[date], room: int, *, is_weekly: bool) -> Iterator[list[date | None]]:
    """Yield the columns of each block; None is a gap between months, or between years of weeks."""
    groups: list[list[date]] = []
    for day in shown:
        is_new = not groups or (day.year, 0 if is_weekly else day.month) != (
            groups[-1][0].year, 0 if is_weekly else groups[-1][0].month
        )  # fmt: skip
        if is_new or len(groups[-1]) >= room:
            groups.append([])
        groups[-1].append(day)
    block: list[date | None] = []
    label, last = (5 if is_weekly else 8), 0
    for group in groups:
        gap = max(1, label - last) if block else 0  # the name of the month before needs its room
        if block and len(block) + gap + len(group) > room:
            yield block
            block, gap = [], 0
        block += [*[None] * gap, *group]
        last = len(group)
    if block:
        yield block


def _heads(block: Sequence[date | None], *, is_weekly: bool) -> Iterator[str]:
    """Yield the lines above a block: the month or year where it begins, then the day's number in two digits, or the month's."""
    title_line = [" "] * (len(block) + 8)
    for i, day in enumerate(block):
        if day is not None and (i == 0 or block[i - 1] is None):
            name = f"{day:%Y}" if is_weekly else f"{day:%Y-%m}"
            if all(c == " " for c in title_line[i : i + len(name)]):
                title_line[i : i + len(name)] = list(name)
    yield "".join(title_line)
    if is_weekly:
        months = ["" if d is None else f"{d.month:02d}" for d in block]
        changed = [m if i == 0 or m != months[i - 1] else "" for i, m in enumerate(months)]
        yield "".join(m[:1] or " " for m in changed)
        yield "".join(m[1:] or " " for m in changed)
        return
    yield "".join(
        " " if d is None else str(d.day // 10) if d.day % 10 == 0 or _is_first(block, d) else " " for d in block
    )
    yield "".join(" " if d is None else str(d.day % 10) for d in block)


def _is_first(block: Sequence[date | None], day: date) -> bool:
    at = block.index(day)
    return day.day >= 10 and (at == 0 or block[at - 1] is None)


def _say_coloured(line: str) -> None:
    if not sys.stdout.isatty():
        say(line)
        return
    from rich.console import Console
    from rich.text import Text

    text = Text(line)
    name, _, letters = line.rpartition("  ")
    if letters and set(letters) <= {*LETTERS.values(), " "} and name:
        for i, letter in enumerate(letters, len(line) - len(letters)):
            if letter in _STYLES:
                text.stylize(_STYLES[letter], i, i + 1)
    Console(markup=False, highlight=False, emoji=False, soft_wrap=True).print(text)


def _say_legend(states: Sequence[State], *, weeks: bool) -> None:
    counts = Counter(s.state for s in states)
    parts = [f"{LETTERS[s]} {s} ({MEANINGS[s]}): {counts[s]:,}" for s in LETTERS if counts[s]]
    say(f"a letter is a {'week' if weeks else 'day'}, the worst of its windows. Windows in each state:")
    for part in parts:
        _say_coloured(f"  {part}")


def _say_bad(states: Sequence[State]) -> None:
    """Print why windows are not done, those that failed first, and what to do."""
    bad = [s for s in states if s.state in ("failed", "missing", "stale")]
    if not bad:
        return
    bad.sort(key=lambda s: list(LETTERS).index(s.state))
    title("Not loaded")
    rows = [{"window": str(s.window), "source": s.source, "state": s.state, "why": s.reason} for s in bad[:MAX_LISTED]]
    say_table(rows, ("window", "source", "state", "why"), narrow=(("why", 16),))
    if len(bad) > MAX_LISTED:
        say(f"and {len(bad) - MAX_LISTED:,} more; --json lists all")
    start, end = min(s.window.start for s in bad), max(s.window.end for s in bad)
    again = " --reprocess failed" if any(s.state == "failed" for s in bad) else ""
    note(f"to load them: `goodput backfill --start {start:%Y-%m-%dT%H:%M:%SZ} --end {end:%Y-%m-%dT%H:%M:%SZ}{again}`")


def _plain(state: State) -> dict[str, object]:
    return {
        "source": state.source,
        "start": state.window.start,
        "end": state.window.end,
        "state": state.state,
        "reason": state.reason,
        "files": len({f.path for f in state.files}),
    }
