"""Equal digests mean equal marts: the same rows, whatever the order they came in."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.digest import digest

from .conftest import Build

ROWS = """
    select range as n, chr(65 + (range % 26)::int) as letter, [range, null] as list, {'a': range / 7} as struct,
        timestamptz '2026-01-01 00:00:00+00' + to_seconds(range) as seen_at, if(range % 3 = 0, null, 'x') as maybe
    from range(20000)
"""


def of(make: Build, text: str, **others: str) -> dict[str, str]:
    report = make({"marts/m": text, **others})
    assert report.path is not None
    return digest(report.path)


def test_order_of_insertion_does_not_matter(make: Build) -> None:
    assert (
        of(make, ROWS)
        == of(make, f"{ROWS} order by n desc")
        == of(make, f"select * from ({ROWS}) order by md5(n::varchar)")
    )


@pytest.mark.parametrize(
    "change",
    [
        "select * replace (if(n = 7, 'z', letter) as letter) from rows",
        "select * replace (if(n = 8, [8, 0], list) as list) from rows",
        "select * replace (if(n = 7, {'a': 1.0000000001}, struct) as struct) from rows",
        "select * replace (if(n = 7, seen_at + interval 1 microsecond, seen_at) as seen_at) from rows",
        "select * replace (if(n = 0, '', maybe) as maybe) from rows",
        "select * replace (n::int as n) from rows",
        "select * rename (letter as symbol) from rows",
        "select * from rows where n <> 7",
        "select * from rows union all select * from rows where n = 7",
    ],
    ids=[
        "text",
        "in a list",
        "in a struct",
        "a microsecond",
        "null is not empty",
        "type",
        "name",
        "row less",
        "row twice",
    ],
)
def test_any_difference_shows(make: Build, change: str) -> None:
    assert of(make, f"with rows as ({ROWS}) {change}")["m"] != of(make, ROWS)["m"]


def test_each_mart_has_its_own_and_ops_none(make: Build) -> None:
    """Only ops may differ between two builds of the same records: it tells of the build itself."""
    first = of(make, ROWS, **{"marts/empty": "select 1 as n where false", "ops/o": "select 1 as n"})
    second = of(make, ROWS, **{"marts/empty": "select 1 as n where false", "ops/o": "select 2 as n"})
    assert first == second
    assert set(first) == {"m", "empty"}


def test_it_needs_no_link(make: Build, data: Path) -> None:
    make()
    assert digest(data / "warehouse.duckdb") == digest((data / "warehouse.duckdb").resolve())
