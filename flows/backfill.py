"""Carry a backfill out: one window after the other, each committed on its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from flows import lease, pipeline, pulling
from flows.backfill_plan import Plan, Reprocess, Step, by_day, plan
from flows.batches import Batch
from flows.config import Config
from flows.ingesting import Ingester, Job
from flows.landing import Found, expression
from flows.lease import OnWait
from flows.manifest import FAILED, FILE_NAME, LOADED, UNKNOWN_FORMAT, Manifest, Pull, opened
from flows.pull_ahead import PullAhead
from flows.repair import losses, repair
from flows.reports import ExportReport
from flows.secret_values import Secrets
from flows.superseding import Superseding, formers
from flows.windows import Window

if TYPE_CHECKING:
    from warehouse.build import BuildReport

__all__ = [
    "PATIENCE_SECONDS",
    "BackfillReport",
    "Outcome",
    "Plan",
    "Progress",
    "Reprocess",
    "Step",
    "by_day",
    "carry_out",
    "plan",
]

TURN_SECONDS = 30.0
"""After so long the right to write is given up for a moment, so that others get their turn."""
PAUSE_SECONDS = 0.5
"""How long: several times as long as those who wait for it take to notice."""
PATIENCE_SECONDS = 24 * 3600.0
"""How long a backfill under way waits for its next turn: as long as others take to build."""
LEFT = "left"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a window.

    Attributes:
        source: name of the source.
        window: the window.
        status: loaded, failed, or left (its source failed too often in a row).
        message: why it is not loaded.
        exports: its files, as ingest reports them.
    """

    source: str
    window: Window
    status: str
    message: str = ""
    exports: tuple[ExportReport, ...] = ()


