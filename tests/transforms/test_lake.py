"""The lake: parts are whole or absent, names cannot leave it, damage is named."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms import lake
from transforms.tables import ANNOTATIONS, HOST_LISTS, REJECTS, TABLES, Table

DAY = datetime(2026, 1, 5, 23, 59, tzinfo=UTC)


def frame(*clusters: str | None, day: datetime | None = DAY) -> pl.DataFrame:
    data = {"cluster": list(clusters), "made_at": [day] * len(clusters), "export_id": [f"e{c}" for c in clusters]}
    return ANNOTATIONS.enforce(
        pl.DataFrame(data, schema_overrides={"cluster": pl.String, "made_at": pl.Datetime("us", "UTC")})
    )


def write(root: Path, name: str, rows: pl.DataFrame, table: Table = ANNOTATIONS) -> lake.Part:
    [(folder, part)] = lake.partitions(table, rows)
    return lake.write(root, f"{folder}/{name}.parquet", table, part)


@given(st.one_of(st.none(), st.text()))
def test_a_folder_name_is_one_harmless_name(value: str | None) -> None:
    name = lake.folder_name("cluster", value)
    assert name.startswith("cluster=")
    assert name.isascii()
    assert not set(name) & set("/\\\0*?[]{} \n'\"")
    assert len(name) < 140


def test_different_clusters_have_different_folders() -> None:
    names = ["a", "A", "a/b", "a%2Fb", "a b", "..", "x" * 200, "x" * 201]
    assert len({lake.folder_name("cluster", n) for n in names}) == len(names)


def test_rows_go_to_the_folder_of_their_cluster_and_utc_day() -> None:
    late = DAY.replace(day=6)
    rows = pl.concat([frame("b", "a"), frame("a", day=late), frame(None, day=None)])
    found = {folder: part.height for folder, part in lake.partitions(ANNOTATIONS, rows)}
    assert found == {
        "annotations/cluster=a/date=2026-01-05": 1,
        "annotations/cluster=a/date=2026-01-06": 1,
        "annotations/cluster=b/date=2026-01-05": 1,
        "annotations/cluster=unknown/date=unknown": 1,
    }


@pytest.mark.parametrize("table", [HOST_LISTS, REJECTS])
def test_tables_without_a_date_or_a_cluster_have_a_place(table: Table) -> None:
    rows = table.enforce(pl.DataFrame({"export_id": ["e"]}))
    [(folder, _)] = lake.partitions(table, rows)
    assert folder == f"{table.name}/cluster=unknown/date=unknown"


def test_scan_gives_back_what_was_written_with_declared_types(tmp_path: Path) -> None:
    write(tmp_path, "one", frame("0012"))
    found = lake.scan(tmp_path, "annotations").collect()
    assert found.schema == ANNOTATIONS.schema
    assert found["cluster"].to_list() == ["0012"], "a folder's name never becomes a value"
    assert lake.scan(tmp_path, "windows").collect().is_empty()


def test_parts_of_an_older_schema_are_still_read(tmp_path: Path) -> None:
    old = frame("a").drop("why").with_columns(gone=pl.lit(1))
    lake.write(tmp_path, "annotations/cluster=a/date=unknown/old.parquet", ANNOTATIONS, old)
    [row] = lake.scan(tmp_path, "annotations").collect().to_dicts()
    assert (row["cluster"], row["why"]) == ("a", None)


def test_a_part_that_could_not_be_finished_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "one", frame("a"))

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path, "one", frame("b"))
    assert lake.scan(tmp_path, "annotations").collect()["cluster"].to_list() == ["a"], "the good part is as it was"
    assert [Path(p).name for p in lake.sweep(tmp_path, lake.parts_on_disk(tmp_path))] == ["one.parquet.unfinished"]


def test_sweep_removes_what_nobody_owns(tmp_path: Path) -> None:
    mine, orphan, other = (write(tmp_path, n, frame("a")) for n in ("b00000001-00001", "b00000002t-00001", "theirs"))
    assert lake.sweep(tmp_path, {mine.path}) == [orphan.path]
    assert [d.path for d in lake.foreign(tmp_path, {mine.path})] == [other.path], "not ours, so not removed"
    assert lake.parts_on_disk(tmp_path) == [mine.path, other.path]


def test_st3_unreadable_parts_are_named_and_the_good_one_is_not(tmp_path: Path, shared: Path) -> None:
    folder = tmp_path / "annotations"
    folder.mkdir()
    for part in (shared / "cases/ST3/events").iterdir():
        (folder / part.name).write_bytes(part.read_bytes())
    (folder / "part-0004.parquet").write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    (folder / "part-0005.parquet").write_text("hello, I am text")
    found = {Path(d.path).name: d.reason for d in lake.verify(tmp_path)}
    assert found.keys() == {"part-0002.parquet", "part-0003.parquet", "part-0004.parquet", "part-0005.parquet"}
    assert found["part-0002.parquet"] == "is cut short"
    assert found["part-0003.parquet"] == "is empty"
    assert found["part-0004.parquet"].startswith("has a broken footer")
    assert found["part-0005.parquet"] == "is no Parquet file"
    lake.set_aside(tmp_path, tmp_path / "quarantine", lake.verify(tmp_path))
    assert pl.read_parquet(folder / "*.parquet").height == 1_000


def test_damage_is_seen_against_what_was_written(tmp_path: Path) -> None:
    good, cut, gone = (write(tmp_path, n, frame("a")) for n in ("good", "cut", "gone"))
    (tmp_path / cut.path).write_bytes((tmp_path / cut.path).read_bytes()[:-9])
    (tmp_path / gone.path).unlink()
    expected = {p.path: p.size_bytes for p in (good, cut, gone)}
    found = {d.path: d.reason for d in lake.damaged(tmp_path, expected)}
    assert found.keys() == {cut.path, gone.path}
    assert found[cut.path].startswith("is cut short")
    assert found[gone.path] == "is missing"


def test_damaged_content_is_seen_by_whoever_reads_it_and_named(tmp_path: Path) -> None:
    """The length is as it was written, so that only reading tells; a part that is not there is another matter."""
    good, bad = (write(tmp_path, n, frame("a")) for n in ("good", "bad"))
    content = (tmp_path / bad.path).read_bytes()
    (tmp_path / bad.path).write_bytes(content[:4] + bytes(b ^ 0x5A for b in content[4:64]) + content[64:])
    assert lake.damaged(tmp_path, {p.path: p.size_bytes for p in (good, bad)}) == []
    [damage] = lake.unread(tmp_path, [good.path, bad.path])
    assert damage.path == bad.path
    assert damage.reason.startswith("cannot be read (")
    with pytest.raises(lake.UnreadablePartError, match=r"bad\.parquet cannot be read"):
        lake.read(tmp_path, ANNOTATIONS, [good.path, bad.path])
    with pytest.raises(lake.UnreadablePartError, match=r"bad\.parquet cannot be read"):
        lake.without(tmp_path, bad.path, ANNOTATIONS, {"other"})
    with pytest.raises(FileNotFoundError):
        lake.read(tmp_path, ANNOTATIONS, ["annotations/gone.parquet"])


def test_rows_of_a_piece_can_be_taken_out(tmp_path: Path) -> None:
    part = write(tmp_path, "one", frame("a", "a"))
    assert lake.export_ids(tmp_path, part.path) == {"ea"}
    assert lake.without(tmp_path, part.path, ANNOTATIONS, {"ea"}).is_empty()
    assert lake.without(tmp_path, part.path, ANNOTATIONS, {"other"}).height == 2


@pytest.mark.parametrize("table", [t for t in TABLES.values() if t.date_column], ids=lambda t: t.name)
@pytest.mark.parametrize("us", [-62_135_596_800_000_001, 253_402_300_800_000_000, 2**63 - 1, -(2**63) + 1])
def test_a_day_outside_every_calendar_is_unknown(table: Table, us: int) -> None:
    at = pl.Series(table.date_column, [us], pl.Int64).cast(pl.Datetime("us", "UTC"))
    [(folder, part)] = lake.partitions(table, table.enforce(at.to_frame()))
    assert folder == f"{table.name}/cluster=unknown/date=unknown"
    assert part.height == 1


@pytest.mark.parametrize(
    ("us", "day"), [(-62_135_596_800_000_000, "0001-01-01"), (253_402_300_799_999_999, "9999-12-31")]
)
def test_the_first_and_the_last_day_have_a_folder(us: int, day: str) -> None:
    at = pl.Series("made_at", [us], pl.Int64).cast(pl.Datetime("us", "UTC"))
    [(folder, _)] = lake.partitions(ANNOTATIONS, ANNOTATIONS.enforce(at.to_frame()))
    assert folder.endswith(f"/date={day}")
