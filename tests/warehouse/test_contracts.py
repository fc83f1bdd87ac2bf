"""What every model, check, table and column must bring, read from the files and from a build of them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from warehouse import checks, dictionary, load, runner
from warehouse.build import build
from warehouse.inputs import Inputs
from warehouse.session import PUBLISHED_SCHEMAS, WORK_SCHEMAS

MODELS = runner.load()
CHECKS = sorted(checks.CHECKS.rglob("*.sql"))

# Names and grains of marts are a public contract; these are its columns that people's queries name.
CONTRACT = {
    "attempts": """cluster job_id job_id_raw attempt run_id user account partition state exit_code signal submitted_at
        eligible_at started_at ended_at gpus nodes infrastructure_verdict""",
    "runs": "cluster run_id run started_at ended_at gpus attempts interruptions planned unexpected incidents ettr"
    " effective_training_time",
    "interruptions": """interruption_id incident_id cluster run_id job_id job_id_raw attempt started_at interrupted_at
        resumed_at gpus nodes class is_planned cause label category hardware confidence runner_up_cause
        runner_up_confidence unknown_reason rule culprit_node culprit_gpu scheduler_state exit_code signal
        last_progress_at detection_seconds down_seconds wait_seconds restart_seconds lost_work_measured_seconds
        lost_work_assumed_seconds lost_gpu_seconds recovery flags""",
    "interruption_evidence": "kind class node gpu occurred_at seconds_before_end role weight record_id text",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's own models over an empty lake: the state of the first day, which must build and pass every check."""
    data = tmp_path_factory.mktemp("data")
    report = build(data, Inputs(lake=data / "lake"), started_at=datetime(2026, 3, 1, tzinfo=UTC), code_version="test")
    assert report.published, report.failed_checks
    assert report.path is not None
    return report.path


@pytest.fixture(scope="module")
def built(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(file), read_only=True) as con:
        yield con


@pytest.fixture(scope="module")
def columns(built: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str, str, str | None]]:
    """(schema, table, column, type, comment) of everything that is published."""
    return built.execute(
        "select schema_name, table_name, column_name, data_type, comment from duckdb_columns() "
        "where database_name = current_database() and not internal order by all"
    ).fetchall()


def test_models_lie_in_known_schemas_and_in_order() -> None:
    assert {m.schema for m in MODELS.values()} <= {"staging", "intermediate", "marts", "ops"}
    assert len(runner.order(MODELS, load.known())) == len(MODELS)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_layers_read_only_what_lies_below(model: runner.Model) -> None:
    """staging reads the lake, intermediate reads staging; nothing published depends on the build's own diary."""
    below = {
        "staging": {"lake", "staging", "settings", "reference"},
        "intermediate": {"staging", "intermediate", "settings", "reference", "marts"},
        "marts": {"staging", "intermediate", "settings", "reference", "marts"},
        "ops": {"lake", "staging", "intermediate", *PUBLISHED_SCHEMAS},
    }[model.schema]
    assert {name.partition(".")[0] for name in model.references} <= below


@pytest.mark.parametrize("path", CHECKS, ids=lambda p: p.stem)
def test_checks_say_what_must_hold_and_read_only_what_is_published(path: Path) -> None:
    """So `goodput check` can run them again on the published build."""
    assert checks.rule_of(path).endswith(".")
    names = runner.references_of(path, path.read_text(encoding="utf-8"))
    assert {name.partition(".")[0] for name in names} <= set(PUBLISHED_SCHEMAS)


def test_no_work_table_is_published(columns: list[tuple[str, ...]]) -> None:
    assert {c[0] for c in columns} == set(PUBLISHED_SCHEMAS)
    assert not set(WORK_SCHEMAS) & {c[0] for c in columns}


def test_every_table_says_its_grain(built: duckdb.DuckDBPyConnection) -> None:
    rows = built.execute(
        "select schema_name, table_name, comment from duckdb_tables() where database_name = current_database()"
    ).fetchall()
    assert [(s, t) for s, t, comment in rows if not (comment or "").startswith("One row")] == []


