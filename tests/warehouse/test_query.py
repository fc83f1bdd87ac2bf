"""Ad-hoc SQL: read-only, shut off from files, network and settings; answers in every format without loss."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet
import pytest

from warehouse import publish, query
from warehouse.console import Snapshot
from warehouse.query import QueryError

from .conftest import Build

VALUES = """
    select 1 as n, 12345678901234567890123::hugeint as big, 0.1::double as x, true as yes, 'a, "b"\n<c>' as text,
        null::varchar as nothing, '' as empty, timestamptz '2026-03-01 12:00:00+00' as seen_at, date '2026-03-01' as day,
        ['a', null] as list, {'k': 1} as struct, map {'decoded': 2} as flags
"""


@pytest.fixture
def link(make: Build, data: Path) -> Path:
    make({"marts/v": VALUES, "marts/many": "select range as n from range(25000)"})
    return publish.link_of(data)


def written(link: Path, sql: str, format: str) -> bytes:  # noqa: A002
    out = io.BytesIO()
    with Snapshot(link) as snapshot:
        snapshot.write(sql, out, format)
    return out.getvalue()


def test_rows_are_plain_values_with_times_in_utc(link: Path) -> None:
    (row,) = query.rows(link, "from marts.v")
    assert row["seen_at"] == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert row["seen_at"].utcoffset().total_seconds() == 0
    assert (row["big"], row["nothing"], row["empty"]) == (12345678901234567890123, None, "")
    assert (row["list"], row["struct"], row["flags"]) == (["a", None], {"k": 1}, {"decoded": 2})


def test_parameters_are_values_not_sql(link: Path) -> None:
    assert query.rows(link, "select ? as a, ? as b", ["x' or 1 = 1 --", 2]) == [{"a": "x' or 1 = 1 --", "b": 2}]
    assert query.rows(link, "select $name as a", {"name": "y"}) == [{"a": "y"}]


def test_a_session_answers_several_queries_and_goes_on_after_one_that_fails(link: Path) -> None:
    with query.asking(link) as ask:
        assert ask("select 1 as n", None) == [{"n": 1}]
        with pytest.raises(QueryError, match="no_such_mart"):
            ask("from marts.no_such_mart", None)
        assert ask("select ? as n", [2]) == [{"n": 2}]


def test_csv_keeps_null_and_empty_apart(link: Path) -> None:
    text = written(link, "from marts.v", "csv").decode()
    header, line = csv.reader(io.StringIO(text, newline=""))
    row = dict(zip(header, line, strict=True))
    assert row["text"] == 'a, "b"\n<c>'
    assert (row["n"], row["x"], row["seen_at"], row["day"]) == ("1", "0.1", "2026-03-01 12:00:00+00", "2026-03-01")
    assert (json.loads(row["list"]), json.loads(row["flags"])) == (["a", None], {"decoded": 2})
    assert ',,"",' in text  # null, then the empty text


def test_json_is_one_array_of_objects(link: Path) -> None:
    (row,) = json.loads(written(link, "from marts.v", "json"))
    assert (row["n"], row["x"], row["yes"], row["nothing"], row["list"]) == (1, 0.1, True, None, ["a", None])
    assert json.loads(written(link, "from marts.v where false", "json")) == []


def test_parquet_keeps_the_types(link: Path) -> None:
    table = pyarrow.parquet.read_table(io.BytesIO(written(link, "select n, seen_at, list from marts.v", "parquet")))
    assert table.to_pylist()[0]["list"] == ["a", None]
    assert str(table.schema.field("seen_at").type) == "timestamp[us, tz=UTC]"


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    "sql",
    [
        "select 1 as a, 2 as b, 3 as A, 4 as a",
        "select l.*, r.*, s.* from (select 1 as a, 2 as b) as l, (select 3 as A) as r, (select 4 as a) as s",
    ],
)
def test_columns_of_one_name_keep_their_own_values(link: Path, format: str, sql: str) -> None:  # noqa: A002
    """SQL ignores the case of names: taken by name, the second column would show the first one's values."""
    body = written(link, sql, format)
    if format == "csv":
        header, line = csv.reader(io.StringIO(body.decode()))
        row = dict(zip(header, map(int, line), strict=True))
    elif format == "json":
        (row,) = json.loads(body)
    else:
        (row,) = pyarrow.parquet.read_table(io.BytesIO(body)).to_pylist()
    assert row == {"a": 1, "b": 2, "A (2)": 3, "a (3)": 4}


def test_json_has_null_for_what_it_has_no_number_for(link: Path) -> None:
    sql = r"""select 'nan'::double as a, '-inf'::float as b, ['inf'::double, 1] as c, map {'nan'::double: 2} as d,
        'a "NaN" \" -Infinity' as e, {'NaN': 'Infinity'} as f, 'nan'::double as "NaN", 0.5::double as g"""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    (row,) = json.loads(written(link, sql, "json"), parse_constant=refuse)
    assert (row["a"], row["b"], row["c"], row["d"], row["NaN"], row["g"]) == (
        None,
        None,
        [None, 1],
        {"nan": 2},
        None,
        0.5,
    )
    assert (row["e"], row["f"]) == (r'a "NaN" \" -Infinity', {"NaN": "Infinity"})  # texts are texts
    _, line = csv.reader(
        io.StringIO(written(link, "select ['nan'::double, 1] as c, 'nan'::double as x", "csv").decode())
    )
    assert line == ["[null,1.0]", "nan"]  # nested values are JSON there too


def test_lists_of_numbers_are_json_in_csv(link: Path) -> None:
    _, line = csv.reader(
        io.StringIO(written(link, "select [1.5::double] as x, [0.1::decimal(2, 1)] as y", "csv").decode())
    )
    assert line == ["[1.5]", "[0.1]"]


def test_parquet_has_as_text_what_it_has_no_type_for(link: Path) -> None:
    sql = "select interval 3 days as a, [interval 1 day] as b, timetz '12:00:00+02' as c, '101'::bit as d, 1 as n"
    (row,) = pyarrow.parquet.read_table(io.BytesIO(written(link, sql, "parquet"))).to_pylist()
    assert row == {"a": "3 days", "b": "[1 day]", "c": "12:00:00+02", "d": "101", "n": 1}


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_answers_longer_than_a_batch_are_whole(link: Path, format: str) -> None:  # noqa: A002
    body = written(link, "select n from marts.many order by n", format)
    if format == "csv":
        got = [int(line) for line in body.decode().splitlines()[1:]]
    elif format == "json":
        got = [row["n"] for row in json.loads(body)]
    else:
        got = pyarrow.parquet.read_table(io.BytesIO(body)).column("n").to_pylist()
    assert got == list(range(25000))


@pytest.mark.parametrize("sql", ["show all tables", "describe marts.v", "summarize marts.many", "explain select 1"])
def test_statements_that_are_no_select_answer_too(link: Path, sql: str) -> None:
    assert len(written(link, sql, "csv").splitlines()) > 1


def test_errors_are_duckdbs_own_words_also_while_reading(link: Path) -> None:
    with pytest.raises(QueryError, match="no_such_mart"):
        query.rows(link, "from marts.no_such_mart")
    with (
        pytest.raises(QueryError, match="Could not convert"),
        query.query(link, "select if(n = 24999, 'x', '1')::int from marts.many") as reader,
    ):
        reader.read_all()
