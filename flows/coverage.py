"""The state of every source and window, derived from the manifest and the files on disk; it is stored nowhere.

Files are looked at (size, modification time), never opened: 100,000 of them take seconds.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from flows.config import Config, SourceConfig
from flows.config_errors import did_you_mean
from flows.contexts import Contexts, is_time_known, known_format, settings
from flows.coverage_pulls import OUTPUT_GONE, UNREADABLE, Asked, asked, window_of, windows_of
from flows.ingesting import Job, jobs
from flows.landing import BadStampError, expression
from flows.manifest import FAILED, LOADED, UNKNOWN_FORMAT, FileState, Manifest, Piece, Pull
from flows.pieces import is_fresh
from flows.windows import Window, between, holding

DONE, MISSING, STALE, OPEN, NONE = "done", "missing", "stale", "open", "none"
STATES = (FAILED, MISSING, STALE, OPEN, DONE, NONE)
"""Every state, the worst first."""

NOT_READ = "not read yet"
OTHER_CODE = "read with other code or settings"
CHANGED = "the file changed"
LOST = "rows were lost"
NO_FILE = "no file"
STILL_OPEN = "the window is not over"


class UnknownSourceError(Exception):
    """No source has that name; the message says which was probably meant."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a window holds of one file.

    Attributes:
        path: the file, as the manifest writes it.
        window: the window.
        state: done, missing, stale or failed.
        reason: why it is not done.
        job: what to give to the ingester; None = the file is gone.
    """

    path: str
    window: Window
    state: str
    reason: str = ""
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The state of a window of a source.

    Attributes:
        source: name of the source.
        window: the window.
        state: one of `STATES`.
        reason: why it is in it; empty where nothing is to be said.
        files: the files of the window.
        needs_pull: the source's command has to be asked, or asked again.
        can_pull: the source has a command, and it can be asked for this window now.
        pull: the last try to ask it for exactly this window.
    """

    source: str
    window: Window
    state: str
    reason: str = ""
    files: tuple[Held, ...] = ()
    needs_pull: bool = False
    can_pull: bool = False
    pull: Pull | None = None


def coverage(
    config: Config,
    manifest: Manifest | None,
    start: datetime,
    end: datetime,
    now: datetime,
    sources: Collection[str] = (),
) -> list[State]:
    """Return the state of each window that lies in [start, end) at least in part, oldest first, sources in their order.

    Args:
        config: the configuration.
        manifest: the open manifest; None = nothing was read yet.
        start: UTC time.
        end: UTC time.
        now: UTC time; a window that ends later is open.
        sources: names; empty = all.

    Raises:
        UnknownSourceError: there is no source of such a name.
    """
    return Survey(config, manifest, sources).states(start, end, now)


class Survey:
    """What there is of every source: files on disk, what the manifest knows of them, and what commands were asked for.

    Args:
        config: the configuration.
        manifest: the open manifest; None = nothing was read yet.
        sources: names; empty = all.

    Raises:
        UnknownSourceError: there is no source of such a name.
    """

    def __init__(self, config: Config, manifest: Manifest | None, sources: Collection[str] = ()) -> None:
        self._config, self._chosen = config, selected(config, sources)
        self._held: dict[tuple[str, Window], list[Held]] = defaultdict(list)
        for source, file in _Files(config, self._chosen).held(manifest):
            self._held[source.name, file.window].append(file)
        self._pulls = {s.name: manifest.pulls(s.name) for s in self._chosen if s.command} if manifest else {}

    def extent(self) -> tuple[datetime, datetime] | None:
        """Return the begin of the first window that holds anything, and the end of the last; None where none does."""
        windows = [w for _, w in self._held]
        windows += [Window(p.window_start, p.window_end) for pulls in self._pulls.values() for p in pulls]
        return (min(w.start for w in windows), max(w.end for w in windows)) if windows else None

    def states(self, start: datetime, end: datetime, now: datetime) -> list[State]:
        """Return the state of each window, as `coverage` does."""
        states = list[State]()
        for source in self._chosen:
            windows = between(start, end, source.window)
            files = {w: self._held.get((source.name, w), []) for w in windows}
            if source.command:
                known = asked(self._config, source, self._pulls.get(source.name, []), windows, now)
                states += [_pulled(source, w, files[w], a) for w, a in known.items()]
            else:
                states += [_state(source.name, w, files[w], now) for w in windows]
        order = {source.name: i for i, source in enumerate(self._chosen)}
        return sorted(states, key=lambda s: (s.window.end, order[s.source]))


