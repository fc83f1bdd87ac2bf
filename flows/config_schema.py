"""What may stand in goodput.toml: every table and key, its kind and its default."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from flows.config_types import (
    Command,
    Delimiter,
    Duration,
    Instant,
    KeyItems,
    Match,
    Memory,
    Moment,
    SourceName,
    SourcePath,
    Text,
    Texts,
    Threads,
    Whole,
    WindowLength,
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
        keep_landing: what commands printed is kept so long after it was read, seconds; None = for ever.
        keep_quarantine: what was set aside from the lake is kept so long, seconds.
        memory_limit: memory a build may use ("4GB"); None = from the machine's or container's limit.
        threads: threads a build may use; None = all.
    """

    data: Text = "data"
    keep_builds: Whole = 5
    keep_landing: Duration | None = None
    keep_quarantine: Duration = 90 * DAY
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
    """`[[sources]]`: exports of one kind: files that lie somewhere (`path`), or what a command prints (`command`).

    Attributes:
        path: path or glob relative to the file; may capture {cluster}, {node}, {job_id}, {collected_at}.
        name: what `--source` and the coverage calendar call it; None = from the file's or folder's name, or the command's.
        command: program and arguments, run without a shell once for each window; {start} and {end} stand for its limits.
        window: length of the windows that coverage and backfill count in, seconds; None = a day, an hour for a command.
        delay: a command is asked for a window this long after its end, when late records are in, seconds.
        since: where the first window of a command begins; None = the last whole window when it is first asked.
        timeout: a command that runs longer than this has failed, seconds.
        environment: variables set for the command.
        secrets: variables it needs that must not stand here; from the environment, or from a Prefect Secret block.
        format: name of the export format; None = recognized by content.
        cluster: cluster of exports, and of rows that name none or one that is not configured.
        zone: IANA zone of its times; overrides the cluster's.
        node: node of exports that do not name it.
        job_id: job whose training logs these are.
        columns: column names of exports without a header.
        delimiter: character between columns; None = found from the content.
        collected_at: when the exports were collected; None = from the path, else the file's time when first seen.
    """

    path: SourcePath | None = None
    name: SourceName | None = None
    command: Command = ()
    window: WindowLength | None = None
    delay: Duration = 600
    since: Instant | None = None
    timeout: Duration = 300
    environment: dict[str, str] = Field(default_factory=dict)
    secrets: Texts = ()
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
