"""Cases for single models: rows given to the tables they read, and the rows that must come out.

A case is a folder `tests/fixtures/models/<schema.model>/<case>/`:

- `given/<schema.table>.csv`: rows of a table that the model reads, near (another model) or far (the lake, settings,
  reference). Columns not named are null. Models between a given table and the tested one are built for real; what is
  not given is empty, reference data is the project's own.
- `expect.csv`: all rows that must come out, in any order, and of them only the columns named.

An empty field is null, `""` is the empty text, lists are written `[a, b]`, times carry their zone.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from warehouse import load, runner
from warehouse.inputs import Inputs
from warehouse.session import building, catalog_of, identifier, literal

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "models"
MODELS = runner.load()
FOLDERS = sorted(path.parent for path in CASES.glob("*/*/expect.csv"))


def columns_of(con: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    return {row[0]: row[1] for row in con.execute(f"describe select * from {table}").fetchall()}


def read(con: duckdb.DuckDBPyConnection, path: Path, types: dict[str, str], name: str) -> list[str]:
    """Make temporary table `name` from a CSV, cast to `types`; return the columns the CSV names."""
    source = f"read_csv({literal(str(path))}, header = true, all_varchar = true, allow_quoted_nulls = false)"
    named = [row[0] for row in con.execute(f"describe select * from {source}").fetchall()]
    assert set(named) <= set(types), f"{path.name}: no such columns: {sorted(set(named) - set(types))}"
    cast = ", ".join(f"cast({identifier(c)} as {types[c]}) as {identifier(c)}" for c in named)
    con.execute(f"create or replace temp table {name} as select {cast} from {source}")
    return named


def give(con: duckdb.DuckDBPyConnection, table: str, path: Path) -> None:
    """Put the CSV's rows, and only those, into a table that exists."""
    schema, _, name = table.partition(".")
    target = f"{catalog_of(schema)}.{schema}.{identifier(name)}"
    named = read(con, path, columns_of(con, target), "given_rows")
    con.execute(f"delete from {target}")
    con.execute(f"insert into {target} by name select {', '.join(map(identifier, named))} from given_rows")


def run_case(folder: Path, tmp_path: Path) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return (rows that are missing, rows that are too many)."""
    target = folder.parent.name
    given = {path.stem: path for path in (folder / "given").glob("*.csv")}
    needed = runner.upstream(MODELS, [target])
    unread = set(given) - set(needed) - {r for m in needed.values() for r in m.references}
    assert not unread, f"{target} reads none of {sorted(unread)}"
    (tmp_path / "spill").mkdir()
    with building(tmp_path / "case.duckdb", tmp_path / "spill") as con:
        load.inputs(con, Inputs(lake=tmp_path / "lake"))
        for table in given.keys() - needed.keys():
            give(con, table, given[table])
        for model in runner.order(needed, load.known()):
            runner.create(con, model)
            if model.name in given:
                give(con, model.name, given[model.name])
        named = ", ".join(map(identifier, read(con, folder / "expect.csv", columns_of(con, target), "expected")))
        missing = con.execute(f"select {named} from expected except all select {named} from {target}").fetchall()
        surplus = con.execute(f"select {named} from {target} except all select {named} from expected").fetchall()
    return missing, surplus


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_case(folder: Path, tmp_path: Path) -> None:
    missing, surplus = run_case(folder, tmp_path)
    assert not missing, f"missing: {missing}; instead there are: {surplus}"
    assert not surplus, f"too many: {surplus}"


def test_every_folder_is_a_case_of_a_model() -> None:
    """A misspelt folder would be passed over in silence."""
    assert {p.name for p in CASES.iterdir() if p.is_dir()} <= set(MODELS)
    assert [p for p in CASES.glob("*/*") if p.is_dir() and p not in FOLDERS] == []


@pytest.mark.parametrize(
    ("expect", "missing", "surplus"),
    [
        ("job_id,state\n300,COMPLETED\n301,RUNNING\n", [("301", "RUNNING")], [("301", "COMPLETED")]),
        ("job_id\n300\n", [], [("301",)]),
        ("job_id\n300\n301\n301\n", [("301",)], []),
    ],
    ids=["a wrong value", "a row too many", "a row missing"],
)
def test_the_harness_sees_differences(
    tmp_path: Path, expect: str, missing: list[tuple[str, ...]], surplus: list[tuple[str, ...]]
) -> None:
    folder = tmp_path / "staging.scheduler__attempts" / "case"
    (folder / "given").mkdir(parents=True)
    (folder / "given/lake.job_attempts.csv").write_text(
        "cluster,job_id,job_id_raw,state,ended_at\nc,300,300,COMPLETED,2025-05-05T03:00:00Z\n"
        "c,301,301,COMPLETED,2025-05-05T04:00:00Z\n"
    )
    (folder / "expect.csv").write_text(expect)
    assert run_case(folder, tmp_path) == (missing, surplus)
