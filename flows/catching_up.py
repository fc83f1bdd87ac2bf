"""Ask every command for the windows that are due, without keeping other writers waiting while commands run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from datetime import UTC, datetime
from threading import Event, Lock

from flows import lease
from flows.config import Config, SourceConfig
from flows.ingesting import Progress
from flows.lease import BusyError
from flows.manifest import FAILED, LOADED, Manifest, Pull, opened, opened_to_read
from flows.pulling import MAX_FAILURES, due, gone, pull, store
from flows.secret_values import Secrets
from flows.windows import Window

SOURCES_AT_ONCE = 4


class CatchingUp:
    """One round of asking.

    Each try is recorded as soon as it is known, if nobody else writes at that moment; else `store` does so later, and where
    it is never called, the window is asked for again.

    Args:
        config: the configuration.
        until: windows that ended `delay` before this UTC time are due; None, or a time to come = now.
        progress: as of `pipeline.ingest`.
        secrets: returns the value of a secret that the environment does not hold.
    """

    def __init__(
        self,
        config: Config,
        until: datetime | None = None,
        progress: Progress | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        now = datetime.now(UTC)
        self._config, self._until = config, min(until or now, now)
        self._progress, self._secrets = progress, secrets
        self._waiting: list[Pull] = []
        self._storing, self._stop = Lock(), Event()
        self._pulls: list[Pull] = []
        self.notes: list[str] = []

    def run(self) -> CatchingUp:
        """Ask for all that is due, oldest first; some sources at once, so that one that hangs holds up few others.

        Raises:
            ManifestError: the manifest is damaged or missing.
            OSError: the data folder cannot be written, or the disk is full.
        """
        sources = [s for s in self._config.sources if s.command]
        with ThreadPoolExecutor(SOURCES_AT_ONCE, "pull") as workers:
            try:
                running = [workers.submit(copy_context().run, self._catch_up, source) for source in sources]
                for done in as_completed(running):
                    self.notes += done.result()
            except BaseException:
                self._stop.set()
                workers.shutdown(wait=False, cancel_futures=True)
                raise
        return self

    def store(self, manifest: Manifest) -> None:
        """Record what is not recorded yet. The caller holds the writer's lease."""
        while self._waiting:
            self._pulls.append(store(manifest, self._waiting[0]))
            del self._waiting[0]

    @property
    def pulls(self) -> tuple[Pull, ...]:
        """What became of every window that was asked for and recorded, in the order of the configuration."""
        order = {source.name: i for i, source in enumerate(self._config.sources)}
        return tuple(sorted(self._pulls, key=lambda p: (order[p.source], p.window_start)))

    def _catch_up(self, source: SourceConfig) -> list[str]:
        """Ask for all that is due of one source; return what should be known."""
        pulls = self._known(source)
        todo, failures = in_turn(due(source, pulls, self._until), pulls), 0
        notes = _said_gone(source, gone(source, pulls, self._until), pulls) if todo else []
        for number, window in enumerate(todo, 1):
            if self._is_loaded(source, window):  # by another process, meanwhile
                continue
            if self._progress:
                self._progress(0, 0, f"{source.name} {window}")
            found = pull(self._config, source, window, secrets=self._secrets, stop=self._stop)
            self._record(found)
            failures = failures + 1 if found.status == FAILED else 0
            if failures == MAX_FAILURES and (left := len(todo) - number):
                text = f"{left} more window{' is' if left == 1 else 's are'} left for the next `goodput ingest`"
                return [*notes, f"{source.name}: {text}, since {MAX_FAILURES} in a row failed"]
        return notes

    def _known(self, source: SourceConfig) -> list[Pull]:
        with opened_to_read(self._config.data) as manifest:
            return manifest.pulls(source.name) if manifest else []

    def _is_loaded(self, source: SourceConfig, window: Window) -> bool:
        with opened_to_read(self._config.data) as manifest:
            held = manifest.pull(source.name, window.start, window.end) if manifest else None
        return held is not None and held.status == LOADED

    def _record(self, found: Pull) -> None:
        with self._storing:
            self._waiting.append(found)
            try:
                with lease.hold(self._config.data, "pull"), opened(self._config.data) as manifest:
                    self.store(manifest)
            except BusyError:
                return


def _said_gone(source: SourceConfig, windows: Sequence[Window], pulls: Sequence[Pull]) -> list[str]:
    """Say, once, what a command that tells only of now was not asked for in time: it is asked again now."""
    last = max((p.window_end for p in pulls if p.status == LOADED), default=None)
    missed = [w for w in windows if last is None or w.start >= last]
    if not missed:
        return []
    span = str(missed[0]) if len(missed) == 1 else f"{len(missed)} windows from {missed[0].start:%Y-%m-%dT%H:%MZ} on"
    why = "the command has no {start} and {end}, so that it tells only of now"
    return [f"{source.name}: nobody asked for {span}, and that cannot be made good: {why}"]


def in_turn(windows: Sequence[Window], pulls: Sequence[Pull]) -> list[Window]:
    """Return windows in the order to ask for them: oldest first, those that failed before after those never asked for.

    So windows that fail for ever cannot keep the others from being asked for.
    """
    tries = Counter({(p.window_start, p.window_end): p.tries for p in pulls if p.status == FAILED})
    return sorted(windows, key=lambda w: (tries[w.start, w.end], w))
