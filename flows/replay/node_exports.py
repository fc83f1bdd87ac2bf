"""What nodes and their management controllers say when asked, and where they stand: SEL, health checks, diagnostics, inventory."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from flows.replay.model import Fleet, Line
from flows.replay.slurm_exports import weeks
from flows.replay.text import micros, stamp
from flows.replay.timeline import Timeline

_POD_RACKS = 64
_HEALTH_HEAD = "ERROR:  nhc:  "


def write_sel(folder: Path, lines: Iterable[Line], timeline: Timeline) -> None:
    """Write `pdsh ... ipmitool sel elist` once a week: each time everything that a controller holds, by its own clock."""
    folder.mkdir(parents=True)
    by_node: dict[str, list[Line]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: (line.at, line.text)):
        by_node[line.node].append(line)
    offsets = timeline.fleet.clock_offset
    for now in weeks(timeline):
        rows = [
            f"{node}: {number:4x} | {_sel_time(line.at + offsets[node])} | {line.text}"
            for node in sorted(by_node)
            for number, line in enumerate(by_node[node], 1)
            if line.at <= now
        ]
        if rows:
            (folder / f"sel_{stamp(now)}.txt").write_text("\n".join([*rows, ""]))


def _sel_time(at: float) -> str:
    return time.strftime("%m/%d/%Y | %H:%M:%S", time.gmtime(int(at)))


def write_health(folder: Path, lines: Iterable[Line], fleet: Fleet, seed: int) -> None:
    """Write the health checks' lines of the central syslog, `nhc.log`."""
    folder.mkdir(parents=True)
    rng = random.Random(f"{seed}:health")
    rows = []
    for line in sorted(lines, key=lambda line: (line.at, line.node, line.text)):
        shown = micros(line.at + fleet.clock_offset[line.node])
        rows.append(
            f"{shown}+00:00 {line.node} nhc[{rng.randrange(2_000, 4_000_000)}]: {line.text.removeprefix(_HEALTH_HEAD)}"
        )
    if rows:
        (folder / "nhc.log").write_text("\n".join([*rows, ""]))


def write_diagnostics(folder: Path, lines: Iterable[Line]) -> None:
    """Write `dcgmi diag -j` of each node that was examined, named for node and time."""
    folder.mkdir(parents=True)
    for line in lines:
        (folder / f"{line.node}_{stamp(line.at)}.json").write_text(line.text + "\n")


def write_inventory(folder: Path, fleet: Fleet, seed: int) -> None:
    """Write which GPU is where, and where each node stands."""
    folder.mkdir(parents=True)
    rng = random.Random(f"{seed}:inventory")
    gpus = ["node,gpu_index,pci_bus_id,uuid,serial"]
    for node in fleet.nodes:
        for index, address in enumerate(fleet.pci):
            gpus.append(f"{node},{index},0000{address}.0,{_uuid(rng)},{rng.randrange(10**12, 2 * 10**12)}")
    (folder / "gpu_inventory.csv").write_text("\n".join([*gpus, ""]))
    racks = [
        f"{node},{fleet.racks[node]},pod{1 + (int(fleet.racks[node][1:]) - 1) // _POD_RACKS:02d},{fleet.switches[node]}"
        for node in fleet.nodes
    ]
    (folder / "topology.csv").write_text("\n".join(["node,rack,pod,switch", *racks, ""]))


def _uuid(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