def selected(config: Config, names: Collection[str]) -> list[SourceConfig]:
    """Return the sources with these names, all where there are none, in the configuration's order.

    Raises:
        UnknownSourceError: there is no source of such a name.
    """
    known = [s.name for s in config.sources]
    for name in names:
        if name not in known:
            raise UnknownSourceError(f'no source is called "{name}"' + did_you_mean(name, known, quote='"'))
    return [s for s in config.sources if not names or s.name in names]


class _Files:
    """Finds what each window holds of each file."""

    def __init__(self, config: Config, chosen: Iterable[SourceConfig]) -> None:
        self._contexts = Contexts(config)
        self._sources = config.sources
        self._chosen = {s.name for s in chosen}
        found, _ = jobs(config)
        self._jobs = {j.found.name: j for j in found if j.source.name and not j.found.is_folder}
        self._patterns = [(expression(s.path), s) for s in config.sources]

    def held(self, manifest: Manifest | None) -> Iterator[tuple[SourceConfig, Held]]:
        """Yield every file of the chosen sources, once for each window that it belongs to."""
        waiting = dict(self._jobs)
        if manifest is not None:
            states = manifest.files()
            for path, pieces in manifest.by_file():
                job = waiting.pop(path, None)
                if job is None:
                    yield from self._gone(path, pieces)
                elif job.source.name in self._chosen:
                    yield from ((job.source, h) for h in self._on_disk(job, pieces, states.get(path)))
        for job in waiting.values():
            if job.source.name in self._chosen:
                yield from ((job.source, h) for h in self._on_disk(job, [], None))

    def _gone(self, path: str, pieces: Sequence[Piece]) -> Iterator[tuple[SourceConfig, Held]]:
        """Yield what was read of a file that is no longer there: its rows stay, so its windows are done."""
        source = next((s for pattern, s in self._patterns if pattern.fullmatch(path)), None)
        if source is None or source.name not in self._chosen:
            return
        for window, of_window in _by_window(path, pieces, source).items():
            if any(p.is_lost for p in of_window):
                yield source, Held(path, window, FAILED, f"{LOST}, and the file is gone: restore it")
            elif any(p.status == LOADED for p in of_window):
                yield source, Held(path, window, DONE)

    def _on_disk(self, job: Job, pieces: Sequence[Piece], known: FileState | None) -> Iterator[Held]:
        """Yield the windows of a file that is there.

        Where neither configuration nor path tell when it was collected, what was read of it stays in the window of its
        time, and what was not yet read belongs to the window that holds the file's modification time.
        """
        name, source, captures = job.found.name, job.source, job.found.captures
        try:
            stat = job.found.path.stat()
        except OSError as error:
            stat, problem = os.stat_result((0,) * 10), f"cannot be read: {error.strerror}"
        else:
            problem = job.found.problem or ""
        modified = datetime.fromtimestamp(min(max(stat.st_mtime, 0), _LAST_SECOND), UTC)
        try:
            context = self._contexts.of(source, captures, stat.st_mtime)
        except BadStampError as error:
            problem = problem or str(error)
        if problem:
            yield Held(name, holding(modified, source.window), FAILED, problem, job)
            return
        current = [p for p in pieces if p.is_current]
        is_same = known == FileState.of(name, stat)
        time_known = is_time_known(source, captures)
        parser = known_format(source, current)
        wanted = settings(parser, context, is_time_known=time_known) if parser else ""
        past = [p for p in pieces if not p.is_current and p.status == LOADED]
        windows = _by_window(name, [*current, *past], source)
        unread_in = [holding(context.collected_at, source.window)]
        if source.command:
            unread_in = windows_of(name, source.window)
        elif time_known:
            windows = {holding(context.collected_at, source.window): [*current, *past]}
        found = {window: _judged(of_window, wanted) for window, of_window in windows.items()}
        if not is_same and all(p.status == LOADED for p in current):
            unread = (STALE, CHANGED) if current or past else (MISSING, NOT_READ)
            found |= dict.fromkeys(unread_in, unread)
        if any(_has_changed(p, stat, source) for p in current):  # what failed is not what is there now
            found = {w: (STALE, CHANGED) if one[0] == FAILED else one for w, one in found.items()}
        for window, (state, reason) in found.items():
            yield Held(name, window, state, reason, job)


