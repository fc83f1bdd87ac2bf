"""Which node each rank of a training job runs on, as a CSV listing: `rank,node`, with `local_rank` and `job_id` where known."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from transforms.outcome import Context, Parsed
from transforms.parsing.csv_rows import Fields, header_of
from transforms.parsing.inventory import CHUNK_BYTES, COMMON, Listing, not_whole, read_listing, value, whole
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import INVENTORY

FIELDS: Fields = {
    "rank": ("rank", "global_rank", "rank_id"),
    "local_rank": ("local_rank", "localrank"),
    "job_id": ("job_id", "jobid", "slurm_job_id", "job"),
    "gpu_index": ("gpu_index", "gpu", "gpu_id"),
}
_KNOWN = {n for names in (*FIELDS.values(), *COMMON.values()) for n in names}
_PASSED_OVER = {
    "world_size",
    "local_world_size",
    "node_rank",
    "group_rank",
    "pid",
    "ip",
    "address",
    "device",
    "rack",
    "pod",
}


def sniff(head: bytes) -> bool:
    """Tell a map of ranks by its header: a rank, something beside it, and no column that a log of ranks might have."""
    layout = header_of(head)
    if layout is None:
        return False
    names = set(layout.names)
    return bool(names & set(FIELDS["rank"])) and len(names) > 1 and names <= _KNOWN | _PASSED_OVER


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield rows of `inventory`, kind rank; a row's job is the source's where there is no column for it.

    Rejected is a row without a rank, or whose rank, local rank or GPU index is no whole number.
    """

    def typed(rows: pl.DataFrame) -> pl.DataFrame:
        job = value("job_id")
        problem = pl.coalesce(
            not_whole("rank", "rank"),
            not_whole("local_rank", "local rank"),
            not_whole("gpu_index", "GPU index"),
            pl.when(whole("rank").is_null()).then(pl.lit("has no rank")),
        )
        return rows.with_columns(
            problem=problem,
            job_id=job.fill_null(context.job_id) if context.job_id else job,
            **{n: whole(n) for n in ("rank", "local_rank", "gpu_index")},
        )

    yield from read_listing(stream, context, Listing("rank", FIELDS, (("rank",),), typed))


SOURCE = Source(
    name="rank_map",
    tables=(INVENTORY,),
    sniff=sniff,
    parse=parse,
    doc="node of each rank of a job as CSV: rank,node[,local_rank][,job_id]",
    version=2,
    chunk_bytes=CHUNK_BYTES,
)
