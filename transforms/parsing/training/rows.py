"""Rows of `log_events` from what lines tell, where they stand and when."""

from __future__ import annotations

import polars as pl

from transforms.outcome import Context
from transforms.parsing.training.told import NOT_FINITE, STEP, Found
from transforms.records import record_id
from transforms.tables import UTC

MAX_TEXT = 2_000
_IDENTITY = ("cluster", "job_id", "node", "rank", "local", "task", "identity", "event", "body")
_EVENTS = {
    "position": pl.UInt32,
    "event": pl.String,
    "step": pl.Int64,
    "told_rank": pl.Int64,
    "told_node": pl.String,
    "error_class": pl.String,
    "sequence": pl.Int64,
    "seconds": pl.Float64,
}
_COLUMNS = _EVENTS | {
    "step_seconds": pl.Float64,
    "loss": pl.Float64,
    "samples": pl.Int64,
    "batch_size": pl.Int64,
    "inner_rank": pl.String,
    "is_merged": pl.Boolean,
    "is_unreadable": pl.Boolean,
}


def told_in(found: dict[int, Found]) -> pl.DataFrame:
    """Return one row per event that lines tell, with its position."""
    rows = [(position, *one) for position, told in found.items() if isinstance(told, list) for one in told]
    return pl.DataFrame(rows, schema=_EVENTS | {"text": pl.String, "is_unreadable": pl.Boolean}, orient="row")


def gathered(parts: pl.DataFrame, stepped: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame | None:
    """Return one row per event of a chunk, in order of lines, with columns of the prefix and of what is told."""
    frames: list[pl.DataFrame] = []
    if len(stepped):
        frames.append(stepped.with_columns(event=pl.lit(STEP)))
        odd = stepped.filter(~pl.col("is_finite"))
        if len(odd):
            frames.append(odd.select(*parts.columns, "step", event=pl.lit(NOT_FINITE)))
    if len(told):
        lines = parts.select(pl.col("host", "task", "local", "rank", "body").gather(told.get_column("position")))
        events = told.hstack(lines).with_columns(
            body=pl.coalesce("text", "body"),
            is_merged=pl.col("text").is_not_null(),
            inner_rank=pl.col("body").str.extract(r"\[(?:rank|(?:PG [^\]]*)?Rank )([0-9]{1,6})\]"),
        )
        frames.append(events.drop("text"))
    if not frames:
        return None
    rows = pl.concat(frames, how="diagonal")
    missing = [pl.lit(None, t).alias(n) for n, t in _COLUMNS.items() if n not in rows.columns]
    return (
        rows.with_columns(missing)
        .with_columns(pl.col("is_merged", "is_unreadable").fill_null(False))
        .sort("position", maintain_order=True)
    )


def finished(rows: pl.DataFrame, ctx: Context, decoded: list[int], first_line: int) -> pl.DataFrame:
    """Return rows of `log_events`.

    Args:
        rows: what `gathered` gives, with the columns of `Dating.read`.
        ctx: what is known of the export.
        decoded: positions of lines that were not UTF-8.
        first_line: number of the line at position 0.
    """
    is_decoded = pl.col("position").is_in(decoded) if decoded else pl.lit(False)
    flags = {
        "time_missing": pl.col("at").is_null(),
        "time_derived": pl.col("is_derived") & pl.col("at").is_not_null(),
        "time_ambiguous": pl.col("is_ambiguous"),
        "year_inferred": pl.col("is_yearless"),
        "merged_lines": pl.col("is_merged"),
        "value_unreadable": pl.col("is_unreadable"),
        "decoded": is_decoded,
    }
    rows = rows.with_columns(
        cluster=pl.lit(ctx.cluster),
        job_id=pl.lit(ctx.job_id, pl.String),
        node=pl.coalesce("told_node", "host", pl.lit(ctx.node, pl.String)),
        rank=pl.coalesce("told_rank", pl.col("rank").cast(pl.Int64), pl.col("inner_rank").cast(pl.Int64), _task_rank()),
    )
    return rows.select(
        "cluster",
        record_id(_IDENTITY).alias("record_id"),
        "job_id",
        "node",
        "rank",
        pl.col("at").alias("occurred_at"),
        *("event", "step", "step_seconds", "loss", "samples", "batch_size", "error_class", "sequence", "seconds"),
        # A step's columns say what its line does.
        pl.when(pl.col("event") != STEP).then(pl.col("body").str.strip_chars().str.slice(0, MAX_TEXT)).alias("text"),
        _listed(rows, flags).alias("flags"),
        pl.lit(ctx.collected_at, UTC).alias("collected_at"),
        (pl.col("position").cast(pl.Int64) + first_line).alias("line"),
    )


def _task_rank() -> pl.Expr:
    # A task is a rank where srun starts every process; under torchrun it is a node, and the line names a local rank as well.
    return pl.when(pl.col("local").is_null()).then(pl.col("task").cast(pl.Int64))


def _listed(rows: pl.DataFrame, flags: dict[str, pl.Expr]) -> pl.Expr:
    """Return an expression for the list of those flags that hold."""
    held = rows.select(pl.any_horizontal(is_held.any()).alias(name) for name, is_held in flags.items()).row(
        0, named=True
    )
    names = [
        pl.when(is_held).then(pl.lit(name)).otherwise(pl.lit(None, pl.String))
        for name, is_held in flags.items()
        if held[name]
    ]
    if not names:
        return pl.lit([], pl.List(pl.String))
    return pl.concat_list(names).list.drop_nulls()
