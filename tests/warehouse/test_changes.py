"""Two builds differ in interruptions that came, went, or were judged otherwise; nothing else is a change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse import changes
from warehouse.session import DamagedBuildError

from .conftest import BEGAN

Make = Callable[..., Path]
Making = Callable[..., tuple[Path, list[tuple[Any, ...]]]]
COLUMNS = (
    "interruption_id", "cluster", "run_id", "run", "job_id", "interrupted_at", "cause", "class", "is_planned",
    "culprit_node", "confidence",
)  # fmt: skip


def row(number: int, **more: Any) -> dict[str, Any]:
    """An interruption; each is an hour after the one before."""
    return {
        "interruption_id": f"i{number}",
        "cluster": "c1",
        "run_id": "r1",
        "run": "train",
        "job_id": str(number),
        "interrupted_at": f"2026-03-01T{number:02d}:00:00Z",
        "cause": "gpu_hbm",
        "class": "unexpected",
        "is_planned": False,
        "culprit_node": "n1",
        "confidence": 0.9,
        **more,
    }


def mart(*rows: dict[str, Any], leave_out: tuple[str, ...] = ()) -> str:
    """A query for these rows."""
    columns = [c for c in COLUMNS if c not in leave_out]

    def value(name: str, given: Any) -> str:
        if given is None:
            return "null"
        text = str(given).replace("'", "''")
        return f"timestamptz '{text}'" if name == "interrupted_at" else f"'{text}'" if isinstance(given, str) else text

    selects = [f"select {', '.join(f'{value(c, r[c])} as {c}' for c in columns)}" for r in rows]
    return " union all ".join(selects)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write the file of a build whose mart holds what a query gives."""

    def write(sql: str, table: str = "interruptions") -> Path:
        path = tmp_path / f"2026010{len(list(tmp_path.iterdir()))}Z.duckdb"
        with duckdb.connect(str(path)) as con:
            con.execute("create schema marts")
            con.execute(f"create table marts.{table} as {sql}")
        return path

    return write


def compared(make: Make, old: str, new: str) -> list[dict[str, Any]]:
    return changes.compare(make(old), make(new))


def test_the_same_interruptions_are_no_change(make: Make) -> None:
    assert compared(make, mart(row(1), row(2)), mart(row(2), row(1))) == []


def test_a_build_is_no_different_from_itself(make: Make) -> None:
    path = make(mart(row(1)))
    assert changes.compare(path, path) == []


def test_new_vanished_and_otherwise_judged_ones_are_told_in_order_of_time(make: Make) -> None:
    judged = row(2, cause="nic", culprit_node="n7", confidence=0.6)
    came, other = row(3), judged
    found = compared(make, mart(row(1), row(2), row(4)), mart(other, came, row(4)))
    assert [(f["interruption_id"], f["change"]) for f in found] == [("i1", "gone"), ("i2", "changed"), ("i3", "added")]
    gone, changed, added = found
    assert (gone["old_cause"], gone["new_cause"], gone["changed"]) == ("gpu_hbm", None, [])
    assert changed["changed"] == ["cause", "culprit_node", "confidence"]
    assert (changed["old_cause"], changed["new_cause"]) == ("gpu_hbm", "nic")
    assert (changed["old_culprit_node"], changed["new_culprit_node"]) == ("n1", "n7")
    assert (changed["old_confidence"], changed["new_confidence"]) == (0.9, 0.6)
    assert (added["old_cause"], added["new_cause"], added["changed"]) == (None, "gpu_hbm", [])
    assert {(f["cluster"], f["run"], f["run_id"]) for f in found} == {("c1", "train", "r1")}


@pytest.mark.parametrize(
    ("name", "value"), [("class", "planned"), ("is_planned", True), ("culprit_node", None), ("cause", "unknown")]
)
def test_each_part_of_a_verdict_counts(make: Make, name: str, value: Any) -> None:
    [changed] = compared(make, mart(row(1)), mart(row(1, **{name: value})))
    assert (changed["change"], changed["changed"]) == ("changed", [name])
    assert changes.is_verdict(changed)


