"""How times and host lists are printed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby


@lru_cache(maxsize=100_000)
def slurm_time(at: int) -> str:
    """Print `2024-06-03T08:00:00`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def stamp(at: float) -> str:
    """Print `20240603T080000Z`, as in file names."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(int(at)))


def micros(at: float) -> str:
    """Print `2024-06-03T08:00:00.123456`."""
    second = int(at)
    return f"{slurm_time(second)}.{int((at - second) * 1e6):06d}"


def elapsed(seconds: int) -> str:
    """Print `1-02:03:04`, without days where there are none."""
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


@lru_cache(maxsize=1_024)
def host_list(nodes: tuple[str, ...]) -> str:
    """Print `gpu[0001-0003,0007]`; names are sorted and end in digits of one width."""
    if len(nodes) == 1:
        return nodes[0]
    prefix = nodes[0].rstrip("0123456789")
    return f"{prefix}[{','.join(_ranges([n[len(prefix) :] for n in nodes]))}]"


def _ranges(numbers: Sequence[str]) -> list[str]:
    runs = groupby(enumerate(numbers), key=lambda pair: int(pair[1]) - pair[0])
    groups = [[number for _, number in run] for _, run in runs]
    return [g[0] if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups]
