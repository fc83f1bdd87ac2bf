"""Text columns of sacct to the typed columns of `job_attempts`."""

from __future__ import annotations

import re

import polars as pl

from transforms.parsing import durations, sizes, tres
from transforms.parsing.attempts import flags, identified
from transforms.parsing.durations import Reading
from transforms.parsing.sacct_times import placed
from transforms.parsing.states import exit_code, read_state
from transforms.parsing.text import by_distinct
from transforms.tables import JOB_ATTEMPTS

_TEXTS = ("sluid", "db_index", "job_name", "user", "account", "partition", "qos", "reservation", "comment")
_NO_NODES = ("", "None assigned", "None", "(null)", "Unknown", "N/A")
_NO_WORD = ("", "None", "(null)", "Unknown", "N/A")
_PENDING_TASKS = re.compile(r"\[([0-9,\-:]+)(?:%[0-9]+)?\]")
_MAX_TASKS = 10_000_000


def attempts(rows: pl.DataFrame, cluster: str, zone: str) -> pl.DataFrame:
    """Return job attempts of one cluster, without provenance.

    Args:
        rows: a `Section`'s rows: String columns by our names, those absent that the export does not have.
        cluster: the cluster they belong to.
        zone: IANA zone of their times.

    Returns:
        Columns of `job_attempts` that the export gives, `cluster`, `record_id`, `flags`, `position` and the tie-breaks.
    """
    frame = rows
    for read in (_states, _exits, _numbers, _limits, _gpus, _memory, _arrays, _nodes):
        frame = read(frame)
    frame = placed(frame, zone)
    frame = frame.with_columns(_is_request(rows.columns).alias("is_request"))
    frame = frame.with_columns(_time_missing(rows.columns).alias("time_missing?"))
    causes = [(name.split("?")[0], pl.col(name)) for name in frame.columns if "?" in name]
    causes += [("decoded", pl.col("is_decoded")), ("free_text_unreadable", pl.col("is_free_text_lost"))]
    causes += [
        ("submit_absent", pl.lit("submit" not in rows.columns)),
        ("start_absent", pl.lit("start" not in rows.columns)),
    ]
    marked = frame.with_columns(flags(frame, causes), pl.lit(cluster).alias("cluster"))
    return identified(_selected(marked))


