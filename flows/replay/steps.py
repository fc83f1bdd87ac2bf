"""The steps of one attempt, and the checkpoints that it saves."""

from __future__ import annotations

import math
import random
from array import array
from dataclasses import dataclass, field

SAVE_EVERY = 80
"""Steps from one checkpoint to the next, a little over eight minutes."""
_STEP_SECONDS = 6.2
_DIURNAL = 0.015
_WARM_UP = 5.0
_STRAGGLERS = 0.002
_NOISE = 4_096
_DAY = 86_400.0
_MIDDAY = 13.0 / 24.0


@dataclass(slots=True)
class Save:
    """A checkpoint.

    Attributes:
        iteration: step after which it was saved.
        begun_at: when training paused for it.
        blocked: seconds for which it paused.
        durable_at: when it was safe, at the end of a step; None = never, the attempt ended before.
    """

    iteration: int
    begun_at: float
    blocked: float
    durable_at: float | None = None


@dataclass(slots=True)
class Steps:
    """What an attempt did.

    Attributes:
        resumed: step it went on from; 0 = from the beginning.
        first_at: when its first step began.
        ends: when each step ended, in order; step `resumed + 1` first.
        saves: checkpoints, in order.
        until: when it was stopped.
    """

    resumed: int
    first_at: float
    until: float
    ends: array[float] = field(default_factory=lambda: array("d"))
    saves: list[Save] = field(default_factory=list)

    @property
    def stalled_at(self) -> float:
        """End of the last step that ended."""
        return self.ends[-1] if self.ends else self.first_at

    @property
    def durable(self) -> int:
        """Step that the next attempt goes on from."""
        return max((s.iteration for s in self.saves if s.durable_at is not None), default=self.resumed)

    @property
    def last(self) -> int:
        """Last step that ended."""
        return self.resumed + len(self.ends)


def walk(resumed: int, first_at: float, until: float, rng: random.Random, *, orderly: bool = False) -> Steps:
    """Take steps until something stops them.

    Args:
        resumed: step to go on from.
        first_at: when the first step begins, seconds since 1970.
        until: when it stops.
        rng: source of chance.
        orderly: stop not at `until` but some seconds after the next checkpoint is safe.
    """
    steps = Steps(resumed, first_at, math.inf if orderly else until)
    noise = [1.0 + rng.gauss(0.0, 0.002) for _ in range(_NOISE)]
    at, done, extra = first_at, 0, _WARM_UP + rng.uniform(0.0, 4.0)
    pending: Save | None = None
    safe_at = math.inf
    while True:
        pace = _STEP_SECONDS * (1.0 + _DIURNAL * 0.5 * (1.0 + math.cos(2.0 * math.pi * (at / _DAY % 1.0 - _MIDDAY))))
        for _ in range(SAVE_EVERY - (resumed + done) % SAVE_EVERY):
            at += pace * noise[done % _NOISE] + extra
            if at > steps.until:
                return steps
            extra = rng.uniform(0.4, 4.0) if rng.random() < _STRAGGLERS else 0.0
            steps.ends.append(at)
            done += 1
            if at >= safe_at and pending:
                pending.durable_at, safe_at = at + rng.uniform(0.01, 0.2), math.inf
                if orderly and at >= until:
                    steps.until = at + rng.uniform(2.0, 15.0)
        extra = rng.uniform(2.2, 4.2)
        pending = Save(resumed + done, at + rng.uniform(0.005, 0.08), extra)
        steps.saves.append(pending)
        safe_at = at + extra + rng.uniform(20.0, 60.0)


def finish(steps: Steps, rng: random.Random) -> None:
    """Save a last checkpoint after the last step, and wait until it is safe."""
    if steps.saves and steps.saves[-1].iteration == steps.last:
        steps.saves.pop()
    begun = steps.stalled_at + rng.uniform(0.01, 0.2)
    steps.saves.append(Save(steps.last, begun, rng.uniform(20.0, 40.0)))
    steps.saves[-1].durable_at = begun + steps.saves[-1].blocked
