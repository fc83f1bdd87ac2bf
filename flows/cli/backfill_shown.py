"""How far a backfill has come: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flows.cli.terminal import clean, note
from flows.cli.words import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from flows.backfill import Outcome, Step
    from flows.prefect_runs import Run

_SAID_SECONDS = 5.0


class Shown:
    """Progress through things of one kind: a bar on a terminal, elsewhere a line now and then.

    Args:
        total: how many there are.
        thing: what they are called.
    """

    def __init__(self, total: int, thing: str) -> None:
        self._total, self._thing, self._failed = total, thing, 0
        self._bar = _bar() if sys.stderr.isatty() else None
        self._task: TaskID | None = None
        self._said = time.monotonic()

    def __enter__(self) -> Shown:
        if self._bar and self._total:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        elif self._total:
            note(f"working on {counted(self._total, self._thing)} ...")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def step(self, done: int, total: int, step: Step, outcome: Outcome | None) -> None:
        """Show the window that begins or has ended."""
        self._failed += outcome is not None and outcome.status != "loaded"
        self._total = total
        self._show(done, f"{step.state.source} {step.state.window}")

    def runs(self, runs: Sequence[Run]) -> None:
        """Show what has become of the runs that were asked for."""
        self._failed = sum(r.is_final and not r.is_completed for r in runs)
        active = [f"{r.name} {r.state}" for r in runs if not r.is_final]
        done = sum(r.is_final for r in runs) if any(r.part for r in runs) else self._total
        self._show(done, ", ".join(active))

    def wait_for(self, holder: object) -> None:
        """Say whom the work waits for."""
        note(f"waiting for {holder}, which writes to the same folder ...")

    def _show(self, done: int, what: str) -> None:
        text = f"{self._failed:,} failed; {what}" if self._failed else what
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=self._total, description=clean(text))
        elif time.monotonic() - self._said >= _SAID_SECONDS:
            self._said = time.monotonic()
            note(f"{done:,} of {counted(self._total, self._thing)} done{'; ' if text else ''}{text} ...")


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: Any = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    return Progress(*columns, console=Console(stderr=True, markup=False, highlight=False), transient=True)
