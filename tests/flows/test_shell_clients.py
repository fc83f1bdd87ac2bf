"""The command line client from PyPI, older than the library, reads what is published: tables, comments and every macro."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import DOCS, text_of
from warehouse import dictionary, questions
from warehouse.query import rows


class Client:
    """`duckdb -readonly` of the package duckdb-cli on one file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, sql: str) -> list[dict[str, Any]]:
        command = [
            sys.executable,
            "-m",
            "duckdb_cli",
            "-init",
            "/dev/null",
            "-readonly",
            "-json",
            self._file,
            "-c",
            sql,
        ]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, f"{sql}\n{ran.stderr}"
        return list(json.loads(ran.stdout or "[]"))


@pytest.fixture(scope="module")
def client(demo_folder: Path) -> Client:
    return Client(demo_folder / "data" / "warehouse.duckdb")


def test_the_client_is_an_older_one(client: Client) -> None:
    """Were it not, this file would prove nothing: look then for another that people have."""
    (row,) = client("select version() as version")
    assert row["version"].startswith("v1.")


def test_it_reads_tables_and_their_comments(client: Client, demo_folder: Path) -> None:
    assert client("select count(*)::int as n from marts.interruptions") == [{"n": 11}]
    asked = "select schema_name, table_name, column_name, comment from duckdb_columns() where not internal order by all"
    told = client(asked)
    assert told == rows(demo_folder / "data" / "warehouse.duckdb", asked)
    assert sum(row["comment"] is not None for row in told) > 100
    (runs,) = client("select comment from duckdb_tables() where table_name = 'runs' and schema_name = 'marts'")
    assert runs["comment"].startswith("One row per tracked run")


def test_it_runs_every_macro_with_the_same_answer(client: Client, demo_folder: Path) -> None:
    warehouse = demo_folder / "data" / "warehouse.duckdb"
    found = {
        row["function_name"]: row["comment"]
        for row in client("select distinct function_name, comment from duckdb_functions() where not internal")
    }
    assert set(found) == set(dictionary.macros())
    assert {"mtti", "poisson_interval", "gpu_hours", "root_causes_between"} <= set(found)
    for macro, comment in found.items():
        assert comment == dictionary.macros()[macro]
        example = questions.fitted(comment.partition("Example: ")[2], ["llm"])
        asked = f"select to_json(t)::varchar as row from ({example.replace('2024-06-01', '2020-01-01')}) as t"
        answer = client(asked)
        assert answer == rows(warehouse, asked)
        assert answer


def test_a_default_of_a_macro_may_be_left_out_or_named(client: Client) -> None:
    (row,) = client(
        "select poisson_interval(419) as a, poisson_interval(419, 54).upper as b, poisson_interval(419, exposure := 54).upper as c"
    )
    assert (row["a"]["lower"], row["a"]["upper"]) == (pytest.approx(379.84, abs=0.01), pytest.approx(461.11, abs=0.01))
    assert row["b"] == row["c"] == pytest.approx(461.11 / 54, abs=0.001)


def test_it_answers_the_questions_of_the_documents(client: Client) -> None:
    for question in questions.read().values():
        client(question.sql)


def test_every_macro_is_in_a_document() -> None:
    told = "\n".join(text_of(path) for path in DOCS if path.parent.name == "docs")
    assert [macro for macro in dictionary.macros() if f"`{macro}`" not in told] == []
