"""GPUs of nodes as a CSV listing: `node,gpu_index,pci_bus_id,uuid`, and what `nvidia-smi --query-gpu=... --format=csv` prints.

`nvidia-smi` names no host: a `node` or `hostname` column is added where listings are gathered, or the source's path
captures `{node}`. Source: `nvidia-smi --help-query-gpu`.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from transforms.outcome import Context, Parsed
from transforms.parsing.csv_rows import Fields, header_of
from transforms.parsing.inventory import CHUNK_BYTES, Listing, not_whole, read_listing, value, whole
from transforms.parsing.pci import pci_address
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import INVENTORY

FIELDS: Fields = {
    "gpu_index": ("gpu_index", "index", "gpu", "gpu_id"),
    "pci_bus_id": ("pci_bus_id", "gpu_bus_id", "bus_id", "pci_bus", "busid", "pci", "pci_address"),
    "uuid": ("uuid", "gpu_uuid"),
    "serial": ("serial", "gpu_serial", "serial_number"),
    "model": ("name", "gpu_name", "model", "product_name"),
    "driver": ("driver_version", "driver"),
}
_PLACES = set(FIELDS["pci_bus_id"])
_IDENTITIES = set(FIELDS["uuid"]) | _PLACES
# With one of these it is a series of samples, not a listing.
_SAMPLED = ("utilization", "temperature", "power_draw", "memory_used", "clocks", "pstate")


def sniff(head: bytes) -> bool:
    """Tell a listing of GPUs by its header: a UUID or PCI address, and another column that says which GPU it is."""
    layout = header_of(head)
    if layout is None:
        return False
    names = set(layout.names)
    which = names & (_IDENTITIES | set(FIELDS["gpu_index"]))
    return bool(names & _IDENTITIES) and len(which) > 1 and not any(n.startswith(_SAMPLED) for n in names)


def parse(stream: ExportStream, context: Context) -> Iterator[Parsed]:
    """Yield rows of `inventory`, kind gpu.

    Rejected is a row whose index or PCI address cannot be read, or that has neither an address, a UUID nor a serial number.
    """
    yield from read_listing(stream, context, Listing("gpu", FIELDS, (("gpu_index",), ("pci_bus_id", "uuid")), _typed))


def _typed(rows: pl.DataFrame) -> pl.DataFrame:
    addresses = {text: pci_address(text) for text in rows["pci_bus_id"].unique().drop_nulls()}
    device = value("pci_bus_id").replace_strict(addresses, default=None, return_dtype=pl.String)
    # A board without a serial number shows 0.
    serial = pl.when(value("serial").str.contains("^0+$").not_()).then(value("serial"))
    typed = rows.with_columns(
        device=device, uuid=value("uuid"), serial=serial, model=value("model"), driver=value("driver")
    )
    is_unreadable = value("pci_bus_id").is_not_null() & pl.col("device").is_null()
    is_nameless = pl.all_horizontal(pl.col(c).is_null() for c in ("device", "uuid", "serial"))
    problem = pl.coalesce(
        not_whole("gpu_index", "GPU index"),
        pl.when(whole("gpu_index").is_null()).then(pl.lit("has no GPU index")),
        pl.when(is_unreadable).then(pl.format("{} is no PCI address", pl.col("pci_bus_id"))),
        pl.when(is_nameless).then(pl.lit("has neither PCI address, UUID nor serial number")),
    )
    return typed.with_columns(problem=problem).with_columns(gpu_index=whole("gpu_index"))


SOURCE = Source(
    name="gpu_inventory",
    tables=(INVENTORY,),
    sniff=sniff,
    parse=parse,
    doc="GPUs of nodes as CSV: `nvidia-smi --query-gpu=index,pci.bus_id,uuid,serial,name --format=csv`, with a node column",
    version=2,
    chunk_bytes=CHUNK_BYTES,
)
