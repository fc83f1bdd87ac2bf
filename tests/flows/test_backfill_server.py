"""`goodput backfill` through a real Prefect server and worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.coverage import DONE
from tests.flows.backfill_help import config, told, write
from tests.flows.prefect_help import ROOT, Prefect, eventually, running

pytestmark = pytest.mark.slow
JANUARY = ("--start", "2026-01-01", "--end", "2026-01-07")


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    with running(tmp_path_factory.mktemp("prefect")) as server:
        server.done("work-pool", "create", "goodput", "--type", "process")
        server.done("--no-prompt", "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
        yield server


def test_a_stopped_command_leaves_its_runs_and_the_next_finds_them(prefect: Prefect, tmp_path: Path) -> None:
    """Ctrl-C while no worker is there yet: the runs wait on the server. Asked again, with a worker, each day is loaded by its one run."""
    for day in (1, 2, 5):
        write(tmp_path, day)
    config(tmp_path)
    command = ("backfill", *JANUARY, "--max-active", "2", "--config", str(tmp_path / "goodput.toml"))
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *command], cwd=ROOT, env=prefect.env, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as stopped:  # fmt: skip
        eventually(lambda: len(prefect.runs("backfill")) == 2, "two runs are asked for, and no more")
        os.kill(stopped.pid, signal.SIGINT)
        assert stopped.wait(60) == 130
    waiting = {run["id"] for run in prefect.runs("backfill")}
    assert set(told(tmp_path).values()) == {"missing: not read yet"}
    prefect.worker("--name", "one", "--limit", "2")
    assert prefect.goodput(*command) == 0, prefect.logs()
    runs = prefect.runs("backfill")
    assert waiting < {run["id"] for run in runs}
    assert sorted(run["parameters"]["start"] for run in runs) == [f"2026-01-0{d}T00:00:00Z" for d in (1, 2, 5)]
    assert [run["parameters"]["config"] for run in prefect.runs("build")] == [str(tmp_path / "goodput.toml")]
    assert set(told(tmp_path).values()) == {DONE}
    assert (tmp_path / "data" / "warehouse.duckdb").exists()
    assert prefect.goodput(*command) == 0
    assert (len(prefect.runs("backfill")), len(prefect.runs("build"))) == (3, 1), "nothing was left to ask for"
