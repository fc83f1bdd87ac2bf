"""GPUs in trackable resources (`cpu=96,gres/gpu:h100=8,gres/gpu=8,node=1`) and in the older AllocGRES (`gpu:8`)."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

_TOTAL = r"(?:^|,)gres/gpu=(\d{1,9})(?:,|$)"
_TYPED = r"(?:^|,)gres/gpu:[^=,]+=\d+"
_GRES = r"(?:^|,)(?:gres[:/])?(?:gpu|7696487)(?::[^:,()]*[^:,()\d][^:,()]*)?(?::\d{1,9})?(?:\([^)]*\))?"


class Gpus(NamedTuple):
    """Expressions for allocated GPUs.

    Attributes:
        gpus: Int64; 0 where the text names none; null where there is no text.
        gpu_type: type (`h100`, `1g.10gb`); several are joined by commas in their order; null if untyped.
        is_unreadable: Boolean, never null.
    """

    gpus: pl.Expr
    gpu_type: pl.Expr
    is_unreadable: pl.Expr


def allocated_gpus(column: str) -> Gpus:
    """Return expressions that read the String column `column` as AllocTRES.

    `gres/gpu` is the total; where only typed entries stand, they are summed. MIG instances count one each.
    `gres/gpumem` and `gres/gpuutil` are no GPUs.
    """
    text = _told(column)
    entry = text.str.extract_all(_TYPED)
    typed = entry.list.eval(pl.element().str.extract(r"=(\d+)$").cast(pl.Int64, strict=False)).list.sum()
    types = entry.list.eval(pl.element().str.extract(r"gpu:([^=]+)=")).list.unique(maintain_order=True).list.join(",")
    total = text.str.extract(_TOTAL).cast(pl.Int64)
    names_gpu = text.str.contains(r"(?:^|,)gres/gpu[=:]")
    found = pl.coalesce(total, pl.when(entry.list.len() > 0).then(typed))
    return Gpus(
        gpus=pl.when(names_gpu.not_()).then(pl.lit(0, pl.Int64)).otherwise(found),
        gpu_type=pl.when(types != "").then(types),
        is_unreadable=(names_gpu & found.is_null()).fill_null(False),
    )


def allocated_cpus(column: str) -> pl.Expr:
    """Return an expression for the CPUs in the String column `column`, read as AllocTRES; null where it names none."""
    return _told(column).str.extract(r"(?:^|,)cpu=(\d{1,9})(?:,|$)").cast(pl.Int64)


def allocated_gres(column: str) -> Gpus:
    """Return expressions that read the String column `column` as AllocGRES (before Slurm 21.08): the job's total.

    `gpu:8`, `gpu:h100:8(S:0-1)`, `gpu` (one); 7696487 is how slurmdbd printed `gpu` where it knew no plugin.
    """
    text = _told(column)
    entry = text.str.extract_all(_GRES)
    bare = pl.element().str.replace(r"\(.*\)$", "")
    count = pl.coalesce(bare.str.extract(r":(\d+)$").cast(pl.Int64), pl.lit(1, pl.Int64))
    kind = bare.str.extract(r"(?:gpu|7696487):([^:]*[^:\d][^:]*)")
    types = entry.list.eval(kind).list.drop_nulls().list.unique(maintain_order=True).list.join(",")
    return Gpus(
        gpus=entry.list.eval(count).list.sum(),
        gpu_type=pl.when(types != "").then(types),
        is_unreadable=pl.lit(False),
    )


def _told(column: str) -> pl.Expr:
    text = pl.col(column).str.strip_chars()
    return pl.when((text == "").not_()).then(text)
