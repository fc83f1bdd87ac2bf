"""The machines: names, where they stand, what is in them, how wrong their clocks are."""

from __future__ import annotations

import random

from flows.replay.model import Fleet

CLUSTER = "atlas"
GPUS = 8
_RACK, _SWITCH = 4, 16
# Bus addresses of GPUs and of the adapter beside each in an eight-GPU H100 server.
_GPU_BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
_NIC_BUSES = ("18", "40", "4f", "5e", "9a", "c0", "ce", "dc")


def build_fleet(nodes: int, seed: int) -> Fleet:
    """Make the machines of a run of `nodes` nodes, with 3 % of spares, four at least."""
    rng = random.Random(f"{seed}:fleet")
    spares = max(4, round(0.03 * nodes))
    names = tuple(f"gpu{n:04d}" for n in range(1, nodes + spares + 1))
    return Fleet(
        cluster=CLUSTER,
        nodes=names,
        gpus=GPUS,
        pci=tuple(f"0000:{bus}:00" for bus in _GPU_BUSES),
        nics=tuple((f"mlx5_{i}", f"0000:{bus}:00.0") for i, bus in enumerate(_NIC_BUSES)),
        racks={name: f"r{n // _RACK + 1:03d}" for n, name in enumerate(names)},
        switches={name: f"leaf{n // _SWITCH + 1:03d}" for n, name in enumerate(names)},
        clock_offset=_clocks(names, rng),
    )


def _clocks(names: tuple[str, ...], rng: random.Random) -> dict[str, float]:
    """Most clocks are good to two seconds; on a few nodes time synchronization is broken."""
    offsets = {name: round(max(-2.0, min(2.0, rng.gauss(0.0, 0.5))), 3) for name in names}
    for name in rng.sample(names, max(1, len(names) // 400)):
        offsets[name] = round(rng.choice((-1, 1)) * rng.uniform(10.0, 40.0), 3)
    return offsets
