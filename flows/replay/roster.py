"""Which nodes the run holds, which stand by, and which are out, with what Slurm notes about them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from flows.replay.model import Fleet

SLURM, ROOT, OPS = "slurm(64030)", "root(0)", "ops(2001)"
_MEDIAN_HOURS_OUT = 14.0
_MOST_HOURS_OUT = 120.0


@dataclass(slots=True)
class NodeEvent:
    """One row of `sacctmgr show event`: times in whole seconds since 1970."""

    node: str
    start: int
    end: int
    state: str
    reason: str
    user: str


@dataclass(slots=True)
class _Out:
    until: float
    node: str


class Roster:
    """Nodes of the run in order of their names; the rest are spare or out."""

    def __init__(self, fleet: Fleet, held: int, rng: random.Random) -> None:
        self.events: list[NodeEvent] = []
        self.boots: list[tuple[float, str]] = []
        self.absent: dict[str, list[tuple[float, float]]] = {}
        self._held = list(fleet.nodes[:held])
        self._spare = list(fleet.nodes[held:])
        self._out: list[_Out] = []
        self._rng = rng

    def nodes(self, at: float) -> tuple[str, ...]:
        """Return the run's nodes for an attempt that starts at `at`; nodes that are back by then are spares again."""
        for out in [o for o in self._out if o.until <= at]:
            self._out.remove(out)
            self._spare.append(out.node)
        self._spare.sort()
        return tuple(self._held)

    def drop(self, nodes: Iterable[str], at: float, until: float) -> None:
        """Replace nodes of the run by spares until `until`."""
        for node in nodes:
            if not self._spare:
                self._hurry(at)
            self._held[self._held.index(node)] = self._spare.pop(0)
            self._out.append(_Out(until, node))
            self.absent.setdefault(node, []).append((at, until))
        self._held.sort()

    def _hurry(self, at: float) -> None:
        """No spare is left: the node that would be back next is given back now, but none that has only just left."""
        out = min(self._out, key=lambda o: (self.absent[o.node][-1][0] >= at, o.until, o.node))
        self._out.remove(out)
        self._spare.append(out.node)
        spans = self.absent[out.node]
        spans[-1] = (spans[-1][0], max(spans[-1][0], at))
        for event in [e for e in self.events if e.node == out.node and e.end > at]:
            event.end = int(at)
            if event.start >= event.end:
                self.events.remove(event)
        self.boots = [b for b in self.boots if not (b[1] == out.node and b[0] > at)]

    def take_out(self, node: str, at: float, drained_at: float | None, reason: str, *, is_silent: bool) -> None:
        """A node leaves the run after an incident.

        Args:
            node: the node.
            at: when the attempt ended.
            drained_at: when it is drained; None = it never is.
            reason: reason of the drain.
            is_silent: it does not answer, which Slurm noted at `at`.
        """
        hours = min(_MOST_HOURS_OUT, _MEDIAN_HOURS_OUT * self._rng.lognormvariate(0.0, 1.0))
        until = max(at, drained_at or at) + 1_800.0 + hours * 3_600.0
        if is_silent:
            booted = drained_at or at + self._rng.uniform(1_200.0, 4_800.0)
            self._event(node, at, booted, "DOWN*", "Not responding", SLURM)
            if drained_at is None:
                until = booted + self._rng.uniform(600.0, 3_600.0)
                self._event(node, booted, until, "DOWN", "Node unexpectedly rebooted", SLURM)
                self.boots.append((booted - self._rng.uniform(20.0, 60.0), node))
        if drained_at is not None:
            self._event(node, drained_at, until, "DRAIN", reason, self._rng.choice((ROOT, ROOT, OPS)))
            self.boots.append((until - self._rng.uniform(300.0, 1_200.0), node))
        self.drop([node], at, until)

    def roll_out(self, nodes: list[str], since: float, at: float, until: float, reason: str) -> None:
        """Nodes are drained for a rollout at `since`, and leave the run at `at`."""
        for node in nodes:
            self._event(node, since, until, "DRAIN", reason, OPS)
            self.drop([node], at, until)
            self.boots.append((until - self._rng.uniform(120.0, 400.0), node))

    def _event(self, node: str, start: float, end: float, state: str, reason: str, user: str) -> None:
        self.events.append(NodeEvent(node, int(start), max(int(start) + 1, int(end)), state, reason, user))
