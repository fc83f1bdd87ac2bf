"""`goodput backfill` through a Prefect server: which runs it asks for, and what it makes of them. The server here is a stand-in
that answers as Prefect's does and does each run's work itself; tests/flows/test_prefect_deployments.py asks a real one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows import prefect_events, prefect_runs
from flows.backfill import carry_out
from flows.config import load
from tests.flows.backfill_help import config, told, write
from tests.flows.conftest import Goodput

JANUARY = ("--start", "2026-01-01", "--end", "2026-01-07")
NAME = re.compile(r"backfill-(?P<warehouse>\S+)-(?P<day>2026-01-\d\d)-(?P<mark>[0-9a-f]{8})-(?P<number>\d+)")


@dataclass
class Server:
    """What a stand-in for a Prefect server was asked for.

    Attributes:
        deployments: names it has.
        runs: every run, in the order in which they were created.
        most: most backfills unfinished at once.
        ends_as: type of the state that a run ends in, by the day it backfills; else COMPLETED, and its work is done.
    """

    deployments: dict[str, str] = field(
        default_factory=lambda: {"backfill/goodput": str(uuid4()), "build/goodput": str(uuid4())}
    )
    runs: list[dict[str, Any]] = field(default_factory=list)
    most: int = 0
    ends_as: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def answer(self, path: str, asked: dict[str, Any] | None) -> tuple[int, Any]:
        """Return status and body of an answer."""
        if path.endswith("/hello"):
            return 200, "hello"
        if path.endswith("/version"):
            return 200, "3.9.1"
        if match := re.search(r"/deployments/name/(\w+/\w+)$", path):
            found = self.deployments.get(match[1])
            return (200, {"id": found, "name": "goodput", "flow_id": str(uuid4())}) if found else (404, {"detail": ""})
        if match := re.search(r"/deployments/([0-9a-f-]+)/create_flow_run$", path):
            return 201, self._create(match[1], asked or {})
        if path.endswith("/flow_runs/filter"):
            wanted = (asked or {})["flow_runs"]["id"]["any_"]
            return 200, [self._moved(run) for run in self.runs if run["id"] in wanted]
        return 404, {"detail": path}

    def _create(self, deployment: str, asked: dict[str, Any]) -> dict[str, Any]:
        for run in self.runs:
            if run["idempotency_key"] == asked["idempotency_key"]:
                return run
        run = {
            "id": str(uuid4()), "flow_id": str(uuid4()), "deployment_id": deployment, "name": asked["name"],
            "parameters": asked["parameters"], "idempotency_key": asked["idempotency_key"], "state": state("SCHEDULED"),
        }  # fmt: skip
        self.runs.append(run)
        open_runs = [
            r for r in self.runs if r["state"]["type"] in ("SCHEDULED", "RUNNING") and "start" in r["parameters"]
        ]
        self.most = max(self.most, len(open_runs))
        return run

    def _moved(self, run: dict[str, Any]) -> dict[str, Any]:
        """Let a run come one step further whenever it is looked up."""
        if run["state"]["type"] == "SCHEDULED":
            run["state"] = state("RUNNING")
        elif run["state"]["type"] == "RUNNING":
            day = run["parameters"].get("start", "")[:10]
            run["state"] = state(self.ends_as.get(day, "COMPLETED"))
            if run["state"]["type"] == "COMPLETED" and day:
                start, end = (datetime.fromisoformat(run["parameters"][n]) for n in ("start", "end"))
                carry_out(load(run["parameters"]["config"]), start=start, end=end, build=False, wait_seconds=30)
        return run

    def names(self) -> list[str]:
        return [run["name"] for run in self.runs]

    def days(self) -> list[str]:
        return [match["day"] for match in map(NAME.fullmatch, self.names()) if match]


def state(kind: str) -> dict[str, Any]:
    return {
        "id": str(uuid4()),
        "type": kind,
        "name": kind.title(),
        "timestamp": datetime.now(UTC).isoformat(),
        "message": "as told",
    }


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    told_of = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _answer(self, asked: dict[str, Any] | None) -> None:
            status, body = told_of.answer(self.path.rstrip("/"), asked)
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        told_of.url = f"http://127.0.0.1:{http.server_port}/api"
        monkeypatch.setenv("PREFECT_API_URL", told_of.url)
        monkeypatch.setattr("flows.prefect_runs.POLL_SECONDS", 0.01)
        with temporary_settings({PREFECT_API_URL: told_of.url}):  # Prefect reads the environment only once in a process
            yield told_of
        http.shutdown()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    config(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_for_each_day_that_needs_one_then_a_build(home: Path, server: Server, goodput: Goodput) -> None:
    for day in (1, 3, 4):
        write(home, day)
    ran = goodput("backfill", *JANUARY, "--max-active", "2", "--source", "daily")
    assert ran.code == 0, ran.err
    assert server.days() == ["2026-01-01", "2026-01-03", "2026-01-04"]
    assert server.most == 2, "as many at once as were allowed, and no more"
    first, *_, last = server.runs
    assert first["parameters"] == {
        "config": str(home / "goodput.toml"), "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z",
        "sources": ["daily"], "reprocess": "none", "run_backwards": False, "max_active": 1, "build": False,
    }  # fmt: skip
    assert last["name"].startswith("build-")
    assert last["parameters"] == {"config": str(home / "goodput.toml")}
    assert set(told(home).values()) == {"done"}
    assert "3 of 3 runs completed" in ran.out
    assert goodput("backfill", *JANUARY, "--dry-run").out.splitlines()[-1] == "nothing to do"


def test_newest_first(home: Path, server: Server, goodput: Goodput) -> None:
    for day in (1, 3):
        write(home, day)
    assert goodput("backfill", *JANUARY, "--run-backwards", "--no-build").code == 0
    assert server.days() == ["2026-01-03", "2026-01-01"]
    assert len(server.runs) == 2, "no build was asked for"


def test_runs_under_way_are_joined_and_not_asked_for_again(server: Server) -> None:
    """A command that was stopped leaves its runs on the server; the next one finds them by their keys."""
    part = prefect_runs.Part(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), 1)
    with prefect_runs.connected() as client:
        parameters = {"config": "c", "sources": []}
        for _ in range(2):
            runs = prefect_runs.Runs(client, "goodput", parameters, "w", lambda _: None, lambda _: None)
            runs._ask(part)
    assert len(server.runs) == 1


def test_a_run_that_failed_is_followed_by_another(home: Path, server: Server, goodput: Goodput) -> None:
    for day in (1, 2):
        write(home, day)
    server.ends_as["2026-01-01"] = "FAILED"
    ran = goodput("backfill", *JANUARY, "--no-build")
    assert ran.code == 1
    assert "Failed: as told" in ran.err
    assert "daily 2026-01-01: not read yet" in ran.err
    assert "--reprocess failed` does only what is left" in ran.err
    assert told(home) == {"daily 2026-01-01": "missing: not read yet", "daily 2026-01-02": "done"}
    server.ends_as.clear()
    assert goodput("backfill", *JANUARY, "--no-build").code == 0
    assert server.days() == ["2026-01-01", "2026-01-02", "2026-01-01"]
    first, _, third = (NAME.fullmatch(name) for name in server.names())
    assert first
    assert third
    assert (first["mark"], first["number"], third["mark"], third["number"]) == (third["mark"], "1", third["mark"], "2")


def test_a_server_without_the_deployments_is_told_of_before_anything_is_touched(
    home: Path, server: Server, goodput: Goodput
) -> None:
    write(home, 1)
    del server.deployments["build/goodput"]
    ran = goodput("backfill", *JANUARY)
    assert ran.code == 1
    assert f"{server.url}, has no deployment `build/goodput`" in ran.err
    assert "--here" in ran.err
    assert "--name" in ran.err
    assert server.runs == []
    assert not (home / "data").exists()


def test_deployments_are_found_by_the_name_they_were_served_with(home: Path, server: Server, goodput: Goodput) -> None:
    """One server may serve several warehouses: none may have its past loaded by another's deployments."""
    write(home, 1)
    ours = {"backfill/other": str(uuid4()), "build/other": str(uuid4())}
    server.deployments |= ours
    server.ends_as["2026-01-01"] = "FAILED"
    ran = goodput("backfill", *JANUARY, "--name", "other")
    assert [run["deployment_id"] for run in server.runs] == list(ours.values())
    assert "--name other --reprocess failed` does only what is left" in ran.err.replace("\n", " ")
    del server.deployments["backfill/other"]
    assert "has no deployment `backfill/other`" in goodput("backfill", *JANUARY, "--name", "other").err


