"""From rows of a CSV listing to statements of the table `inventory`: what all kinds of listings have in common.

**Identity.** A listing says what was so at some time. Where it tells that time (`seen_at`, `timestamp`), the time is part of
the record: the same GPU in the same place a week later is another statement, and a GPU that came back is told three times.
Where it tells none, the time of collection stands in, and is no part of the record: a second copy of a listing is the
same record, told twice at two times. Which statement holds when is decided over all (record, time) pairs, never over records alone, so
neither copies nor their order change what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from transforms.outcome import Context, Parsed
from transforms.parsing.csv_rows import Batch, Fields, Required, batches
from transforms.parsing.timestamps import read_times
from transforms.records import record_id
from transforms.stream import ExportStream
from transforms.tables import INVENTORY, UTC

CHUNK_BYTES = 2 << 20
NODE = ("node", "hostname", "host", "node_name", "nodename", "host_name", "nodelist")
SEEN_AT = ("seen_at", "timestamp", "time", "collected_at", "date")
COMMON: Fields = {"node": NODE, "told_at": SEEN_AT}

_MISSING = ("", "-", "n/a", "na", "none", "null", "unknown", "(null)", "not available", "not supported")
_BRACKETED = r"^\[.*\]$"
_HAS_ZONE = r"(?:[Zz]|[+-][0-9][0-9]:?[0-9][0-9])$|^[0-9]{9,10}$"
_CONTENT = (
    "cluster", "kind", "node", "gpu_index", "device", "uuid", "serial", "model", "job_id", "rank", "local_rank", "rack", "pod",
    "switch", "driver",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Listing:
    """A kind of listing.

    Attributes:
        kind: kind of its statements.
        fields: columns it reads, beside those of `COMMON`.
        required: groups of fields of which one must have a column; `node` is one too unless the source names a node.
        typed: adds the columns of `inventory` that differ from the text, and `problem` (String): why the row cannot be
            used, or null.
    """

    kind: str
    fields: Fields
    required: Required
    typed: Callable[[pl.DataFrame], pl.DataFrame]


def read_listing(stream: ExportStream, context: Context, listing: Listing) -> Iterator[Parsed]:
    """Yield statements, a piece for each chunk of the stream.

    Rejected are rows with too many or too few fields, without a node, with a time that cannot be read, or with
    what `listing.typed` calls a problem.

    Raises:
        UnreadableExportError: there is no header, or it lacks a required column.
        MissingSettingError: no cluster is configured, rows have no node, or times no zone.
    """
    cluster = context.require_cluster()
    required = [*([] if context.node else [("node",)]), *listing.required]
    for batch in batches(stream, context, {**COMMON, **listing.fields}, required):
        yield _statements(batch, context, cluster, listing)
    if stream.long_lines:
        yield Parsed(rejects=list(stream.long_lines))


def value(name: str) -> pl.Expr:
    """Return the text of a field; null where it stands for "none": empty, N/A, [Not Supported], ..."""
    text = pl.col(name)
    return pl.when(text.str.to_lowercase().is_in(_MISSING) | text.str.contains(_BRACKETED)).then(None).otherwise(text)


def whole(name: str) -> pl.Expr:
    """Return a field as a whole number from 0; null where it is none."""
    return value(name).str.extract(r"^([0-9]{1,9})$").cast(pl.Int64)


def not_whole(name: str, what: str) -> pl.Expr:
    """Return the problem of a field that holds something, but no whole number; null = it has none."""
    is_bad = value(name).is_not_null() & whole(name).is_null()
    return pl.when(is_bad).then(pl.format("{} {} is no whole number", pl.lit(what), pl.col(name)))


def _statements(batch: Batch, context: Context, cluster: str, listing: Listing) -> Parsed:
    parsed, rows = batch.parsed, batch.rows
    if not rows.height:
        return parsed
    node = value("node")
    frame = listing.typed(rows.with_columns(node=node if context.node is None else node.fill_null(context.node)))
    frame = _timed(frame, context, cluster).with_columns(
        problem=pl.coalesce(pl.when(pl.col("node").is_null()).then(pl.lit("names no node")), "problem", "time_problem")
    )
    bad = frame.select("problem").with_row_index().drop_nulls()
    parsed.rejects += [batch.lines[i].reject(problem) for i, problem in bad.iter_rows()]
    good = frame.filter(pl.col("problem").is_null())
    parsed.used += good.height
    flags = {"decoded": pl.col("is_decoded"), "time_ambiguous": pl.col("is_ambiguous")}
    good = good.with_columns(
        cluster=pl.lit(cluster),
        kind=pl.lit(listing.kind),
        collected_at=pl.lit(context.collected_at, UTC),
        flags=pl.concat_list(pl.when(on).then(pl.lit(flag)) for flag, on in flags.items()).list.drop_nulls(),
    ).with_columns(seen_at=pl.coalesce("instant", "collected_at"))
    content = [pl.col(c) if c in good.columns else pl.lit(None, pl.String).alias(c) for c in _CONTENT]
    good = good.with_columns(record_id=record_id([*content, "instant"]))
    kept = [c for c in good.columns if c in INVENTORY.schema]
    if good.height:
        parsed.frames[INVENTORY.name] = INVENTORY.enforce(good.select(kept)).drop("export_id")
    return parsed


def _timed(frame: pl.DataFrame, context: Context, cluster: str) -> pl.DataFrame:
    """Return `frame` with `instant`, `is_ambiguous` and `time_problem`."""
    # nvidia-smi prints 2024/06/03 08:00:01.123
    told = frame.select(value("told_at").str.replace_all("/", "-", literal=True)).to_series()
    needs_zone = bool(told.str.contains(_HAS_ZONE).not_().any())
    zone = context.zone_of(cluster) if needs_zone else "UTC"
    times = read_times(told, zone)
    return frame.with_columns(
        instant=times["instant"],
        is_ambiguous=times["is_ambiguous"],
        time_problem=times.select(
            pl.when("is_unreadable")
            .then(pl.lit("its time cannot be read"))
            .when("is_nonexistent")
            .then(pl.lit(f"a time that clocks in {zone} never showed; is the zone right?"))
        ).to_series(),
    )
