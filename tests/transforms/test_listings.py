"""CSV listings of GPUs, ranks and places beyond their golden cases: who reads what, identity, pieces, the fate of any line."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.outcome import Context, MissingSettingError, Parsed, UnreadableExportError
from transforms.parsing.csv_rows import cells_of, column_name, header_of
from transforms.registry import all_sources, sniff
from transforms.stream import ExportStream

AT = datetime(2025, 5, 5, tzinfo=UTC)
CONTEXT = Context(collected_at=AT, cluster="c1")
UTC_CONTEXT = Context(collected_at=AT, cluster="c1", zone="UTC")
GPUS = "node,gpu_index,pci_bus_id,uuid\ngn01,0,0000:1b:00.0,GPU-1\ngn01,1,0000:43:00.0,GPU-2\n"


def read(source: str, text: str, context: Context = CONTEXT, **stream: int) -> list[Parsed]:
    return list(all_sources()[source].parse(ExportStream.of(text.encode(), **stream), context))


def rows(source: str, text: str, context: Context = CONTEXT) -> pl.DataFrame:
    return pl.concat(f for p in read(source, text, context) for f in p.frames.values())


HEADERS = {
    "node,gpu_index,pci_bus_id,uuid": ["gpu_inventory"],
    "index, pci.bus_id, uuid, serial, name, driver_version": ["gpu_inventory"],
    "name;index;gpu_uuid": ["gpu_inventory"],
    "Hostname\tGPU UUID\tPCI Bus-ID": ["gpu_inventory"],
    "node,rack,gpu_index,uuid": ["gpu_inventory"],
    "rank,node": ["rank_map"],
    "Local_Rank,Rank,Hostname,Job_ID": ["rank_map"],
    "node,rank,rack": ["rank_map"],
    "node,rack": ["topology"],
    "HOST,Leaf_Switch,Serial": ["topology"],
    "row,rack,node": ["topology"],
    # Samples, logs of ranks, and listings that tell nothing we know are left to others.
    "timestamp,index,uuid,utilization.gpu [%]": [],
    "uuid,name": [],
    "rank,step,loss": [],
    "rank": [],
    "node,serial": [],
    "node,node,rack": [],
    "rack,pod": [],
    "a sentence about a node, a rack and a GPU": [],
    # Slurm's own listings, also with a comma for a delimiter.
    "JobID|State|ExitCode|Start|End|NodeList": ["slurm_sacct"],
    "JobID,State,ExitCode,Start,End,NodeList": ["slurm_sacct"],
    "Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User": ["slurm_node_events"],
}


@pytest.mark.parametrize(("header", "names"), HEADERS.items(), ids=str)
def test_a_header_is_claimed_by_one_source_at_most(header: str, names: list[str]) -> None:
    assert [s.name for s in sniff(f"{header}\n".encode())] == names


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ("gpu_inventory", "node,pci_bus_id,uuid\n", "no column `gpu_index`"),
        ("gpu_inventory", "node,gpu_index,serial\n", "no column `pci_bus_id` or `uuid`"),
        ("rank_map", "node,local_rank\n", "no column `rank`"),
        ("rank_map", "0,gn01\n1,gn01\n", "it has no header: export it with one, or set `columns`"),
        ("rank_map", "", "it has no header"),
        ("gpu_inventory", GPUS + "uuid,node,serial\n", "no column `gpu_index`"),
    ],
)
def test_a_missing_column_is_named(source: str, text: str, message: str) -> None:
    with pytest.raises(UnreadableExportError, match=message.replace("(", r"\(")):
        read(source, text)


@pytest.mark.parametrize("source", ["gpu_inventory", "rank_map", "topology"])
def test_a_missing_node_names_the_key_to_set(source: str) -> None:
    """`goodput init` finds from it that the path must capture the node."""
    with pytest.raises(MissingSettingError, match="set `node` on the source"):
        read(source, "rank,rack,gpu_index,uuid\n0,A1,0,GPU-1\n")


def test_columns_of_a_listing_without_header_come_from_the_configuration() -> None:
    context = Context(collected_at=AT, cluster="c1", node="gn07", columns=("index", "pci.bus_id", "uuid"))
    frame = rows("gpu_inventory", "0, 00000000:1B:00.0, GPU-1\n", context)
    assert frame.select("node", "gpu_index", "device", "uuid").rows() == [("gn07", 0, "0000:1b:00.0", "GPU-1")]


def test_a_node_that_is_listed_beats_the_configured_one() -> None:
    context = Context(collected_at=AT, cluster="c1", node="gn07")
    frame = rows("rank_map", "rank,node\n0,gn01\n1,\n", context)
    assert frame["node"].to_list() == ["gn01", "gn07"]


def test_times_without_a_zone_need_one_and_others_do_not() -> None:
    text = "node,rack,seen_at\ngn01,A1,{}\n"
    with pytest.raises(MissingSettingError, match="zone"):
        read("topology", text.format("2025-05-04 10:00:00"))
    for stamp in ("2025-05-04T10:00:00Z", "2025-05-04 12:00:00+02:00", "1746352800"):
        assert rows("topology", text.format(stamp))["seen_at"].to_list() == [datetime(2025, 5, 4, 10, tzinfo=UTC)]


def test_a_cluster_must_be_known() -> None:
    with pytest.raises(MissingSettingError, match="cluster"):
        read("topology", "node,rack\ngn01,A1\n", Context(collected_at=AT))


def test_a_listing_without_times_is_the_same_record_whenever_it_is_collected() -> None:
    later = Context(collected_at=datetime(2025, 6, 1, tzinfo=UTC), cluster="c1")
    first, again = rows("gpu_inventory", GPUS), rows("gpu_inventory", GPUS, later)
    assert first["record_id"].to_list() == again["record_id"].to_list()
    assert first["seen_at"].to_list() == [AT, AT]
    assert again["seen_at"].to_list() == [later.collected_at] * 2


def test_a_time_that_is_told_is_part_of_the_record() -> None:
    text = "node,rack,seen_at\ngn01,A1,2025-05-04T10:00:00Z\ngn01,A1,2025-05-05T10:00:00Z\ngn01,A1,2025-05-04T12:00:00+02:00\n"
    first, second, third = rows("topology", text)["record_id"]
    assert first == third
    assert first != second


def test_a_record_does_not_depend_on_how_its_listing_is_laid_out() -> None:
    other = '"UUID"; Hostname; PCI Bus-ID; Index; Fan\nGPU-2; gn01; 00000000:43:00; 1; 30 %\n'
    assert rows("gpu_inventory", other)["record_id"].to_list() == rows("gpu_inventory", GPUS)["record_id"].to_list()[1:]


def test_kinds_and_clusters_tell_records_apart() -> None:
    elsewhere = Context(collected_at=AT, cluster="c2")
    ids = {rows("topology", "node,rack\ngn01,A1\n", c)["record_id"].item() for c in (CONTEXT, elsewhere)}
    assert len(ids) == 2


def test_a_piece_after_the_header_takes_it_from_the_head_of_the_file() -> None:
    data, cut = GPUS.encode(), GPUS.index("gn01,1")
    stream = ExportStream(io.BytesIO(data[cut:]), head=data, first_line=3, byte_offset=cut)
    [parsed] = all_sources()["gpu_inventory"].parse(stream, CONTEXT)
    assert parsed.frames["inventory"].select("line", "uuid").rows() == [(3, "GPU-2")]
    assert parsed.used == 1
    assert not parsed.is_open


def test_a_later_header_with_other_columns_keeps_the_piece_open() -> None:
    """Lines that are still to come stand under it, and only a reading from here on can know."""
    assert [p.is_open for p in read("rank_map", "rank,node\n0,gn01\nnode,rank\ngn02,1\n")] == [True]
    assert [p.is_open for p in read("rank_map", "rank,node\n0,gn01\nrank,node\n1,gn02\n")] == [False]


def test_pieces_are_bounded_by_the_chunk() -> None:
    text = "rank,node\n" + "".join(f"{n},gn{n // 8:04d}\n" for n in range(20_000))
    pieces = read("rank_map", text, chunk_bytes=16_384)
    assert sum(p.used for p in pieces) == 20_000
    assert max(p.used for p in pieces) < 4_000


def test_a_line_of_unusual_length_is_rejected_and_the_rest_is_read() -> None:
    text = f"rank,node\n0,gn01\n1,{'x' * 200}\n2,gn02\n"
    pieces = read("rank_map", text, max_line=100)
    assert sum(p.used for p in pieces) == 2
    assert [r.line for p in pieces for r in p.rejects] == [3]


@pytest.mark.parametrize(
    ("text", "name"),
    [("pci.bus_id", "pci_bus_id"), ("PCI Bus-ID", "pci_bus_id"), (" memory.total [MiB] ", "memory_total"), ("", "")],
)
def test_column_names(text: str, name: str) -> None:
    assert column_name(text) == name


def test_quotes() -> None:
    assert cells_of('a, "b, c" ,"d ""e"""', ",") == ["a", "b, c", 'd "e"']
    with pytest.raises(ValueError, match="no CSV"):
        cells_of('a,"b', ",")


