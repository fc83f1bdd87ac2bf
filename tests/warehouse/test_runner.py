"""Models run in the order of what they select from, over typed inputs, within the container's limits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from transforms.tables import TABLES
from warehouse import limits, load, publish, query, runner
from warehouse.inputs import EXPORTS, SETTINGS, Inputs
from warehouse.runner import ModelError

from .conftest import BEGAN, PYTHON, Build, WriteModels


def names(models: Path, known: set[str] | None = None) -> list[str]:
    return [m.name for m in runner.order(runner.load(models), known or set())]


def test_a_model_runs_after_all_it_selects_from(write_models: WriteModels) -> None:
    models = write_models(
        {
            "marts/a": "select * from intermediate.b",
            "intermediate/deep/b": "select * from staging.c",
            "staging/c": "select 1 as n",
        }
    )
    assert names(models) == ["staging.c", "intermediate.b", "marts.a"]


def test_parts_stand_in_the_model_that_names_them(write_models: WriteModels) -> None:
    """They are no tables: what they select from is selected from by the model, and each can be left out."""
    models = runner.load(
        write_models(
            {
                "marts/all": (
                    "-- One row per row.\n-- Parts: staging.p_*\n"
                    "select * from staging.p_one\nunion all\nselect * from staging.p_two"
                ),
                "staging/p_one": "with own as (select n from staging.p_base)\nselect n from own",
                "staging/p_two": "select 2 * n as n from staging.p_base",
                "staging/p_base": "select n from staging.given",
                "staging/given": "select 1 as n",
            }
        )
    )
    model = models["marts.all"]
    assert models.keys() == {"marts.all", "staging.given"}
    assert model.references == {"staging.given"}
    assert model.parts.keys() == {"staging.p_base", "staging.p_one", "staging.p_two"}
    with duckdb.connect() as con:
        con.execute("create schema staging")
        con.execute("create table staging.given as select 1 as n")
        assert sorted(con.execute(model.sql).fetchall()) == [(1,), (2,)]
        assert con.execute(runner.without(model, "staging.p_one").sql).fetchall() == [(2,)]
        assert con.execute(runner.without(model, "staging.p_two").sql).fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"p_one": "select 1", "p_two": "select 2"}, r"does not select from its parts staging\.p_two"),
        ({"p_one": "-- One row per n.\n-- Slice: n\nselect 1 as n"}, r"its parts staging\.p_one the header says"),
        ({"p_one": "select * from staging.p_two", "p_two": "select * from staging.p_one"}, "in a circle"),
    ],
)
def test_parts_that_do_not_fit_are_an_error(write_models: WriteModels, parts: dict[str, str], message: str) -> None:
    """They would be forgotten in silence, or what their header says."""
    whole = "-- One row per row.\n-- Parts: staging.p_*\nselect * from staging.p_one"
    models = write_models({"marts/all": whole, **{f"staging/{name}": text for name, text in parts.items()}})
    with pytest.raises(ModelError, match=message):
        runner.load(models)


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"a": [1]}', "3", "null", "\\x00"])
def test_what_was_remembered_wrongly_is_parsed_anew(text: str, write_models: WriteModels, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    memory.write_text(text)
    models = write_models(
        {"marts/a": "-- One row per n.\n-- Slice: n\nselect n from staging.b", "staging/b": "select 1 as n"}
    )
    found = runner.load(models, memory)
    assert runner.load(models, memory) == found == runner.load(models)


def test_what_is_no_table_is_no_reference(write_models: WriteModels) -> None:
    """CTEs (recursive too), table functions, lateral joins and string contents ask for no model."""
    text = """
        with recursive chain as (select 1 as n union all select n + 1 from chain where n < 3),
        late as (select * from chain asof join staging.stamps as s on chain.n >= s.n)
        select late.n, u.k, x.y from late
        cross join unnest([1, 2]) as u(k)
        cross join generate_series(1, 2) as g
        left join lateral (select late.n as y) as x on true
        where 'from staging.none' <> ''
    """
    models = write_models({"marts/a": text, "staging/stamps": "select 1 as n"})
    assert runner.load(models)["marts.a"].references == {"staging.stamps"}


def test_an_unknown_reference_names_the_file(write_models: WriteModels) -> None:
    models = write_models({"marts/a": "select * from staging.gone"})
    with pytest.raises(ModelError, match=r"marts/a\.sql: selects from staging\.gone"):
        names(models)


def test_a_circle_names_the_files(write_models: WriteModels) -> None:
    models = write_models({"marts/a": "select * from marts.b", "marts/b": "select * from marts.a"})
    with pytest.raises(ModelError, match=r"circle: .*a\.sql -> .*b\.sql|circle: .*b\.sql -> .*a\.sql"):
        names(models)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- What it is.\nselect 1 as n", "first line must say what a row is"),
        ("select 1 as n; select 2 as n", "exactly one SELECT"),
        ("create table x as select 1", "exactly one SELECT"),
        ("select * from elsewhere", "neither one of its CTEs nor schema.table"),
        ("select * from build.marts.a", "names a catalog"),
        ("select from from", "cannot be parsed"),
    ],
)
def test_a_wrong_file_is_named(write_models: WriteModels, text: str, message: str) -> None:
    models = write_models({"marts/wrong": text})
    with pytest.raises(ModelError, match=rf"wrong\.sql.*{message}"):
        runner.load(models)


def test_two_files_for_one_table_are_refused(write_models: WriteModels) -> None:
    models = write_models({"intermediate/x/a": "select 1 as n", "intermediate/y/a": "select 2 as n"})
    with pytest.raises(ModelError, match=r"both make intermediate\.a"):
        runner.load(models)


def test_what_duckdb_refuses_names_the_file_and_leaves_nothing(make: Build, data: Path) -> None:
    with pytest.raises(ModelError, match=r"(?s)marts/a\.sql: .*no_such_column"):
        make({"marts/a": "select no_such_column from settings.clusters"})
    assert {p.name for p in publish.folder_of(data).iterdir()} == {".lock", ".models.json"}


@pytest.mark.parametrize("table", [*TABLES.values(), EXPORTS], ids=lambda t: t.name)
def test_an_empty_lake_has_every_table_with_its_types(make: Build, data: Path, table: object) -> None:
    """A model over a table that no export filled must bind and give no rows, on day one as later."""
    make({"marts/copy": f"select * from lake.{table.name}"})  # type: ignore[attr-defined]
    got = query.rows(publish.link_of(data), "describe marts.copy")
    assert {r["column_name"]: r["column_type"].lower() for r in got} == {
        c.name: load.sql_type(c.dtype).replace("timestamptz", "timestamp with time zone")
        for c in table.columns  # type: ignore[attr-defined]
    }
    assert query.rows(publish.link_of(data), "from marts.copy") == []


@pytest.mark.parametrize("leave_out", [(), ("flags", "severity")], ids=["alike", "a part from before a column"])
def test_parts_are_read_as_declared(
    make: Build, data: Path, write_part: Callable[..., Path], leave_out: tuple[str, ...]
) -> None:
    """The cluster comes from the part, not from its folder (`0012` must stay text), and a column that an old part lacks
    is null.
    """
    write_part("hardware_events", [{"cluster": "0012", "node": "n1", "occurred_at": BEGAN}], "old", leave_out)
    write_part("hardware_events", [{"cluster": "0012", "node": "n2", "severity": "fatal", "flags": ["decoded"]}], "new")
    make({"marts/copy": "select cluster, node, occurred_at, severity, flags from lake.hardware_events"})
    got = query.rows(publish.link_of(data), "from marts.copy order by node")
    assert [tuple(r.values()) for r in got] == [
        ("0012", "n1", BEGAN, None, None),
        ("0012", "n2", None, "fatal", ["decoded"]),
    ]


def test_settings_and_exports_are_tables(make: Build, data: Path) -> None:
    inputs = Inputs(
        lake=data / "lake",
        exports=[{"export_id": "e1", "path": "a.log", "lines": 3, "collected_at": BEGAN}],
        settings={"clusters": [{"cluster": "c1", "gpus_per_node": 8}, {"cluster": "c2", "zone": "UTC"}]},
    )
    make({"marts/a": "select path, lines, source from lake.exports"}, inputs=inputs)
    link = publish.link_of(data)
    assert query.rows(link, "from marts.a") == [{"path": "a.log", "lines": 3, "source": None}]
    assert query.rows(link, "select cluster, zone, gpus_per_node from settings.clusters order by all") == [
        {"cluster": "c1", "zone": None, "gpus_per_node": 8},
        {"cluster": "c2", "zone": "UTC", "gpus_per_node": None},
    ]
    published = query.rows(link, "select table_name from duckdb_tables() where schema_name = 'settings'")
    assert {r["table_name"] for r in published} == set(SETTINGS)


def test_a_setting_that_no_table_declares_is_an_error(make: Build, data: Path) -> None:
    with pytest.raises(KeyError, match="zones"):
        make(inputs=Inputs(lake=data / "lake", settings={"zones": [{}]}))
    with pytest.raises(KeyError, match="colour"):
        make(inputs=Inputs(lake=data / "lake", settings={"clusters": [{"colour": "red"}]}))


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_days_are_utc_whatever_the_zone_of_builder_and_reader(
    make: Build, data: Path, write_part: Callable[..., Path], zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buckets of a TIMESTAMPTZ move with the session's zone; a stored DATE does not."""
    monkeypatch.setenv("TZ", zone)
    times = ["2025-06-01T23:30:00Z", "2025-06-02T03:00:00Z", "2025-06-02T06:30:00Z"]
    write_part("windows", [{"name": str(n), "started_at": datetime.fromisoformat(t)} for n, t in enumerate(times)])
    day = "(started_at at time zone 'UTC')::date"
    make({"marts/daily": f"select {day} as day, count(*) as n from lake.windows group by day"})
    with duckdb.connect(str(publish.published(data)), read_only=True) as con:
        con.execute(f"set TimeZone = '{zone}'")
        got = con.execute("select day::varchar, n from marts.daily order by day").fetchall()
    assert got == [("2025-06-01", 1), ("2025-06-02", 2)]


