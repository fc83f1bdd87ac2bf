"""Identity of records: one hash over the canonical fields, the same in every run and on every machine."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import polars_hash as plh

ID_DIGITS = 32
SEPARATOR = "\x1f"


def record_id(columns: Sequence[str | pl.Expr]) -> pl.Expr:
    r"""Return an expression for the first 32 hex digits of SHA-256 over `columns` as text.

    Fields are joined by U+001F, null is the empty field, times are ISO 8601 with microseconds in UTC.
    """
    parts = [pl.col(c) if isinstance(c, str) else c for c in columns]
    text = pl.concat_str([p.cast(pl.String).fill_null("") for p in parts], separator=SEPARATOR)
    hashed: pl.Expr = plh.concat_str(text).chash.sha2_256()
    return hashed.str.slice(0, ID_DIGITS)
