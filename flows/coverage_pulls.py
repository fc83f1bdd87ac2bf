"""The state of the windows that a source's command is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flows.config import Config, SourceConfig
from flows.due_windows import due, is_snapshot, not_loaded, settings_of
from flows.manifest import FAILED, Pull
from flows.windows import Window, between, floor

NOT_ASKED = "not asked for yet"
NOT_DUE = "not due yet"
BEFORE_SINCE = "before `since`"
GONE = "nobody asked in time, and the command tells only of now"
OTHER_COMMAND = "asked with another command"
OUTPUT_GONE = "what the command printed is gone and was not read"
UNREADABLE = "what the command printed could not be read"
_KEPT = re.compile(r"(\d{8}T\d{6}Z)-(\d{8}T\d{6}Z)_")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of a window from the tries to ask for it.

    Attributes:
        is_loaded: what the command printed for it was kept.
        is_failed: the last try failed, and none before succeeded.
        is_open: its end, or the delay after it, is not past.
        can_be_asked: a pull is possible now.
        reason: what else is to be said.
        pull: the last try for exactly this window.
    """

    is_loaded: bool = False
    is_failed: bool = False
    is_open: bool = False
    can_be_asked: bool = False
    reason: str = ""
    pull: Pull | None = None


def asked(
    config: Config, source: SourceConfig, pulls: Sequence[Pull], windows: Sequence[Window], now: datetime
) -> dict[Window, Asked]:
    """Return what is known of each window.

    Args:
        config: the configuration.
        source: a source with a command.
        pulls: what the manifest tells of its former tries.
        windows: windows of the source's length.
        now: UTC time.
    """
    tried = {Window(p.window_start, p.window_end): p for p in pulls}
    unloaded = set(not_loaded(windows, pulls))
    last_end = floor(now - timedelta(seconds=source.delay), source.window)
    wanted = settings_of(config, source)
    snapshot = due(source, pulls, now) if is_snapshot(source) else None
    found = {}
    for window in windows:
        one = Asked(pull=tried.get(window))
        if window.end > last_end:
            one = replace(one, is_open=True, reason=NOT_DUE)
        elif snapshot is not None:
            can = window in snapshot
            one = replace(one, can_be_asked=can, reason="" if can or window not in unloaded else GONE)
        else:
            one = replace(one, can_be_asked=True)
        if window not in unloaded:
            differs = one.pull is not None and one.pull.settings != wanted and one.can_be_asked
            one = replace(one, is_loaded=True, reason=OTHER_COMMAND if differs else "")
        elif one.pull is not None and one.pull.status == FAILED:
            one = replace(one, is_failed=True, reason="; ".join(filter(None, (one.pull.message, one.reason))))
        elif source.since is not None and window.start < floor(source.since, source.window):
            one = replace(one, can_be_asked=False, reason=BEFORE_SINCE)
        elif not one.reason:
            one = replace(one, reason=NOT_ASKED)
        found[window] = one
    return found


def windows_of(path: str, length: int) -> list[Window]:
    """Return the windows of `length` seconds that a file which keeps the output of a command tells of."""
    whole = window_of(path)
    return between(whole.start, whole.end, length) if whole else []


def window_of(path: str) -> Window | None:
    """Return the window that a file which keeps the output of a command was asked for; None = it is no such file."""
    match = _KEPT.match(Path(path).name)
    if match is None:
        return None
    start, end = (datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) for text in match.groups())
    return Window(start, end)