def test_a_confidence_counts_in_whole_percent_and_is_no_other_verdict(make: Make) -> None:
    """It moves a little with every new record, since chance is computed from the fleet's own exposure."""
    old, new = mart(row(1), row(2, confidence=0.901)), mart(row(1, confidence=0.8), row(2, confidence=0.903))
    [changed] = compared(make, old, new)
    assert (changed["interruption_id"], changed["changed"]) == ("i1", ["confidence"])
    assert not changes.is_verdict(changed)


def test_a_column_that_a_former_version_lacked_is_not_compared(make: Make) -> None:
    old = mart(row(1), row(2), leave_out=("confidence", "culprit_node", "run"))
    [changed] = compared(make, old, mart(row(1), row(2, cause="nic")))
    assert (changed["interruption_id"], changed["changed"]) == ("i2", ["cause"])
    assert (changed["old_confidence"], changed["new_confidence"], changed["run"]) == (None, 0.9, "train")


def test_a_build_without_the_mart_is_an_error_that_names_both(make: Make) -> None:
    with pytest.raises(DamagedBuildError, match=r"Z\.duckdb and .*Z\.duckdb cannot be compared"):
        changes.compare(make("select 1 as n", "answer"), make(mart(row(1))))


def test_a_damaged_build_is_named(make: Make, tmp_path: Path) -> None:
    path = make(mart(row(1)))
    broken = tmp_path / "broken.duckdb"
    broken.write_bytes(b"no database")
    with pytest.raises(DamagedBuildError, match=r"broken\.duckdb cannot be opened"):
        changes.compare(broken, path)


def test_texts_of_exports_are_no_sql_and_stay_as_they_are(make: Make) -> None:
    hostile = "'; drop table x; --\x1b[31m"
    [changed] = compared(make, mart(row(1)), mart(row(1, run=hostile, culprit_node=hostile)))
    assert (changed["run"], changed["new_culprit_node"]) == (hostile, hostile)


@pytest.fixture
def making(tmp_path: Path) -> Making:
    """Make a build's marts in a session as a build has it, record its changes, and return them."""
    made = 0

    def make(rows: list[dict[str, Any]], former: Path | None, days: float = 0) -> tuple[Path, list[tuple[Any, ...]]]:
        nonlocal made
        made += 1
        path = tmp_path / f"build-{made}.duckdb"
        with duckdb.connect(":memory:") as con:
            con.execute("set TimeZone = 'UTC'")
            con.execute(f"attach '{path}' as build")
            for schema in ("marts", "ops"):
                con.execute(f"create schema build.{schema}")
            con.execute(f"create table build.marts.interruptions as {mart(*rows)}")
            changes.record(con, former, path.stem, BEGAN + timedelta(days=days))
            sql = "select build_id, former_build_id, interruption_id, change, old_cause, new_cause "
            told = con.execute(f"{sql} from build.ops.verdict_changes order by changed_at, interruption_id").fetchall()
        return path, told

    return make


def test_each_build_carries_the_changes_of_those_before_it(making: Making) -> None:
    first, told = making([row(1), row(2)], None)
    assert told == [], "nothing was published before it"
    second, told = making([row(1), row(2, cause="nic"), row(3)], first, 1)
    changed = ("build-2", "build-1", "i2", "changed", "gpu_hbm", "nic")
    added = ("build-2", "build-1", "i3", "added", None, "gpu_hbm")
    assert told == [changed, added]
    first.unlink()
    third, told = making([row(1), row(2, cause="nic")], second, 2)
    gone = ("build-3", "build-2", "i3", "gone", "gpu_hbm", None)
    assert told == [changed, added, gone]
    _, told = making([row(1), row(2, cause="nic")], third, 401.5)
    assert told == [gone], "it does not remember for ever"


def test_a_confidence_that_moved_alone_is_not_remembered(making: Making) -> None:
    first, _ = making([row(1)], None)
    assert making([row(1, confidence=0.5)], first)[1] == []


def test_a_former_build_that_cannot_be_read_keeps_nobody_from_building(
    making: Making, make: Make, tmp_path: Path
) -> None:
    (tmp_path / "broken.duckdb").write_bytes(b"no database")
    assert making([row(1)], tmp_path / "broken.duckdb")[1] == []
    assert making([row(1)], make("select 1 as n", "answer"))[1] == []
