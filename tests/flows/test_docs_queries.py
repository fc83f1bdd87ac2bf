"""Every query that a document shows runs on the demo, and those of docs/questions.md on a small replay too."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flows.cli import execute
from tests.test_docs import DOCS, FENCE, ROOT, fenced, inline, text_of
from warehouse.query import query as run_query
from warehouse.query import rows

Goodput = Callable[..., Any]
QUERIES = sorted(
    {
        words[2]
        for path in DOCS
        for line in [*fenced(text_of(path)), *inline(text_of(path))]
        if (words := shlex.split(line, comments=True))[1] == "sql" and len(words) > 2 and " " in words[2]
    }
)

SECTIONS = re.split(r"^## ", text_of(ROOT / "docs" / "questions.md"), flags=re.MULTILINE)[1:]
# What a fleet of 16 nodes in two days may have none of: a node worse than the others, a weak verdict.
MAY_BE_EMPTY = {"3", "8"}


def blocks(section: str, language: str) -> list[str]:
    return [block.strip() for named, block in FENCE.findall(section) if named == language]


def heading(section: str) -> str:
    return section.partition("\n")[0]


def answer(warehouse: Path, sql: str) -> pa.Table:
    with run_query(warehouse, sql) as reader:
        return reader.read_all()


@pytest.fixture(scope="module")
def replay_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small replay, built once: unlike the Slurm example it has training logs, diagnostics and inventories."""
    folder = tmp_path_factory.mktemp("replay") / "d"
    assert execute(["demo", str(folder), "--seed", "4", "--nodes", "16", "--days", "2"]) == 0
    return folder / "data" / "warehouse.duckdb"


def test_there_are_queries() -> None:
    assert len(QUERIES) >= 4


@pytest.mark.parametrize("query", [q for q in QUERIES if "owners.csv" not in q])  # a file that the reader would have
def test_a_query_of_the_docs_runs_on_the_demo(goodput: Goodput, demo_folder: Path, query: str) -> None:
    ran = goodput("sql", query, "--format", "json", "--config", demo_folder / "goodput.toml")
    assert ran.code == 0, ran.err


def test_there_are_ten_questions_and_one_before_them() -> None:
    numbers = [heading(section).partition(".")[0] for section in SECTIONS]
    assert numbers[1:] == [str(number) for number in range(1, 11)]
    for section in SECTIONS:
        assert (len(blocks(section, "sql")), len(blocks(section, "text"))) == (1, 1), heading(section)


@pytest.mark.parametrize("section", SECTIONS, ids=heading)
def test_a_question_is_answered_with_the_columns_shown(section: str, replay_warehouse: Path, demo_folder: Path) -> None:
    [sql], [shown] = blocks(section, "sql"), blocks(section, "text")
    columns = shown.partition("\n")[0].split()
    assert answer(demo_folder / "data" / "warehouse.duckdb", sql).column_names == columns
    answered = answer(replay_warehouse, sql)
    assert answered.column_names == columns
    assert answered.num_rows or heading(section).partition(".")[0] in MAY_BE_EMPTY


def test_answers_agree_with_the_run(replay_warehouse: Path) -> None:
    """The sums that two questions and the run's own row must share: all that happened lies in the newest 30 days."""
    sql = {heading(section).partition(".")[0]: blocks(section, "sql")[0] for section in SECTIONS}
    [run] = rows(replay_warehouse, "from marts.runs")
    causes = rows(replay_warehouse, sql["1"])
    assert sum(row["interruptions"] for row in causes) == run["interruptions"] > 0
    assert sum(row["stops"] for row in rows(replay_warehouse, sql["2"])) == run["unexpected"]
    loops = rows(replay_warehouse, sql["6"])
    assert sum(row["incidents"] for row in loops) == run["incidents"]
    assert sum(row["interruptions"] for row in loops) == run["interruptions"]


def test_no_stored_macro_needs_a_newer_client(replay_warehouse: Path) -> None:
    """DuckDB 1.4 opens the file, but does not find the function `if` that a macro stored by DuckDB 2 calls."""
    macros = rows(replay_warehouse, "select function_name, macro_definition from duckdb_functions() where not internal")
    assert {"mtti", "root_causes_between"} <= {row["function_name"] for row in macros}
    assert [row["function_name"] for row in macros if '"if"(' in row["macro_definition"]] == []
