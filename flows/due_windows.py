"""Which windows the command of a source is to be asked for, and with what words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from flows.config import Config, SourceConfig
from flows.manifest import FAILED, LOADED, Pull
from flows.windows import Window, between, floor

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_LOCAL = ("start", "end")
_STEP = timedelta(minutes=15)


class PullError(Exception):
    """A command cannot be asked, or did not do its work; the message says why."""


def due(source: SourceConfig, pulls: Sequence[Pull], until: datetime) -> list[Window]:
    """Return the windows that a source's command is to be asked for, oldest first.

    That is: every window that ended at least `delay` before `until` and was not loaded, from `since` on (else from the first
    that was ever asked for; else only the last one). A command that tells only of now is asked for the last one.

    Args:
        source: a source with a command; one without has none.
        pulls: what the manifest tells of its former tries.
        until: UTC time.
    """
    asked = _ended(source, pulls, until)
    return not_loaded(asked[-1:] if is_snapshot(source) else asked, pulls)


def gone(source: SourceConfig, pulls: Sequence[Pull], until: datetime) -> list[Window]:
    """Return the windows that nobody asked for in time, and that a command which tells only of now cannot tell of any more."""
    return not_loaded(_ended(source, pulls, until)[:-1], pulls) if is_snapshot(source) else []


def is_snapshot(source: SourceConfig) -> bool:
    """Tell whether a command tells only of now: nothing in it stands for the limits of a window."""
    return not any(_PLACEHOLDER.search(word) for word in source.command)


def _ended(source: SourceConfig, pulls: Sequence[Pull], until: datetime) -> list[Window]:
    if not source.command:
        return []
    last = floor(until - timedelta(seconds=source.delay), source.window)
    first = min((p.window_start for p in pulls), default=last - timedelta(seconds=source.window))
    return between(source.since or first, last, source.window)


def not_loaded(windows: Sequence[Window], pulls: Sequence[Pull]) -> list[Window]:
    """Return the windows that loaded ones, perhaps of another length, do not hold as a whole."""
    stretches: list[Window] = []
    for one in sorted(Window(p.window_start, p.window_end) for p in pulls if p.status == LOADED):
        if stretches and one.start <= stretches[-1].end:
            stretches[-1] = Window(stretches[-1].start, max(one.end, stretches[-1].end))
        else:
            stretches.append(one)
    left, found = iter(stretches), list[Window]()
    stretch = next(left, None)
    for window in windows:
        while stretch and stretch.end < window.end:
            stretch = next(left, None)
        if stretch is None or stretch.start > window.start:
            found.append(window)
    return found


def zone_of(config: Config, source: SourceConfig) -> str | None:
    """Return the IANA zone in which a command is told times: its source's, else its cluster's; None = neither is set."""
    cluster = source.cluster or config.only_cluster
    return source.zone or (config.zones().get(cluster) if cluster else None)


def settings_of(config: Config, source: SourceConfig) -> str:
    """Return a hash of what the output of a command depends on; a pull with another one was made with another command."""
    words = " ".join(source.command)
    zone = zone_of(config, source) if any(f"{{{name}}}" in words for name in _LOCAL) else None
    fixed = (source.command, zone, sorted(source.environment.items()), sorted(source.secrets))
    return hashlib.sha256(repr(fixed).encode()).hexdigest()[:16]


def words(config: Config, source: SourceConfig, window: Window) -> list[str]:
    """Return program and arguments for one window.

    `{start}` and `{end}` are local times without offset, as Slurm wants them. Where the clock shows such a time twice,
    they are moved outwards to one that it shows once: rather a little too much than something missing.

    Raises:
        PullError: a local time is wanted and no zone is set.
    """
    text = {}
    for name, moment, away in (("start", window.start, -_STEP), ("end", window.end, _STEP)):
        text[f"{name}_utc"] = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
        text[f"{name}_epoch"] = str(int(moment.timestamp()))
        if any(f"{{{name}}}" in word for word in source.command):
            text[name] = _local(moment, zone_of(config, source), away)
    return [_PLACEHOLDER.sub(lambda found: text[found[1]], word) for word in source.command]


def _local(moment: datetime, zone: str | None, away: timedelta) -> str:
    if zone is None:
        raise PullError(
            "{start} and {end} are local times, and no zone is set: set `zone` on the source or its cluster, or use {start_utc}"
        )
    local = moment.astimezone(ZoneInfo(zone))
    while local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
        moment += away
        local = moment.astimezone(ZoneInfo(zone))
    return f"{local:%Y-%m-%dT%H:%M:%S}"


def failing(source: SourceConfig, pulls: Sequence[Pull], until: datetime) -> list[Pull]:
    """Return the failed tries of windows that are to be asked for again, oldest first."""
    wanted = set(due(source, pulls, until))
    return [p for p in pulls if p.status == FAILED and Window(p.window_start, p.window_end) in wanted]


def upcoming(source: SourceConfig, until: datetime) -> Window:
    """Return the next window that is not due yet: it ends, with its `delay`, after `until`."""
    start = floor(until - timedelta(seconds=source.delay), source.window)
    return Window(start, start + timedelta(seconds=source.window))


def is_overdue(source: SourceConfig, pulls: Sequence[Pull], now: datetime) -> bool:
    """Tell whether a command has brought nothing for more than two windows and the delay; one never asked for has not."""
    loaded = max((p.window_end for p in pulls if p.status == LOADED), default=None)
    last = loaded or min((p.window_end for p in pulls), default=None)
    return last is not None and (now - last).total_seconds() > 2 * source.window + source.delay
