"""How an attempt ends once something has stopped it: what Slurm notes, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TypeVar

from flows.replay.schedule import Stop
from flows.replay.steps import Steps

OWNER_UID, OPS_UID = 5014, 2001
_EXIT_CODES = (("1:0", 60), ("134:0", 12), ("137:0", 8), ("0:9", 5), ("0:6", 5), ("6:0", 4), ("255:0", 6))
_Choice = TypeVar("_Choice")
_TIMEOUTS = ((600, 75), (1_800, 25))


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended.

    Attributes:
        kind: the signature's ending.
        at: when, whole seconds since 1970.
        state: the scheduler's state.
        exit_code: as sacct prints it.
        reason: likewise.
        timeout: seconds after which the NCCL watchdog gave up; 0 = it did not.
    """

    kind: str
    at: int
    state: str
    exit_code: str
    reason: str = "None"
    timeout: int = 0


def end_of(stop: Stop, steps: Steps, rng: random.Random) -> Ending:
    """Return how the attempt ends that was stopped at `steps.until`."""
    halted = steps.until
    if stop.planned is not None:
        return _by_hand("requeue" if stop.planned != "owner_cancel" else "cancel", OWNER_UID, halted + 1.0)
    kind = stop.signature.ending if stop.signature else "exit"
    if kind == "node_fail":
        code = "1:0" if rng.random() < 0.2 else "0:0"
        return Ending(kind, int(halted + rng.uniform(60.0, 300.0)) + 1, "NODE_FAIL", code)
    if kind == "watchdog":
        timeout = _pick(_TIMEOUTS, rng)
        # The clock of the collective starts up to a step before the last one that ended.
        late = int(halted + timeout + rng.uniform(8.0, 45.0))
        return Ending(kind, late, "FAILED", rng.choice(("134:0", "0:6")), "NonZeroExitCode", timeout)
    if kind == "cancel":
        return _by_hand("cancel", rng.choice((OPS_UID, OPS_UID, 0)), halted + rng.uniform(150.0, 900.0))
    if kind == "requeue":
        return _by_hand("requeue", OPS_UID, halted + 1.0)
    return Ending(
        "exit", int(halted + rng.uniform(6.0, 50.0)) + 1, "FAILED", _pick(_EXIT_CODES, rng), "NonZeroExitCode"
    )


def _by_hand(kind: str, uid: int, at: float) -> Ending:
    state = "REQUEUED" if kind == "requeue" else f"CANCELLED by {uid}"
    return Ending(kind, int(at) + 1, state, "0:0")


def _pick(choices: tuple[tuple[_Choice, int], ...], rng: random.Random) -> _Choice:
    return rng.choices([c for c, _ in choices], [w for _, w in choices])[0]
