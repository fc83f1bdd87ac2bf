"""What the machines of a healthy fleet say all day long: chatter, and about one line in a hundred that looks like trouble and is none.

Speed matters here, as these are millions of lines: texts are made once and drawn from a pool, each day anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from flows.replay.model import Fleet, Line
from flows.replay.noise_benign import CRASHES, FREE, HELD, benign
from flows.replay.noise_chatter import STORMS, Episode, episodes
from flows.replay.noise_quiet import CHECKS, sel_episode
from flows.replay.signatures.dcgm import report

Kernel = tuple[float, str, str]
Held = Callable[[str, float], bool]

POOL = 6_000
"""Episodes made each day, from which all nodes draw."""
BENIGN_SHARE = 0.01
STORM_NODES_A_DAY = 0.001
OTHERS_A_NODE_DAY = 0.7
SEL_A_NODE_DAY = 0.02
CHECKS_A_NODE_DAY = 0.002
DIAGNOSTICS_A_FREE_NODE_DAY = 0.03


def kernel_noise(
    fleet: Fleet, start: float, seconds: float, held: Held, rng: random.Random, per_node_day: float
) -> list[Kernel]:
    """Kernel lines of all nodes that tell of no incident.

    Args:
        fleet: the machines.
        start: first instant, seconds since 1970.
        seconds: for how long.
        held: whether the run held a node at an instant.
        rng: source of chance.
        per_node_day: lines a node and day, about.

    Returns:
        (when, node, text) in no order of time.
    """
    wanted = per_node_day * len(fleet.nodes) * seconds / 86_400
    lines: list[Kernel] = []
    _benign_lines(lines, fleet, start, seconds, held, rng, wanted * BENIGN_SHARE)
    _others_crash(lines, fleet, start, seconds, held, rng)
    _storms(lines, fleet, start, seconds, rng)
    _chatter(lines, fleet.nodes, start, seconds, rng, int(wanted))
    return lines


def _chatter(
    lines: list[Kernel], nodes: tuple[str, ...], start: float, seconds: float, rng: random.Random, wanted: int
) -> None:
    """Fill up to the wanted number with chatter: the hot loop, three draws a line or fewer."""
    pool = episodes(rng, POOL, start, seconds)
    chance, add, many, among = rng.random, lines.append, len(pool), len(nodes)
    while len(lines) < wanted:
        at = start + chance() * seconds
        node = nodes[int(chance() * among)]
        for after, text in pool[int(chance() * many)]:
            add((at + after, node, text))


def _benign_lines(
    lines: list[Kernel], fleet: Fleet, start: float, seconds: float, held: Held, rng: random.Random, wanted: float
) -> None:
    """Corrected errors and bounces on the run's nodes; others' crashes on the rest."""
    nodes, most = fleet.nodes, len(lines) + int(wanted)
    while len(lines) < most:
        at, node = start + rng.random() * seconds, rng.choice(nodes)
        _put(lines, at, node, benign(fleet, HELD if held(node, at) else FREE, at, rng))


def _others_crash(
    lines: list[Kernel], fleet: Fleet, start: float, seconds: float, held: Held, rng: random.Random
) -> None:
    """Other people's jobs fault and are cancelled on the nodes that the run does not hold."""
    for node in fleet.nodes:
        at = start + rng.random() * seconds
        if rng.random() < OTHERS_A_NODE_DAY * seconds / 86_400 and not held(node, at):
            _put(lines, at, node, benign(fleet, CRASHES, at, rng))


def _storms(lines: list[Kernel], fleet: Fleet, start: float, seconds: float, rng: random.Random) -> None:
    """A few nodes that repeat one line some hundred times."""
    expected = STORM_NODES_A_DAY * len(fleet.nodes) * seconds / 86_400
    for _ in range(_about(expected, rng)):
        at, node = start + rng.random() * seconds, rng.choice(fleet.nodes)
        text, pause = rng.choice(STORMS)
        _put(lines, at, node, [(n * pause, text) for n in range(rng.randint(60, 500))])


def _put(lines: list[Kernel], at: float, node: str, episode: Episode) -> None:
    lines.extend((at + after, node, text) for after, text in episode)


def sel_noise(fleet: Fleet, start: float, seconds: float, rng: random.Random) -> list[Line]:
    """Records that management controllers write and that tell of no incident: inputs that blink, doors, corrected errors."""
    lines: list[Line] = []
    for _ in range(_about(SEL_A_NODE_DAY * len(fleet.nodes) * seconds / 86_400, rng)):
        at, node = start + rng.random() * seconds, rng.choice(fleet.nodes)
        lines += [Line(float(int(at + after)), node, "sel", text) for after, text in sel_episode(rng)]
    return lines


def check_noise(fleet: Fleet, start: float, seconds: float, held: Held, rng: random.Random) -> list[Line]:
    """Checks that fail for a moment anywhere, and diagnostics that pass on nodes that the run does not hold."""
    lines: list[Line] = []
    for _ in range(_about(CHECKS_A_NODE_DAY * len(fleet.nodes) * seconds / 86_400, rng)):
        at, node = start + rng.random() * seconds, rng.choice(fleet.nodes)
        lines.append(Line(at, node, "health", f"ERROR:  nhc:  Health check failed:  {rng.choice(CHECKS)}"))
    for _ in range(_about(DIAGNOSTICS_A_FREE_NODE_DAY * len(fleet.nodes) * seconds / 86_400, rng)):
        at, node = start + rng.random() * seconds, rng.choice(fleet.nodes)
        if not held(node, at):
            lines.append(Line(at, node, "diagnostic", report(node, fleet.gpus)))
    return lines


def _about(expected: float, rng: random.Random) -> int:
    return int(expected + rng.random())
