"""What commands were asked for, as every command of the command line shows it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from flows.cli import facts
from flows.cli.terminal import CommandError, shown
from flows.cli.words import counted, spoken

if TYPE_CHECKING:
    from flows.config import SourceConfig
    from flows.manifest import Pull
    from flows.reports import ExportReport
    from flows.windows import Window

SHOWN_CHARACTERS = 80
MAX_NAMED = 5
AGAIN = "    nothing of this window was read; once the command works, the next `goodput ingest` asks for it again"


@dataclass(frozen=True, slots=True)
class Asked:
    """A source with a command, and what is known of it.

    Attributes:
        source: the source.
        last: the last try; None = it was not asked yet.
        loaded: the try that loaded its newest window; None = none did.
        due: windows to ask for now, oldest first.
        upcoming: the window that is due next, once it is over.
        failing: failed tries of windows that are due.
        is_overdue: it has brought nothing for two windows and the delay.
    """

    source: SourceConfig
    last: Pull | None
    loaded: Pull | None
    due: list[Window]
    upcoming: Window
    failing: list[Pull]
    is_overdue: bool


def asked(settings: facts.Config) -> list[Asked]:
    """Return every source with a command.

    Raises:
        CommandError: the manifest cannot be used.
    """
    from flows import due_windows, manifest

    now, found = datetime.now(UTC), []
    sources = [s for s in settings.sources if s.command]
    if not sources:
        return []
    try:
        with manifest.opened_to_read(settings.data) as opened:
            known = {s.name: opened.pulls(s.name) if opened else [] for s in sources}
    except manifest.ManifestError as error:
        raise CommandError(str(error)) from None
    for source in sources:
        pulls = known[source.name]
        loaded = [p for p in pulls if p.status == manifest.LOADED]
        found.append(
            Asked(
                source,
                max(pulls, key=lambda p: p.pulled_at, default=None),
                loaded[-1] if loaded else None,
                due_windows.due(source, pulls, now),
                due_windows.upcoming(source, now),
                due_windows.failing(source, pulls, now),
                due_windows.is_overdue(source, pulls, now),
            )
        )
    return found


def words(source: SourceConfig) -> str:
    """Return a command as it would be typed, cut."""
    text = shlex.join(source.command)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


def window_of(pull: Pull) -> str:
    """Return the window of a try as text."""
    from flows.windows import Window

    return str(Window(pull.window_start, pull.window_end))


def failed(pull: Pull) -> str:
    """Return why a window could not be loaded, and what comes next."""
    return f"{pull.source} {window_of(pull)}: {pull.message}\n{AGAIN}"


def failures(tries: Iterable[Pull]) -> list[str]:
    """Return why windows could not be loaded, those of a source that failed alike in one."""
    alike: dict[tuple[str, str | None], list[Pull]] = {}
    for pull in tries:
        alike.setdefault((pull.source, pull.message), []).append(pull)
    found = []
    for first, *others in alike.values():
        same = ", ".join(window_of(p) for p in others[:MAX_NAMED])
        hidden = f" and {len(others) - MAX_NAMED:,} more" if len(others) > MAX_NAMED else ""
        more = f"\n    the same for {counted(len(others), 'other window')}: {same}{hidden}" if others else ""
        found.append(f"{first.source} {window_of(first)}: {first.message}{more}\n{AGAIN}")
    return found


def problems(settings: facts.Config) -> list[str]:
    """Return the windows that commands failed for and that are still to be loaded, the newest of each source."""
    found = []
    for one in asked(settings):
        if one.failing:
            more = f"    and {counted(len(one.failing) - 1, 'window')} before it" if len(one.failing) > 1 else ""
            found.append("\n".join(filter(None, (failed(one.failing[-1]), more))))
    return found


def overdue(settings: facts.Config) -> list[str]:
    """Return the sources whose command has brought nothing for long."""
    return [f"{one.source.name}: {late(one)}; {step(one)}" for one in asked(settings) if one.is_overdue]


def late(one: Asked) -> str:
    """Return how long a command has brought nothing."""
    if one.loaded is None:
        return f"nothing was loaded yet, and {counted(len(one.due), 'window')} are due".replace(
            "1 window are", "1 window is"
        )
    age = spoken((datetime.now(UTC) - one.loaded.window_end).total_seconds())
    return f"its last loaded window ended {age} ago, and one is due every {spoken(one.source.window)}"


def step(one: Asked) -> str:
    """Return what to do about a command that is overdue."""
    if one.failing:
        return "`goodput check` says why it fails"
    return "`goodput ingest` asks for what is due; best on a schedule"


def lines(one: Asked) -> Iterator[str]:
    """Yield what `goodput sources` says of a command."""
    last = one.last
    if last is None:
        yield "not asked yet"
    elif last.status == "failed":
        tries = counted(last.tries, "try", "tries")
        yield f"last asked {shown(last.pulled_at)} UTC for {window_of(last)}: failed ({tries}): {last.message}"
    else:
        size = counted(last.byte_length or 0, "byte")
        yield f"last asked {shown(last.pulled_at)} UTC for {window_of(last)}: loaded, {size}"
    if one.due:
        until = f", {counted(len(one.due), 'window')} until {one.due[-1].end:%Y-%m-%dT%H:%M:%SZ}"
        yield f"due now: {one.due[0]}{until if len(one.due) > 1 else ''}"
    else:
        when = one.upcoming.end + timedelta(seconds=one.source.delay)
        yield f"due next: {one.upcoming}, at {shown(when)} UTC"
    if one.is_overdue:
        yield f"overdue: {late(one)}"


def as_json(one: Asked) -> facts.Row:
    """Return plain values."""
    names = ("window_start", "window_end", "status", "pulled_at", "tries", "path", "byte_length", "message")
    return {
        "command": list(one.source.command),
        "window_seconds": one.source.window,
        "last_pull": {name: getattr(one.last, name) for name in names} if one.last else None,
        "last_loaded_until": one.loaded.window_end if one.loaded else None,
        "due": len(one.due),
        "next_due": {"start": (w := (one.due or [one.upcoming])[0]).start, "end": w.end},
        "failing": len(one.failing),
        "is_overdue": one.is_overdue,
    }


def unreadable(exports: Iterable[ExportReport]) -> str | None:
    """Return what asks commands again that printed what cannot be read; None = none of these files holds such output."""
    from flows.coverage_pulls import window_of

    windows = {window for export in exports if (window := window_of(export.path))}
    if not windows:
        return None
    start, end = min(w.start for w in windows), max(w.end for w in windows)
    limits = f"--start {start:%Y-%m-%dT%H:%M:%SZ} --end {end:%Y-%m-%dT%H:%M:%SZ}"
    return (
        f"what commands printed for {counted(len(windows), 'window')} could not be read; once they work, "
        f"`goodput backfill {limits} --reprocess failed` asks again"
    )
