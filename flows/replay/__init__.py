"""The replay generator: writes what the systems of a large GPU cluster would have exported. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flows.replay.mixes import weights_of

LEAST_NODES = 16


def generate(
    folder: Path,
    *,
    seed: int = 1,
    nodes: int = 2048,
    days: int = 54,
    mix: str = "llama3",
    progress: Callable[[str], None] | None = None,
) -> None:
    """Write the exports of a training run, the truth about it, and at last the configuration that reads them.

    The same arguments give the same bytes on every machine.

    Args:
        folder: gets `exports/`, `truth.jsonl` and `goodput.toml`; must not hold `exports` yet.
        seed: what chance is drawn from.
        nodes: nodes of the run, eight GPUs each; 16 at least. Spares come on top.
        days: length of the run, from its first start to its last end.
        mix: how often each cause stops it, a key of `flows.replay.mixes.MIXES`.
        progress: told what is being written.

    Raises:
        ValueError: a number is too small, or there is no such mix.
    """
    if nodes < LEAST_NODES:
        raise ValueError(f"{nodes} nodes are too few for a replay; give {LEAST_NODES} at least")
    if days < 1:
        raise ValueError(f"{days} days are too few for a replay; give 1 at least")
    weights_of(mix)
    from flows.replay.exports import write_all  # all the rest is loaded only when it is asked for

    write_all(folder, seed, nodes, days, mix, progress or _silent)


def _silent(_: str) -> None:
    """Tell nobody."""
