"""What may stand in goodput.toml: every table and key, its kind and its default."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from flows.config_types import (
    Delimiter,
    Duration,
    Instant,
    KeyItems,
    Match,
    Memory,
    Moment,
    SourcePath,
    Text,
    Texts,
    Threads,
    Whole,
    Zone,
)

HOUR, DAY = 3600, 86400


class Entry(BaseModel):
    """A table of the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WarehouseEntry(Entry):
    """`[warehouse]`: where everything is kept, and what the build may use.

    Attributes:
        data: folder of lake and warehouse, relative to the file.
        keep_builds: published builds kept for rollback.
        memory_limit: memory a build may use ("4GB"); None = from the machine's or container's limit.
        threads: threads a build may use; None = all.
    """

    data: Text = "data"
    keep_builds: Whole = 5
    memory_limit: Memory | None = None
    threads: Threads | None = None


class ClusterEntry(Entry):
    """`[clusters.NAME]`.

    Attributes:
        zone: IANA zone in which its exports print times.
        gpus_per_node: GPUs of a node, where a scheduler record names none.
        capacity_gpus: GPUs of the cluster.
    """

    zone: Zone | None = None
    gpus_per_node: Whole | None = None
    capacity_gpus: Whole | None = None


class SourceEntry(Entry):
    """`[[sources]]`: exports of one kind.

    Attributes:
        path: path or glob relative to the file; may capture {cluster}, {node}, {job_id}, {collected_at}.
        format: name of the export format; None = recognized by content.
        cluster: cluster of exports, and of rows that name none or one that is not configured.
        zone: IANA zone of its times; overrides the cluster's.
        node: node of exports that do not name it.
        job_id: job whose training logs these are.
        columns: column names of exports without a header.
        delimiter: character between columns; None = found from the content.
        collected_at: when the exports were collected; None = from the path, else the file's time when first seen.
    """

    path: SourcePath
    format: Text | None = None
    cluster: Text | None = None
    zone: Zone | None = None
    node: Text | None = None
    job_id: Text | None = None
    columns: Texts = ()
    delimiter: Delimiter | None = None
    collected_at: Instant | None = None


class RunEntry(Entry):
    """`[[runs]]`: which job attempts are tracked, and how they make up runs.

    Attributes:
        name: name of the run; None = the run key names it.
        match: globs by job column, all of which must match; empty = every job.
        key: job columns whose values tell runs apart; "column:regex" takes the first group.
        min_gpus: smaller attempts are not tracked.
        max_gap: longest wait between two attempts of one run, seconds.
        resume_window: an orderly stop resumed within it is planned, seconds.
        checkpoint_interval: assumed where no training log tells, seconds.
        restart_overhead: assumed where no training log tells, seconds.
    """

    name: Text | None = None
    match: Match = Field(default_factory=dict)
    key: KeyItems = ("user", "job_name")
    min_gpus: Whole | None = None
    max_gap: Duration = DAY
    resume_window: Duration = HOUR
    checkpoint_interval: Duration = HOUR
    restart_overhead: Duration = 300


class WindowEntry(Entry):
    """`[attribution.windows.CLASS]`: window of one evidence class, seconds before and after the end; None = the common one."""

    before: Duration | None = None
    after: Duration | None = None


class AttributionEntry(Entry):
    """`[attribution]`: windows and thresholds, seconds. Meanings: `warehouse.inputs.ATTRIBUTION`."""

    before: Duration = 45 * 60
    progress_before: Duration = 10 * 60
    after: Duration = 15 * 60
    coalesce_gap: Duration = 5 * 60
    maintenance_before: Duration = 5 * 60
    maintenance_after: Duration = 15 * 60
    fault_free: Duration = DAY
    windows: dict[str, WindowEntry] = Field(default_factory=dict)


class CalendarEntry(Entry):
    """`[[calendars]]`: planned maintenance known beforehand.

    Attributes:
        cluster: cluster.
        name: what is planned.
        start: begin; without a zone it is in the cluster's.
        end: end; likewise.
        nodes: nodes it concerns; empty = all.
    """

    cluster: Text
    name: Text
    start: Moment
    end: Moment
    nodes: Texts = ()


class Document(Entry):
    """The whole file."""

    warehouse: WarehouseEntry = WarehouseEntry()
    clusters: dict[str, ClusterEntry] = Field(default_factory=dict)
    sources: tuple[SourceEntry, ...] = ()
    runs: tuple[RunEntry, ...] = ()
    attribution: AttributionEntry = AttributionEntry()
    calendars: tuple[CalendarEntry, ...] = ()
