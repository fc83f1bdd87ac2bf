"""Where nodes stand and which switch they hang on, as a CSV listing: `node,rack`, with `pod`, `switch`, `model` where known."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from transforms.outcome import Context, Parsed
from transforms.parsing.csv_rows import Fields, header_of
from transforms.parsing.inventory import CHUNK_BYTES, NODE, Listing, read_listing, value
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import INVENTORY

FIELDS: Fields = {
    "rack": ("rack", "rack_id", "rack_name", "cabinet"),
    "pod": ("pod", "row", "block", "su", "scalable_unit"),
    "switch": ("switch", "leaf", "leaf_switch", "tor", "switch_name"),
    "model": ("model", "node_model", "product"),
    "serial": ("serial", "node_serial", "serial_number", "asset"),
}
_PLACES = {n for field in ("rack", "pod", "switch") for n in FIELDS[field]}
# These belong to listings of GPUs, maps of ranks and Slurm's own listings.
_OTHERS = {
    "uuid", "gpu_uuid", "pci_bus_id", "bus_id", "busid", "gpu_bus_id", "rank", "global_rank", "jobid", "timestart", "start",
    "state",
}  # fmt: skip


def sniff(head: bytes) -> bool:
    """Tell a list of nodes by its header: a node, a place of it, and nothing that speaks of GPUs, ranks or jobs."""
    layout = header_of(head)
    if layout is None:
        return False
    names = set(layout.names)
    return bool(names & set(NODE)) and bool(names & _PLACES) and not names & _OTHERS


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield rows of `inventory`, kind node.

    Rejected is a row that tells no place, model or serial number of its node.
    """
    yield from read_listing(stream, context, Listing("node", FIELDS, (), _typed))


def _typed(rows: pl.DataFrame) -> pl.DataFrame:
    typed = rows.with_columns(**{name: value(name) for name in FIELDS})
    is_empty = pl.all_horizontal(pl.col(name).is_null() for name in FIELDS)
    return typed.with_columns(problem=pl.when(is_empty).then(pl.lit("tells nothing of its node")))


SOURCE = Source(
    name="topology",
    tables=(INVENTORY,),
    sniff=sniff,
    parse=parse,
    doc="rack, pod and switch of each node as CSV: node,rack[,pod][,switch][,model][,serial]",
    version=2,
    chunk_bytes=CHUNK_BYTES,
)
