"""Times of an attempt to UTC; Elapsed decides what the clock alone cannot."""

from __future__ import annotations

import polars as pl

from transforms.parsing.timestamps import read_times
from transforms.tables import UTC

_OURS = {"submit": "submitted_at", "eligible": "eligible_at", "start": "started_at", "end": "ended_at"}


def placed(frame: pl.DataFrame, zone: str) -> pl.DataFrame:
    """Return `submitted_at`, `eligible_at`, `started_at`, `ended_at`, and flags in columns `<flag>?...`.

    Where the clock was set back, that pair of Start and End holds whose distance is Elapsed plus Suspended; if none does,
    the earliest pair that keeps Submit, Start and End in order. Where several pairs fit, the earliest, flagged. A Start (or End) that never was on the clock is counted from the other one.
    Submit and Eligible, which no duration ties down, are taken before Start if only one instant is.

    Args:
        frame: String columns `submit`, `eligible`, `start`, `end` (any may be absent), `elapsed_seconds`, `suspended_seconds`.
        zone: IANA zone of the times.
    """
    present = [c for c in _OURS if c in frame.columns]
    readings = {c: read_times(frame.get_column(c), zone) for c in present}
    if not any(read.get_column(n).any() for read in readings.values() for n in ("is_ambiguous", "is_nonexistent")):
        return _plain(readings)
    for column, read in readings.items():
        frame = frame.hstack([times.alias(f"{column}.{times.name}") for times in read.get_columns()])
    for needed in ("start", "end"):
        if needed not in present:
            frame = frame.with_columns(_absent(needed))
    frame = _spans(frame)
    frame = _before_start(frame, [c for c in ("submit", "eligible") if c in present])
    out = [pl.col(f"{c}.instant").alias(ours) for c, ours in _OURS.items() if c in present]
    out += [pl.col(f"{c}.is_unreadable").alias(f"value_unreadable?{c}") for c in present]
    out += [
        pl.col(f"{c}.is_nonexistent").alias(f"value_unreadable?{c}.gap") for c in present if c in ("submit", "eligible")
    ]
    out += [pl.col(f"{c}.is_ambiguous").alias(f"time_ambiguous?{c}") for c in present]
    out += [pl.col("is_derived").alias("time_derived?")]
    if "start" in present:
        out.append(
            (pl.col("start.seen") | pl.col("start.is_unreadable") | pl.col("start.is_nonexistent"))
            .not_()
            .alias("is_start_empty")
        )
    return frame.select(out)


def _plain(readings: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Return what `placed` does where the clock was never changed."""
    columns = [read.get_column("instant").alias(_OURS[c]) for c, read in readings.items()]
    columns += [read.get_column("is_unreadable").alias(f"value_unreadable?{c}") for c, read in readings.items()]
    if "start" in readings:
        start = readings["start"]
        is_told = start.get_column("instant").is_not_null() | start.get_column("is_unreadable")
        columns.append((~is_told).alias("is_start_empty"))
    return pl.DataFrame(columns)


def _absent(column: str) -> list[pl.Expr]:
    nothing = pl.lit(None, UTC)
    return [
        nothing.alias(f"{column}.instant"),
        nothing.alias(f"{column}.latest"),
        *(pl.lit(False).alias(f"{column}.{n}") for n in ("is_ambiguous", "is_nonexistent", "is_unreadable")),
    ]


def _seconds(frame: pl.DataFrame) -> pl.Expr:
    """Distance of End from Start, as Elapsed and Suspended tell it; null where they do not."""
    if "elapsed_seconds" not in frame.columns:
        return pl.lit(None, pl.Duration("us"))
    total = pl.col("elapsed_seconds")
    if "suspended_seconds" in frame.columns:
        total = total + pl.col("suspended_seconds").fill_null(0)
    return pl.duration(seconds=total, time_unit="us")


def _spans(frame: pl.DataFrame) -> pl.DataFrame:
    """Settle Start and End."""
    frame = frame.with_columns(
        pl.col("start.instant").is_not_null().alias("start.seen"), pl.lit(False).alias("is_derived")
    )
    odd = pl.any_horizontal(f"{c}.{n}" for c in ("start", "end") for n in ("is_ambiguous", "is_nonexistent"))
    if not frame.select(odd.any()).item():
        return frame
    span = _seconds(frame)
    pairs = [(s, e) for s in ("instant", "latest") for e in ("instant", "latest")]
    spans = [(pl.col(f"end.{e}") - pl.col(f"start.{s}") == span).fill_null(False) for s, e in pairs]
    is_told = pl.any_horizontal(spans)
    orders = [_in_order(frame, s, e) & is_told.not_() for s, e in pairs]
    fits = [told | order for told, order in zip(spans, orders, strict=True)]
    start = pl.coalesce(pl.when(f).then(pl.col(f"start.{s}")) for f, (s, _) in zip(fits, pairs, strict=True))
    end = pl.coalesce(pl.when(f).then(pl.col(f"end.{e}")) for f, (_, e) in zip(fits, pairs, strict=True))
    last_start = pl.coalesce(
        pl.when(f).then(pl.col(f"start.{s}")) for f, (s, _) in list(zip(fits, pairs, strict=True))[::-1]
    )
    last_end = pl.coalesce(
        pl.when(f).then(pl.col(f"end.{e}")) for f, (_, e) in list(zip(fits, pairs, strict=True))[::-1]
    )
    is_open = pl.col("start.is_ambiguous") | pl.col("end.is_ambiguous")
    settled = start.is_not_null() & (start == last_start) & (is_told | (end == last_end))
    no_start, no_end = pl.col("start.is_nonexistent"), pl.col("end.is_nonexistent")
    from_end = pl.when(no_start & pl.col("end.is_ambiguous").not_()).then(pl.col("end.instant") - span)
    from_start = pl.when(no_end & pl.col("start.is_ambiguous").not_()).then(pl.col("start.instant") + span)
    return frame.with_columns(
        pl.when(is_open & start.is_not_null()).then(start).otherwise(pl.coalesce("start.instant", from_end)).alias("start.instant"),
        pl.when(is_open & end.is_not_null()).then(end).otherwise(pl.coalesce("end.instant", from_start)).alias("end.instant"),
        *((pl.col(f"{c}.is_ambiguous") & settled.fill_null(False).not_()).alias(f"{c}.is_ambiguous") for c in ("start", "end")),
        (from_end.is_not_null() | from_start.is_not_null()).alias("is_derived"),
    )  # fmt: skip


def _in_order(frame: pl.DataFrame, start: str, end: str) -> pl.Expr:
    """Whether a reading of Start and one of End keep the order of things: Submit, Start, End."""
    ordered = pl.col(f"end.{end}") >= pl.col(f"start.{start}")
    if "submit.instant" in frame.columns:
        ordered &= (pl.col(f"start.{start}") >= pl.col("submit.instant")).fill_null(True)
    return ordered.fill_null(False)


def _before_start(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Submit and Eligible are not after Start: if the later instant is, the earlier is certain."""
    certain = (pl.col(f"{c}.latest") > pl.col("start.instant") for c in columns)
    return frame.with_columns(
        (pl.col(f"{c}.is_ambiguous") & sure.fill_null(False).not_()).alias(f"{c}.is_ambiguous")
        for c, sure in zip(columns, certain, strict=True)
    )
