"""`goodput sql "describe TABLE"` prints what the shell's `describe` prints: the columns with what they mean."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from tests.flows.conftest import Goodput


@pytest.mark.parametrize("query", ["describe marts.runs", 'DESCRIBE "marts"."runs";', "describe runs\n"])
def test_a_table_is_described_with_what_its_columns_mean(goodput: Goodput, demo_folder: Path, query: str) -> None:
    ran = goodput("sql", query, "--config", demo_folder / "goodput.toml")
    assert ran.code == 0
    assert ran.out.startswith("marts.runs: One row per tracked run")
    assert re.search(r"^mtti_hours_lower +double +\S+", ran.out, re.MULTILINE)


def test_programs_get_what_duckdb_answers(goodput: Goodput, demo_folder: Path) -> None:
    """Its columns have the names that any client of DuckDB knows."""
    ran = goodput("sql", "describe marts.runs", "--format", "csv", "--config", demo_folder / "goodput.toml")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert {"column_name": "run_id", "column_type": "VARCHAR"}.items() <= rows[1].items()


def test_a_query_is_described_by_duckdb_and_a_table_that_is_not_there_is_an_error(
    goodput: Goodput, demo_folder: Path
) -> None:
    config = ("--config", demo_folder / "goodput.toml")
    assert re.search(r"^a +INTEGER", goodput("sql", "describe select 1 as a", *config).out, re.MULTILINE)
    ran = goodput("sql", "describe marts.nope", *config)
    assert ran.code == 1
    assert "nope does not exist" in ran.err
