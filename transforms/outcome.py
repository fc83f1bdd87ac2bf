"""What a parser is told about an export, and what it gives back: rows, and the fate of every line."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

MAX_REJECT_BYTES = 64 * 1024


class UnreadableExportError(Exception):
    """The export as a whole cannot be read; the message says why and what to do next."""


class MissingSettingError(Exception):
    """A parser needs a setting that is absent; the message names the key to set in goodput.toml."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of an export beside its bytes.

    Attributes:
        collected_at: UTC time at which the export was collected.
        cluster: cluster the source is configured for; None = the export must say.
        zones: IANA zone by cluster name.
        zone: IANA zone of this source; overrides the cluster's.
        job_id: job whose log it is, as configured or captured from the path.
        node: node the source is configured for or that was captured from the path.
        columns: column names of an export without a header.
        delimiter: configured delimiter; None = found from the content.
        clusters: names of the configured clusters; those with a zone need not be repeated.
    """

    collected_at: datetime
    cluster: str | None = None
    zones: Mapping[str, str] = field(default_factory=dict)
    zone: str | None = None
    node: str | None = None
    job_id: str | None = None
    columns: tuple[str, ...] = ()
    delimiter: str | None = None
    clusters: frozenset[str] = frozenset()

    def cluster_of(self, name: str | None) -> str:
        """Return the cluster of a row for which the export names the cluster `name`, or none.

        A configured cluster keeps its name, so that an export of several is never merged; any other name is the scheduler's
        for the cluster that the source is configured for.

        Raises:
            MissingSettingError: neither the row nor the source names one.
        """
        if name and (name in self.clusters or name in self.zones):
            return name
        return self.cluster or name or self.require_cluster()

    def zone_of(self, cluster: str | None) -> str:
        """Return the IANA zone in which times of `cluster` are printed.

        Raises:
            MissingSettingError: neither the source nor the cluster has a zone.
        """
        zone = self.zone or self.zones.get(cluster or "")
        if zone is None:
            raise MissingSettingError(
                f"the times in this export carry no zone: set `zone` under [clusters.{cluster or 'NAME'}] "
                'or on the source, for example zone = "Europe/Berlin"'
            )
        return zone

    def require_cluster(self) -> str:
        """Return the cluster.

        Raises:
            MissingSettingError: the source names none.
        """
        if self.cluster is None:
            raise MissingSettingError("this export does not name its cluster: set `cluster` on the source")
        return self.cluster


@dataclass(frozen=True, slots=True)
class Reject:
    """A line that could not be read. `text` holds at most 64 KiB; `byte_length` and `sha256` are of the whole line."""

    line: int
    reason: str
    text: str
    byte_length: int
    byte_offset: int
    sha256: str

    @classmethod
    def of(cls, line: int, reason: str, raw: bytes, byte_offset: int) -> Reject:
        """Make a reject from the whole line."""
        head = raw[:MAX_REJECT_BYTES].decode("utf-8", "replace")
        return cls(line, reason, head, len(raw), byte_offset, hashlib.sha256(raw).hexdigest())


@dataclass(slots=True)
class Parsed:
    """One bounded piece of a parser's answer.

    Every line of the input is counted exactly once, in `used`, `ignored` or `rejects`, over all pieces together.

    Attributes:
        frames: rows by table name; each has the table's columns except `export_id`, which the pipeline adds.
        used: lines that made rows.
        ignored: lines passed over, by the name of the format's rule.
        rejects: lines that could not be read.
        is_open: the export's last lines may belong to a record that goes on in lines still to come; when the file grows, the
            piece is read again together with them. (A rejected last line says so by itself.)
    """

    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    used: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejects: list[Reject] = field(default_factory=list)
    is_open: bool = False
