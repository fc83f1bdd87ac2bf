"""What happens: attempt after attempt, each stopped by something, until the run's time is up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from flows.replay.endings import Ending, end_of
from flows.replay.model import Fleet, Signature
from flows.replay.roster import NodeEvent, Roster
from flows.replay.schedule import Stop, draw
from flows.replay.steps import Steps, finish, walk

START = 1_717_401_600
"""The run starts at 2024-06-03T08:00:00Z."""
DAY = 86_400
_TRIES = 40
_FINAL = 120.0
_ROLLOUTS = (
    "planned: firmware 24.06",
    "kernel upgrade rollout",
    "scheduled maintenance: GPU VBIOS upgrade",
    "planned: BMC firmware",
)


class _TooLateError(Exception):
    """The stops came so close together that the last one does not fit."""


@dataclass(slots=True)
class Attempt:
    """One attempt of the run.

    Attributes:
        number: 0, 1, ... over the whole run.
        submitted_at: whole seconds since 1970, as all times of the scheduler are.
        eligible_at: likewise.
        started_at: likewise.
        ended_at: likewise.
        nodes: nodes held, by name.
        steps: what it did.
        end: how it ended; None = completed.
        stop: what stopped it; None = nothing, it completed.
        fault_at: when the fault happened.
        node: node that the fault sits in.
        restarts: requeues of its job before it.
        is_new: it is the first of its job.
    """

    number: int
    submitted_at: int
    eligible_at: int
    started_at: int
    ended_at: int
    nodes: tuple[str, ...]
    steps: Steps
    end: Ending | None
    stop: Stop | None
    fault_at: float
    node: str
    restarts: int
    is_new: bool


@dataclass(slots=True)
class Reservation:
    """A window of maintenance, announced at `created_at`; whole seconds since 1970."""

    name: str
    created_at: int
    start: int
    end: int
    nodes: tuple[str, ...]


@dataclass(slots=True)
class Timeline:
    """Everything that the scheduler and the training saw.

    Attributes:
        fleet: the machines.
        size: nodes of the run.
        start: first start, seconds since 1970.
        end: last end.
        attempts: in order.
        events: what Slurm noted about nodes.
        reservations: windows of maintenance.
        boots: when nodes were booted, (time, node).
        absent: when spares and former nodes were out, by node.
        failed: which of these absences began with a node that fell silent.
    """

    fleet: Fleet
    size: int
    start: int
    end: int
    attempts: list[Attempt]
    events: list[NodeEvent]
    reservations: list[Reservation]
    boots: list[tuple[float, str]]
    absent: dict[str, list[tuple[float, float]]]
    failed: set[tuple[str, int]] = field(default_factory=set)


def play(fleet: Fleet, signatures: Sequence[Signature], mix: str, nodes: int, days: int, seed: int) -> Timeline:
    """Play the whole run.

    Raises:
        ValueError: the mix has a cause that no signature shows, or the days are too few for their stops.
    """
    for attempt in range(_TRIES):
        rng = random.Random(f"{seed}:schedule:{attempt}")
        try:
            return _Play(fleet, draw(signatures, mix, nodes, days, rng), nodes, days, seed).run()
        except _TooLateError:
            continue
    raise ValueError(f"{days} days are too few for the stops of {nodes} nodes; give more days")


class _Play:
    def __init__(self, fleet: Fleet, stops: list[Stop], nodes: int, days: int, seed: int) -> None:
        self.fleet, self.stops, self.size = fleet, stops, nodes
        self.end = START + days * DAY
        self.rng = random.Random(f"{seed}:timeline")
        self.roster = Roster(fleet, nodes, random.Random(f"{seed}:roster"))
        self.reservations: list[Reservation] = []
        self.lemons = dict.fromkeys(self.rng.sample(fleet.nodes, max(1, len(fleet.nodes) // 150)), 12.0)
        self.resumed, self.restarts = 0, 0

    def run(self) -> Timeline:
        attempts: list[Attempt] = []
        submitted, eligible, start, is_new = START - 47, START - 47, START, True
        for number, stop in enumerate([*self.stops, None]):
            attempt = self._attempt(number, (submitted, eligible, start), stop, is_new)
            attempts.append(attempt)
            if stop is not None:
                submitted, eligible, start, is_new = self._comes_back(attempt, stop)
        return Timeline(
            self.fleet,
            self.size,
            START,
            self.end,
            attempts,
            self.roster.events,
            self.reservations,
            self.roster.boots,
            self.roster.absent,
        )

    def _attempt(self, number: int, times: tuple[int, int, int], stop: Stop | None, is_new: bool) -> Attempt:
        rng, start = self.rng, times[2]
        nodes = self.roster.nodes(start)
        first_at = start + rng.uniform(175.0, 270.0)
        if first_at + 1_800.0 > self.end:
            raise _TooLateError
        until = self.end - _FINAL if stop is None else self._until(stop, first_at)
        steps = walk(self.resumed, first_at, until, rng, orderly=stop is not None and stop.planned is not None)
        node = rng.choices(nodes, [self.lemons.get(n, 1.0) for n in nodes])[0]
        self.restarts = 0 if is_new else self.restarts + 1
        if stop is None:
            finish(steps, rng)
            return Attempt(number, *times, self.end, nodes, steps, None, None, 0.0, node, self.restarts, is_new)
        if steps.until + 3_600.0 > self.end:
            raise _TooLateError
        self.resumed = steps.durable
        end = end_of(stop, steps, rng)
        gap = stop.signature.gap if stop.signature else (0.0, 0.0)
        fault_at = max(start + 1.0, steps.until - rng.uniform(*gap))
        return Attempt(number, *times, end.at, nodes, steps, end, stop, fault_at, node, self.restarts, is_new)

    def _until(self, stop: Stop, first_at: float) -> float:
        if stop.is_loop:
            return first_at + self.rng.uniform(40.0, 420.0)
        until = max(START + stop.at, first_at + 40.0)
        # People announce round times; the requeue waits for the next checkpoint after it.
        return until + -until % 300.0 if stop.planned == "reservation" else until

    def _comes_back(self, attempt: Attempt, stop: Stop) -> tuple[int, int, int, bool]:
        """Take nodes out, and return when the next attempt is submitted, eligible and started, and whether its job is new."""
        rng, ended = self.rng, attempt.ended_at
        if stop.planned is not None:
            self._maintain(attempt, stop)
        elif stop.signature is not None:
            self._repair(attempt, stop.signature)
        if stop.is_manual:
            start = ended + int(rng.uniform(3_600.0, 6_600.0))
            submitted = start - rng.randint(8, 60)
            return submitted, submitted, start, True
        wait = rng.uniform(60.0, 130.0)
        if stop.planned in ("owner_requeue", "owner_cancel"):
            wait = rng.uniform(240.0, 1_600.0)
        elif stop.planned is not None:
            wait = rng.uniform(90.0, 180.0)
        start = ended + int(wait)
        return ended, ended + rng.randint(20, 40), start, False

    def _repair(self, attempt: Attempt, signature: Signature) -> None:
        is_silent = signature.ending == "node_fail"
        ended = attempt.ended_at
        if signature.sets_aside:
            others = [n for n in attempt.nodes if n != attempt.node]
            few = min(signature.sets_aside, 1 + len(others) // 500)
            suspects = [attempt.node, *self.rng.sample(others, few - 1)]
            self.roster.drop(suspects, ended, ended + self.rng.uniform(47.0, 60.0) * 3_600.0)
        if not (is_silent or signature.node_reason):
            return
        drained = ended + self.rng.uniform(*signature.node_reason_after) if signature.node_reason else None
        if drained is not None:
            # Slurm starts nothing on a node that is drained already.
            drained = max(drained, attempt.started_at + 30.0)
        self.roster.take_out(attempt.node, ended, drained, signature.node_reason, is_silent=is_silent)

    def _maintain(self, attempt: Attempt, stop: Stop) -> None:
        rng, ended = self.rng, attempt.ended_at
        if stop.planned == "reservation":
            self._reserve(attempt)
        elif stop.planned == "drain":
            since = ended - rng.uniform(60.0, 1_500.0)
            until = ended + rng.uniform(1_800.0, 9_000.0)
            nodes = rng.sample(attempt.nodes, rng.randint(1, 2))
            self.roster.roll_out(sorted(nodes), max(since, attempt.started_at + 1), ended, until, rng.choice(_ROLLOUTS))

    def _reserve(self, attempt: Attempt) -> None:
        rng = self.rng
        rack = self.fleet.racks[rng.choice(attempt.nodes)]
        nodes = [n for n in attempt.nodes if self.fleet.racks[n] == rack]
        start = int(attempt.ended_at - attempt.ended_at % 300)
        if start <= attempt.started_at:
            start = attempt.started_at + 1
        end = start + rng.choice((3_600, 7_200, 14_400))
        created = start - rng.randint(26, 96) * 3_600
        name = f"fw-{rack}-{1 + len(self.reservations):02d}"
        self.reservations.append(Reservation(name, created, start, end, tuple(nodes)))
        self.roster.drop(nodes, attempt.ended_at, float(end))
        self.roster.boots += [(end - rng.uniform(300.0, 1_500.0), node) for node in nodes]
