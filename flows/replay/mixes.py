"""How often things go wrong, and which: Table 5 of "The Llama 3 Herd of Models" (arXiv 2407.21783), and other fleets."""

from __future__ import annotations

import random

TABLE_5 = {
    "gpu_faulty": 148,
    "gpu_hbm": 72,
    "software_bug": 54,
    "network_switch_cable": 35,
    "host_maintenance": 32,
    "gpu_sram": 19,
    "gpu_system_processor": 17,
    "nic": 7,
    "nccl_watchdog": 7,
    "silent_data_corruption": 6,
    "gpu_thermal": 6,
    "ssd": 3,
    "power_supply": 3,
    "server_chassis": 2,
    "io_expansion_board": 2,
    "dependency": 2,
    "cpu": 2,
    "system_memory": 2,
}
"""Unexpected interruptions by cause, in the paper's order."""

PLANNED = 47
TABLE_5_NODE_DAYS = 2048 * 54
MANUAL = 3
# A small fleet would see nothing happen: it is given at least so many, whatever its rate.
_LEAST_UNEXPECTED, _LEAST_PLANNED = 6, 2

MIXES: dict[str, dict[str, int]] = {
    "llama3": TABLE_5,
    # Fleets with weak memory or hot spots: half of all stops are memory.
    "hbm_heavy": TABLE_5 | {"gpu_faulty": 60, "gpu_hbm": 190, "gpu_sram": 45, "gpu_thermal": 20},
    # Young fabrics: optics, cables and adapters before anything else.
    "network_heavy": TABLE_5 | {"gpu_faulty": 60, "network_switch_cable": 150, "nic": 45, "nccl_watchdog": 20},
    # Young code, on storage that is not ready for it.
    "software_heavy": TABLE_5 | {"gpu_faulty": 60, "software_bug": 190, "dependency": 40, "silent_data_corruption": 12},
}
"""Weight of each cause in each mix."""


def weights_of(mix: str) -> dict[str, int]:
    """Return the weights of a mix.

    Raises:
        ValueError: there is no such mix.
    """
    if mix not in MIXES:
        raise ValueError(f"no mix is called {mix!r}; choose one of {', '.join(MIXES)}")
    return MIXES[mix]


def counts(mix: str, nodes: int, days: int, rng: random.Random) -> tuple[dict[str, int], int]:
    """Return how many unexpected stops of each cause there are, and how many planned ones, in proportion to node-days.

    What is left after each cause has its whole part goes to causes drawn by their remainders, so that rare causes occur in small
    fleets too. The paper's own fleet and mix give the paper's own counts.
    """
    weights = weights_of(mix)
    total = max(_LEAST_UNEXPECTED, _scaled(sum(TABLE_5.values()), nodes, days))
    parts = {cause: divmod(total * weight, sum(weights.values())) for cause, weight in weights.items()}
    shares = {cause: whole for cause, (whole, _) in parts.items()}
    left = {cause: float(rest) for cause, (_, rest) in parts.items() if rest}
    for _ in range(total - sum(shares.values())):
        cause = rng.choices(list(left), list(left.values()))[0]
        del left[cause]
        shares[cause] += 1
    return shares, max(_LEAST_PLANNED, _scaled(PLANNED, nodes, days))


def _scaled(count: int, nodes: int, days: int) -> int:
    return round(count * nodes * days / TABLE_5_NODE_DAYS)


def manual_count(stops: int) -> int:
    """Return how many recoveries are made by hand: 3 of 466, and one at least."""
    return max(1, round(MANUAL * stops / (sum(TABLE_5.values()) + PLANNED)))