def test_every_column_is_described(columns: list[tuple[str, ...]]) -> None:
    missing = [f"{schema}.{table}.{column}" for schema, table, column, _, comment in columns if not comment]
    assert missing == [], "describe them in warehouse/columns.toml"


def test_no_description_is_of_something_gone(columns: list[tuple[str, ...]]) -> None:
    written = tomllib.loads(dictionary.COLUMNS.read_text(encoding="utf-8"))
    there = {(table, column) for schema, table, column, *_ in columns if schema != "settings"}
    stale = [f"{t}.{c}" for t, docs in written["tables"].items() for c in docs if (t, c) not in there]
    stale += [c for c in written["columns"] if c not in {column for _, column in there}]
    assert stale == [], "remove them from warehouse/columns.toml"


def test_types_follow_from_names(columns: list[tuple[str, ...]]) -> None:
    """`_at` is a UTC instant, `day` a stored UTC date, `_seconds` whole seconds that sum exactly, `is_` a yes or no."""
    expected = {"_at": "TIMESTAMP WITH TIME ZONE", "_seconds": "BIGINT"}
    wrong = []
    for schema, table, column, kind, _ in columns:
        due = next((t for suffix, t in expected.items() if column.endswith(suffix)), None)
        due = "BOOLEAN" if column.startswith("is_") else "DATE" if column == "day" else due
        if due is not None and kind != due and column != "total_cpu_seconds":
            wrong.append(f"{schema}.{table}.{column}: {kind}, not {due}")
    assert wrong == []


def test_no_type_surprises_a_client(columns: list[tuple[str, ...]]) -> None:
    """HUGEINT (what a bare sum gives) and naive timestamps are misread by common clients."""
    assert [c[:4] for c in columns if c[3] in {"HUGEINT", "TIMESTAMP", "TIME", '"NULL"'}] == []


@pytest.mark.parametrize("mart", CONTRACT)
def test_contract_columns_are_there(columns: list[tuple[str, ...]], mart: str) -> None:
    there = {column for schema, table, column, *_ in columns if (schema, table) == ("marts", mart)}
    assert set(CONTRACT[mart].split()) - there == set()


def test_reference_files_and_their_notes_match() -> None:
    files = {p.stem for p in load.REFERENCE.glob("*.csv")}
    assert set(load.reference_notes()) == files


def test_the_dictionary_lists_everything_published(columns: list[tuple[str, ...]], file: Path) -> None:
    listed = dictionary.entries(file)
    assert {(e.schema, e.table, *c) for e in listed for c in e.columns} == set(columns)
    assert {e.schema for e in listed} == set(PUBLISHED_SCHEMAS)
    assert all(e.grain for e in listed)


EXPORT = {"export_id": "e1", "path": "a.txt", "status": "loaded", "lines": 3, "lines_used": 1, "lines_ignored": 1}


@pytest.mark.parametrize(
    ("export", "failing"),
    [
        (EXPORT | {"lines_rejected": 1}, set()),
        (EXPORT | {"lines_rejected": 2}, {"every_line_has_one_fate", "every_reject_is_kept"}),
        (EXPORT | {"lines_ignored": None, "lines_rejected": 1}, {"every_line_has_one_fate"}),
        (EXPORT | {"export_id": "e2", "lines_rejected": 1}, {"every_reject_is_kept"}),
    ],
    ids=["all told", "one reject too many", "not counted", "rejects of an unknown export"],
)
def test_a_line_lost_in_silence_stops_the_publish(
    data: Path, write_part: Callable[..., Path], export: dict[str, object], failing: set[str]
) -> None:
    write_part("rejects", [{"export_id": "e1", "line": 2, "reason": "too few columns", "text": "x"}])
    report = build(
        data,
        Inputs(lake=data / "lake", exports=[export]),
        started_at=datetime(2026, 3, 1, tzinfo=UTC),
        code_version="test",
    )
    assert {c.name for c in report.failed_checks} == failing
    assert report.published == (not failing)
