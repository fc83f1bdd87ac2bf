"""Join the report of a lost GPU that the driver prints as three lines.

`NVRM: The NVIDIA GPU 0000:b3:00.0` / `NVRM: (PCI ID: 10de:2330) installed in this system has` / `NVRM: fallen off the bus and is
not responding to commands.` (NVIDIA/open-gpu-kernel-modules, osinit.c). Only the first names the GPU, and other lines
may stand between them; dmesg prints the second and third without a stamp.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from transforms.parsing.kernel.event import Event
from transforms.parsing.log_stamps import Instant

MAX_OPEN = 4_096
SPAN_US = 10_000_000  # one printk: its lines bear the same stamp, give or take what the logger adds


class Told(NamedTuple):
    """An event with its place in the file.

    Attributes:
        event: what the message says.
        node: node that printed it.
        when: its time; None where the line has none.
        monotonic_us: microseconds since boot.
        line: number of its (first) line.
        text: the message; parts of a joined report are joined by blanks.
        flags: what was assumed in reading the line.
        lines: how many lines tell it.
    """

    event: Event
    node: str | None
    when: Instant | None
    monotonic_us: int | None
    line: int
    text: str
    flags: tuple[str, ...] = ()
    lines: int = 1


@dataclass(slots=True)
class LostGpus:
    """Reports that have begun, by node. A part without a header belongs to the report that began last."""

    _open: dict[str | None, Told] = field(default_factory=dict)
    _last: str | None = None

    def begin(self, told: Told) -> Told | None:
        """Take the first part; return a report that stays unfinished: one of the same node, or the oldest of too many."""
        before = self._open.pop(told.node, None)
        if before is None and len(self._open) >= MAX_OPEN:
            before = self._open.pop(next(iter(self._open)))
        self._open[told.node] = told
        self._last = told.node
        return before

    def middle(self, told: Told, *, has_header: bool) -> bool:
        """Take the second part; tell whether it belongs to a report that has begun."""
        node = told.node if has_header else self._last
        head = self._open.get(node)
        if head is None or head.lines > 1 or not _is_near(head, told):
            return False
        self._open[node] = _joined(head, told)
        return True

    def end(self, told: Told, *, has_header: bool) -> Told:
        """Take the last part; return the whole event, without a device where the first part is missing."""
        node = told.node if has_header else self._last
        head = self._open.get(node)
        if head is None or not _is_near(head, told):
            return told
        del self._open[node]
        return _joined(head, told)

    def unfinished(self) -> list[Told]:
        """Return the reports that began and never ended, and forget them."""
        rest = list(self._open.values())
        self._open.clear()
        return rest


def _is_near(head: Told, part: Told) -> bool:
    if head.when is None or part.when is None:
        return True
    return abs(part.when.us - head.when.us) <= SPAN_US


def _joined(head: Told, part: Told) -> Told:
    flags = dict.fromkeys((*head.flags, *part.flags, "merged_lines"))
    return head._replace(text=f"{head.text} {part.text}", lines=head.lines + part.lines, flags=tuple(flags))
