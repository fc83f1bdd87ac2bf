"""What reading a file depends on beside its bytes: cluster, zone, collection time, format; and the text that sums it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from flows.config import Config, SourceConfig
from flows.landing import BadStampError, stamp_utc
from flows.manifest import Piece
from flows.pieces import settings_of
from transforms.outcome import Context
from transforms.registry import Source, all_sources


class Contexts:
    """Makes the context of each file from the configuration."""

    def __init__(self, config: Config) -> None:
        self._zones = config.zones()
        self._only_cluster = config.only_cluster
        self._clusters = frozenset(config.document.clusters)

    def cluster(self, source: SourceConfig, captures: Mapping[str, str]) -> str | None:
        """Return the cluster of a file: as configured, else from its path, else the only one there is."""
        return source.cluster or captures.get("cluster") or self._only_cluster

    def of(self, source: SourceConfig, captures: Mapping[str, str], mtime: float) -> Context:
        """Return what a parser is told about a file.

        Args:
            source: the source it belongs to.
            captures: what its path tells.
            mtime: its modification time, seconds since 1970.

        Raises:
            BadStampError: it cannot be told when it was collected.
        """
        cluster = self.cluster(source, captures)
        zone = source.zone or (self._zones.get(cluster) if cluster else None)
        return Context(
            collected_at=_collected_at(source, captures, zone, mtime),
            cluster=cluster,
            zones=self._zones,
            zone=source.zone,
            node=source.node or captures.get("node"),
            job_id=source.job_id or captures.get("job_id"),
            columns=source.columns,
            delimiter=source.delimiter,
            clusters=self._clusters,
        )


def is_time_known(source: SourceConfig, captures: Mapping[str, str]) -> bool:
    """Tell whether configuration or path say when the export was collected."""
    return source.collected_at is not None or "collected_at" in captures


def known_format(source: SourceConfig, pieces: Sequence[Piece]) -> Source | None:
    """Return the format that a file was read as before, if it is still the one to read it as."""
    name = pieces[0].source if pieces else None
    return all_sources().get(name) if name and source.format in (None, name) else None


def settings(parser: Source, context: Context, *, is_time_known: bool) -> str:
    """Return what the rows of an export depend on beside its bytes, as `pieces.is_fresh` compares it."""
    time = context.collected_at if is_time_known else None
    fixed = (
        parser.name,
        parser.version,
        context.cluster,
        context.zone,
        context.node,
        context.job_id,
        context.columns,
        context.delimiter,
        time,
        *(sorted(context.clusters) if parser.names_clusters and context.cluster else ()),
    )
    return settings_of(fixed, {} if context.zone else context.zones)


def _collected_at(source: SourceConfig, captures: Mapping[str, str], zone: str | None, mtime: float) -> datetime:
    """Return the collection time: as configured, else from the path, else the file's modification time."""
    if source.collected_at is not None:
        return source.collected_at
    if "collected_at" in captures:
        return stamp_utc(captures["collected_at"], zone)
    try:
        return datetime.fromtimestamp(mtime, UTC)
    except (ValueError, OverflowError, OSError):
        raise BadStampError("the file's modification time is out of range; set `collected_at` on the source") from None