def test_a_header_has_names_each_once() -> None:
    assert header_of(b"# made by ops\n\n node , rack,\n") is not None
    assert header_of(b"node,,rack\n") is None
    assert header_of(b"node,Node\n") is None
    assert header_of(b"") is None


CELLS = st.text(alphabet='gn01,;"#\t [NA]xé-|', max_size=12)
LINES = st.lists(st.lists(CELLS, max_size=5).map(",".join) | st.just("rank,node") | st.just(""), max_size=12)


@given(lines=LINES, is_ended=st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_line_of_any_listing_has_one_fate(lines: list[str], is_ended: bool) -> None:
    text = "\n".join(["rank,node", *lines]) + "\n" * is_ended
    stream = ExportStream.of(text.encode())
    fates = list[int]()
    for parsed in all_sources()["rank_map"].parse(stream, CONTEXT):
        made = sum(f.height for f in parsed.frames.values())
        assert parsed.used == made
        fates.append(parsed.used + parsed.ignored.total() + len(parsed.rejects))
    assert sum(fates) == stream.lines


@pytest.mark.parametrize(
    ("source", "header", "name"),
    [
        ("topology", "node,rack,rack", "`rack`"),
        ("rank_map", "rank,node,Rank", "`rank`"),
        ("gpu_inventory", "node,gpu_index,uuid,PCI Bus-ID,pci.bus_id", "`pci_bus_id`"),
    ],
)
def test_a_column_named_twice_is_told(source: str, header: str, name: str) -> None:
    with pytest.raises(UnreadableExportError, match=f"names the column {name} more than once"):
        read(source, f"{header}\n1,2,3\n")


def test_digits_of_other_scripts_are_no_numbers_and_no_times() -> None:
    [parsed] = read(
        "rank_map", "rank,node,time\n٣,gn01,\n3,gn02,١٧٤٦٤٠٠٠٠٠\n3,gn03,٢٠٢٥-05-04T10:00:00Z\n3,gn04,\n", UTC_CONTEXT
    )
    assert [r.reason for r in parsed.rejects] == ["rank ٣ is no whole number", *["its time cannot be read"] * 2]
    assert parsed.used == 1


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01 00:00:00"])
def test_a_time_outside_every_calendar_rejects_its_row_only(time: str) -> None:
    [parsed] = read("rank_map", f"rank,node,time\n1,gn01,{time}\n2,gn02,2025-05-04 10:00:00\n", UTC_CONTEXT)
    assert [r.reason for r in parsed.rejects] == ["its time cannot be read"]
    [frame] = parsed.frames.values()
    assert frame["seen_at"].to_list() == [datetime(2025, 5, 4, 10, tzinfo=UTC)]
