"""The evidence of an interruption, so that few lines tell of many: the verdict's own pieces; the rest is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from flows.cli.facts import ID_DIGITS
from flows.cli.terminal import clean, here, say, say_wrapped
from flows.cli.words import command, counted, spoken

Row = Mapping[str, Any]

PLACES = 5
"""Places of one record that the report names; the rest are counted."""

PIECES = 10
"""Pieces of evidence that the report shows; the rest are counted."""

CLASSES = 3
"""Classes that a line of counted pieces names."""

INDENT = 13
"""Where the words of a piece begin."""

ROLES = {
    "initiating": "what began it, as far as the records tell",
    "cascade": "followed from it, or came with it",
    "clean-up": "the job being torn down",
    "bystander": "trouble, but no part of it",
    "noise": "says nothing about it",
}
"""Roles of evidence in the order of the report, in words."""

_TOLD = ("initiating", "cascade")
_ELSEWHERE, _NOWHERE = "on other nodes", "without node"


def say_evidence(row: Row, *, is_all: bool) -> None:
    """Print the evidence of an interruption; unless `is_all`, only the verdict's own, and how many others there are."""
    say()
    if not row["evidence"]:
        say("Evidence: none in the window.")
        return
    say("Evidence, by its part:")
    say_wrapped(f"  ({'; '.join(f'{role} = {meaning}' for role, meaning in ROLES.items())})", 3)
    shown, rest = selected(row, PIECES)
    for item in [*shown, *rest] if is_all else shown:
        _say_piece(item)
    if rest and not is_all:
        for line in summed_up(rest, row["culprit_node"]):
            say_wrapped(f"  {line}", INDENT)
        every = command(f"explain {row['interruption_id'][:ID_DIGITS]} --all")
        say_wrapped(f"  `{every}` shows them", INDENT)


def selected(row: Row, limit: int) -> tuple[list[Row], list[Row]]:
    """Return the pieces that the verdict rests on, at most `limit`, and all others; each in the order of the report.

    Those of the node blamed, and those of none, come before what other nodes show; the heaviest come first. Where no
    cause is known, trouble near the end is told instead.
    """
    culprit = row["culprit_node"]
    told = {*_TOLD, "bystander"} if row["cause"] == "unknown" else {*_TOLD}
    ordered = sorted(row["evidence"], key=lambda item: _place_in_order(item, culprit))
    shown = [item for item in ordered if item["role"] in told][:limit]
    picked = {id(item) for item in shown}
    return shown, [item for item in ordered if id(item) not in picked]


def _place_in_order(item: Row, culprit: str | None) -> tuple[bool, bool, int, float, float]:
    roles = list(ROLES)
    role = item["role"]
    return (
        role != "initiating",
        _where(item, culprit) == _ELSEWHERE,
        roles.index(role) if role in roles else len(roles),
        -(item.get("weight") or 0.0),
        abs(item["seconds_before_end"] or 0),
    )


def summed_up(rest: Sequence[Row], culprit: str | None) -> list[str]:
    """Return lines that count pieces by their part and place, with the classes that most are of."""
    groups: dict[tuple[str, str], Counter[str]] = {}
    for item in rest:
        groups.setdefault((item["role"], _where(item, culprit)), Counter())[clean(item["class"])] += 1
    lines = []
    for (role, where), classes in groups.items():
        most = sorted(classes.items(), key=lambda found: (-found[1], found[0]))
        names = ", ".join(f"{number:,} {name}" for name, number in most[:CLASSES])
        more = f", {counted(len(most) - CLASSES, 'more class', 'more classes')}" if len(most) > CLASSES else ""
        lines.append(f"{sum(classes.values()):,} more of {role} {where}: {names}{more}")
    return lines


def _where(item: Row, culprit: str | None) -> str:
    if item["node"] is None:
        return _NOWHERE
    return f"on {clean(culprit)}" if item["node"] == culprit else _ELSEWHERE


def _say_piece(item: Row) -> None:
    device = "" if item["gpu"] is None else f" GPU {clean(item['gpu'])}"
    what = f"{clean(item['node'])}{device}  {clean(item['class'])}{_several(item)}"
    say_wrapped(f"  {item['role']:<10} {when(item['seconds_before_end']):>16}  {what}", INDENT)
    lines = [clean(item["text"]), *map(here, item["places"][:PLACES])]
    if (more := len(item["places"]) - PLACES) > 0:
        lines.append(f"and {counted(more, 'more place')}")
    for line in lines:
        say_wrapped(f"{' ' * INDENT}{line}", INDENT)


def _several(item: Row) -> str:
    """Return how many events one piece of evidence stands for, and until when they came."""
    if (item["events"] or 1) <= 1:
        return ""
    return f", {counted(item['events'], 'event')}" + _until(item["occurred_at"], item["last_at"])


def _until(first: datetime | None, last: datetime | None) -> str:
    if last is None or last == first:
        return ""
    last = last.astimezone(UTC)
    is_same_day = first is not None and first.astimezone(UTC).date() == last.date()
    return f", until {last:%H:%M:%S}" if is_same_day else f", until {last:%Y-%m-%d %H:%M:%S}"


def when(seconds_before_end: float | None) -> str:
    """Return when evidence happened, seen from the end of the attempt."""
    if seconds_before_end is None:
        return "at no known time"
    if seconds_before_end == 0:
        return "at the end"
    side = "before" if seconds_before_end > 0 else "after"
    return f"{spoken(abs(seconds_before_end))} {side}"
