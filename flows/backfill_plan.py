"""Load what is missing between two times, window by window: first a plan, then the work, which may stop anywhere.

Nothing is noted down about a backfill itself: what is left is derived from manifest and files (`flows.coverage`) whenever it
is asked for. A backfill that was killed goes on by being started again, and one that runs beside a schedule does what the
schedule has not done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import lcm
from typing import Literal

from flows.config import Config
from flows.config_schema import DAY
from flows.coverage import DONE, MISSING, STALE, Held, State, coverage
from flows.manifest import FAILED, Manifest
from flows.windows import Window, floor

Reprocess = Literal["none", "failed", "all"]
_TRIED: dict[str, frozenset[str]] = {
    "none": frozenset({MISSING, STALE}),
    "failed": frozenset({MISSING, STALE, FAILED}),
    "all": frozenset({MISSING, STALE, FAILED, DONE}),
}
"""States of files that are loaded, by what is to be done again.

- none: what was never loaded, and what is stale (the file changed, other code or settings, lost rows);
- failed: that, and what was tried and failed: so this does exactly what an interrupted or failed backfill left;
- all: everything that is still there, also by asking commands again; see `flows.superseding` for what they told before.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done about one window.

    Attributes:
        state: the window's state before.
        files: files to read; all of each is read, also where part of it belongs to other windows.
        needs_pull: the source's command is asked first.
    """

    state: State
    files: tuple[Held, ...] = ()
    needs_pull: bool = False

    @property
    def is_todo(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.files) or self.needs_pull

    @property
    def key(self) -> tuple[str, Window]:
        """What tells the window from all others."""
        return self.state.source, self.state.window


@dataclass(frozen=True, slots=True)
class Plan:
    """What a backfill would do.

    Attributes:
        start: UTC time.
        end: UTC time.
        reprocess: what is done again.
        steps: every window of the chosen sources, in the order of the work.
    """

    start: datetime
    end: datetime
    reprocess: Reprocess
    steps: tuple[Step, ...]

    @property
    def todo(self) -> tuple[Step, ...]:
        """The windows to be worked on, in order."""
        return tuple(s for s in self.steps if s.is_todo)

    def states(self, source: str | None = None) -> dict[str, int]:
        """Return how many windows (of one source) are in each state."""
        return dict(Counter(s.state.state for s in self.steps if source in (None, s.state.source)))


def plan(
    config: Config,
    manifest: Manifest | None,
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    sources: Collection[str] = (),
    reprocess: Reprocess = "none",
    run_backwards: bool = False,
) -> Plan:
    """Return what a backfill of [start, end) would do; nothing is changed.

    Args:
        config: the configuration.
        manifest: the open manifest; None = nothing was read yet.
        start: UTC time; a window that lies in [start, end) in part is taken whole.
        end: UTC time.
        now: UTC time, which tells the windows that are still open.
        sources: names of the sources; empty = all.
        reprocess: none, failed or all; see `_TRIED`.
        run_backwards: newest windows first.

    Raises:
        UnknownSourceError: there is no source of such a name.
    """
    states = coverage(config, manifest, start, end, now, sources)
    if run_backwards:
        states.sort(key=lambda s: s.window.end, reverse=True)  # stable: the sources of a window stay in their order
    return Plan(start, end, reprocess, tuple(_step(s, reprocess) for s in states))


def _step(state: State, reprocess: Reprocess) -> Step:
    """Return what is to be done about a window. One that is still open is loaded as far as it goes."""
    tried = _TRIED[reprocess]
    files = tuple(f for f in state.files if f.job is not None and f.state in tried)
    asks = state.can_pull if reprocess == "all" else state.needs_pull and state.state in tried
    return Step(state, files, asks)


def by_day(plan: Plan) -> list[tuple[datetime, datetime, int]]:
    """Return stretches of a plan that can be carried out apart from each other, in its order: begin, end, windows to load.

    Each is a UTC day, or several where a window is longer; no window lies in two of them.
    """
    length = lcm(DAY, *((s.state.window.end - s.state.window.start) // timedelta(seconds=1) for s in plan.steps))
    counts = Counter(floor(s.state.window.start, length) for s in plan.todo)
    return [
        (max(begin, plan.start), min(begin + timedelta(seconds=length), plan.end), number)
        for begin, number in counts.items()
    ]
