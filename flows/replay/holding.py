"""When the run held which node, and when other nodes were free."""

from __future__ import annotations

from bisect import bisect_right

from flows.replay.timeline import Timeline

Spans = list[tuple[float, float]]


class Holding:
    """Answers whether the run held a node at an instant."""

    def __init__(self, timeline: Timeline) -> None:
        self._starts = [float(a.started_at) for a in timeline.attempts]
        self._ends = [float(a.ended_at) for a in timeline.attempts]
        self._turns = _turns(timeline)

    def __call__(self, node: str, at: float) -> bool:
        """Tell whether an attempt that ran at `at` held `node`."""
        number = bisect_right(self._starts, at) - 1
        if number < 0 or at > self._ends[number]:
            return False
        turns = self._turns.get(node, ())
        return any(first <= number <= last for first, last in turns)

    def spans(self, node: str) -> Spans:
        """Return when the run held or was about to hold a node again: from the first start to the last end of a turn."""
        return [(self._starts[first], self._ends[last]) for first, last in self._turns.get(node, ())]


def _turns(timeline: Timeline) -> dict[str, list[tuple[int, int]]]:
    """For each node, the first and last of each row of attempts that held it."""
    turns: dict[str, list[tuple[int, int]]] = {}
    since: dict[str, int] = {}
    before: tuple[str, ...] = ()
    for attempt in timeline.attempts:
        if attempt.nodes == before:
            continue
        was, now = set(before), set(attempt.nodes)
        for node in sorted(was - now):
            turns.setdefault(node, []).append((since.pop(node), attempt.number - 1))
        for node in sorted(now - was):
            since[node] = attempt.number
        before = attempt.nodes
    for node, first in sorted(since.items()):
        turns.setdefault(node, []).append((first, len(timeline.attempts) - 1))
    return turns


def free(timeline: Timeline, holding: Holding, node: str, *, start: float, end: float) -> Spans:
    """Return when a node was neither held by the run nor out, between two instants."""
    taken = sorted([*holding.spans(node), *timeline.absent.get(node, ())])
    at, spans = start, []
    for busy_from, busy_until in taken:
        if busy_from > at:
            spans.append((at, min(busy_from, end)))
        at = max(at, busy_until)
    if at < end:
        spans.append((at, end))
    return [(a, b) for a, b in spans if b > a]
