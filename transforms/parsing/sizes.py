"""Memory sizes and counts as Slurm prints them: `13633728K`, `1.50G`, `3Gn`, `2K` nodes. Units are binary."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from transforms.parsing.durations import Reading

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}
_NO_VALUE = ("", "None", "Unknown", "N/A", "(null)")
_SIZE = r"^(\d{1,18}(?:\.\d{1,9})?)([KMGTPE]?)$"
_REQ_MEM = r"^(\d{1,18}(?:\.\d{1,9})?)([KMGTPE]?)([nc]?)$"


class MemoryReading(NamedTuple):
    """Expressions for requested memory.

    Attributes:
        value: Int64, bytes.
        per: node, cpu or job (no suffix); null without a value.
        is_unreadable: Boolean, never null.
    """

    value: pl.Expr
    per: pl.Expr
    is_unreadable: pl.Expr


def size_bytes(column: str) -> Reading:
    """Return expressions that read the String column `column` as a size in bytes (Int64); a bare number is bytes."""
    text = _told(column)
    part = text.str.extract_groups(_SIZE).struct
    value = _scaled(part.field("1"), part.field("2"), "")
    return Reading(value, text.is_not_null() & value.is_null())


def count(column: str) -> Reading:
    """Return expressions that read the String column `column` as a count (Int64); `2K` nodes are 2,048."""
    return size_bytes(column)


def requested_memory(column: str) -> MemoryReading:
    """Return expressions that read the String column `column` as ReqMem.

    `3Gn` is for each node, `5000Mc` for each CPU; Slurm 21.08 and later print the job's whole (`48G`). A bare number is MiB.
    """
    text = _told(column)
    part = text.str.extract_groups(_REQ_MEM).struct
    value = _scaled(part.field("1"), part.field("2"), "M")
    per = part.field("3").replace_strict({"n": "node", "c": "cpu", "": "job"}, default=None)
    return MemoryReading(
        value, pl.when(value.is_not_null()).then(per.fill_null("job")), text.is_not_null() & value.is_null()
    )


def _told(column: str) -> pl.Expr:
    text = pl.col(column).str.strip_chars()
    return pl.when(text.is_in(_NO_VALUE).not_()).then(text)


def _scaled(number: pl.Expr, unit: pl.Expr, default: str) -> pl.Expr:
    unit = pl.when(unit.fill_null("") == "").then(pl.lit(default)).otherwise(unit)
    factor = unit.replace_strict(UNITS, default=None, return_dtype=pl.Int64)
    scaled = (number.cast(pl.Float64) * factor).round()
    whole = number.cast(pl.Int64, strict=False)
    fits = scaled.abs() < 2.0**62
    exact = pl.when(fits).then(pl.coalesce(whole * factor, scaled.cast(pl.Int64, strict=False)))
    return pl.when(number.is_not_null()).then(exact)
