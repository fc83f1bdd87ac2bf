"""What the lines are that tell nothing of interest: the rules by which they are passed over."""

from __future__ import annotations

import polars as pl

BLANK, CONFIGURATION, TIMER, MEMORY, VALIDATION = "blank", "configuration", "timer", "memory", "validation"
NCCL_INFO, ERROR_DETAIL, OTHER = "nccl_info", "error_detail", "other"


def rule() -> pl.Expr:
    """Return the rule by which a line with `body` is passed over, where it makes no row."""
    body = pl.col("body")
    is_configuration = (
        r"^ {2,}[\w-]+ \.{2,} |^-+ (?:end of )?[a-zA-Z ]*arguments -+$|^ *[-*=#!+|_ ]{3,}$|^\++ |^ *> |^using "
    )
    is_timer = r"^time \(ms\)|time across ranks \(ms\)|^ {4}[\w/-]+ \.+: \("
    # What PyTorch and NCCL add below an exception.
    is_detail = r"^(?:Last error:|NET/|socketProgress: |CUDA kernel errors might|For debugging consider|Compile with `TORCH_USE)"
    return (
        pl.when(body == "")
        .then(pl.lit(BLANK))
        .when(body.str.contains("memory (MB) |", literal=True))
        .then(pl.lit(MEMORY))
        .when(body.str.contains(is_timer))
        .then(pl.lit(TIMER))
        .when(body.str.contains(" NCCL INFO ", literal=True))
        .then(pl.lit(NCCL_INFO))
        .when(body.str.contains(is_detail))
        .then(pl.lit(ERROR_DETAIL))
        .when(body.str.contains("validation loss at", literal=True))
        .then(pl.lit(VALIDATION))
        .when(body.str.contains(is_configuration))
        .then(pl.lit(CONFIGURATION))
        .otherwise(pl.lit(OTHER))
        .alias("rule")
    )
