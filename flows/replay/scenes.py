"""Turns what stopped an attempt into a scene, and lets its signature write the lines."""

from __future__ import annotations

import random
from collections.abc import Iterator

from flows.replay.model import Line, Scene
from flows.replay.timeline import Attempt, Timeline
from flows.replay.watchdog import given_up

_NEIGHBOURS, _BYSTANDERS = 15, 12


def incident_lines(timeline: Timeline, seed: int) -> Iterator[tuple[Attempt, Line]]:
    """Yield every line that incidents left, each with the attempt it ended, in no order of time."""
    for attempt in timeline.attempts:
        signature = attempt.stop.signature if attempt.stop else None
        if signature is not None:
            scene = _scene(timeline, attempt, random.Random(f"{seed}:scene:{attempt.number}"))
            for line in signature.emit(scene):
                yield attempt, line
            if attempt.end is not None and attempt.end.timeout:
                for line in given_up(scene, attempt.steps.until, attempt.end.timeout):
                    yield attempt, line


def _scene(timeline: Timeline, attempt: Attempt, rng: random.Random) -> Scene:
    fleet, node = timeline.fleet, attempt.node
    near = [n for n in attempt.nodes if n != node and fleet.switches[n] == fleet.switches[node]]
    # Same rack first: of a full switch one neighbour is left out.
    near.sort(key=lambda n: (fleet.racks[n] != fleet.racks[node], n))
    far = [
        n for n in rng.sample(attempt.nodes, min(len(attempt.nodes), 2 * _BYSTANDERS)) if n != node and n not in near
    ]
    first_pid = rng.randrange(9_000, 900_000)
    return Scene(
        cause=attempt.stop.cause if attempt.stop else "",
        fault_at=attempt.fault_at,
        stalled_at=attempt.steps.stalled_at,
        ended_at=float(attempt.ended_at),
        node=node,
        gpu=rng.randrange(fleet.gpus),
        neighbours=tuple(near[:_NEIGHBOURS]),
        bystanders=tuple(far[:_BYSTANDERS]),
        pids=tuple(first_pid + gpu * rng.choice((1, 1, 2)) + gpu for gpu in range(fleet.gpus)),
        fleet=fleet,
        rng=rng,
        ranks={n: place * fleet.gpus for place, n in enumerate(attempt.nodes)},
    )
