"""Reservations: what counts as a new record, and what must be configured."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from transforms.outcome import Context, MissingSettingError
from transforms.sources.slurm_reservations import parse
from transforms.stream import ExportStream

CONTEXT = Context(datetime(2025, 5, 5, tzinfo=UTC), cluster="c1", zones={"c1": "UTC"})
BLOCK = b"""ReservationName=fw StartTime=2025-06-01T08:00:00 EndTime=2025-06-01T12:00:00 Duration=04:00:00
   Nodes=gn[1-2] NodeCnt=2 CoreCnt=2 Features=(null) PartitionName=(null) Flags=MAINT
   TRES=cpu=2
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a

"""


def read(data: bytes, context: Context = CONTEXT) -> pl.DataFrame:
    return pl.concat([p.frames["windows"] for p in parse(ExportStream.of(data), context) if p.frames])


def test_block_form_and_one_line_form_are_the_same_record() -> None:
    one_line = b" ".join(BLOCK.split()) + b"\n"
    assert read(BLOCK)["record_id"].to_list() == read(one_line)["record_id"].to_list()


def test_a_reservation_that_was_moved_is_another_record() -> None:
    moved = BLOCK.replace(b"08:00:00", b"09:00:00")
    assert read(BLOCK + moved)["record_id"].n_unique() == 2


@pytest.mark.parametrize(
    ("flags", "is_maintenance"),
    [(b"MAINT", True), (b"IGNORE_JOBS,MAINT,ALL_NODES", True), (b"NO_MAINT_X", False), (b"", False), (b"DAILY", False)],
)
def test_maintenance_is_what_the_flag_says(flags: bytes, *, is_maintenance: bool) -> None:
    assert read(BLOCK.replace(b"MAINT", flags))["is_maintenance"].to_list() == [is_maintenance]


def test_an_unlimited_reservation_is_open() -> None:
    [row] = read(BLOCK.replace(b"EndTime=2025-06-01T12:00:00", b"EndTime=UNLIMITED")).to_dicts()
    assert row["ended_at"] is None
    assert row["flags"] == ["open_end"]


def test_the_cluster_must_be_configured_unless_there_is_nothing_to_say() -> None:
    nameless = Context(datetime(2025, 5, 5, tzinfo=UTC))
    with pytest.raises(MissingSettingError, match="set `cluster` on the source"):
        read(BLOCK, nameless)
    none = list(parse(ExportStream.of(b"No reservations in the system\n"), nameless))
    assert sum(p.ignored["no_reservations"] for p in none) == 1
