"""Lines as machines and ranks write them, in the forms of the drivers' and tools' own format strings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from flows.replay.model import Line, Scene

PRINTK_STEP = 0.00006
"""Seconds between two kernel lines of one message."""


def kernel(node: str, at: float, *texts: str, step: float = PRINTK_STEP) -> Iterator[Line]:
    """Kernel lines of one message, `step` seconds apart."""
    for place, text in enumerate(texts):
        yield Line(at + place * step, node, "kernel", text)


def sel(node: str, at: float, sensor: str, event: str, state: str = "Asserted") -> Line:
    """One record of `ipmitool sel elist`: BMC clocks count whole seconds."""
    return Line(float(int(at)), node, "sel", f"{sensor} | {event} | {state}")


def health(node: str, at: float, text: str) -> Line:
    """One failed check in NHC's log; `text` begins with the check's name."""
    return Line(at, node, "health", f"ERROR:  nhc:  Health check failed:  {text}")


def rank(scene: Scene, node: str, gpu: int) -> int:
    """Rank that runs on a GPU."""
    first = scene.ranks.get(node)
    return (scene.fleet.nodes.index(node) * scene.fleet.gpus if first is None else first) + gpu


def said(scene: Scene, node: str, gpu: int, at: float, texts: Iterable[str]) -> Iterator[Line]:
    """What one rank prints; PyTorch puts its rank before each line of an uncaught exception."""
    number = rank(scene, node, gpu)
    for place, text in enumerate(texts):
        yield Line(at + place * 0.0002, node, "training", f"[rank{number}]: {text}")


def process_group(scene: Scene, node: str, gpu: int, at: float, source_line: int, text: str) -> Line:
    """One error of PyTorch's ProcessGroupNCCL: the stamp in brackets is UTC, the month not padded."""
    number = rank(scene, node, gpu)
    clock = time.gmtime(at)
    stamp = f"E{clock.tm_mon}{clock.tm_mday:02d} {time.strftime('%H:%M:%S', clock)}.{int(at % 1 * 1e9):09d}"
    text = f"[rank{number}]:[{stamp} ProcessGroupNCCL.cpp:{source_line}] [Rank {number}] {text}"
    return Line(at, node, "training", text)


def between(scene: Scene, first: float, last: float) -> float:
    """An instant between two, by the scene's own chance; the first if they are out of order."""
    return first + scene.rng.random() * max(0.0, last - first)
