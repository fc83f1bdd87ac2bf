"""Two builds that tell the same interruptions may price them otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse import costs
from warehouse.session import DamagedBuildError

PRICES = "lost_gpu_seconds, stalled_gpu_seconds, lost_work_gpu_seconds, starting_gpu_seconds"
RUNS = "cluster, run_id, run, effective_training_time"


def build(path: Path, stops: str, runs: str = "('c1', 'r1', 'train', 0.9)", prices: str = PRICES) -> Path:
    with duckdb.connect(str(path)) as con:
        con.execute("create schema marts")
        con.execute(f"create table marts.interruptions as select * from (values {stops}) as t({prices})")
        con.execute(f"create table marts.runs as select * from (values {runs}) as t({RUNS})")
    return path


def compared(tmp_path: Path, old: dict[str, str], new: dict[str, str]) -> dict[str, Any]:
    return costs.compare(build(tmp_path / "old.duckdb", **old), build(tmp_path / "new.duckdb", **new))


def test_what_was_lost_is_summed_up_and_what_was_lost_on_gpus_held_apart(tmp_path: Path) -> None:
    """An interruption without a price adds nothing; a part that is null is nothing."""
    old = "(1000, null, 100, 20), (500, 7, 50, 10), (null, 5, 5, 5)"
    found = compared(tmp_path, {"stops": old}, {"stops": "(900, null, 0, 20), (450, 7, 0, 10), (null, 5, 5, 5)"})
    assert (found["old_lost_gpu_seconds"], found["old_held_gpu_seconds"]) == (1500, 187)
    assert (found["new_lost_gpu_seconds"], found["new_held_gpu_seconds"]) == (1350, 37)
    assert found["runs"] == []


def test_runs_whose_training_time_differs_as_it_is_shown_are_told_the_largest_difference_first(tmp_path: Path) -> None:
    old = "('c1', 'r1', 'a', 0.9), ('c1', 'r2', 'b', 0.5), ('c1', 'r3', 'c', 0.70001), ('c1', 'r4', 'd', 0.1)"
    new = "('c1', 'r1', 'a', 0.91), ('c1', 'r2', 'b', 0.4), ('c1', 'r3', 'c', 0.70002), ('c1', 'r5', 'e', 0.1)"
    found = compared(tmp_path, {"stops": "(1, 0, 0, 0)", "runs": old}, {"stops": "(1, 0, 0, 0)", "runs": new})
    shares = [(r["run"], r["old_effective_training_time"], r["new_effective_training_time"]) for r in found["runs"]]
    assert shares == [("b", pytest.approx(0.5), pytest.approx(0.4)), ("a", pytest.approx(0.9), pytest.approx(0.91))]
    assert found["number_of_runs"] == 4


def test_a_build_without_interruptions_lost_nothing_and_one_without_prices_does_not_tell(tmp_path: Path) -> None:
    empty = build(tmp_path / "empty.duckdb", "(1, 0, 0, 0)")
    with duckdb.connect(str(empty)) as con:
        con.execute("delete from marts.interruptions")
    unpriced = build(tmp_path / "unpriced.duckdb", "(null::bigint, null, null, null)")
    found = costs.compare(empty, unpriced)
    assert (found["old_lost_gpu_seconds"], found["old_held_gpu_seconds"]) == (0, 0)
    assert (found["new_lost_gpu_seconds"], found["new_held_gpu_seconds"]) == (None, None)


def test_columns_that_a_former_version_lacked_are_not_told(tmp_path: Path) -> None:
    """It had no parts of what was lost, and its runs no training time."""
    old = build(tmp_path / "old.duckdb", "(1000)", prices="lost_gpu_seconds")
    with duckdb.connect(str(old)) as con:
        con.execute("alter table marts.runs drop column effective_training_time")
    found = costs.compare(old, build(tmp_path / "new.duckdb", "(900, 0, 10, 20)"))
    assert (found["old_lost_gpu_seconds"], found["old_held_gpu_seconds"]) == (1000, None)
    assert (found["new_lost_gpu_seconds"], found["new_held_gpu_seconds"]) == (900, 30)
    assert found["runs"] == []
    with duckdb.connect(str(old)) as con:
        con.execute("drop table marts.runs")
        con.execute("alter table marts.interruptions rename column lost_gpu_seconds to cost")
    assert costs.compare(old, old)["old_lost_gpu_seconds"] is None


def test_a_build_costs_the_same_as_itself(tmp_path: Path) -> None:
    path = build(tmp_path / "one.duckdb", "(1000, 1, 2, 3)")
    found = costs.compare(path, path)
    assert (found["old_lost_gpu_seconds"], found["new_lost_gpu_seconds"], found["runs"]) == (1000, 1000, [])


def test_a_damaged_build_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.duckdb"
    broken.write_bytes(b"no database")
    with pytest.raises(DamagedBuildError, match=r"broken\.duckdb cannot be opened"):
        costs.compare(broken, build(tmp_path / "new.duckdb", "(1, 0, 0, 0)"))
