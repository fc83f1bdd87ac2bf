"""A check is a query that returns bad rows; one bad row keeps a build from being published."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from warehouse import checks, publish, query
from warehouse.checks import CheckError

from .conftest import Build


@pytest.fixture
def check_files(tmp_path: Path) -> Path:
    folder = tmp_path / "own-checks"
    folder.mkdir()
    (folder / "small.sql").write_text("-- No n may exceed\n-- two.\nselect n from marts.answer where n > 2;\n")
    return folder


def numbers(n: int) -> dict[str, str]:
    return {"marts/answer": f"select range as n from range({n + 1})"}


def test_a_build_that_breaks_no_rule_is_published(make: Build, check_files: Path) -> None:
    report = make(numbers(2), check_files=check_files)
    assert report.published
    assert report.failed_checks == ()


def test_a_bad_row_stops_the_publish_and_is_shown(make: Build, check_files: Path, data: Path) -> None:
    good = make(numbers(2), check_files=check_files)
    bad = make(numbers(12), check_files=check_files)
    assert not bad.published
    assert bad.path is None
    (failed,) = bad.failed_checks
    assert (failed.name, failed.rule, failed.count) == ("small", "No n may exceed two.", 10)
    assert len(failed.rows) == checks.SHOWN
    assert all(row["n"] > 2 for row in failed.rows)
    assert str(failed).startswith("small: 10 rows break the rule: No n may exceed two.\n    n = ")
    assert str(failed).endswith("\n    and 5 more")
    assert publish.published(data) == good.path
    assert [b.build_id for b in publish.builds(data)] == [good.build_id]


def test_bad_rows_are_told_as_people_read_them() -> None:
    moment = datetime(2026, 3, 2, 11, 0, tzinfo=timezone(timedelta(hours=1)))
    row = {"job_id": "7", "at": moment, "gpus": None, "nodes": ["a", "b"], "is_planned": True}
    told = str(checks.FailedCheck("small", "No.", 1, (row,)))
    assert told == (
        "small: 1 row breaks the rule: No.\n"
        "    job_id = 7, at = 2026-03-02 10:00:00 UTC, gpus = -, nodes = [a, b], is_planned = true"
    )


def test_every_failing_check_is_told(make: Build, check_files: Path) -> None:
    (check_files / "even.sql").write_text("-- Every n is even.\nselect n from marts.answer where n % 2 = 1")
    report = make(numbers(3), check_files=check_files)
    assert [(c.name, c.count) for c in report.failed_checks] == [("even", 2), ("small", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [("select 1", "must say what must hold"), ("-- Holds.\nselect gone from marts.answer", "gone")],
)
def test_a_wrong_check_is_an_error_that_names_it(
    make: Build, check_files: Path, data: Path, text: str, message: str
) -> None:
    """It must not pass for a rule that holds."""
    (check_files / "wrong.sql").write_text(text)
    with pytest.raises(CheckError, match=rf"(?s)wrong\.sql: .*{message}"):
        make(check_files=check_files)
    assert not publish.link_of(data).exists()


def test_checks_run_on_what_is_published_too(make: Build, check_files: Path, data: Path) -> None:
    make(numbers(4))
    (failed,) = checks.run_published(publish.link_of(data), check_files)
    assert failed.count == 2
    assert query.rows(publish.link_of(data), "select count(*) as n from marts.answer") == [{"n": 5}]