@dataclass(slots=True)
class BackfillReport:
    """What a backfill did.

    Attributes:
        outcomes: the windows that were worked on, in order.
        notes: what should be known beside, such as damaged parts.
        turns: how often the right to write was taken.
        build: the build at the end; None = left out.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    turns: int = 0
    build: BuildReport | None = None

    @property
    def failed(self) -> list[Outcome]:
        """The windows that were not loaded."""
        return [o for o in self.outcomes if o.status != LOADED]

    @property
    def unknown(self) -> list[ExportReport]:
        """Files that no parser knows."""
        return [e for o in self.outcomes for e in o.exports if e.status == "unknown_format"]


Progress = Callable[[int, int, Step, Outcome | None], None]
"""Told how many windows are done, how many there are, the one that begins or, with its outcome, has ended."""


def carry_out(
    config: Config,
    *,
    start: datetime,
    end: datetime,
    sources: Collection[str] = (),
    reprocess: Reprocess = "none",
    run_backwards: bool = False,
    max_active: int = 2,
    build: bool = True,
    secrets: Secrets | None = None,
    progress: Progress | None = None,
    build_progress: pipeline.BuildProgress | None = None,
    wait_seconds: float = 0.0,
    on_wait: OnWait | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> BackfillReport:
    """Load the windows of [start, end) that `plan` names, then build.

    May be killed at any moment: what was committed stays, and the same call does the rest. Whenever others had a turn to write,
    what is left to do is looked at again, so that each window is loaded once, whoever does it.

    Args:
        config: the configuration.
        start: UTC time.
        end: UTC time.
        sources: names of the sources; empty = all.
        reprocess: what is done again; see `plan`.
        run_backwards: newest windows first.
        max_active: how many commands run at once; loading is one at a time.
        build: build the warehouse at the end.
        secrets: returns the value of a secret that the environment does not hold.
        progress: told of each window.
        build_progress: told each finished step of the build, and its seconds.
        wait_seconds: how long to wait for another writer before the first window.
        on_wait: told who that is, once the wait has lasted a second.
        clock: returns the time.

    Raises:
        UnknownSourceError: there is no source of such a name.
        BusyError: another process writes to the data folder.
        ManifestError: the manifest is damaged or missing.
        BuildError: a model or check is wrong, or memory or spill space ran out.
        OSError: the data folder cannot be written, or the disk is full.
    """

    def planned(manifest: Manifest) -> Plan:
        return plan(
            config, manifest, start=start, end=end, now=clock(), sources=sources, reprocess=reprocess,
            run_backwards=run_backwards,
        )  # fmt: skip

    ahead = PullAhead(config, max_active, secrets)
    work = _Work(config, planned, ahead, progress, is_again=reprocess == "all")
    patience = wait_seconds
    try:
        while True:
            with lease.hold(config.data, "backfill", wait_seconds=patience, on_wait=on_wait):
                waits_for = work.turn()
            if waits_for is None and not work.left:
                break
            patience = max(PATIENCE_SECONDS, wait_seconds)
            time.sleep(PAUSE_SECONDS)
            if waits_for is not None:
                ahead.wait(waits_for)
    finally:
        ahead.stop()
    work.end()
    patience = max(PATIENCE_SECONDS, wait_seconds)
    if pipeline.lack(config):
        pipeline.ingest(config, secrets=secrets, wait_seconds=patience, on_wait=on_wait)
        work.report.notes.append("parts of the lake were damaged: what stood in them was read again from all exports")
    if build:
        work.report.build = pipeline.build(config, progress=build_progress, wait_seconds=patience, on_wait=on_wait)
    return work.report


class _Work:
    """What is left to do, and what was done."""

    def __init__(
        self,
        config: Config,
        planned: Callable[[Manifest], Plan],
        ahead: PullAhead,
        progress: Progress | None,
        *,
        is_again: bool,
    ) -> None:
        self._config, self._planned, self._ahead = config, planned, ahead
        self._progress, self._is_again = progress, is_again
        self._tried: set[tuple[str, Window]] = set()
        self._read: set[str] = set()
        self._stamp: tuple[int, int] | None = None
        self._total = 0
        self._superseding = Superseding(config.data)
        self.left: list[Step] = []
        self.report = BackfillReport()

    def turn(self) -> tuple[str, Window] | None:
        """Load windows until none is left, the turn is over, or a command is waited for, whose window is returned.

        The caller holds the writer's lease.
        """
        began = time.monotonic()
        self.report.turns += 1
        with opened(self._config.data) as manifest, self._ingester(manifest) as (ingester, batch):
            self._look(manifest)
            while self.left and self._is_ready(self.left[0]):
                self._do(self.left[0], manifest, ingester, batch)
                if time.monotonic() - began >= TURN_SECONDS:
                    break
            batch.merge()
            self.report.notes += losses(self._config.data, manifest, batch)
        self._stamp = self._stamp_now()
        return self.left[0].key if self.left and not self._is_ready(self.left[0]) else None

    def end(self) -> None:
        """Say what was replaced."""
        self.report.notes += self._superseding.notes()

    def _is_ready(self, step: Step) -> bool:
        return not step.needs_pull or self._ahead.is_ready(step.key)

    @contextmanager
    def _ingester(self, manifest: Manifest) -> Iterator[tuple[Ingester, Batch]]:
        with ThreadPoolExecutor(1, "hash") as workers:
            batch = Batch(self._config.data / "lake", manifest)
            yield Ingester(self._config, manifest, batch, workers), batch

    def _look(self, manifest: Manifest) -> None:
        """Mend what killed runs left, and see what is left to do, if anybody wrote since the last turn."""
        notes = repair(self._config.data, manifest)
        self.report.notes += notes
        if notes or self._stamp is None or self._stamp != self._stamp_now():
            todo = self._planned(manifest).todo
            self.left = [s for s in todo if s.key not in self._tried]
            self._total = len(self.report.outcomes) + len(self.left)
        self._ahead.want([s.key for s in self.left if s.needs_pull])

    def _stamp_now(self) -> tuple[int, int]:
        stat = (self._config.data / FILE_NAME).stat()
        return stat.st_mtime_ns, stat.st_size

    def _do(self, step: Step, manifest: Manifest, ingester: Ingester, batch: Batch) -> None:
        """Load one window and commit it."""
        if self._progress:
            self._progress(len(self.report.outcomes), self._total, step, None)
        outcome = self._outcome(step, manifest, ingester, batch)
        self._tried.add(step.key)
        self.left.pop(0)
        self.report.outcomes.append(outcome)
        if self._progress:
            self._progress(len(self.report.outcomes), self._total, step, outcome)

    def _outcome(self, step: Step, manifest: Manifest, ingester: Ingester, batch: Batch) -> Outcome:
        source, window = step.key
        jobs = {f.path: f.job for f in step.files if f.job is not None}
        exports: list[ExportReport] = []
        why: str | None = None
        if step.needs_pull:
            tried = self._ahead.take(step.key)
            if tried is None:
                text = f"not asked for: {pulling.MAX_FAILURES} tries in a row failed"
                return Outcome(source, window, LEFT, text)
            why = (tried.message or "failed") if tried.status == FAILED else None
            pulled = pulling.store(manifest, tried, step.state.pull)
            if tried.path is not None and tried.path != pulled.path:
                jobs.pop(tried.path, None)  # a plan made after it was asked ahead saw its file, which is gone
            if pulled.status == FAILED:
                return Outcome(source, window, FAILED, pulled.message or "failed")
            former = formers(pulled, step.state.pull)
            new = self._job(source, pulled)
            told = self._ingest(new, ingester, batch)
            exports += told
            unread = {f.path for f in step.files if f.state == FAILED and Path(f.path) in former} - new.keys()
            again = self._ingest({p: job for p, job in jobs.items() if p in unread}, ingester, batch)
            if unread:
                batch.commit()  # what failed for want of a setting may hold records now
            gone = self._superseding.going(manifest, pulled, told[0] if told else None, former)
            if gone:
                self._superseding.replace(manifest, batch, gone)
            exports += [e for e in again if Path(e.path) not in gone]
            done = {*new, *unread, *map(str, gone)}
            jobs = {path: job for path, job in jobs.items() if path not in done}
        exports += self._ingest(jobs, ingester, batch)
        batch.commit()
        bad = [e for e in exports if e.status == FAILED or (step.needs_pull and e.status == UNKNOWN_FORMAT)]
        message = (why or _unreadable(bad[0])) if bad else ""
        return Outcome(source, window, FAILED if bad else LOADED, message, tuple(exports))

    def _ingest(self, jobs: dict[str, Job], ingester: Ingester, batch: Batch) -> list[ExportReport]:
        """Read files into the batch, each once where all is read again."""
        exports = []
        for path, job in jobs.items():
            if path not in self._read or not self._is_again:
                exports.append(ingester.ingest(job, again=self._is_again))
                self._read.add(path)
            if batch.is_full:
                batch.commit()
        return exports

    def _job(self, name: str, pulled: Pull) -> dict[str, Job]:
        """Return the file that keeps what a command printed."""
        source = next(s for s in self._config.sources if s.name == name)
        match = expression(source.path).fullmatch(pulled.path or "")
        if match is None:
            return {}
        found = Found(Path(pulled.path or ""), match.groupdict())
        return {found.name: Job(found, source)}


def _unreadable(export: ExportReport) -> str:
    why = "no parser knows its format: " if export.status == UNKNOWN_FORMAT else ""
    return f"{export.path}: {why}{export.message}"