def _selected(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(*(name for name in JOB_ATTEMPTS.schema if name in frame.columns), "position")


def _states(frame: pl.DataFrame) -> pl.DataFrame:
    if "state" not in frame.columns:
        return frame
    texts = frame.get_column("state").unique().to_list()
    read = [read_state(t) for t in texts]
    table = pl.DataFrame(
        {
            "state": texts,
            "state_full": [s.state for s in read],
            "cancelled_by_uid": [s.cancelled_by_uid for s in read],
            "state_unknown?": [not s.is_known for s in read],
            "truncated?state": [s.is_cut for s in read],
        },
        schema_overrides={"state": pl.String, "state_full": pl.String, "cancelled_by_uid": pl.Int64},
    )
    joined = frame.select("state").join(table, on="state", how="left", maintain_order="left", nulls_equal=True)
    return frame.rename({"state": "state_raw"}).hstack(joined.drop("state").rename({"state_full": "state"}))


def _exits(frame: pl.DataFrame) -> pl.DataFrame:
    for column, code, signal in (
        ("exit_code", "exit_code", "signal"),
        ("derived_exit_code", "derived_exit_code", "derived_signal"),
    ):
        if column in frame.columns:
            read = exit_code("text")
            outputs = {code: read.code, signal: read.signal, f"value_unreadable?{code}": read.is_unreadable}
            frame = by_distinct(frame.rename({column: "text"}), "text", outputs).drop("text")
    return frame


def _numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Read counts, durations and sizes; ElapsedRaw, where present, in place of Elapsed."""
    if "elapsed_raw" in frame.columns:
        frame = frame.drop("elapsed", strict=False)
    if "elapsed" in frame.columns:
        frame = durations.add_seconds(frame, "elapsed", "elapsed_seconds", "value_unreadable?elapsed").drop("elapsed")
    readings: dict[str, tuple[str, Reading]] = {
        "elapsed_raw": ("elapsed_seconds", durations.whole_number("elapsed_raw")),
        "suspended": ("suspended_seconds", durations.seconds("suspended")),
        "total_cpu": ("total_cpu_seconds", durations.exact_seconds("total_cpu")),
        "max_rss": ("max_rss_bytes", sizes.size_bytes("max_rss")),
        "node_count": ("node_count_value", sizes.count("node_count")),
        "cpus": ("cpus_value", sizes.count("cpus")),
        "uid": ("uid_value", durations.whole_number("uid")),
        "restarts": ("restarts_value", durations.whole_number("restarts")),
    }
    for column, (ours, reading) in readings.items():
        if column in frame.columns:
            outputs = {ours: reading.value, f"value_unreadable?{column}": reading.is_unreadable}
            frame = by_distinct(frame, column, outputs).drop(column)
    return frame.rename(lambda name: name.removesuffix("_value"))


def _limits(frame: pl.DataFrame) -> pl.DataFrame:
    column = "time_limit" if "time_limit" in frame.columns else "time_limit_raw"
    if column not in frame.columns:
        return frame
    read = durations.limit_seconds(column, is_minutes=column == "time_limit_raw")
    outputs = {
        "time_limit_seconds": read.seconds,
        "is_time_limit_unlimited": read.is_unlimited,
        "value_unreadable?limit": read.is_unreadable,
    }
    return by_distinct(frame, column, outputs).drop(column)


def _gpus(frame: pl.DataFrame) -> pl.DataFrame:
    """Read AllocTRES; where that is absent or empty, AllocGRES."""
    if "alloc_tres" in frame.columns:
        read = tres.allocated_gpus("alloc_tres")
        outputs = {"gpus": read.gpus, "gpu_type": read.gpu_type, "value_unreadable?tres": read.is_unreadable}
        frame = by_distinct(frame, "alloc_tres", outputs).drop("alloc_tres")
    if "alloc_gres" in frame.columns:
        read = tres.allocated_gres("alloc_gres")
        frame = by_distinct(frame, "alloc_gres", {"gres": read.gpus, "gres_type": read.gpu_type}).drop("alloc_gres")
        has_tres = pl.col("gpus").is_not_null() if "gpus" in frame.columns else pl.lit(False)
        old = (frame.get_column(n) if n in frame.columns else pl.lit(None) for n in ("gpus", "gpu_type"))
        count, kind = (pl.lit(o) if isinstance(o, pl.Series) else o for o in old)
        frame = frame.with_columns(
            pl.when(has_tres).then(count).otherwise("gres").cast(pl.Int64).alias("gpus"),
            pl.when(has_tres).then(kind).otherwise("gres_type").cast(pl.String).alias("gpu_type"),
        )
    return frame


def _memory(frame: pl.DataFrame) -> pl.DataFrame:
    if "req_mem" not in frame.columns:
        return frame
    read = sizes.requested_memory("req_mem")
    outputs = {"req_mem_bytes": read.value, "req_mem_per": read.per, "value_unreadable?req_mem": read.is_unreadable}
    return by_distinct(frame, "req_mem", outputs).drop("req_mem")


def _arrays(frame: pl.DataFrame) -> pl.DataFrame:
    """Read array and heterogeneous job ids, and how many tasks a pending array record stands for."""
    job = pl.col("job_id")
    frame = frame.with_columns(
        job.str.extract(r"^([0-9]+)_").alias("array_job_id"),
        job.str.extract(r"^([0-9]+)\+").alias("het_job_id"),
        pl.lit(None, pl.Int64).alias("array_tasks_pending"),
        pl.lit(False).alias("array_cut?"),
    )
    if not frame.get_column("job_id").str.contains("[", literal=True).any():
        return frame
    pending = frame.get_column("job_id").to_list()
    tasks = [pending_tasks(j) if "[" in j else None for j in pending]
    cut = [t is None and "[" in j for t, j in zip(tasks, pending, strict=True)]
    return frame.with_columns(
        pl.Series("array_tasks_pending", tasks, pl.Int64), pl.Series("array_cut?", cut, pl.Boolean)
    )


def pending_tasks(job_id: str) -> int | None:
    """Return how many tasks `5000_[3-10%2]` stands for; None where the list is cut (`...`) or unreadable."""
    found = _PENDING_TASKS.search(job_id)
    if found is None:
        return None
    total = 0
    for part in found.group(1).split(","):
        step = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part)
        if step is None or step.group(3) == "0":
            return None
        low, high = int(step.group(1)), int(step.group(2) or step.group(1))
        total += len(range(low, high + 1, int(step.group(3) or 1)))
    return total if 0 < total <= _MAX_TASKS else None


def _nodes(frame: pl.DataFrame) -> pl.DataFrame:
    """Turn words for "nothing" into null; remember which rows never got nodes."""
    columns = set(frame.columns)
    words = [(n, _NO_WORD) for n in ("reason", "failed_node", "reservation") if n in columns]
    out = [pl.when(pl.col(n).is_in(w).not_()).then(pl.col(n)).alias(n) for n, w in words]
    if "node_list" in columns:
        nodes = pl.col("node_list")
        out += [
            pl.when(nodes.is_in(_NO_NODES).not_()).then(nodes).alias("node_list"),
            (nodes == "None assigned").fill_null(False).alias("is_unassigned"),
        ]
    return frame.with_columns(out)


def _is_request(columns: list[str]) -> pl.Expr:
    unassigned = pl.col("is_unassigned") if "node_list" in columns else pl.lit(False)
    if "start" not in columns:
        return unassigned
    return unassigned | pl.col("is_start_empty")


def _time_missing(columns: list[str]) -> pl.Expr:
    """No start, and not because the job never started."""
    if "start" not in columns:
        return pl.col("is_request").not_()
    return pl.col("started_at").is_null() & pl.col("is_request").not_()
