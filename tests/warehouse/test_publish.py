"""Readers are never in the way nor held up, and a killed build leaves the published one whole."""

from __future__ import annotations

import signal
import stat
import subprocess
import textwrap
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse import publish, query
from warehouse.publish import NoSuchBuildError, NoWarehouseError

from .conftest import BEGAN, PYTHON, Build

ROOT = Path(__file__).resolve().parents[2]


def answer(path: Path) -> Any:
    return query.rows(path, "select n from marts.answer")[0]["n"]


def in_another_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=60,
    )


READ = """
    import duckdb, sys
    print(duckdb.connect(sys.argv[1], read_only=True).execute("select n from marts.answer").fetchone()[0])
"""

HOLD = """
    import duckdb, sys
    con = duckdb.connect(sys.argv[1], read_only=True)
    print(con.execute("select n from marts.answer").fetchone()[0], flush=True)
    sys.stdin.readline()
    print(con.execute("select n from marts.answer").fetchone()[0], flush=True)
"""


def test_before_the_first_build_the_message_says_what_to_run(data: Path) -> None:
    with pytest.raises(NoWarehouseError, match="run `goodput run` first"):
        query.rows(publish.link_of(data), "select 1")
    assert publish.builds(data) == []


def test_a_published_build_is_one_read_only_file_behind_a_relative_link(make: Build, data: Path) -> None:
    report = make()
    link = publish.link_of(data)
    assert link.readlink() == Path("builds") / f"{report.build_id}.duckdb"
    assert report.path is not None
    assert stat.S_IMODE(report.path.stat().st_mode) == 0o444
    assert sorted(p.name for p in report.path.parent.iterdir()) == [
        ".lock",
        ".models.json",
        report.path.name,
    ]  # no .wal, no .part


def test_the_folder_may_be_moved(make: Build, data: Path) -> None:
    make()
    moved = data.rename(data.with_name("elsewhere"))
    assert answer(publish.link_of(moved)) == 1


def test_an_analyst_reads_while_a_build_runs(make: Build, data: Path) -> None:
    """In another process, in the middle of a build: the last published state, not an error about a lock."""
    make()
    seen: list[str] = []

    def read(_step: str, _seconds: float) -> None:
        seen.append(in_another_process(READ, publish.link_of(data)).stdout.strip())

    make(progress=read)
    assert len(seen) >= 3
    assert set(seen) == {"1"}
    assert answer(publish.link_of(data)) == 2


