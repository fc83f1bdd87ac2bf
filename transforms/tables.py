"""The normalized tables, each declared once: columns, types, units, meaning, grain.

Parquet schemas, casts, DuckDB column comments and the data dictionary derive from these declarations.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

UTC = pl.Datetime("us", "UTC")
TEXTS = pl.List(pl.String)

FLAGS: dict[str, str] = {
    "submit_absent": "the export has no Submit column",
    "start_absent": "the export has no Start column",
    "time_missing": "no usable time; the row enters no ledger",
    "time_ambiguous": "local time occurs twice (clock set back); the earliest instant was taken",
    "time_derived": "time computed: a job's from End and Elapsed, a log line's from the lines before or after it",
    "year_inferred": "the stamp has no year; taken from the collection time",
    "year_old": "the stamp was placed more than 180 days before the collection time",
    "decoded": "bytes were not UTF-8; decoded as Latin-1",
    "truncated": "the exporting tool cut the value",
    "value_unreadable": "a value could not be read and is null",
    "state_unknown": "the state is none that Slurm documents; kept as printed",
    "free_text_unreadable": "the delimiter stands in two free-text columns; those are null",
    "array_cut": "the list of pending array tasks was cut; their number is unknown",
    "open_end": "the interval had not ended when the export was collected",
    "merged_lines": "one event told over several lines",
    "node_missing": "the export does not name the node",
    "end_before_start": "the end lies before the start; the attempt enters no run and no ledger",
    "end_clipped": "the same job started again before this end; the attempt ends where the next one starts",
    "gpus_assumed": "no record names GPUs; nodes x gpus_per_node of the configuration",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a normalized table.

    Attributes:
        name: name in Parquet and SQL.
        dtype: Polars type.
        doc: meaning, with the unit and what null means.
    """

    name: str
    dtype: pl.DataType
    doc: str


