"""What will stop the run, in which order, and about when."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flows.replay.mixes import counts, manual_count
from flows.replay.model import Signature

Planned = Literal["reservation", "drain", "owner_requeue", "owner_cancel"]
WATCHDOG_SHARE = 0.2
_DAY = 86_400.0
_LAST_QUIET = 3 * 3_600.0
_BURSTS, _LOOPS = 0.15, 0.03


@dataclass(slots=True)
class Stop:
    """One interruption to come.

    Attributes:
        at: about when, in seconds since the run's start.
        cause: cause code.
        signature: how it shows; None = planned.
        planned: how a planned stop is made; None = unexpected.
        is_loop: the attempt dies soon after its start-up, before it has saved anything.
        is_manual: the run comes back only when a person submits it again.
    """

    at: float
    cause: str
    signature: Signature | None = None
    planned: Planned | None = None
    is_loop: bool = False
    is_manual: bool = False


def draw(signatures: Sequence[Signature], mix: str, nodes: int, days: int, rng: random.Random) -> list[Stop]:
    """Draw the stops of a run in order of time.

    Raises:
        ValueError: no signature shows a cause that the mix has.
    """
    unexpected, planned = counts(mix, nodes, days, rng)
    stops = [Stop(0.0, cause) for cause, count in unexpected.items() for _ in range(count)]
    _give_signatures(stops, signatures, planned + len(stops), rng)
    stops += [_planned(n, planned, rng) for n in range(planned)]
    rng.shuffle(stops)
    for stop, at in zip(stops, times(len(stops), days, rng), strict=True):
        stop.at = at
    _mark(stops, rng)
    return stops


def times(count: int, days: int, rng: random.Random) -> list[float]:
    """Draw when: most anywhere, some in bursts soon after another."""
    until = days * _DAY - _LAST_QUIET
    points = [rng.uniform(1_800.0, until)]
    while len(points) < count:
        if rng.random() < _BURSTS:
            points.append(min(until, rng.choice(points) + rng.uniform(1_200.0, 3_600.0)))
        else:
            points.append(rng.uniform(1_800.0, until))
    return sorted(points)


def _planned(n: int, planned: int, rng: random.Random) -> Stop:
    """Two of three planned stops are maintenance, the others are changes that the owner makes."""
    if n < round(planned * 2 / 3):
        return Stop(0.0, "planned_maintenance", planned=rng.choice(("reservation", "drain")))
    return Stop(0.0, "operator_change", planned=rng.choice(("owner_requeue", "owner_requeue", "owner_cancel")))


def _give_signatures(stops: list[Stop], signatures: Sequence[Signature], all_stops: int, rng: random.Random) -> None:
    """Draw a signature for each; when the watchdog has ended its share, others are drawn where the cause has others."""
    by_cause: dict[str, list[Signature]] = {}
    for signature in signatures:
        by_cause.setdefault(signature.cause, []).append(signature)
    order = list(stops)
    rng.shuffle(order)
    # Causes that only ever end by watchdog come first: the others make room for them.
    order.sort(key=lambda stop: any(s.ending != "watchdog" for s in by_cause.get(stop.cause, ())))
    room = int(WATCHDOG_SHARE * all_stops)
    for stop in order:
        choices = by_cause.get(stop.cause)
        if not choices:
            raise ValueError(f"no signature shows the cause {stop.cause}")
        quick = [s for s in choices if s.ending != "watchdog"]
        if room <= 0 and quick:
            choices = quick
        stop.signature = rng.choices(choices, [s.weight for s in choices])[0]
        room -= stop.signature.ending == "watchdog"


def _mark(stops: list[Stop], rng: random.Random) -> None:
    """Say which attempts die at once, and which stops a person has to repair."""
    followers = [i for i in range(1, len(stops)) if stops[i].planned is None]
    for i in rng.sample(followers, max(1, round(_LOOPS * len(followers)))):
        stops[i].is_loop = True
    by_hand = [s for s in stops if s.signature and s.signature.ending in ("exit", "watchdog", "cancel")]
    for stop in rng.sample(by_hand, min(len(by_hand), manual_count(len(stops)))):
        stop.is_manual = True