def container(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": "MemTotal:       536870912 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"sys/fs/cgroup/memory.max": "2147483648", "sys/fs/cgroup/cpu.max": "150000 100000"}, id="v2"),
        pytest.param(
            {
                "proc/self/cgroup": "0::/slice/unit\n",
                "sys/fs/cgroup/slice/unit/memory.max": "max",
                "sys/fs/cgroup/slice/memory.max": "2147483648",
                "sys/fs/cgroup/slice/unit/cpu.max": "max 100000",
                "sys/fs/cgroup/slice/cpu.max": "150000 100000",
            },
            id="v2, the parent's limit",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "7:memory:/box\n3:cpu,cpuacct:/box\n",
                "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "2147483648",
                "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "150000",
                "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000",
            },
            id="v1",
        ),
    ],
)
def test_limits_come_from_the_container_not_the_host(
    tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Host: 512 GiB and 128 CPUs; container: 2 GiB and 1.5 CPUs. Python needs a part of the memory beside DuckDB."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(128)), raising=False)
    found = limits.detect(tmp_path, root=container(tmp_path / "root", files))
    assert found.memory_limit == f"{int(2048 * limits.MEMORY_SHARE)}MiB"
    assert found.threads == 2
    assert limits.MEMORY_SHARE + limits.READER_SHARE < 1, "a reader must fit beside a build"


def test_without_limits_the_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2}, raising=False)
    root = container(tmp_path / "root", {"sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/cpu.max": "max 100000"})
    found = limits.detect(tmp_path, root=root)
    assert found.memory_limit == f"{int(512 * 1024 * limits.MEMORY_SHARE)}MiB"
    assert found.threads == 3


