"""A real Prefect server, its command line and workers, on loopback and on their own ports: shared by the tests of deployments."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from flows import prefect_server

ROOT = Path(__file__).resolve().parents[2]
SERVER_SECONDS = 180.0
Row = dict[str, Any]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def eventually(look: Callable[[], Any], what: str, seconds: float = 90.0, every: float = 0.3) -> Any:
    """Return what `look` finds as soon as it finds anything."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(every)
    return found


class Prefect:
    """A server with a home of its own, what is asked of it, and the workers that were started for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        given = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
        settings = {
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PREFECT_RUNNER_POLL_FREQUENCY": "2",
            "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
            "PYTHONPATH": str(ROOT),
        }
        self.env = prefect_server.environment(folder / "home", self.port, given | settings)
        self.api = self.env["PREFECT_API_URL"]
        self._server = ExitStack()
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the server; it keeps what it knew."""
        running = prefect_server.running(self.folder / "home", self.port, self.env, seconds=SERVER_SECONDS)
        self._server.enter_context(running)

    def stop(self) -> None:
        self._server.close()

    def command(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run Prefect's command line."""
        return subprocess.run(
            [sys.executable, "-m", "prefect", *arguments], cwd=ROOT, env=env or self.env, text=True, timeout=120,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip

    def done(self, *arguments: str) -> str:
        """Run Prefect's command line; it must succeed."""
        ended = self.command(*arguments)
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    def python(self, code: str) -> str:
        """Run some Python with this server set; return what it printed."""
        ended = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=self.env,
            text=True,
            timeout=120,
            capture_output=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def goodput(self, *arguments: str) -> int:
        """Run our command line with this server set; return its exit code."""
        command = [sys.executable, "-m", "flows.cli", *arguments]
        ended = subprocess.run(command, cwd=ROOT, env=self.env, timeout=120, stdin=subprocess.DEVNULL, check=False)
        return ended.returncode

    def worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker in a session of its own."""
        command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "goodput", *options]
        with (self.folder / f"worker-{len(self._workers)}.log").open("wb") as log:
            worker = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.env,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._workers.append(worker)
        return worker

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill -9 a worker and everything it started, as the kernel's out-of-memory killer or a power cut would."""
        family = [worker.pid, *_descendants(worker.pid)]
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        worker.wait(30)

    def logs(self) -> str:
        return "\n".join(p.read_text("utf-8", "replace")[-4000:] for p in self.folder.glob("worker-*.log"))

    def close(self) -> None:
        for worker in self._workers:
            if worker.poll() is None:
                self.kill(worker)
        self.stop()

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Ask the server; one that is busy (503: its database is locked) is asked again, as Prefect's clients do."""

        def answer() -> httpx.Response | None:
            found = httpx.request(method, f"{self.api}{path}", json=body, trust_env=False, timeout=60)
            return None if found.status_code == httpx.codes.SERVICE_UNAVAILABLE else found

        found: httpx.Response = eventually(answer, f"an answer to {path}")
        return found

    def post(self, path: str, body: object = None) -> Any:
        answer = self.ask("POST", path, {} if body is None else body)
        assert answer.is_success, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.is_success, answer.text
        return answer.json()

    def delete(self, path: str) -> None:
        answer = self.ask("DELETE", path)
        assert answer.is_success, answer.text

    def deployment(self, flow: str) -> Row:
        found: Row = self.get(f"/deployments/name/{flow}/goodput")
        return found

    def run(self, flow: str, parameters: Row, at: datetime | None = None) -> str:
        """Ask for a run, scheduled for a time; return its id."""
        moment = (at or datetime.now(UTC)).isoformat()
        state = {"type": "SCHEDULED", "state_details": {"scheduled_time": moment}}
        body = {"parameters": parameters, "state": state}
        return str(self.post(f"/deployments/{self.deployment(flow)['id']}/create_flow_run", body)["id"])

    def refused(self, flow: str, parameters: Row) -> str:
        """Ask for a run with wrong parameters; return why the server refuses it."""
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        answer = self.ask("POST", f"/deployments/{self.deployment(flow)['id']}/create_flow_run", body)
        assert answer.is_client_error, answer.text
        return str(answer.json()["detail"])

    def unfinished(self, flow: str) -> list[str]:
        """Names of the runs of a flow that have begun or are late, and have not ended; runs whose worker died apart."""
        now = datetime.now(UTC)
        open_ = [r for r in self.runs(flow) if r["state_type"] in ("PENDING", "RUNNING", "SCHEDULED")]
        return [r["name"] for r in open_ if datetime.fromisoformat(r["expected_start_time"]) < now]

    def runs(self, flow: str) -> list[Row]:
        """Runs of a flow, in the order they began."""
        found: list[Row] = self.post("/flow_runs/filter", {"flows": {"name": {"any_": [flow]}}, "limit": 200})
        return sorted(found, key=lambda r: r["start_time"] or "9")

    def state(self, run: str) -> str:
        return str(self.get(f"/flow_runs/{run}")["state_name"])

    def ended(self, run: str, seconds: float = 120.0) -> Row:
        """Wait for the end of a run and return its last state."""

        def state() -> Row | None:
            found: Row = self.get(f"/flow_runs/{run}")["state"]
            return found if found["type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED") else None

        found: Row = eventually(state, f"run {run} has not ended: {self.logs()}", seconds)
        return found

    def said(self, run: str) -> list[str]:
        """What a run logged."""
        body = {"logs": {"flow_run_id": {"any_": [run]}}, "limit": 200, "sort": "TIMESTAMP_ASC"}
        return [row["message"] for row in self.post("/logs/filter", body)]


@contextmanager
def running(folder: Path) -> Iterator[Prefect]:
    """Start a server; stop it and all workers in the end."""
    prefect = Prefect(folder)
    try:
        prefect.start()
        yield prefect
    finally:
        prefect.close()


def _descendants(pid: int) -> list[int]:
    """Processes that a process started, and those that these did."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(int(after[1]), []).append(int(stat.parent.name))
    found, todo = list[int](), [pid]
    while todo:
        more = children.get(todo.pop(), [])
        found, todo = found + more, todo + more
    return found
