"""Find a zone for times that carry none, from stamps beside them that do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from flows.init_look import Offset

COMMON = (
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Helsinki", "America/New_York", "America/Chicago", "America/Denver",
    "America/Los_Angeles", "America/Phoenix", "America/Sao_Paulo", "Asia/Dubai", "Asia/Kolkata", "Asia/Singapore",
    "Asia/Shanghai", "Asia/Tokyo", "Australia/Sydney", "Australia/Perth", "Pacific/Auckland", "Africa/Johannesburg",
)  # fmt: skip
"""Zones that are tried, one for each custom of large computing centres."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ZoneGuess:
    """A zone for times without one.

    Attributes:
        zone: IANA zone.
        why: where it comes from, and what to check.
        is_blind: nothing in the exports tells; the zone is a placeholder.
    """

    zone: str
    why: str
    is_blind: bool = False


def guess(offsets: Mapping[Path, Sequence[Offset]]) -> ZoneGuess:
    """Return the zone that the offsets printed in some of the exports speak for.

    Args:
        offsets: stamps with an offset by the file they stand in.
    """
    seen = sorted({o.offset for found in offsets.values() for o in found})
    if not seen:
        why = "a guess: no export says; give the zone these times were printed in"
        return ZoneGuess("UTC", why, is_blind=True)
    places = ", ".join(f"{shown(o)} in {_example(offsets, o)}" for o in seen)
    likely = [z for z in COMMON if all(_fits(z, o) for found in offsets.values() for o in found)]
    if seen == [timedelta()]:
        why = f"seen {places}, which `--utc` prints anywhere; give the zone the other exports were printed in"
        return ZoneGuess("UTC", why)
    if len(seen) == 1 and not seen[0] % HOUR:
        real = f"likely {_quoted(likely[:2])}, whose clocks may change in summer" if likely else "give the real zone"
        return ZoneGuess(_fixed(seen[0]), f"seen {places}; {real}: this fixed offset does not", is_blind=False)
    if likely:
        return ZoneGuess(likely[0], f"seen {places}; of the common zones this one fits")
    return ZoneGuess("UTC", f"a guess: seen {places}, which no common zone fits; give the real zone", is_blind=True)


def shown(offset: timedelta) -> str:
    """Return an offset as stamps print it: +0100."""
    minutes = int(offset.total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"


def _fixed(offset: timedelta) -> str:
    """Return the zone with this offset all year; its sign is the other way round."""
    hours = offset // HOUR
    return f"Etc/GMT{'-' if hours > 0 else '+'}{abs(hours)}"


def _fits(zone: str, seen: Offset) -> bool:
    return ZoneInfo(zone).utcoffset(seen.local) == seen.offset


def _example(offsets: Mapping[Path, Sequence[Offset]], offset: timedelta) -> str:
    return min(path for path, found in offsets.items() if any(o.offset == offset for o in found)).name


def _quoted(zones: Sequence[str]) -> str:
    return " or ".join(zones)
