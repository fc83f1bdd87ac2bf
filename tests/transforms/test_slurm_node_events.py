"""Node events of a real Slurm, and what the rows are for: how long each node was out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from transforms.outcome import Context, MissingSettingError, UnreadableExportError
from transforms.sources.slurm_node_events import parse, sniff
from transforms.stream import ExportStream
from transforms.tables import NODE_STATES

WN5 = Path(__file__).resolve().parents[1] / "fixtures/sources/slurm_node_events/open_end_and_cluster_row/input.txt"
TAKEN = datetime(2025, 5, 5, tzinfo=UTC)
CONTEXT = Context(TAKEN, zones={"c1": "UTC", "llm": "UTC"})
HEADER = b"Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"


def read(data: bytes, context: Context = CONTEXT) -> pl.DataFrame:
    frames = [f for parsed in parse(ExportStream.of(data), context) for f in parsed.frames.values()]
    return pl.concat([NODE_STATES.enforce(f) for f in frames]) if frames else NODE_STATES.schema.to_frame()


def hours_out(events: pl.DataFrame, begin: datetime, end: datetime) -> dict[str, float]:
    """Hours each node was out within a window: overlaps once, open intervals to the collection time."""
    found: dict[str, float] = {}
    for (node,), rows in events.sort("started_at").group_by("node", maintain_order=True):
        until, total = begin, timedelta()
        for start, stop, taken in rows.select("started_at", "ended_at", "collected_at").iter_rows():
            first, last = max(start, until), min(stop or taken, end)
            total += max(last - first, timedelta())
            until = max(until, last)
        found[str(node)] = total / timedelta(hours=1)
    return found


def test_wn5_hours_follow_from_the_rows() -> None:
    """gn01 was drained and down at once (union 4 h), gn02 and gn03 are still out, gn04 is clipped: 9 h together."""
    events = read(WN5.read_bytes())
    found = hours_out(events, datetime(2025, 5, 4, tzinfo=UTC), TAKEN)
    assert found == {"gn01": 4, "gn02": 2, "gn03": 2, "gn04": 1}


def test_a_real_slurm_is_read_without_a_reject(shared: Path) -> None:
    data = (shared / "exports/slurm_22_05/export_final/sacctmgr_events.txt").read_bytes()
    [parsed] = parse(ExportStream.of(data), CONTEXT)
    assert (parsed.used, dict(parsed.ignored), parsed.rejects) == (10, {"header": 1, "cluster_event": 1}, [])
    down = parsed.frames["node_states"].filter(pl.col("state") == "DOWN")
    assert down["node"].to_list() == ["gpu005", "gpu005", "gpu008", "gpu008"]
    assert down["state_raw"].to_list() == ["DOWN*", "DOWN", "DOWN*", "DOWN*"]


def test_the_earlier_export_holds_nothing_that_the_later_does_not(shared: Path) -> None:
    early, late = (
        set(read((shared / f"exports/slurm_22_05/{e}/sacctmgr_events.txt").read_bytes())["record_id"])
        for e in ("export_2", "export_final")
    )
    assert early
    assert early < late


def test_a_record_has_one_identity_whatever_the_export_looks_like() -> None:
    plain = read(HEADER + b"c1|n1|2025-05-04T08:00:00|2025-05-04T09:00:00|DOWN*|Not responding|slurm(64030)\n")
    other = read(
        b"NodeName,State,Start,End,Reason,Cluster,\nn1,DOWN,2025-05-04T08:00:00,2025-05-04T09:00:00,Not responding,c1,\n"
    )
    assert plain["record_id"].to_list() == other["record_id"].to_list()


def test_a_cluster_without_a_zone_is_an_error_that_names_the_key() -> None:
    line = b"c2|n1|2025-05-04T08:00:00|Unknown|DOWN|x|root(0)\n"
    with pytest.raises(MissingSettingError, match=r"set `zone` under \[clusters\.c2\]"):
        read(HEADER + line)


def test_a_configured_cluster_keeps_its_name_and_any_other_is_renamed() -> None:
    lines = b"".join(b"%s|n1|2025-05-04T08:00:00|Unknown|DOWN|x|root(0)\n" % c for c in (b"a", b"b", b"slurm", b""))
    rows = read(HEADER + lines, Context(TAKEN, cluster="a", zones={"a": "UTC", "b": "Europe/Berlin"}))
    assert rows["cluster"].to_list() == ["a", "b", "a", "a"]
    assert [t.hour for t in rows["started_at"]] == [8, 6, 8, 8]


def test_an_export_without_a_cluster_column_needs_one_configured() -> None:
    with pytest.raises(MissingSettingError, match="set `cluster` on the source"):
        read(b"NodeName|TimeStart\nn1|2025-05-04T08:00:00\n")


def test_without_a_header_the_columns_come_from_the_configuration() -> None:
    line = b"n1|2025-05-04T08:00:00|x\n"
    with pytest.raises(UnreadableExportError, match="set `columns` on the source"):
        read(line)
    context = Context(TAKEN, cluster="c1", zones={"c1": "UTC"}, columns=("NodeName", "Start", "Reason"))
    assert read(line, context)["reason"].to_list() == ["x"]


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"Cluster|NodeName\n",
        b"JobID|NodeName|TimeStart\n",
        b"Cluster|NodeName|TimeStart|NodeName\n",
        b"a" * 70_000,
        b"A|" * 30_000,
        b"   Cluster        NodeName           TimeStart\n",
    ],
)
def test_other_formats_are_not_claimed(head: bytes) -> None:
    assert not sniff(head)
