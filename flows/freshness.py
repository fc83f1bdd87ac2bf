"""How fresh each configured source is: when it was collected last, how often it usually is, and whether that is overdue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median

from flows.config import Config
from flows.ingesting import still_there
from flows.landing import expression
from flows.manifest import FAILED, LOADED, Manifest

STALE_SECONDS = 48 * 3600.0
"""A source with nothing new for so long is stale where too few collections tell how often it usually comes."""
STALE_INTERVALS = 3
STALE_GAPS = 20
"""How often it usually comes is told by so many of the last rounds: collectors are set to other hours now and then."""
ROUND_SECONDS = 600.0
"""Files collected within so long of each other, as one per node, are one round of collecting."""

_FILES = """
    select path, max(source), max(collected_at), sum(coalesce(lines_rejected, 0)),
        max(status = ? and is_current), max(status = ?)
    from pieces group by path order by path
"""
_ROUNDS = "select distinct path, collected_at from pieces where status = ? order by collected_at"


@dataclass(slots=True)
class Freshness:
    """How fresh a source is.

    Attributes:
        source: its name; None = files of a source that is no longer configured.
        formats: formats of its files.
        files: files that were read.
        files_failed: files of it that could not be read, and that a source matches still: the others are no problem.
        lines_rejected: lines that could not be read.
        collected_at: UTC time of its newest collection; None = nothing was read yet.
        age_seconds: how long ago that was.
        usual_seconds: how long usually lies between two rounds of collecting; None = too few tell.
        is_stale: nothing new for three times that, for 48 h where it is unknown, or nothing at all. A source whose
            collection time is configured is never stale: it can bring nothing newer.
    """

    source: str | None
    formats: set[str] = field(default_factory=set)
    files: int = 0
    files_failed: int = 0
    lines_rejected: int = 0
    collected_at: datetime | None = None
    age_seconds: float | None = None
    usual_seconds: float | None = None
    is_stale: bool = False


def freshness(config: Config, manifest: Manifest | None, now: datetime) -> list[Freshness]:
    """Return how fresh each source is, in the order of the configuration, then what is no longer configured.

    Args:
        config: the configuration.
        manifest: what was read; None = nothing yet.
        now: UTC.
    """
    found = {source.name: Freshness(source.name) for source in config.sources}
    rounds: dict[str, list[datetime]] = {}
    if manifest is not None:
        names = _Names(config)
        gone = Freshness(None)
        files = list(manifest.select(_FILES, (FAILED, LOADED)))
        failed = [path for path, _, _, _, is_failed, _ in files if is_failed]
        problems = still_there(config, failed) if failed else set()  # looks at every folder
        for path, source, collected_at, rejected, _, is_loaded in files:
            one = found.get(names.of(path) or "", gone)
            one.files += is_loaded
            one.files_failed += path in problems
            one.lines_rejected += rejected
            if source and is_loaded:
                one.formats.add(source)
            if is_loaded:
                one.collected_at = _later(one.collected_at, datetime.fromisoformat(collected_at))
        for path, collected_at in manifest.select(_ROUNDS, (LOADED,)):
            rounds.setdefault(names.of(path) or "", []).append(datetime.fromisoformat(collected_at))
        if gone.files or gone.files_failed:
            found[""] = gone
    fixed = {source.name for source in config.sources if source.collected_at is not None}
    for name, one in found.items():
        _judge(one, rounds.get(name, []), now, can_age=name not in fixed)
    return list(found.values())


def _judge(one: Freshness, collected: list[datetime], now: datetime, *, can_age: bool) -> None:
    one.usual_seconds = interval(collected)
    if one.collected_at is not None:
        one.age_seconds = (now - one.collected_at).total_seconds()
    if one.age_seconds is None:
        one.is_stale = one.source is not None
    elif one.source is not None and can_age:
        one.is_stale = is_stale(one.age_seconds, one.usual_seconds)


def is_stale(age_seconds: float, usual_seconds: float | None) -> bool:
    """Tell whether a source that was collected so long ago is overdue."""
    return age_seconds > (STALE_SECONDS if usual_seconds is None else STALE_INTERVALS * usual_seconds)


def interval(collected: Iterable[datetime]) -> float | None:
    """Return how many seconds usually lie between two rounds of collecting; None where fewer than three tell.

    Args:
        collected: times of collection, in order.
    """
    rounds = [(b - a).total_seconds() for a, b in pairwise(collected)]
    gaps = [gap for gap in rounds if gap > ROUND_SECONDS]
    return median(gaps[-STALE_GAPS:]) if len(gaps) >= 2 else None


class _Names:
    """Which source a path belongs to: the first whose pattern it fits, as ingest gives it out."""

    def __init__(self, config: Config) -> None:
        self._patterns = [(s.name, expression(s.path), expression(s.path, is_loose=True)) for s in config.sources]
        self._known: dict[str, str | None] = {}

    def of(self, path: str) -> str | None:
        if path not in self._known:
            fits = (n for n, exact, loose in self._patterns if exact.fullmatch(path) or loose.fullmatch(path))
            self._known[path] = next(fits, None)
        return self._known[path]


def _later(one: datetime | None, other: datetime) -> datetime:
    return other if one is None or other > one else one