def test_a_build_is_not_held_up_by_an_open_notebook(make: Build, data: Path) -> None:
    """The notebook keeps its snapshot, a new session sees the new build; also after its file was pruned away."""
    first = make()
    notebook = subprocess.Popen(
        [PYTHON, "-c", textwrap.dedent(HOLD), str(publish.link_of(data))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert notebook.stdout is not None
    assert notebook.stdout.readline() == "1\n"
    assert make(keep=1).published
    assert first.path is not None
    assert not first.path.exists()
    assert in_another_process(READ, publish.link_of(data)).stdout == "2\n"
    assert notebook.communicate("\n", timeout=30)[0] == "1\n"


def test_within_one_process_too_a_new_session_sees_the_new_build(make: Build, data: Path) -> None:
    """DuckDB takes a path that the process has open for the same database; so sessions open the build, not the link."""
    make()
    link = publish.link_of(data)
    with query.query(link, "select n from marts.answer") as old:
        make()
        assert answer(link) == 2
        assert old.read_all().to_pylist() == [{"n": 1}]


KILLED = """
    import os, signal, sys
    from datetime import datetime
    from pathlib import Path
    from warehouse import publish
    from warehouse.build import build
    from warehouse.inputs import Inputs

    data, models, checks, moment = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def after(name):
        real = getattr(publish, name)
        setattr(publish, name, lambda *a, **k: (real(*a, **k), die()))

    if moment.startswith("before "):
        setattr(publish, moment.removeprefix("before "), die)
    if moment.startswith("after "):
        after(moment.removeprefix("after "))
    build(
        data, Inputs(lake=data / "lake"), started_at=datetime.fromisoformat(sys.argv[5]), code_version="killed",
        models=models, check_files=checks, keep=1, progress=lambda step, _: die() if step == moment else None,
    )
"""


@pytest.mark.parametrize(
    "moment",
    [
        "inputs",
        "intermediate.big",
        "checks",
        "before finish",
        "after finish",
        "before switch",
        "after switch",
        "before prune",
    ],
)
def test_a_killed_build_leaves_a_whole_one_published_and_the_next_completes(
    make: Build, data: Path, write_models: Any, tmp_path: Path, moment: str
) -> None:
    make()
    models = write_models(
        {
            "intermediate/big": "select range as n from range(200000)",
            "marts/answer": "select (99 + min(n))::int as n from intermediate.big",
        },
        "killed",
    )
    died = in_another_process(KILLED, data, models, tmp_path / "checks", moment, BEGAN.replace(hour=13).isoformat())
    assert died.returncode == -signal.SIGKILL, died.stderr
    link = publish.link_of(data)
    expected = 99 if moment in {"after switch", "before prune"} else 1
    assert answer(link) == expected
    report = make(keep=1)
    assert answer(link) == 2
    left = {p.name for p in publish.folder_of(data).iterdir()}
    finished = {f"{b.build_id}.duckdb" for b in publish.builds(data)}
    assert left == {".lock", ".models.json"} | finished
    assert report.path in {b.path for b in publish.builds(data)}
    assert [p.name for p in data.iterdir() if p.name.startswith(".warehouse")] == []


def test_a_log_left_beside_a_former_build_is_not_replayed(make: Build, data: Path) -> None:
    """Somebody opened the file for writing (root may) and was killed: nothing of that shows in a build, even after the
    switch or a roll-back.
    """
    first = make()
    assert first.path is not None
    first.path.chmod(0o644)
    vandal = """
        import duckdb, os, sys
        con = duckdb.connect(sys.argv[1])
        con.execute("insert into marts.answer values (666)")
        os.kill(os.getpid(), 9)
    """
    in_another_process(vandal, publish.link_of(data))
    assert first.path.with_name(f"{first.path.name}.wal").exists(), "the premise: a log was left"
    make()
    assert query.rows(publish.link_of(data), "from marts.answer") == [{"n": 2}]
    publish.rollback(data, first.build_id)
    assert query.rows(publish.link_of(data), "from marts.answer") == [{"n": 1}]


def test_the_last_builds_are_kept_and_the_published_one_always(make: Build, data: Path) -> None:
    made = [make(keep=2).build_id for _ in range(4)]
    assert [b.build_id for b in publish.builds(data)] == made[2:]
    publish.rollback(data, made[2])
    assert publish.prune(data, 1) == []  # the newest is kept, the older one is published
    assert [(b.build_id, b.is_published) for b in publish.builds(data)] == [(made[2], True), (made[3], False)]


def test_rollback_and_forth(make: Build, data: Path) -> None:
    first, second = make(), make()
    assert publish.rollback(data, first.build_id) == first.path
    assert answer(publish.link_of(data)) == 1
    publish.rollback(data, second.build_id)
    assert answer(publish.link_of(data)) == 2
    with pytest.raises(NoSuchBuildError, match=first.build_id):
        publish.rollback(data, "20200101T000000000000Z")


def test_build_ids_are_unique_and_sort_by_time(make: Build, data: Path) -> None:
    """Two builds begun in the same microsecond get two ids."""
    ids = [make(started_at=BEGAN).build_id, make(started_at=BEGAN).build_id]
    assert ids == ["20260301T120000000000Z", "20260301T120000000001Z"]
    assert [b.build_id for b in publish.builds(data)] == sorted(ids)


def test_a_clock_that_was_set_back_does_not_make_an_older_build(make: Build, data: Path) -> None:
    """The newest build is the last by its id: what came before it would never be current, and be built for ever."""
    make(started_at=BEGAN + timedelta(days=1))
    later = make(started_at=BEGAN).build_id
    assert publish.builds(data)[-1].build_id == later == "20260302T120000000001Z"


def test_a_file_in_the_place_of_the_link_is_not_overwritten(make: Build, data: Path) -> None:
    publish.link_of(data).write_text("mine")
    with pytest.raises(FileExistsError, match="move it away"):
        make()
    assert publish.link_of(data).read_text() == "mine"


def test_old_clients_can_open_what_is_published(make: Build) -> None:
    """The command line client from PyPI lags behind the library; files are written in the format of DuckDB 1.0."""
    report = make()
    assert report.path is not None
    with duckdb.connect(":memory:") as con:
        con.execute(f"attach '{report.path}' as b (read_only)")
        tags = con.execute("select tags from duckdb_databases() where database_name = 'b'").fetchone()
    assert tags is not None
    assert "v1.0" in str(tags[0])


def test_macros_work_in_any_client(make: Build, data: Path) -> None:
    make()
    with duckdb.connect(str(publish.link_of(data)), read_only=True) as con:
        got = con.execute(
            "select round(poisson_lower(419), 2), round(poisson_upper(419), 2), gpu_hours(7200)"
        ).fetchone()
    assert got == (379.84, 461.11, 2.0)
