"""`goodput sql` with one query: Ctrl-C, columns of one name, and what is no query, told in a sentence."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.flows.terminal_help import ROOT
from warehouse.formats import FORMATS

Goodput = Callable[..., Any]

ENDLESS = "select count(distinct hash(a.range * b.range)) from range(1000000) as a, range(1000000) as b"


def piped(text: bytes) -> io.TextIOWrapper:
    """Standard input as Python opens it in a locale without UTF-8."""
    return io.TextIOWrapper(io.BytesIO(text), encoding="ascii", errors="surrogateescape")


@pytest.mark.slow
def test_the_largest_integers_are_right_in_every_form(goodput: Goodput, demo_folder: Path, tmp_path: Path) -> None:
    """Arrow has no integers of 128 bits without a sign: above half of them they would be written as negative ones."""
    query = "select 340282366920938463463374607431768211455::uhugeint as one, [one] as list"
    config = ("--config", demo_folder / "goodput.toml")
    for form in ("table", "csv", "json"):
        assert (
            goodput("sql", query, "--format", form, *config).out.count("340282366920938463463374607431768211455") == 2
        )
    target = tmp_path / "a.parquet"
    with target.open("wb") as out:
        FORMATS["parquet"](duckdb.sql(query), out)
    found = duckdb.execute(f"select one, list from '{target}'").fetchone()
    assert str(found).count("340282366920938463463374607431768211455") == 2


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_ctrl_c_stops_a_query(demo_folder: Path, form: str) -> None:
    """DuckDB looks at no signals: a query that ran in the main thread went on to its end."""
    command = [sys.executable, "-m", "flows.cli", "sql", ENDLESS, "--format", form]
    running = subprocess.Popen(
        [*command, "--config", str(demo_folder / "goodput.toml")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        until = time.monotonic() + 30
        while not list((demo_folder / "data" / "builds").glob(".reading-*")):  # it has opened the build
            assert time.monotonic() < until
            assert running.poll() is None
            time.sleep(0.05)
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=10)
    finally:
        running.kill()
    assert (running.returncode, out) == (130, "")
    assert "stopped" in err
    assert "Traceback" not in err
    assert not list((demo_folder / "data" / "builds").glob(".reading-*"))


def test_columns_of_one_name_are_told_apart_alike_in_every_form(goodput: Goodput, demo_folder: Path) -> None:
    ask = ("sql", "select 1 as a, 2 as A, 3 as a", "--config", demo_folder / "goodput.toml")
    assert [line.split() for line in goodput(*ask).out.splitlines()] == [["a", "A", "(2)", "a", "(3)"], ["1", "2", "3"]]
    assert list(csv.reader(io.StringIO(goodput(*ask, "--format", "csv").out))) == [
        ["a", "A (2)", "a (3)"],
        ["1", "2", "3"],
    ]
    assert json.loads(goodput(*ask, "--format", "json").out) == [{"a": 1, "A (2)": 2, "a (3)": 3}]


@pytest.mark.parametrize("statement", [";", " ; /* nothing */ ;", "-- a comment"])
@pytest.mark.parametrize("form", ["table", "csv"])
def test_a_query_without_a_statement_is_wrong_use(
    goodput: Goodput, demo_folder: Path, monkeypatch: pytest.MonkeyPatch, statement: str, form: str
) -> None:
    """An empty answer and exit code 0 would hide that a script lost its query."""
    monkeypatch.setattr("sys.stdin", piped(statement.encode()))
    ran = goodput("sql", "--format", form, "--config", demo_folder / "goodput.toml")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no statement in the query" in ran.err


def test_standard_input_is_utf_8_whatever_the_locale(
    goodput: Goodput, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ("sql", "--format", "csv", "--config", demo_folder / "goodput.toml")
    monkeypatch.setattr("sys.stdin", piped("select '模' as a".encode()))
    assert goodput(*ask).out == 'a\n"模"\n'
    monkeypatch.setattr("sys.stdin", piped(b"\xff\xfe\x00"))
    ran = goodput(*ask)
    assert (ran.code, ran.out, ran.err) == (2, "", "error: standard input is no text in UTF-8\n")
    ran = goodput("sql", "select '\udcff'", *ask[1:])  # how Python has an argument that is no text
    assert (ran.code, ran.out, ran.err) == (2, "", "error: the query is no text in UTF-8\n")


def test_closed_streams_are_told_in_a_sentence(
    goodput: Goodput, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ("--config", demo_folder / "goodput.toml")
    monkeypatch.setattr("sys.stdin", None)
    ran = goodput("sql", *config)
    assert (ran.code, "standard input is empty" in ran.err) == (2, True)
    assert goodput("sql", "select 1 as a", "--format", "csv", *config).out == "a\n1\n"  # it needs none
    monkeypatch.setattr("sys.stdout", None)
    ran = goodput("sql", "select 1 as a", *config)
    assert (ran.code, "standard output is closed" in ran.err) == (2, True)


def test_a_file_outside_the_open_folders_is_told_apart_from_a_table(
    goodput: Goodput, demo_folder: Path, tmp_path: Path
) -> None:
    """DuckDB takes a file whose ending it does not know for a table, and proposes one of its own."""
    for name in ("notes.txt", "owners.csv"):
        (tmp_path / name).write_text("a\n1\n")
        ran = goodput("sql", f"from '{tmp_path / name}'", "--config", demo_folder / "goodput.toml")
        assert (ran.code, ran.out) == (1, "")
        assert "--allow-files FOLDER" in ran.err
        assert "Did you mean" not in ran.err
        assert "show all tables" not in ran.err
