"""Read the distinct texts of a column once in an export, however many rows and chunks repeat them."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

Read = Callable[[pl.Series], pl.DataFrame]
_FEW = 4
_MAX_KNOWN = 50_000


class Distinct:
    """What `read` makes of a text column, looked up where a text was read before.

    Args:
        read: turns a String series into columns of the same length; each row depends on its own text only.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._texts: list[str] = []
        self._codes = pl.Enum([])
        self._rows = pl.DataFrame()  # one for each of `_texts`, then one for null

    def __call__(self, texts: pl.Series) -> pl.DataFrame:
        """Return the columns that `read` gives for `texts`."""
        codes = texts.cast(self._codes, strict=False).to_physical() if self._texts else None
        if codes is None or codes.null_count() > texts.null_count():
            if texts.n_unique() * _FEW > len(texts):
                return self._read(texts)
            self._learn(texts, codes)
            codes = texts.cast(self._codes).to_physical()
        if len(self._texts) == 1 and not texts.null_count():
            return pl.DataFrame([column.new_from_index(0, len(texts)) for column in self._rows.get_columns()])
        return self._rows[codes.cast(pl.UInt32).fill_null(len(self._texts))]

    def _learn(self, texts: pl.Series, codes: pl.Series | None) -> None:
        """Read the texts that have no code yet; forget the others where they become too many."""
        new = (texts if codes is None else texts.filter(codes.is_null())).unique().drop_nulls()
        if len(self._texts) + len(new) > _MAX_KNOWN:
            self._texts, new = [], texts.unique().drop_nulls()
        read = self._read(pl.concat([new, pl.Series(new.name, [None], pl.String)]))
        self._rows = self._rows.head(len(self._texts)).vstack(read).rechunk() if self._texts else read
        self._texts += new.to_list()
        self._codes = pl.Enum(self._texts)
