"""How much memory, how many threads and how much spill space a build may take: what the container allows."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

MEMORY_SHARE = 0.6
"""Part of the memory given to DuckDB; the rest is for Python, Arrow and what DuckDB does not count."""
READER_SHARE = 0.2
"""The same for a session that reads, so that it fits beside a running build."""
SPILL_SHARE = 0.9
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a DuckDB session.

    Attributes:
        memory_limit: as DuckDB reads it, for example `1228MiB`.
        threads: number of threads.
        max_temp_directory_size: most that may be spilled, as DuckDB reads it.
    """

    memory_limit: str
    threads: int
    max_temp_directory_size: str


def detect(spill: Path, *, share: float = MEMORY_SHARE, root: Path = Path("/")) -> Limits:
    """Return limits that fit this process's control group and the volume of `spill`.

    Args:
        spill: existing folder on the volume that takes the spilled data.
        share: part of the memory to take.
        root: where `/proc` and `/sys` are found.
    """
    memory = int(_memory_bytes(root) * share) // _MIB
    room = int(shutil.disk_usage(spill).free * SPILL_SHARE) // _MIB
    return Limits(f"{max(memory, 64)}MiB", _threads(root), f"{max(room, 1)}MiB")


def _memory_bytes(root: Path) -> int:
    total = _meminfo(root)
    found = [n for folder in _groups(root, "memory") for n in [_number(folder / "memory.max")] if n]
    found += [n for folder in _groups(root, "memory") for n in [_number(folder / "memory.limit_in_bytes")] if n]
    return min([total, *found])


def _meminfo(root: Path) -> int:
    try:
        first = (root / "proc/meminfo").read_text().split("\n", 1)[0]
        return int(first.split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _threads(root: Path) -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in _groups(root, "cpu"):
        usable = min(usable, _quota(folder) or usable)
    return max(usable, 1)


def _quota(folder: Path) -> int | None:
    """CPUs of one control group, rounded up; None = no limit."""
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        q, p = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        return -(-q // p) if q and p else None
    return None if quota == "max" else -(-int(quota) // int(period))


def _groups(root: Path, controller: str) -> list[Path]:
    """Folders of this process's control group and its parents, of version 2 and 1.

    A limit of a parent holds for its children, and inside a container the group's own path is often not mounted.
    """
    base = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    folders = [base, base / controller]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):
            top = base if controllers == "" else base / controller
            own = top / path.lstrip("/")
            folders += [own, *(p for p in own.parents if p.is_relative_to(top))]
    return folders


def _number(path: Path) -> int | None:
    try:
        value = int(path.read_text())
    except (OSError, ValueError):
        return None
    return value if value > 0 else None