_LAST_SECOND = 253_402_300_799.0
_CLOCK_SECONDS = 0.001  # more than is lost where a time is kept with microseconds


def _has_changed(failed: Piece, stat: os.stat_result, source: SourceConfig) -> bool:
    """Tell whether a file that no parser read was written since: by its size, and its time where the piece keeps that."""
    if failed.status == LOADED or failed.sha256 is not None:
        return False
    modified = min(max(stat.st_mtime, 0), _LAST_SECOND)
    is_other_time = source.collected_at is None and abs(failed.collected_at.timestamp() - modified) > _CLOCK_SECONDS
    return failed.byte_length != stat.st_size or is_other_time


def _by_window(path: str, pieces: Sequence[Piece], source: SourceConfig) -> dict[Window, list[Piece]]:
    if source.command:
        return {w: list(pieces) for w in windows_of(path, source.window)} if pieces else {}
    windows: dict[Window, list[Piece]] = {}
    for piece in pieces:
        windows.setdefault(holding(piece.collected_at, source.window), []).append(piece)
    return windows


def _judged(pieces: Sequence[Piece], wanted: str) -> tuple[str, str]:
    """Return the state of pieces of one file and why, given the settings that they should have been read with."""
    for piece in pieces:
        if piece.is_current and piece.status != LOADED:
            unknown = f"no parser knows its format: {piece.message}"
            return FAILED, unknown if piece.status == UNKNOWN_FORMAT else piece.message or "failed"
    if any(p.is_lost and not p.is_current for p in pieces):
        return FAILED, f"{LOST} that the file no longer holds: restore its earlier version beside it"
    if any(p.is_lost for p in pieces):
        return STALE, LOST
    read = [p for p in pieces if p.is_current and p.settings]  # an empty file was read with none
    if any(not wanted or not is_fresh(p, wanted) for p in read):
        return STALE, OTHER_CODE
    return DONE, ""


def _state(source: str, window: Window, files: Sequence[Held], now: datetime) -> State:
    """Return the state of a window from those of its files: the worst; never done while the window is open."""
    worst = min((f.state for f in files), key=STATES.index, default=NONE)
    of_worst = [f for f in files if f.state == worst]
    reason = _reason(of_worst, len(files)) if worst not in (DONE, NONE) else NO_FILE if worst == NONE else ""
    state = State(source, window, worst, reason, tuple(files))
    if window.end > now and worst != FAILED:
        return replace(state, state=OPEN, reason="; ".join(filter(None, (STILL_OPEN, reason))))
    return state


def _pulled(source: SourceConfig, window: Window, files: Sequence[Held], known: Asked) -> State:
    """Return the state of a window of a command: from the tries to ask for it, then from what it printed."""
    state = State(source.name, window, NONE, known.reason, tuple(files), can_pull=known.can_be_asked, pull=known.pull)
    if known.is_open:
        return replace(state, state=OPEN)
    if known.is_failed:
        return replace(state, state=FAILED, needs_pull=known.can_be_asked)
    if not known.is_loaded:
        return replace(state, state=MISSING, needs_pull=True) if known.can_be_asked else state
    if known.reason:
        return replace(state, state=STALE, needs_pull=True)
    if not files:
        return replace(state, state=STALE, reason=OUTPUT_GONE, needs_pull=known.can_be_asked)
    state = replace(_state(source.name, window, files, window.end), can_pull=known.can_be_asked, pull=known.pull)
    if state.can_pull and any(_is_replaceable(f) for f in files):
        return replace(state, needs_pull=True, reason=f"{UNREADABLE}: {state.reason}")
    return state


def _is_replaceable(file: Held) -> bool:
    """Tell whether a file could not be read, and another answer of the command for the same window would replace it."""
    return file.state == FAILED and file.job is not None and window_of(file.path) == file.window


def _reason(files: Sequence[Held], total: int) -> str:
    """Return the reason that most of the files have, and how many."""
    (reason, number), *_ = Counter(f.reason for f in files).most_common(1)
    return reason if number == total else f"{number} of {total} files: {reason}"
