"""What happens to nodes that the run does not hold: they too are drained, and fail."""

from __future__ import annotations

import random

from flows.replay.holding import Holding, free
from flows.replay.roster import OPS, ROOT, SLURM, NodeEvent
from flows.replay.timeline import Timeline

_LEAST_SPAN = 12 * 3_600.0
_SHARE = 0.12
_REASONS = (
    ("DRAIN", "NHC: check_fs_mount:  /home not mounted", ROOT),
    ("DRAIN", "kernel upgrade rollout", OPS),
    ("DRAIN", "user report: slow dataloader", OPS),
    ("DRAIN", "check cable port 12", OPS),
    ("DRAIN", "burn-in after repair", OPS),
    ("DOWN*", "Not responding", SLURM),
)


def idle_outages(timeline: Timeline, holding: Holding, seed: int) -> None:
    """Add outages of spare nodes to the timeline's events and absences; the run never notices."""
    rng = random.Random(f"{seed}:idle")
    for node in timeline.fleet.nodes:
        if holding.spans(node) == [(timeline.start, timeline.end)]:
            continue
        for begin, end in free(timeline, holding, node, start=timeline.start, end=timeline.end):
            if end - begin < _LEAST_SPAN or rng.random() > _SHARE * (end - begin) / _LEAST_SPAN:
                continue
            start = int(begin + (end - begin) * rng.uniform(0.1, 0.6))
            until = start + int((end - begin) * rng.uniform(0.02, 0.25))
            state, reason, user = rng.choice(_REASONS)
            timeline.events.append(NodeEvent(node, start, until, state, reason, user))
            timeline.absent.setdefault(node, []).append((float(start), float(until)))
            if state == "DOWN*":
                timeline.failed.add((node, start))
