"""`goodput serve` on one machine: a server of its own, runs that follow each other, stopped, started again, killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from flows import demo
from flows.cli import execute
from tests.flows.prefect_help import ROOT, SERVER_SECONDS, eventually, free_port
from warehouse.digest import digest

pytestmark = pytest.mark.slow


class Served:
    """A configuration and the port it is served on."""

    def __init__(self, folder: Path, home: Path | None = None) -> None:
        self._home = {} if home is None else {"PREFECT_HOME": str(home)}
        self.config, self.port, self.log = demo.prepare(folder / "demo"), free_port(), folder / "serve.log"
        self.warehouse = self.config.parent / "data" / "warehouse.duckdb"

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[bytes]]:
        """Serve until it says that it does; kill it in the end where the test has not."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
        env |= {"PREFECT_RUNNER_POLL_FREQUENCY": "2", "PYTHONWARNINGS": "default"} | self._home
        command = [sys.executable, "-m", "flows.cli", "serve", "--config", str(self.config), "--port", str(self.port)]
        with self.log.open("wb") as log:
            child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            eventually(
                lambda: "stop with Ctrl-C" in self.said() or child.poll() is not None, "it serves", SERVER_SECONDS
            )
            assert child.poll() is None, self.said()
            yield child
        finally:
            child.kill()
            child.wait()

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def post(self, path: str) -> Any:
        answer = httpx.post(f"http://127.0.0.1:{self.port}/api{path}", json={}, trust_env=False, timeout=60)
        assert answer.is_success, answer.text
        return answer.json()

    def is_answered(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/api/health", trust_env=False, timeout=60).is_success
        except httpx.TransportError:
            return False

    def is_published(self) -> bool:
        return self.warehouse.exists()


def test_serve_is_all_that_one_machine_needs(tmp_path: Path) -> None:
    served = Served(tmp_path)
    exports = list(served.config.parent.glob("exports/export_final/sacct_*.txt"))  # how the jobs ended
    for export in exports:
        export.rename(tmp_path / export.name)

    with served.started() as child:
        assert re.search(r"ingest/goodput +now, next 20\d\d-\d\d-\d\d \d\d:12 UTC\n", served.said())
        eventually(served.is_published, f"it ingests at once and builds what it ingested: {served.said()}", 180)
        first = digest(served.warehouse)
        found = {d["entrypoint"].rpartition(".")[2]: d for d in served.post("/deployments/filter")}
        declared = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text())["deployments"]
        for deployment in declared:  # the same as workers get, save that each knows its configuration
            one = found.pop(deployment["entrypoint"].rpartition(":")[2])
            crons = [s["schedule"]["cron"] for s in one["schedules"]]
            assert crons == [s["cron"] for s in deployment.get("schedules", [])]
            assert not one["paused"]
            assert one["parameters"] == {"config": str(served.config)}
            assert one["tags"] == deployment["tags"]
        assert not found
        ids = {d["id"] for d in served.post("/deployments/filter")}
        automations = sorted(a["name"] for a in served.post("/automations/filter"))

        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0, served.said()
    assert "goes on where it was" in served.said()
    assert not served.is_answered()

    for export in exports:  # they arrive while nothing runs
        (tmp_path / export.name).rename(export)
    with served.started() as child:
        assert {d["id"] for d in served.post("/deployments/filter")} == ids
        assert sorted(a["name"] for a in served.post("/automations/filter")) == automations  # none made twice
        assert not any(d["paused"] for d in served.post("/deployments/filter"))
        eventually(lambda: digest(served.warehouse) != first, f"what was missed is caught up: {served.said()}", 180)
        child.kill()
    eventually(lambda: not served.is_answered(), "the server is gone with it", 30)

    alone = demo.prepare(tmp_path / "alone" / "demo")
    assert execute(["run", "--config", str(alone)]) == 0
    assert digest(served.warehouse) == digest(alone.parent / "data" / "warehouse.duckdb")


def test_a_data_folder_that_vanishes_is_not_made_anew(tmp_path: Path) -> None:
    """A volume that is no longer mounted: else runs would be green, and fill the disk below."""
    served = Served(tmp_path, home=tmp_path / "prefect")
    with served.started():
        eventually(served.is_published, f"it ingests and builds: {served.said()}", 180)
        data = served.config.parent / "data"
        data.rename(tmp_path / "unmounted")
        data.mkdir()
        (ingest,) = (d["id"] for d in served.post("/deployments/filter") if d["name"] and "ingest" in d["entrypoint"])
        run = served.post(f"/deployments/{ingest}/create_flow_run")["id"]

        def ended() -> Any:
            found = {r["id"]: r["state"] for r in served.post("/flow_runs/filter")}
            return found[run] if found[run]["type"] in ("FAILED", "COMPLETED", "CRASHED") else None

        state = eventually(ended, "the run ends", 120)
        assert state["type"] == "FAILED"
        assert "is another one than `goodput serve` began with" in state["message"]
        assert list(data.iterdir()) == [], "nothing was written"