BIG = "select i as n, md5(i::varchar) as text from range(3000000) as r(i) order by text"


def test_a_build_larger_than_its_memory_spills(make: Build, data: Path) -> None:
    """3 M rows of 40 bytes sorted in 96 MB. What was spilled is gone afterwards."""
    report = make(
        {"intermediate/big": BIG, "marts/a": "select count(*) as n from intermediate.big"}, memory_limit="96MB"
    )
    assert report.published
    assert query.rows(publish.link_of(data), "from marts.a") == [{"n": 3_000_000}]
    assert sorted(p.name for p in publish.folder_of(data).iterdir()) == [
        ".lock",
        ".models.json",
        f"{report.build_id}.duckdb",
    ]


def test_a_build_without_room_fails_alone_and_names_the_setting(
    make: Build, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = make()
    monkeypatch.setattr(limits, "SPILL_SHARE", 0.0)
    with pytest.raises(ModelError, match=r"(?s)big\.sql: .*memory_limit.*max_temp_directory_size"):
        make({"intermediate/big": BIG}, memory_limit="64MB", threads=2)
    assert publish.published(data) == before.path
    assert query.rows(publish.link_of(data), "from marts.answer") == [{"n": 1}]


HOLD_LOCK = """
import sys; from pathlib import Path; from warehouse import publish
with publish.lock(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()
"""


def test_only_one_build_runs_at_a_time(make: Build, data: Path) -> None:
    """The right to build ends with the process that holds it, so no killed run blocks the next."""
    folder = publish.folder_of(data)
    folder.mkdir()
    holder = subprocess.Popen(
        [
            PYTHON,
            "-c",
            HOLD_LOCK,
            str(data),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(publish.BuildRunningError, match=f"process {holder.pid} "):
        make()
    holder.kill()
    holder.communicate()
    assert make().published


def test_build_reports_what_it_did(make: Build) -> None:
    steps: list[str] = []
    report = make(
        {"staging/a": "select unnest([1, 2]) as n", "marts/b": "select * from staging.a"},
        progress=lambda step, seconds: steps.append(step) if seconds >= 0 else None,
    )
    assert report.rows == {"staging.a": 2, "marts.b": 2}
    assert steps == ["inputs", "staging.a", "marts.b", "comments", "checks", "files"]


def test_the_build_tells_of_itself(make: Build, data: Path) -> None:
    make({"marts/b": "select unnest([1, 2]) as n"})
    (row,) = query.rows(publish.link_of(data), "from ops.builds")
    assert row["started_at"] <= row["finished_at"]
    assert (row["build_id"], row["code_version"], row["mart_rows"]) == (
        publish.published(data).stem,
        "test",
        {"b": 2},
    )


def test_a_type_no_table_uses_yet_is_an_error() -> None:
    with pytest.raises(TypeError, match="Int8"):
        load.sql_type(pl.Int8())