@dataclass(frozen=True, slots=True)
class Table:
    """A normalized table.

    Attributes:
        name: folder name in the lake and name in SQL.
        grain: what one row is.
        columns: every column, in order.
        date_column: UTC timestamp whose day is the partition; null goes to `date=unknown`.
    """

    name: str
    grain: str
    columns: tuple[Column, ...]
    date_column: str | None = None

    @property
    def schema(self) -> pl.Schema:
        """Polars schema, in column order."""
        return pl.Schema({c.name: c.dtype for c in self.columns})

    def enforce(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return `frame` with exactly this table's columns, order and types; absent columns become null.

        Raises:
            ValueError: the frame has a column that the table does not declare.
            polars.exceptions.InvalidOperationError: a value does not fit its type.
        """
        unknown = set(frame.columns) - set(self.schema)
        if unknown:
            raise ValueError(f"{self.name}: undeclared columns {sorted(unknown)}; declare them in transforms/tables.py")
        if not frame.width:
            return self.schema.to_frame()
        return frame.select(
            pl.col(c.name).cast(c.dtype) if c.name in frame.columns else pl.lit(None, c.dtype).alias(c.name)
            for c in self.columns
        )


_s, _i, _b, _f = pl.String(), pl.Int64(), pl.Boolean(), pl.Float64()
_t, _ts = UTC, TEXTS

_CLUSTER = Column("cluster", _s, "cluster name, as configured or as the export says")
_PROVENANCE = (
    Column("flags", _ts, "what had to be assumed or repaired while reading the record; a closed list"),
    Column("collected_at", _t, "UTC time at which the export was collected"),
    Column("export_id", _s, "piece of an export that holds the record; see ops.exports"),
    Column("line", _i, "line number of the record in its file, counted from 1"),
)
_RECORD = Column("record_id", _s, "SHA-256 of the canonical record, first 32 hex digits; see ops.record_locations")

JOB_ATTEMPTS = Table(
    "job_attempts",
    "One row per record of a job attempt or request in an export, steps left out.",
    (
        _CLUSTER,
        _RECORD,
        Column("job_id", _s, "job id as users see it: 71500, 5000_3 (array task), 100+0 (het component)"),
        Column("job_id_raw", _s, "JobIDRaw; job_id where the export has none"),
        Column("sluid", _s, "Slurm lexicographically unique id of the attempt; null before Slurm 25.11"),
        Column("db_index", _s, "DBIndex in slurmdbd"),
        Column("array_job_id", _s, "job id of the array; null for other jobs"),
        Column("array_tasks_pending", _i, "tasks a pending array record stands for; null for other rows or when cut"),
        Column("het_job_id", _s, "leader of a heterogeneous job; null for other jobs"),
        Column("job_name", _s, "job name, as printed"),
        Column("user", _s, "user name"),
        Column("uid", _i, "numeric user id"),
        Column("account", _s, "account"),
        Column("partition", _s, "partition"),
        Column("qos", _s, "quality of service"),
        Column("reservation", _s, "reservation the job ran in"),
        Column("comment", _s, "job comment"),
        Column("state", _s, "Slurm state in full, upper case, without suffix: CANCELLED, NODE_FAIL, ..."),
        Column("state_raw", _s, "state as printed"),
        Column("cancelled_by_uid", _i, "uid that cancelled the job; 0 = root; null unless printed"),
        Column("exit_code", _i, "exit code 0-255"),
        Column("signal", _i, "signal that ended the job; 0 = none"),
        Column("derived_exit_code", _i, "highest exit code of the job's steps"),
        Column("derived_signal", _i, "signal beside derived_exit_code"),
        Column("reason", _s, "why the job waited or ended, by Slurm"),
        Column("failed_node", _s, "node whose failure killed the job, by Slurm"),
        Column("restarts", _i, "requeues and restarts so far"),
        Column("submitted_at", _t, "UTC time of submission or requeue"),
        Column("eligible_at", _t, "UTC time from which the job could start"),
        Column("started_at", _t, "UTC start of the allocation; null = not started, or no such column"),
        Column("ended_at", _t, "UTC end of the allocation; null = running, or no such column"),
        Column("elapsed_seconds", _i, "run time without suspended time, seconds"),
        Column("suspended_seconds", _i, "suspended time, seconds"),
        Column("time_limit_seconds", _i, "time limit, seconds; null = unknown or unlimited"),
        Column("is_time_limit_unlimited", _b, "true where the limit is UNLIMITED"),
        Column("node_count", _i, "allocated nodes"),
        Column("node_list", _s, "allocated nodes, compressed as Slurm prints them; see host_lists"),
        Column("cpus", _i, "allocated CPUs"),
        Column("gpus", _i, "allocated GPUs from AllocTRES; 0 where AllocTRES names none; null without AllocTRES"),
        Column("gpu_type", _s, "GPU type in AllocTRES (h100); null if untyped"),
        Column("total_cpu_seconds", _f, "TotalCPU, seconds"),
        Column("max_rss_bytes", _i, "MaxRSS, bytes"),
        Column("req_mem_bytes", _i, "ReqMem, bytes, per what req_mem_per says"),
        Column("req_mem_per", _s, "node, cpu or job"),
        Column("is_request", _b, "true = never got nodes: Start empty, or node list `None assigned`"),
        Column("filled_columns", _i, "how many columns above hold a value; breaks ties between records of one attempt"),
        *_PROVENANCE,
    ),
    date_column="started_at",
)

HOST_LISTS = Table(
    "host_lists",
    "One row per distinct compressed host list of a cluster.",
    (
        _CLUSTER,
        Column("node_list", _s, "host list as Slurm prints it: gpu[001-008]"),
        Column("nodes", _ts, "its hosts, in the list's order"),
        Column("export_id", _s, "piece of an export that holds the list"),
    ),
)

NODE_STATES = Table(
    "node_states",
    "One row per node and interval out of normal service, as an export tells it.",
    (
        _CLUSTER,
        _RECORD,
        Column("node", _s, "node name"),
        Column("state", _s, "state without its suffix: DOWN, DRAIN, FAIL, ..."),
        Column("state_raw", _s, "state as printed, `*` = not responding"),
        Column("started_at", _t, "UTC begin of the interval"),
        Column("ended_at", _t, "UTC end; null = still open when the export was collected"),
        Column("reason", _s, "reason an operator, a health check or Slurm gave"),
        Column("set_by", _s, "who set it (user name)"),
        Column("set_by_uid", _i, "uid of who set it"),
        *_PROVENANCE,
    ),
    date_column="started_at",
)

HARDWARE_EVENTS = Table(
    "hardware_events",
    "One row per thing that one machine reported, as an export tells it.",
    (
        _CLUSTER,
        _RECORD,
        Column("node", _s, "node that reported it; null = the export names none"),
        Column("occurred_at", _t, "UTC time of the event"),
        Column("event_class", _s, "what happened: xid, sxid, gpu_lost, link_down, ...; see reference.event_classes"),
        Column("code", _i, "Xid, SXid, MCE bank or similar number within the class"),
        Column("device_kind", _s, "gpu, nvswitch, nic, pcie, cpu, memory, disk, filesystem or node"),
        Column(
            "device",
            _s,
            "device: PCI address as dddd:bb:dd.f in lower case, or its kernel name, sensor's name or index",
        ),
        Column("severity", _s, "fatal, nonfatal, uncorrected, corrected or info where the line itself says so"),
        Column(
            "unit", _s, "part of the device named: GPC 8, Link 02, bank 7, mlx5_0; the sensor; the diagnostic's tests"
        ),
        Column("pid", _i, "process id named"),
        Column("process", _s, "process name named"),
        Column("gpu_instance", _i, "MIG GPU instance"),
        Column("compute_instance", _i, "MIG compute instance"),
        Column(
            "monotonic_us",
            _i,
            "microseconds since the boot of the kernel, or the start of the management controller; null if not printed",
        ),
        Column("text", _s, "message without its log header, at most 2,000 characters"),
        *_PROVENANCE,
    ),
    date_column="occurred_at",
)

WINDOWS = Table(
    "windows",
    "One row per reservation or calendar entry, as an export tells it.",
    (
        _CLUSTER,
        _RECORD,
        Column("kind", _s, "reservation or calendar"),
        Column("name", _s, "its name"),
        Column("started_at", _t, "UTC begin"),
        Column("ended_at", _t, "UTC end; null = open"),
        Column("node_list", _s, "nodes, compressed; null = the whole cluster"),
        Column("is_maintenance", _b, "true where its flags say maintenance (MAINT)"),
        Column("users", _s, "users it is for, as printed"),
        Column("detail", _s, "flags and state, as printed"),
        *_PROVENANCE,
    ),
    date_column="started_at",
)

LOG_EVENTS = Table(
    "log_events",
    "One row per thing a training log tells: a step, a checkpoint, an error.",
    (
        _CLUSTER,
        _RECORD,
        Column("job_id", _s, "job whose log it is, from the export's path or its configuration; null = not told"),
        Column("node", _s, "node that the line or the export's path names; null = not told"),
        Column("rank", _i, "rank that wrote the line; null = not told"),
        Column("occurred_at", _t, "UTC time of the line"),
        Column(
            "event",
            _s,
            "start (the process began or is about to step), exit (it says that it ends), step, checkpoint_begun, "
            "checkpoint_durable, checkpoint_loaded, nccl_timeout, nccl_error, error, loss_not_finite, loss_spike",
        ),
        Column(
            "step",
            _i,
            "iteration: that ended (step), that is saved or restored (checkpoint_...), that was checked (loss_...), else null",
        ),
        Column("step_seconds", _f, "time per iteration as the log says, mean since the last logged one, seconds"),
        Column("loss", _f, "training loss as logged; null = not logged or not finite"),
        Column("samples", _i, "samples consumed so far"),
        Column("batch_size", _i, "global batch size"),
        Column("error_class", _s, "exception, NCCL operation or kind of storage error: AssertionError, ALLREDUCE"),
        Column("sequence", _i, "sequence number of the collective that timed out"),
        Column("seconds", _f, "how long the operation had run when it was given up, or took, seconds"),
        Column(
            "text", _s, "the line without its prefix, at most 2,000 characters; null for a step, whose columns say it"
        ),
        *_PROVENANCE,
    ),
    date_column="occurred_at",
)

INVENTORY = Table(
    "inventory",
    "One row per statement of what a machine holds or where it stands.",
    (
        _CLUSTER,
        _RECORD,
        Column("kind", _s, "gpu (a GPU of a node), rank (a rank's node) or node (where a node stands)"),
        Column("node", _s, "node name"),
        Column("gpu_index", _i, "index of the GPU as nvidia-smi counts"),
        Column("device", _s, "PCI address of the GPU as dddd:bb:dd.f in lower case"),
        Column("uuid", _s, "UUID of the GPU"),
        Column("serial", _s, "serial number of the GPU or node"),
        Column("model", _s, "model of the GPU or node"),
        Column("job_id", _s, "job the rank belongs to; null = every job of the cluster"),
        Column("rank", _i, "rank of a training process, from 0"),
        Column("local_rank", _i, "rank within its node, from 0"),
        Column("rack", _s, "rack"),
        Column("pod", _s, "pod, row or other larger unit"),
        Column("switch", _s, "first switch the node hangs on"),
        Column("driver", _s, "GPU driver version"),
        Column("seen_at", _t, "UTC time at which it was so; the collection time where the export tells none"),
        *_PROVENANCE,
    ),
    date_column="seen_at",
)

ANNOTATIONS = Table(
    "annotations",
    "One row per label an operator gave to an interruption.",
    (
        _CLUSTER,
        _RECORD,
        Column("interruption_id", _s, "interruption it speaks of"),
        Column("cause", _s, "cause code; see reference.causes"),
        Column("node", _s, "node the operator blames; null = none named"),
        Column("why", _s, "the operator's reason"),
        Column("author", _s, "who"),
        Column("made_at", _t, "UTC time of the label; the latest one wins"),
        *_PROVENANCE,
    ),
    date_column="made_at",
)

REJECTS = Table(
    "rejects",
    "One row per line of an export that could not be read.",
    (
        Column("export_id", _s, "piece of an export that holds the line"),
        Column("line", _i, "line number in the file, counted from 1"),
        Column("reason", _s, "why it was rejected"),
        Column("text", _s, "the line; its first 64 KiB where it is longer"),
        Column("byte_length", _i, "length of the line, bytes"),
        Column("byte_offset", _i, "where the line begins in its file (decompressed), bytes"),
        Column("sha256", _s, "SHA-256 of the whole line"),
    ),
)

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        JOB_ATTEMPTS,
        HOST_LISTS,
        NODE_STATES,
        HARDWARE_EVENTS,
        LOG_EVENTS,
        INVENTORY,
        WINDOWS,
        ANNOTATIONS,
        REJECTS,
    )
}