def test_a_build_that_fails_is_told(home: Path, server: Server, goodput: Goodput) -> None:
    write(home, 1)
    server.ends_as[""] = "CRASHED"
    ran = goodput("backfill", *JANUARY)
    assert ran.code == 1
    assert re.search(r"error: run build-\S+-after-backfill-[0-9a-f]{8}-1: Crashed: as told", ran.err)


def test_everything_is_in_json(home: Path, server: Server, goodput: Goodput) -> None:
    write(home, 1)
    made = json.loads(goodput("backfill", *JANUARY, "--json").out)
    assert [(run["state"], run.get("windows")) for run in made["runs"]] == [("Completed", 1), ("Completed", None)]
    assert UUID(made["runs"][0]["id"]) == UUID(server.runs[0]["id"])
    assert made["left"] == []


def test_a_server_that_is_not_there_stops_it_before_anything_is_touched(
    home: Path, goodput: Goodput, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, 1)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        ran = goodput("backfill", *JANUARY)
    assert ran.code == 1
    assert "PREFECT_API_URL names, http://127.0.0.1:9/api, cannot be reached" in ran.err
    assert "--here" in ran.err
    assert not (home / "data").exists()
    assert goodput("backfill", *JANUARY, "--here", "--no-build").code == 0


def test_the_name_of_a_warehouse_can_stand_in_keys_and_tells_two_apart(tmp_path: Path) -> None:
    """Keys of Prefect's artifacts hold lower-case letters, digits and dashes only: a run fails over any other."""
    names = [
        prefect_events.warehouse_id(config(tmp_path / name)) for name in ("My_Data.Folder", "my-data-folder", "__")
    ]
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names), names
    assert len(set(names)) == 3
