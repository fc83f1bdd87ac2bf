"""Bytes to text, and small helpers for text columns."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

_SPARE_BYTES = "\x1f\x1e\x1d\x1c\x1a\x01\x02\x03\x04\x05\x06\x0e\x0f\x10\x11\x12"


def repaired(data: bytes) -> tuple[bytes, list[int]]:
    """Return `data` as valid UTF-8 with Unix line ends, and the positions of the lines that were not UTF-8.

    Those lines are decoded as Latin-1. A byte order mark at the start is taken off. The number of lines never changes.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    bad: list[int] = []
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            lines = data.split(b"\n")
            for position, line in enumerate(lines):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    bad.append(position)
                    lines[position] = line.decode("latin-1").encode("utf-8")
            data = b"\n".join(lines)
    return (data.replace(b"\r\n", b"\n").removesuffix(b"\r") if b"\r" in data else data), bad


def unused_character(data: bytes) -> str | None:
    """Return a control character that `data` does not hold; None where it holds them all."""
    return next((c for c in _SPARE_BYTES if c.encode() not in data), None)


def by_shape(
    frame: pl.DataFrame, column: str, usual: pl.Expr, quick: Mapping[str, pl.Expr], full: Mapping[str, pl.Expr]
) -> pl.DataFrame:
    """Return `frame` with outputs over `column`: `quick` where `usual` holds, `full`, which is always right, elsewhere.

    Args:
        frame: rows.
        column: String column; where it is null, `quick` must say what `full` does.
        usual: Boolean expression: the text has the common shape.
        quick: outputs that are right for that shape.
        full: outputs of the same names and types.
    """
    read = frame.select(usual.fill_null(True).alias("is_usual"), **quick)
    at = read.get_column("is_usual").not_().arg_true()
    columns = read.drop("is_usual").get_columns()
    if len(at):
        rest = frame.select(pl.col(column).gather(at)).select(**full)
        columns = [c.scatter(at, rest.get_column(c.name)) for c in columns]
    return frame.hstack(columns)
