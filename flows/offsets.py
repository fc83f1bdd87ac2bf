"""Compare the offsets from UTC that logs print with the zone that their times without one are read in."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

from flows.config import Config, SourceConfig
from flows.init_look import Offset, offsets_in
from flows.init_zone import COMMON, shown
from flows.landing import some
from transforms.stream import opened

LOGS = frozenset({"kernel_log", "training_log"})
"""Formats whose lines begin with a stamp that may carry an offset."""
FILES = 3
"""How many files of a source are opened at most: the first that prints offsets is enough."""
READ_BYTES = 4096
_WIDEST = timedelta(hours=14)


@dataclass(frozen=True, slots=True)
class Clash:
    """A stamp of a log whose offset the zone of its cluster does not have at that time.

    Attributes:
        cluster: the cluster.
        zone: the zone that times without offset are read in: of the source, else of the cluster.
        is_own: it is the source's own.
        source: the source of the log.
        path: the log.
        stamp: what it prints.
        had: the offset of the zone then.
        likely: common zones that have the printed offset then.
    """

    cluster: str
    zone: str
    is_own: bool
    source: SourceConfig
    path: Path
    stamp: Offset
    had: timedelta
    likely: tuple[str, ...]


def clashes(config: Config) -> list[Clash]:
    """Look at the beginning of a few logs of each source, and return one clash for each cluster, zone and offset.

    Stamps in UTC clash with nothing: many sites log in UTC and let Slurm print local times. Nor does the zone of a cluster where
    each source of anything but logs has its own. What cannot be read tells nothing.
    """
    found: dict[tuple[str, str, timedelta], Clash] = {}
    zones = {cluster: zone for cluster, zone in config.zones().items() if _is_used(config, cluster)}
    for source in config.sources:
        if source.format is not None and source.format not in LOGS:
            continue
        for cluster, pattern in _by_cluster(config, source):
            zone = source.zone or zones.get(cluster)
            for path, stamp in _stamps(pattern) if zone else ():
                had = _offset_at(zone or "", stamp)
                if stamp.offset and had is not None and had != stamp.offset:
                    likely = tuple(z for z in COMMON if _offset_at(z, stamp) == stamp.offset)
                    clash = Clash(cluster, zone or "", source.zone is not None, source, path, stamp, had, likely)
                    found.setdefault((cluster, clash.zone, stamp.offset), clash)
    return [found[key] for key in sorted(found)]


def _is_used(config: Config, cluster: str) -> bool:
    """Tell whether anything but logs may have its times read in the zone of a cluster: a source with its own was thought of."""
    return any(s.zone is None and s.format not in LOGS and (s.cluster or cluster) == cluster for s in config.sources)


def _by_cluster(config: Config, source: SourceConfig) -> Iterator[tuple[str, str]]:
    """Yield the clusters that a source has files of, each with the pattern of these."""
    if source.cluster is None and "{cluster}" in source.path:
        yield from ((name, source.path.replace("{cluster}", glob.escape(name))) for name in config.document.clusters)
    elif cluster := source.cluster or config.only_cluster:
        yield cluster, source.path


def _stamps(pattern: str) -> Iterator[tuple[Path, Offset]]:
    """Yield the first and the last stamp with an offset that the first of a few files prints in its beginning."""
    for path in islice(some(pattern), FILES):
        if stamps := _printed(path):
            yield from ((path, stamp) for stamp in stamps)
            return


def _printed(path: Path) -> tuple[Offset, ...]:
    try:
        if not path.is_file():  # opening a pipe would wait for its writer
            return ()
        with path.open("rb") as raw:
            head = opened(raw).read(READ_BYTES)
    except Exception:  # noqa: BLE001 - decompressors raise errors of many kinds; ingest tells of them
        return ()
    return offsets_in(tuple(head.decode("utf-8", "replace").splitlines()))


def _offset_at(zone: str, stamp: Offset) -> timedelta | None:
    """Return the offset that a zone has at the instant of a stamp; None = the stamp names none."""
    if abs(stamp.offset) > _WIDEST:
        return None
    try:
        at = (stamp.local - stamp.offset).replace(tzinfo=UTC)
        return at.astimezone(ZoneInfo(zone)).utcoffset()
    except OverflowError:
        return None


def told(clash: Clash) -> tuple[str, str]:
    """Return what clashes, and what to do about it: which of the two is meant, only people know."""
    day = f"{clash.stamp.local:%Y-%m-%d}"
    fits = f', perhaps to "{clash.likely[0]}"' if clash.likely else ""
    what = (
        f"logs of {clash.cluster} print times with {shown(clash.stamp.offset)} ({clash.path.name}, {day}), but {clash.zone}, in "
        f"which times without an offset are read, had {shown(clash.had)} then"
    )
    if clash.is_own:
        return what, f"correct `zone` of their source ({clash.source.where}){fits}"
    step = (
        f"if sacct printed its times where the logs were written, they are read wrong: set `zone` under [clusters.{clash.cluster}]"
        f"{fits}; if sacct printed {clash.zone}, leave that and set the zone of the logs as `zone` on their source "
        f"({clash.source.where})"
    )
    return what, step


__all__ = ["Clash", "clashes", "told"]
