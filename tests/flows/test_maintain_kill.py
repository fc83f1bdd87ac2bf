"""Maintenance may be killed anywhere: nothing is lost, and the next one completes the work."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from flows import pipeline
from flows.manifest import FILE_NAME
from tests.flows.ingest_help import MORTAL, ROOT, check_balance, config, labels, rows, write
from tests.flows.maintain_help import COMMAND, LATER, landed
from warehouse import publish

KILLER = f"""{MORTAL}
from datetime import UTC, datetime, timedelta
from pathlib import Path
from flows import manifest, pipeline
from flows.config import load

os.replace = mortal(os.replace)
os.fsync = mortal(os.fsync)
Path.unlink = mortal(Path.unlink)
Path.rmdir = mortal(Path.rmdir)
for name in ("_mark", "_store_parts", "commit", "vacuum"):
    setattr(manifest.Manifest, name, mortal(getattr(manifest.Manifest, name)))
pipeline.maintain(load(sys.argv[1]), now=datetime.now(UTC) + timedelta(days=400))
"""


def worn(home: Path) -> None:
    """A folder with something to do of every kind."""
    (home / "exports").mkdir(parents=True)
    (home / "goodput.toml").write_text(COMMAND + '[[sources]]\npath = "exports/**"\n[warehouse]\nkeep_builds = 1\n')
    settings, _ = landed(home, (home / "goodput.toml").read_text())
    for number in range(3):
        write(home, f"e{number}.jsonl", labels(number, 50 + number))
        pipeline.ingest(settings)
    builds = publish.folder_of(home / "data")
    builds.mkdir()
    for name in ("20260101T000000000000Z.duckdb", "20260102T000000000000Z.duckdb", "x.duckdb.part"):
        (builds / name).write_bytes(b"1")
    publish.switch(home / "data", builds / "20260102T000000000000Z.duckdb")
    (home / "data/quarantine").mkdir()
    (home / "data/quarantine/x.parquet").write_bytes(b"1")
    with sqlite3.connect(home / "data" / FILE_NAME) as db:
        db.execute("create table junk as with recursive n(i) as (select 1 union all select i + 1 from n where i < 9000) "
                   "select i, hex(randomblob(20)) from n")  # fmt: skip
        db.execute("drop table junk")
    db.close()


def killed_after(home: Path, calls: int) -> int:
    """Maintain in another process that kills itself around its n-th call that changes the disk; its exit code."""
    command = [sys.executable, "-c", KILLER, str(home / "goodput.toml"), str(calls)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, timeout=120).returncode


def check_after_kill(home: Path, told: object) -> None:
    settings = config(home, (home / "goodput.toml").read_text())
    pipeline.maintain(settings, now=LATER)
    assert rows(home) == told
    check_balance(home)
    assert publish.published(home / "data").stem == "20260102T000000000000Z"
    assert pipeline.ingest(settings).lines == 0
    assert pipeline.maintain(settings, now=LATER).bytes_freed == 0


@pytest.mark.parametrize("calls", [0, 5, 9, 16])
def test_killed_and_run_again_it_is_as_if_never_killed(tmp_path: Path, calls: int) -> None:
    home = tmp_path / "killed"
    worn(home)
    told = rows(home)
    assert killed_after(home, calls) == -9
    check_after_kill(home, told)


@pytest.mark.slow
def test_killed_at_every_point(tmp_path: Path) -> None:
    worn(tmp_path / "whole")
    killed = 0
    while True:
        home = tmp_path / f"killed{killed}"
        worn(home)
        told = rows(home)
        code = killed_after(home, killed)
        check_after_kill(home, told)
        shutil.rmtree(home)
        if code == 0:
            break
        assert code == -9
        killed += 1
    assert killed > 20, "the points of danger were really met"
