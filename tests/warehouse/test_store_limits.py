"""Case ST5: build and query within a container's limits; tests/fixtures/cases/README.md says where it comes from.

The container is what its control group says (files under a root of our own); that neither is killed for its memory is seen
from the most that each held at any time. Scaled down: a container of 1.25 GiB instead of 2, 8 million samples instead of 40.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from warehouse import limits, publish, query, session, spill
from warehouse.query import QueryError

from .conftest import BEGAN, PYTHON, Build, WriteModels

ROOT = Path(__file__).resolve().parents[2]
CONTAINER_MIB = 2048
GIB = 1 << 30

MODELS = {
    "intermediate/attempts": """
        select i as attempt, 'gn' || (i % 2048) as node, timestamp '2025-05-01' + interval (i // 2048) hour as started_at
        from range(40960) as r(i)
    """,
    "intermediate/samples": """
        select 'gn' || (i % 2048) as node, timestamp '2025-05-01' + to_seconds(i // 2048 * 18) as at, md5(i::varchar) as text
        from range(8000000) as r(i)
    """,
    "marts/samples": """
        select s.*, a.attempt
        from intermediate.samples as s
        join intermediate.attempts as a on s.node = a.node and date_trunc('hour', s.at) = a.started_at
        order by s.text
    """,
}
BUILD = """
    import json, resource, sys
    from datetime import datetime
    from pathlib import Path
    from warehouse import limits
    from warehouse.build import build
    from warehouse.inputs import Inputs

    data, models, checks, root = map(Path, sys.argv[1:5])
    limits.detect.__kwdefaults__["root"] = root
    report = build(data, Inputs(lake=data / "lake"), started_at=datetime.fromisoformat(sys.argv[5]), code_version="x",
                   models=models, check_files=checks)
    print(json.dumps({"published": report.published, "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""
QUERY = """
    import json, resource, sys
    from pathlib import Path
    from warehouse import limits, publish, query

    limits.detect.__kwdefaults__["root"] = Path(sys.argv[2])
    sql = "select count(*) as n, min(first) as first from (select first_value(text) over (order by text desc) as first from marts.samples)"
    with query.query(publish.link_of(Path(sys.argv[1])), sql) as answer:
        [row] = answer.read_all().to_pylist()
    print(json.dumps({**row, "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


class Child(NamedTuple):
    """A process under way."""

    process: subprocess.Popen[str]

    @classmethod
    def of(cls, code: str, *arguments: object) -> Child:
        command = [PYTHON, "-c", textwrap.dedent(code), *map(str, arguments)]
        pipe = subprocess.PIPE
        return cls(subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True))

    def answer(self) -> Any:
        out, err = self.process.communicate(timeout=900)
        assert self.process.returncode == 0, err
        return json.loads(out)


def container(root: Path, mib: int, cpus: int) -> Path:
    """What a process sees of a container on a host of 512 GiB and 128 CPUs."""
    for name, text in {
        "proc/meminfo": "MemTotal:       536870912 kB\n",
        "sys/fs/cgroup/memory.max": str(mib << 20),
        "sys/fs/cgroup/cpu.max": f"{cpus}00000 100000",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@contextmanager
def watched(folder: Path) -> Iterator[dict[str, int]]:
    """Note the most that lay in spill folders below `folder` at any time, bytes by kind."""
    most, done = {"build": 0, "reader": 0}, threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            for kind, pattern in (("build", f"*{publish.SPILL}/*"), ("reader", f"{spill.PREFIX}*/*")):
                size = 0
                for path in folder.glob(pattern):
                    try:
                        size += path.stat().st_size
                    except FileNotFoundError:
                        continue
                most[kind] = max(most[kind], size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


def test_st5_limits_are_the_container_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 GiB and 4 CPUs of a host of 512 GiB and 128; 20 GiB free on the data volume."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(128)), raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(100 * GIB, 80 * GIB, 20 * GIB))
    root = container(tmp_path / "root", 2048, 4)
    build, reader = limits.detect(tmp_path, root=root), limits.detect(tmp_path, share=limits.READER_SHARE, root=root)
    assert build == limits.Limits("1228MiB", 4, "18432MiB")
    assert reader == limits.Limits("409MiB", 4, "18432MiB")


def test_st5_what_is_spilled_lies_on_the_data_volume(make: Build, data: Path) -> None:
    """Folders for temporary files are often kept in memory: a build spills beside what it makes, a query beside what it reads."""
    make()
    asked = "select current_setting('temp_directory') as folder"
    with query.query(publish.link_of(data), asked) as answer:
        folder = Path(answer.read_all().to_pylist()[0]["folder"])
    assert folder.parent == publish.folder_of(data)
    assert not folder.exists(), "gone with its session"
    used = data / "spill"
    used.mkdir()
    with session.building(data / "x.duckdb", used) as con:
        assert con.execute(asked).fetchone() == (str(used),)


def test_a_reader_that_may_not_write_there_spills_elsewhere(
    make: Build, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make()
    real = spill.tempfile.mkdtemp

    def refused(**where: Any) -> str:
        if "dir" in where:
            raise PermissionError(13, "Permission denied", where["dir"])
        return real(**where)

    monkeypatch.setattr(spill.tempfile, "mkdtemp", refused)
    with query.query(publish.link_of(data), "from marts.answer") as answer:
        assert answer.read_all().to_pylist() == [{"n": 1}]


def test_what_a_killed_reader_left_goes_with_the_next_build_and_a_living_one_s_stays(make: Build, data: Path) -> None:
    make()
    left = publish.folder_of(data) / f"{spill.PREFIX}abcdefgh"
    left.mkdir()
    (left / "duckdb_temp_storage-0.tmp").write_bytes(b"x" * 100)
    with spill.folder(beside=publish.published(data)) as living:
        make()
        assert not left.exists()
        assert living.exists()


@pytest.mark.slow
def test_st5_build_and_heavy_query_share_a_container(data: Path, write_models: WriteModels, tmp_path: Path) -> None:
    """The build alone, then a build together with a query that sorts all samples: all finish by spilling."""
    root, checks = container(tmp_path / "root", CONTAINER_MIB, 2), tmp_path / "checks"
    models = write_models({name: textwrap.dedent(sql).strip() for name, sql in MODELS.items()})
    checks.mkdir()
    arguments = (data, models, checks, root)
    with watched(publish.folder_of(data)) as alone:
        built = Child.of(BUILD, *arguments, BEGAN.isoformat()).answer()
    assert built["published"]
    assert alone["build"] > 0, "the premise: it does not fit in memory"
    assert built["kib"] < CONTAINER_MIB << 10
    with watched(publish.folder_of(data)) as both:
        asking = Child.of(QUERY, data, root)
        time.sleep(1)
        building = Child.of(BUILD, *arguments, BEGAN.replace(hour=13).isoformat())
        answer, built = asking.answer(), building.answer()
    assert built["published"]
    assert answer["n"] == 8_000_000
    assert answer["first"].startswith("fffff")
    assert both["build"] > 0
    assert both["reader"] > 0
    # DuckDB may take more than its limit for a moment, on a busy machine up to twice: each has its room all the same.
    assert built["kib"] < CONTAINER_MIB << 10
    assert answer["kib"] < CONTAINER_MIB << 9
    assert sorted(p.suffix for p in publish.folder_of(data).iterdir()) == ["", ".duckdb", ".duckdb", ".json"]


def test_st5_a_query_without_room_fails_alone_and_names_the_setting(
    make: Build, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make({"marts/big": "select i as n, md5(i::varchar) as text from range(1000000) as r(i)"})
    monkeypatch.setattr(limits, "READER_SHARE", 0.0)  # 64 MiB, the least
    monkeypatch.setattr(limits, "SPILL_SHARE", 0.0)
    sql = "select max(n) from (select row_number() over (order by text, n) as n, text from marts.big) where text > ''"
    with pytest.raises(QueryError, match=r"(?is)memory.*(max_temp_directory_size|memory_limit)"):
        query.rows(publish.link_of(data), sql)
    assert query.rows(publish.link_of(data), "select count(*) as n from marts.big") == [{"n": 1_000_000}]
