"""A snapshot that many questions are asked of: answers by position, counted for a while; what there is; interruption."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from warehouse import publish
from warehouse.console import FEW, Snapshot
from warehouse.publish import NoWarehouseError
from warehouse.query import QueryError
from warehouse.statements import is_complete

from .conftest import Build

MODELS = {
    "marts/few": "-- One row per number.\nselect range as n, if(range % 2 = 0, 'it''s even', 'odd') as kind from range(100)",
    "marts/many": "select range as n, range::varchar as text from range(25000)",
}


@pytest.fixture
def link(make: Build, data: Path) -> Path:
    make(MODELS)
    return publish.link_of(data)


@pytest.fixture
def snapshot(link: Path) -> Iterator[Snapshot]:
    with Snapshot(link) as opened:
        yield opened


def test_rows_are_by_position_under_distinct_names(snapshot: Snapshot) -> None:
    answer = snapshot.ask("select 1 as a, 2 as a, 3 as A", most=9, count_seconds=0)
    assert (answer.columns, answer.rows) == (("a", "a (2)", "A (3)"), [(1, 2, 3)])
    answer = snapshot.ask("select interval 3 days as i, '101'::bit as b, 1 as i", most=9, count_seconds=0)
    assert (answer.columns, answer.rows) == (("i", "b", "i (2)"), [("3 days", "101", 1)])


def test_times_lose_nothing(snapshot: Snapshot) -> None:
    """Python has no nanoseconds, no 24:00:00, and Arrow no offset of a time of day: those are as DuckDB writes them."""
    sql = (
        "select '2026-03-01 12:00:00.123456789'::timestamp_ns as a, timetz '12:00:00+02' as b, time '24:00:00' as c, "
        "[time '24:00:00'] as d, timestamptz '2026-03-01 12:00:00+00' as e"
    )
    ((*texts, moment),) = snapshot.ask(sql, most=1, count_seconds=0).rows
    assert texts == ["2026-03-01 12:00:00.123456789", "12:00:00+02", "24:00:00", "['24:00:00']"]
    assert moment == datetime(2026, 3, 1, 12, tzinfo=UTC)  # what Python has stays a value


def test_times_that_python_has_none_for_are_said_in_words(snapshot: Snapshot) -> None:
    sql = "select timestamptz 'infinity' as a, date '-infinity' as b, timestamp '9999-01-01' + interval 10000 year as c"
    assert snapshot.ask(sql, most=1, count_seconds=0).rows == [("infinity", "-infinity", "after the year 9999")]


def test_rows_beyond_those_shown_are_counted_for_a_while(snapshot: Snapshot) -> None:
    whole = snapshot.ask("from marts.many", most=10, count_seconds=60)
    assert (len(whole.rows), whole.total, whole.is_whole) == (10, 25000, True)
    part = snapshot.ask("from range(1000000000)", most=10, count_seconds=0)
    assert (len(part.rows), part.is_whole) == (10, False)
    assert 10 < part.total < 1_000_000_000


def test_statements_are_split_as_duckdb_reads_them(snapshot: Snapshot) -> None:
    assert snapshot.split("select ';' as a; -- one;\nselect $$;$$ as b;") == [
        "select ';' as a;",
        "-- one;\nselect $$;$$ as b;",
    ]
    with pytest.raises(QueryError, match="syntax error"):
        snapshot.split("select 1; selct 2;")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1;", True),
        ("select '模';  -- done", True),
        ("select 1; /* done */", True),
        ("select 1", False),
        ("select 'a;", False),
        ('select 1 as "a;', False),
        ("select 1 -- ;", False),
        ("select 1; /* not yet", False),
        ("select $$ a;", False),
        ("select $$ a $$;", True),
        ("", False),
    ],
)
def test_a_statement_ends_with_a_semicolon_that_is_one(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


def test_an_interrupted_snapshot_answers_on(snapshot: Snapshot) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            snapshot.ask("select count(*) from range(100000000000) as a, range(1000) as b", most=1, count_seconds=0)
        except QueryError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    while thread.is_alive():
        snapshot.interrupt()
        thread.join(0.1)
    assert "INTERRUPT" in str(failed[0])
    assert snapshot.ask("select 1", most=1, count_seconds=0).rows == [(1,)]


def test_it_stays_at_its_build_and_tells_of_another(make: Build, link: Path, snapshot: Snapshot) -> None:
    assert snapshot.published() is None
    report = make({"marts/few": "select 1 as n"})
    assert snapshot.ask("select count(*) from marts.few", most=1, count_seconds=0).rows == [(100,)]
    assert snapshot.published() == report.build_id
    with Snapshot(link) as later:
        assert later.build_id == report.build_id
    link.unlink()
    assert snapshot.published() is None
    with pytest.raises(NoWarehouseError):
        Snapshot(link)


def test_what_there_is_marts_first_with_meanings(snapshot: Snapshot) -> None:
    relations = snapshot.relations()
    assert [r.name for r in relations[:2]] == ["marts.few", "marts.many"]
    assert (relations[0].grain, relations[0].rows) == ("One row per number.", 100)
    builds = next(r for r in relations if r.name == "ops.builds")
    assert all(column.meaning for column in builds.columns)


def test_every_macro_has_a_meaning_and_an_example(snapshot: Snapshot) -> None:
    macros = {macro.name: macro for macro in snapshot.macros()}
    assert {"mtti", "poisson_interval", "gpu_hours"} <= set(macros)
    assert all(m.meaning and m.example and m.name in m.example for m in macros.values())
    assert macros["poisson_interval"].parameters == ("events", "exposure")


def test_values_are_offered_where_they_are_few_texts(snapshot: Snapshot) -> None:
    few, many = snapshot.relations()[:2]
    number, kind = few.columns
    assert snapshot.values(few, kind) == ("it's even", "odd")
    assert snapshot.values(few, number) == ()
    assert snapshot.values(many, many.columns[1]) == ()
    assert FEW < 25000


def test_words_of_duckdb(snapshot: Snapshot) -> None:
    keywords, functions = snapshot.words()
    assert {"select", "qualify", "asof"} <= set(keywords)
    assert {"date_trunc", "list_transform"} <= set(functions)
