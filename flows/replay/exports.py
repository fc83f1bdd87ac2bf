"""The whole replay: play the run, then write what every system would have exported."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from flows.replay.answers import TRUTH, write_config, write_truth
from flows.replay.fleet import build_fleet
from flows.replay.holding import Holding
from flows.replay.idle import idle_outages
from flows.replay.jobs import all_jobs
from flows.replay.kernel_log import write_kernel
from flows.replay.model import Line
from flows.replay.node_exports import write_diagnostics, write_health, write_inventory, write_sel
from flows.replay.noise import check_noise, kernel_noise, sel_noise
from flows.replay.scenes import incident_lines
from flows.replay.signatures import SIGNATURES
from flows.replay.slurm_exports import write_events, write_reservations, write_sacct
from flows.replay.timeline import Timeline, play
from flows.replay.train_log import write_training


def write_all(folder: Path, seed: int, nodes: int, days: int, mix: str, tell: Callable[[str], None]) -> None:
    """Write exports and truth, and the configuration last; see `flows.replay.generate`."""
    tell("playing the run")
    timeline = play(build_fleet(nodes, seed), SIGNATURES, mix, nodes, days, seed)
    holding = Holding(timeline)
    idle_outages(timeline, holding, seed)
    exports = folder / "exports"
    jobs, job_ids = all_jobs(timeline, holding, seed)
    tell("writing what Slurm knows")
    write_sacct(exports / "sacct", jobs, timeline)
    write_events(exports / "slurm", timeline.events, timeline)
    write_reservations(exports / "slurm", timeline.reservations, timeline)
    streams, ranks = _by_stream(timeline, seed)
    tell("writing the training log")
    write_training(exports / "train", timeline, job_ids, ranks, seed)
    tell("writing what nodes say")
    rng = random.Random(f"{seed}:sel")
    blips = sel_noise(timeline.fleet, timeline.start, timeline.end - timeline.start, rng)
    write_sel(exports / "sel", [*streams["sel"], *blips], timeline)
    rng = random.Random(f"{seed}:checks")
    for line in check_noise(timeline.fleet, timeline.start, timeline.end - timeline.start, holding, rng):
        streams[line.stream].append(line)
    write_health(exports / "health", streams["health"], timeline.fleet, seed)
    write_diagnostics(exports / "diag", streams["diagnostic"])
    write_inventory(exports / "inventory", timeline.fleet, seed)
    tell("writing the kernel logs of all nodes")
    kernel = [(line.at, line.node, line.text) for line in streams["kernel"]]
    write_kernel(exports / "kern", timeline, kernel, kernel_noise, holding, seed)
    write_truth(folder / TRUTH, timeline, job_ids)
    write_config(folder, timeline)


def _by_stream(timeline: Timeline, seed: int) -> tuple[dict[str, list[Line]], dict[int, list[Line]]]:
    """Lines of incidents by stream, and those of the training log by the attempt they ended."""
    streams: dict[str, list[Line]] = defaultdict(list)
    ranks: dict[int, list[Line]] = defaultdict(list)
    for attempt, line in incident_lines(timeline, seed):
        if line.stream == "training":
            ranks[attempt.number].append(line)
        else:
            streams[line.stream].append(line)
    return streams, ranks
