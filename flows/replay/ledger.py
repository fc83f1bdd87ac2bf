"""Where the run's time went, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import floor
from statistics import median

from flows.replay.timeline import Attempt, Timeline

STATES = (
    "starting",
    "productive",
    "checkpointing",
    "lost_work",
    "stalled",
    "stopping",
    "down_unexpected",
    "down_planned",
)
Span = tuple[float, float, str]


def ledger(timeline: Timeline) -> dict[str, int]:
    """Return GPU-seconds by state; they sum to the run's elapsed GPU-seconds.

    Boundaries are floored to whole seconds. A step is productive if the checkpoint that the next attempt went on from holds
    it, or the run's completed end.
    """
    gpus = timeline.size * timeline.fleet.gpus
    seconds = dict.fromkeys(STATES, 0)
    for start, end, state in spans(timeline):
        seconds[state] += floor(end) - floor(start)
    return {state: value * gpus for state, value in seconds.items()}


def spans(timeline: Timeline) -> Iterator[Span]:
    """Yield the run's time as spans of one state each, in order, without gaps."""
    for attempt, following in zip(timeline.attempts, [*timeline.attempts[1:], None], strict=True):
        yield from _attempt(attempt)
        if following is not None:
            is_planned = attempt.stop is not None and attempt.stop.planned is not None
            yield attempt.ended_at, following.started_at, "down_planned" if is_planned else "down_unexpected"


def _attempt(attempt: Attempt) -> Iterator[Span]:
    steps = attempt.steps
    yield attempt.started_at, steps.first_at, "starting"
    kept = steps.last if attempt.end is None else steps.durable
    safe_until = steps.ends[kept - steps.resumed - 1] if kept > steps.resumed else steps.first_at
    at = steps.first_at
    for start, end in _pauses(attempt):
        yield from _worked(at, start, safe_until)
        yield start, end, "checkpointing"
        at = end
    yield from _worked(at, steps.stalled_at, safe_until)
    yield steps.stalled_at, attempt.ended_at, "stopping" if attempt.end is None else "stalled"


def _worked(start: float, end: float, safe_until: float) -> Iterator[Span]:
    cut = min(max(start, safe_until), end)
    yield start, cut, "productive"
    yield cut, end, "lost_work"


def _pauses(attempt: Attempt) -> Iterator[tuple[float, float]]:
    """Yield how much longer than the median each step took that holds a save: that much of its beginning."""
    ends, resumed = attempt.steps.ends, attempt.steps.resumed
    if len(ends) < 2:
        return
    usual = median(b - a for a, b in pairwise(ends))
    for save in attempt.steps.saves:
        before = save.iteration - resumed
        if before < len(ends):
            start, end = ends[before - 1], ends[before]
            yield start, start + max(0.0, end - start - usual)
