"""What models say of making them anew in part can be read, and speaks of tables and columns that exist."""

from __future__ import annotations

import re

import pytest

from warehouse import load, runner, slices
from warehouse.inputs import Inputs
from warehouse.session import building

MODELS = runner.load()
SLICED = {name: model for name, model in MODELS.items() if model.slice is not None}


def test_a_header_is_read() -> None:
    found = slices.read(
        "-- One row per x.\n-- Slice: cluster, split_part(job_id, '_', 1)\n-- Whole: a.b, c.d\n-- Dirty: select 1\n-- Dirty: union all\nselect 1"
    )
    assert found is not None
    assert found.keys == ("cluster", "SPLIT_PART(job_id, '_', 1)")
    assert found.columns == {"cluster", "job_id"}
    assert found.whole == {"a.b", "c.d"}
    assert found.dirty == "select 1\nunion all"


def test_a_time_is_read() -> None:
    found = slices.read("-- One row per x.\n-- Settles: occurred_at, 15 minutes\nselect 1")
    assert found is not None
    assert (found.settles, found.margin, found.keys) == ("occurred_at", "15 minutes", ())


def test_a_model_without_a_header_is_made_as_a_whole() -> None:
    assert slices.read("-- One row per x.\nselect '-- Slice: y' as z") is None


@pytest.mark.parametrize("header", ["-- Dirty: select 1", "-- Whole: a.b", "-- Slice: ((", "-- Slice:"])
def test_what_cannot_be_read_is_an_error(header: str) -> None:
    with pytest.raises(slices.SliceError):
        slices.read(f"-- One row per x.\n{header}\nselect 1")


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Columns of every table of a build of nothing."""
    folder = tmp_path_factory.mktemp("build")
    (folder / "spill").mkdir()
    with building(folder / "x.duckdb", folder / "spill") as con:
        load.inputs(con, Inputs(folder / "lake"))
        for model in runner.order(MODELS, load.known()):
            runner.create(con, model)
        rows = con.execute(
            "select schema_name, table_name, list(column_name) from duckdb_columns() group by all"
        ).fetchall()
    return {f"{schema}.{table}": set(names) for schema, table, names in rows}


@pytest.mark.parametrize("model", SLICED.values(), ids=SLICED)
def test_a_model_is_told_apart_by_its_own_columns(model: runner.Model, columns: dict[str, set[str]]) -> None:
    """Its rows are taken out and put in by these; an input that lacks them all the time could never be read in part."""
    assert model.slice is not None
    assert model.slice.columns <= columns[model.name]
    if model.slice.dirty is None:
        assert any(model.slice.columns <= columns[name] for name in model.references)


@pytest.mark.parametrize("model", SLICED.values(), ids=SLICED)
def test_a_model_asks_for_changes_of_tables_that_exist(model: runner.Model) -> None:
    assert model.slice is not None
    known = load.known() | MODELS.keys()
    asked = {f"{s}.{t}" for s, t in re.findall(r"\bdelta\.(\w+?)__(\w+)", model.slice.dirty or "")}
    assert asked <= known
    assert model.slice.whole <= model.references


CONSTANT = {"intermediate.attribution__own_windows"}
"""Models of settings and reference data alone, which are the same from one increment to the next."""


@pytest.mark.parametrize("model", [m for m in SLICED.values() if m.slice and m.slice.dirty], ids=lambda m: m.name)
def test_a_model_that_says_what_is_dirty_asks_about_all_that_it_reads(model: runner.Model) -> None:
    """What changes in an input that nobody asks about would be seen by a build of everything alone."""
    assert model.slice is not None
    asked = {f"{s}.{t}" for s, t in re.findall(r"\bdelta\.(\w+?)__(\w+)", model.slice.dirty or "")}
    given = {name for name in model.references if name.startswith(("settings.", "reference."))}
    assert model.references <= asked | given | CONSTANT


def test_most_of_what_is_large_is_made_in_part() -> None:
    """Else an increment costs what is stored: these hold a row per record, node and attempt, or line."""
    large = {
        "staging.hardware__events", "staging.training__log_events", "staging.scheduler__attempts",
        "intermediate.hardware__events", "intermediate.hardware__faults", "intermediate.runs__attempt_nodes",
        "intermediate.training__matches", "intermediate.training__steps", "intermediate.attribution__events",
        "marts.attempts", "marts.faults", "marts.hardware_events", "ops.record_locations",
    }  # fmt: skip
    assert large <= SLICED.keys()
