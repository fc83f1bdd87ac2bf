"""The kernel lines of all nodes as a central syslog keeps them, one file a day."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from math import ceil
from pathlib import Path

from flows.replay.model import Fleet
from flows.replay.text import slurm_time
from flows.replay.timeline import DAY, Timeline

Kernel = tuple[float, str, str]
"""One kernel line: when (true time, seconds since 1970), node, text after `kernel: [...] `."""

Noise = Callable[[Fleet, float, float, Callable[[str, float], bool], random.Random, float], Iterable[Kernel]]
"""`flows.replay.noise.kernel_noise(fleet, start, seconds, held, rng, per_node_day)`: what machines say all day long.

Gives about `per_node_day * len(fleet.nodes) * seconds / 86400` lines with start <= at < start + seconds, in any order; a storm may go on past the
end. `held(node, at)` tells whether the run held the node then. This file sorts, adds the node's wrong clock, the stamp and the time
since boot, and makes some lines late or double. It is called once a day, so a plain list of tuples is quickest. `rng` is the day's own.
"""

PER_NODE_DAY = 28.0
_LATE, _TWICE = 0.003, 0.001
_MOST_LATE = 3_600.0
_BOOT = ("Linux version 5.15.0-1052 (build@host) #57 SMP", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07")
_BOOT_STEPS = (0.0, 21.0)


def boot_lines(timeline: Timeline) -> Iterable[Kernel]:
    """Yield what a node says when it boots after it was down or repaired."""
    for at, node in timeline.boots:
        for after, text in zip(_BOOT_STEPS, _BOOT, strict=True):
            yield at + after, node, text


def write_kernel(
    folder: Path,
    timeline: Timeline,
    incidents: Iterable[Kernel],
    noise: Noise,
    held: Callable[[str, float], bool],
    seed: int,
) -> None:
    """Write `kern-<YYYYmmdd>.log` for each day of the run, and for later days on which incidents left something.

    Args:
        folder: where the files go.
        timeline: the run.
        incidents: lines that incidents left, in any order.
        noise: gives everything else.
        held: whether the run held a node at an instant.
        seed: what chance is drawn from.
    """
    folder.mkdir(parents=True)
    by_day: dict[int, list[Kernel]] = defaultdict(list)
    for line in (*incidents, *boot_lines(timeline)):
        by_day[int(line[0]) // DAY].append(line)
    clock = _Clock(timeline, (line for lines in by_day.values() for line in lines), seed)
    first, last = timeline.start // DAY, (timeline.end - 1) // DAY
    for day in sorted({*range(first, last + 1), *by_day}):
        rng = random.Random(f"{seed}:kernel:{day}")
        lines = by_day.get(day, [])
        if first <= day <= last:
            start, end = max(day * DAY, timeline.start - 3_600), min((day + 1) * DAY, timeline.end + 3_600)
            lines = [*lines, *noise(timeline.fleet, start, end - start, held, rng, PER_NODE_DAY)]
        name = f"kern-{slurm_time(day * DAY)[:10].replace('-', '')}.log"
        with (folder / name).open("w", encoding="utf-8") as file:
            file.write("".join(clock.printed(_as_received(lines, (day + 1) * DAY, rng))))


def _as_received(lines: list[Kernel], midnight: float, rng: random.Random) -> list[Kernel]:
    """Put lines in the order in which the syslog server got them, which rotates at midnight; some come late, some twice."""
    lines.sort()
    count = len(lines)
    late = {}
    for _ in range(ceil(count * _LATE)):
        place = rng.randrange(count)
        late[place] = min(midnight, lines[place][0] + rng.uniform(5.0, _MOST_LATE))
    twice = {rng.randrange(count) for _ in range(ceil(count * _TWICE))}
    if not late and not twice:
        return lines
    keyed = [(late.get(place, line[0]), line) for place, line in enumerate(lines)]
    keyed += [(lines[place][0] + 0.0001, lines[place]) for place in sorted(twice)]
    keyed.sort()
    return [line for _, line in keyed]


class _Clock:
    """Prints lines by each node's own clock, with the seconds since it booted."""

    def __init__(self, timeline: Timeline, lines: Iterable[Kernel], seed: int) -> None:
        rng = random.Random(f"{seed}:boots")
        self._offset = timeline.fleet.clock_offset
        self._since = {node: timeline.start - rng.uniform(1.0e6, 9.0e6) for node in timeline.fleet.nodes}
        self._booted: dict[str, list[float]] = defaultdict(list)
        for at, node, text in sorted(lines):
            if text.startswith("Linux version"):
                self._booted[node].append(at)

    def printed(self, lines: Iterable[Kernel]) -> Iterator[str]:
        """Yield lines as syslog keeps them."""
        offsets, since, booted = self._offset, self._since, self._booted
        minutes: dict[int, str] = {}
        for at, node, text in lines:
            base = self._base(node, at) if node in booted else since[node]
            shown = at + offsets[node]
            second = int(shown)
            minute = second // 60
            if minute not in minutes:
                minutes[minute] = slurm_time(minute * 60)[:-2]
            yield (
                f"{minutes[minute]}{second % 60:02d}.{int((shown - second) * 1e6):06d}+00:00 {node} kernel:"
                f" [{at - base:12.6f}] {text}\n"
            )

    def _base(self, node: str, at: float) -> float:
        """When the node had booted last."""
        before = bisect_right(self._booted[node], at)
        return self._booted[node][before - 1] if before else self._since[node]
