"""What every source of job attempts does last: identity of the record, tie-breaks, host lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from transforms.parsing.nodelist import BadHostListError, expand
from transforms.records import SEPARATOR, record_id
from transforms.tables import FLAGS, HOST_LISTS, JOB_ATTEMPTS

_NAMES = list(JOB_ATTEMPTS.schema)
VALUES = tuple(_NAMES[_NAMES.index("record_id") + 1 : _NAMES.index("filled_columns")])
# The fact itself: what two exports of one attempt agree in, whatever columns they were told to print.
FACT = (
    "cluster", "job_id_raw", "submitted_at", "started_at", "ended_at", "state", "exit_code", "signal", "elapsed_seconds",
)  # fmt: skip
_BATCH_HOSTS = 500_000


def identified(frame: pl.DataFrame) -> pl.DataFrame:
    """Return job attempts with `record_id` and `filled_columns`.

    Args:
        frame: `cluster` and any of the value columns of `job_attempts`, with its types; absent ones count as null.
    """
    empty = {n: frame.get_column(n).null_count() for n in VALUES if n in frame.columns}
    full = sum(not count for count in empty.values())
    mixed = (pl.col(n).is_not_null() for n, count in empty.items() if 0 < count < frame.height)
    filled = pl.sum_horizontal(pl.lit(full, pl.Int64), *mixed).cast(pl.Int64)
    return frame.with_columns(_hash(frame, FACT).alias("record_id"), filled.alias("filled_columns"))


def _hash(frame: pl.DataFrame, names: Sequence[str]) -> pl.Expr:
    """Return the hash of columns in their order; an absent column is an empty field, as a null is.

    Times enter as microseconds since 1970: much quicker to print than a date, and as canonical.
    """
    parts: list[str | pl.Expr] = []
    known: list[str] = []
    for name in names:
        text = _constant(frame, name)
        if text is not None:
            known.append(text)
            continue
        if known:
            parts.append(pl.lit(SEPARATOR.join(known)))
            known = []
        parts.append(pl.col(name).to_physical())
    return record_id([*parts, pl.lit(SEPARATOR.join(known))] if known else parts)


def _constant(frame: pl.DataFrame, name: str) -> str | None:
    """Return the text that a column enters a hash with, if it is the same in every row; None if not.

    A literal joins much more quickly than a column, and gives the same hash.
    """
    if name not in frame.columns or frame.is_empty():
        return ""
    column = frame.get_column(name)
    if column.null_count():
        return "" if column.null_count() == frame.height else None
    first = column.head(1).to_physical()
    return str(first.cast(pl.String).item()) if (column.to_physical() == first.item()).all() else None


def flags(height: int, causes: Iterable[tuple[str, pl.Series]]) -> pl.Series:
    """Return the list of flags of each row.

    Args:
        height: rows.
        causes: flag and the Boolean series that sets it; a flag may come several times.
    """
    by_flag: dict[str, pl.Series] = {}
    for flag, cause in causes:
        if cause.any():
            known = cause.fill_null(value=False)
            by_flag[flag] = by_flag[flag] | known if flag in by_flag else known
    if not by_flag:
        return pl.Series("flags", [[]], pl.List(pl.String)).new_from_index(0, height)
    names = sorted(by_flag, key=list(FLAGS).index)
    marks = pl.DataFrame([by_flag[n].alias(n) for n in names])
    parts = [pl.when(n).then(pl.lit(n)) for n in names]
    return marks.select(pl.concat_list(parts).list.drop_nulls().alias("flags")).get_column("flags")


def host_lists(cluster: str, texts: Iterable[str]) -> Iterator[tuple[pl.DataFrame, list[str]]]:
    """Yield rows of `host_lists` in bounded batches, each with the lists in it that could not be read.

    Args:
        cluster: cluster of all the lists.
        texts: distinct compressed host lists.
    """
    lists: list[str] = []
    nodes: list[list[str]] = []
    bad: list[str] = []
    hosts = 0
    for text in texts:
        try:
            nodes.append(expand(text))
        except BadHostListError:
            bad.append(text)
            continue
        lists.append(text)
        hosts += len(nodes[-1])
        if hosts >= _BATCH_HOSTS:
            yield _host_frame(cluster, lists, nodes), bad
            lists, nodes, bad, hosts = [], [], [], 0
    yield _host_frame(cluster, lists, nodes), bad


def _host_frame(cluster: str, lists: list[str], nodes: list[list[str]]) -> pl.DataFrame:
    columns = {"cluster": [cluster] * len(lists), "node_list": lists, "nodes": nodes}
    return pl.DataFrame(columns, schema={n: t for n, t in HOST_LISTS.schema.items() if n in columns})
