"""Builds that are kept: what each tells of itself, and how long a rollback holds."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from warehouse import history, publish, query
from warehouse.build import BuildReport, current
from warehouse.inputs import Inputs

from .conftest import BEGAN, Build


def with_stops(report: BuildReport) -> BuildReport:
    """Let a build say that it found three interruptions."""
    assert report.path is not None
    report.path.chmod(0o644)
    with duckdb.connect(str(report.path)) as con:
        con.execute("update ops.builds set mart_rows = map {'interruptions': 3}")
    return report


def state(data: Path) -> list[tuple[bool, bool]]:
    return [(b.is_published, b.is_rolled_back) for b in history.kept(data)]


def test_each_build_tells_when_by_whom_and_what_it_found(make: Build, data: Path) -> None:
    first, second = with_stops(make()), make()
    old, new = history.kept(data)
    assert (old.build_id, new.build_id) == (first.build_id, second.build_id)
    assert (old.started_at, new.started_at) == (BEGAN + timedelta(minutes=1), BEGAN + timedelta(minutes=2))
    assert (old.interruptions, new.interruptions) == (3, None), "the second has no such mart"
    assert {b.code_version for b in (old, new)} == {"test"}
    assert (old.is_published, new.is_published) == (False, True)
    assert old.size_bytes == old.path.stat().st_size
    assert (old.problem, new.problem) == (None, None)


def test_a_damaged_build_is_listed_with_its_problem_and_hides_no_other(make: Build, data: Path) -> None:
    broken = make().path
    with_stops(make())
    assert broken is not None
    broken.chmod(0o644)
    broken.write_bytes(b"no database")
    old, new = history.kept(data)
    assert (old.problem, old.interruptions) == ("cannot be opened: it is damaged", None)
    assert (new.problem, new.interruptions) == (None, 3)


def test_only_the_last_and_the_published_one(make: Build, data: Path) -> None:
    first = make()
    for _ in range(3):
        make()
    publish.rollback(data, first.build_id)
    assert [b.is_published for b in history.kept(data, 2)] == [True, False, False]


def test_a_rollback_is_told_apart_from_a_build_that_was_killed_before_it_was_published(make: Build, data: Path) -> None:
    """Both leave a newest build that readers do not see. One is meant and holds; the other is work to be completed."""
    first, second = make(), make()
    assert publish.held_back(data) is None
    publish.rollback(data, first.build_id)
    assert publish.held_back(data) == second.build_id
    assert state(data) == [(True, False), (False, True)]
    publish.rollback(data, second.build_id)
    assert publish.held_back(data) is None, "forward again: nothing is held back"
    assert first.path is not None
    publish.switch(data, first.path)  # as if the second had been killed between its last name and the switch
    assert publish.held_back(data) is None
    assert state(data) == [(True, False), (False, False)]


def test_going_back_twice_holds_the_newest_back(make: Build, data: Path) -> None:
    first, second, third = make(), make(), make()
    publish.rollback(data, second.build_id)
    publish.rollback(data, first.build_id)
    assert publish.held_back(data) == third.build_id


def test_a_new_build_ends_a_rollback(make: Build, data: Path) -> None:
    first, _ = make(), make()
    publish.rollback(data, first.build_id)
    make()
    assert publish.held_back(data) is None
    assert state(data)[-1] == (True, False)


def test_a_rollback_to_a_build_that_is_gone_changes_nothing(make: Build, data: Path) -> None:
    make()
    second = make()
    with pytest.raises(publish.NoSuchBuildError, match=second.build_id):
        publish.rollback(data, "nonsense")
    assert publish.held_back(data) is None
    assert publish.published(data).stem == second.build_id


def test_the_marker_of_a_rollback_that_was_killed_before_the_switch_means_nothing(
    make: Build, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make(), make()

    def killed(_data: Path, _build: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publish, "switch", killed)
        with pytest.raises(KeyboardInterrupt):
            publish.rollback(data, first.build_id)
    assert publish.held_back(data) is None
    assert publish.published(data).stem == second.build_id


def test_a_spoiled_marker_means_nothing(make: Build, data: Path) -> None:
    first, _ = make(), make()
    publish.rollback(data, first.build_id)
    (publish.folder_of(data) / publish.ROLLED_BACK).write_bytes(b"\xff\x00")
    assert publish.held_back(data) is None


def test_a_rollback_holds_until_there_is_something_new(make: Build, data: Path) -> None:
    """The next build with the same records does nothing; one with new records publishes."""

    def inputs(content: str) -> Inputs:
        return Inputs(lake=data / "lake", content=content)

    first = make(inputs=inputs("1"))
    second = make(inputs=inputs("2"))
    publish.rollback(data, first.build_id)
    again = make(inputs=inputs("2"))
    assert (again.is_current, again.published, again.build_id) == (True, False, second.build_id)
    assert publish.published(data).stem == first.build_id
    third = make(inputs=inputs("3"))
    assert (third.is_current, third.published) == (False, True)
    assert publish.published(data).stem == third.build_id


def test_a_build_that_was_killed_before_the_switch_is_completed_by_the_next(make: Build, data: Path) -> None:
    first = make(inputs=Inputs(lake=data / "lake", content="1"))
    make(inputs=Inputs(lake=data / "lake", content="2"))
    assert first.path is not None
    publish.switch(data, first.path)
    third = make(inputs=Inputs(lake=data / "lake", content="2"))
    assert (third.is_current, third.published) == (False, True)
    [row] = query.rows(publish.link_of(data), "select inputs_sha256 as mark from ops.builds")
    assert current(data, row["mark"]) is not None


def test_pruning_keeps_the_last_ones_and_the_published_one(make: Build, data: Path) -> None:
    reports = [make(keep=9) for _ in range(5)]
    publish.rollback(data, reports[0].build_id)
    removed = publish.prune(data, 2)
    assert removed == [r.build_id for r in reports[1:3]]
    assert [b.build_id for b in publish.builds(data)] == [reports[0].build_id, *(r.build_id for r in reports[3:])]
    assert publish.held_back(data) == reports[4].build_id
