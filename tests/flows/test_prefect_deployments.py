"""Deployments on a real Prefect server with real workers: what is deployed, what is refused, what follows what, who survives what."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from flows import demo, lease, pipeline
from flows.cli import execute
from flows.config import load
from tests.flows import browser_help
from tests.flows.prefect_help import ROOT, Prefect, Row, eventually, running
from warehouse.digest import digest

CASES = ROOT / "tests" / "fixtures" / "cases"
Worker = subprocess.Popen[bytes]
FLOWS = ("backfill", "build", "ingest", "maintain", "report")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    """A server with everything deployed as deployments/README.md says."""
    with running(tmp_path_factory.mktemp("prefect")) as server:
        server.done("work-pool", "create", "goodput", "--type", "process")
        server.done("--no-prompt", "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
        server.done("automation", "create", "--from-file", "deployments/automations.yaml")
        yield server


@dataclass(frozen=True, slots=True)
class Killed:
    """A run that was killed with its worker while it held the right to write."""

    run: str
    config: Path
    at: float


@pytest.fixture(scope="module")
def killed(prefect: Prefect, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    config = demo.prepare(tmp_path_factory.mktemp("killed") / "demo")
    settings = load(config)
    pipeline.ingest(settings)
    worker = prefect.worker("--name", "first")
    run = prefect.run("build", {"config": str(config)})

    def is_building() -> bool:
        found = lease.holder(settings.data)
        return found is not None and found.command == "build"

    eventually(is_building, "the run holds the lease", every=0.01)
    prefect.kill(worker)
    return Killed(run, config, time.monotonic())


@pytest.fixture(scope="module")
def worker(prefect: Prefect, killed: Killed) -> Worker:
    """A worker of another identity, for all that follows."""
    assert killed.run
    return prefect.worker("--name", "second", "--limit", "3")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digest of the demo's marts as the command line makes them."""
    config = demo.prepare(tmp_path_factory.mktemp("cli") / "demo")
    assert execute(["run", "--config", str(config)]) == 0
    return digest(config.parent / "data" / "warehouse.duckdb")


def test_one_command_deploys_all(prefect: Prefect) -> None:
    found = {flow: prefect.deployment(flow) for flow in FLOWS}
    crons = {f: [s["schedule"]["cron"] for s in d["schedules"]] for f, d in found.items()}
    assert crons == {
        "ingest": ["12 * * * *"],
        "build": [],  # follows ingest, by event
        "report": ["37 6 * * *"],
        "maintain": ["17 5 * * 0"],
        "backfill": [],  # on demand
    }
    for flow, deployment in found.items():
        assert deployment["entrypoint"] == f"flows/prefect_flows.py:{flow}"
        assert deployment["work_pool_name"] == "goodput"
        assert deployment["enforce_parameter_schema"]
        assert deployment["tags"] == ["goodput"]
        # Prefect's limits outlive a killed run; the lock on the data folder does not.
        assert deployment["concurrency_limit"] is None
        assert deployment["global_concurrency_limit"] is None


def test_nothing_that_is_stored_depends_on_the_day(prefect: Prefect) -> None:
    # PF1: a default such as "yesterday" is evaluated once, when the deployment is made; every run would load that day.
    scenario = (CASES / "PF1" / "scenario.py").read_text()
    frozen = re.search(r"=\s*(\(dt\.date\.today\(\).*?\)\.isoformat\(\))", scenario)
    assert frozen, "the case has a default made of today's date"
    for flow in FLOWS:
        deployment = prefect.deployment(flow)
        assert deployment["parameters"] == {}
        properties = deployment["parameter_openapi_schema"]["properties"]
        defaults = {name: facts.get("default") for name, facts in properties.items()}
        assert defaults.pop("config") == "goodput.toml"
        assert not [d for d in defaults.values() if re.search(r"\d{4}", str(d))]


def test_the_file_of_automations_is_what_serve_makes(prefect: Prefect) -> None:
    ours = "import json; from flows.prefect_automations import declared; print(json.dumps(declared()))"
    declared = yaml.safe_load(prefect.python(ours))
    assert yaml.safe_load((ROOT / "deployments" / "automations.yaml").read_text())["automations"] == declared
    prefect.python("import runpy; runpy.run_module('flows.prefect_automations', run_name='__main__')")
    names = [a["name"] for a in prefect.post("/automations/filter")]
    assert sorted(names) == sorted(["goodput builds what was ingested", *(a["name"] for a in declared)])  # each once


@pytest.mark.usefixtures("worker")
def test_a_killed_run_holds_nothing_up(prefect: Prefect, killed: Killed, expected: dict[str, str]) -> None:
    # PF3: the state store still says Running, but the lock died with its process.
    assert prefect.state(killed.run) == "Running"
    with lease.hold(load(killed.config).data, "test"):
        pass
    run = prefect.run("build", {"config": str(killed.config)})
    assert prefect.ended(run)["type"] == "COMPLETED", prefect.said(run)
    assert digest(killed.config.parent / "data" / "warehouse.duckdb") == expected


def test_wrong_parameters_are_refused_when_a_run_is_asked_for(prefect: Prefect) -> None:
    days = {"start": "2026-05-01", "end": "2026-05-02"}
    for parameters, told in (
        (days | {"start": "yesterday"}, "Validation failed for field 'start'"),
        ({"end": "2026-05-02"}, "'start' is a required property"),
        (days | {"reprocess": "some"}, "'some' is not one of ['none', 'failed', 'all']"),
        (days | {"max_active": 0}, "0 is less than the minimum of 1"),
        (days | {"sources": "sacct"}, "'sacct' is not of type 'array'"),
        (days | {"config": 3}, "Validation failed for field 'config'"),
    ):
        assert told in prefect.refused("backfill", parameters)
    ended = prefect.command("deployment", "run", "backfill/goodput", "-p", "start=yesterday", "-p", "end=2026-05-02")
    assert ended.returncode == 1
    assert "Validation failed for field 'start'" in " ".join(ended.stdout.split())
    ended = prefect.command("deployment", "run", "build/goodput", "-p", "day=2026-05-02")
    assert ended.returncode == 1
    assert "not found on the deployment: 'day'" in " ".join(ended.stdout.split())
    assert prefect.runs("backfill") == []


@pytest.mark.usefixtures("worker")
def test_right_parameters_reach_the_work(prefect: Prefect, killed: Killed) -> None:
    given = {"config": killed.config, "start": "2023-01-01", "end": "2026-11-30", "reprocess": "all", "build": "false"}
    words = [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
    said = prefect.done("deployment", "run", "backfill/goodput", *words, "--watch")
    assert "finished successfully" in said
    (run,) = prefect.runs("backfill")
    assert any(re.search(r"^[1-9]\d* windows worked on, 0 not loaded", line) for line in prefect.said(run["id"]))


@pytest.mark.usefixtures("worker")
def test_a_build_follows_an_ingest(prefect: Prefect, expected: dict[str, str], tmp_path: Path) -> None:
    config = demo.prepare(tmp_path / "demo")
    said = prefect.done("deployment", "run", "ingest/goodput", "-p", f"config={config}", "--watch")
    assert "finished successfully" in said

    def follower() -> str | None:
        return next((r["id"] for r in prefect.runs("build") if r["parameters"] == {"config": str(config)}), None)

    run = eventually(follower, "the trigger asked for a build")
    assert prefect.ended(run)["type"] == "COMPLETED", prefect.said(run)
    assert digest(config.parent / "data" / "warehouse.duckdb") == expected


@pytest.fixture(scope="module")
def artifacts(prefect: Prefect, worker: Worker, killed: Killed) -> dict[str, Row]:
    """What the report of the demo left, by key without the warehouse's mark."""
    assert worker.poll() is None
    pipeline.build(load(killed.config), wait_seconds=60)
    run = prefect.run("report", {"config": str(killed.config)})
    assert prefect.ended(run)["type"] == "COMPLETED", prefect.said(run)
    return {a["key"].rpartition("-")[0]: a for a in prefect.post("/artifacts/latest/filter")}


def test_the_report_is_shown_as_artifacts(artifacts: dict[str, Row]) -> None:
    found = artifacts
    assert set(found) >= {"runs-demo", "root-causes-demo", "freshness-demo", "changes-demo", "builds-demo"}
    causes = yaml.safe_load(found["root-causes-demo"]["data"])
    assert (
        sum(row["interruptions"] for row in causes if row["period"] == "all") == 11
    )  # as `goodput interruptions` lists
    assert "Root causes" in found["root-causes-demo"]["description"]


@pytest.mark.usefixtures("worker")
def test_one_slot_twice_and_a_backfill_over_it(prefect: Prefect, tmp_path: Path) -> None:
    # PF5: whoever comes first loads, all end well, and nothing is there twice.
    text = (CASES / "PF5" / "timeline.txt").read_text()
    slot = datetime.fromisoformat(re.search(r"slot (\S+)Z", text)[1]).replace(tzinfo=UTC)  # type: ignore[index]
    first, last, name = re.search(r"backfill for (\S+)\.\.(\S+)\nall three read (\S+) \(1,000", text).groups()  # type: ignore[union-attr]
    config = tmp_path / "goodput.toml"
    config.write_text(f'[clusters.c1]\nzone = "UTC"\n[[sources]]\npath = "{name.replace(last, "{collected_at}")}"\n')
    (tmp_path / name).write_text(attempts(1000, datetime.fromisoformat(last)))
    runs = [prefect.run("ingest", {"config": str(config)}, at=slot) for _ in range(2)]
    code = prefect.goodput("backfill", "--here", "--start", first, "--end", last, "--config", str(config))
    assert code == 0
    for run in runs:
        assert prefect.ended(run)["type"] == "COMPLETED", prefect.said(run)
    built = pipeline.build(load(config), wait_seconds=60)
    assert built.rows.get("marts.attempts", 1000) == 1000
    assert attempts_in(tmp_path) == 1000
    alone = tmp_path / "alone"
    alone.mkdir()
    for file in (config, tmp_path / name):
        (alone / file.name).write_bytes(file.read_bytes())
    assert execute(["run", "--config", str(alone / config.name)]) == 0
    assert digest(tmp_path / "data" / "warehouse.duckdb") == digest(alone / "data" / "warehouse.duckdb")


def attempts(count: int, day: datetime) -> str:
    rows = ["JobID|JobIDRaw|Cluster|JobName|User|State|ExitCode|Submit|Start|End|Elapsed|AllocTRES|NodeList"]
    for number in range(count):
        start = day - timedelta(hours=20) + timedelta(seconds=number)
        submit, end = start - timedelta(minutes=1), start + timedelta(hours=1)
        times = "|".join(t.strftime("%Y-%m-%dT%H:%M:%S") for t in (submit, start, end))
        rows.append(f"{number}|{number}|c1|llm|u|COMPLETED|0:0|{times}|01:00:00|gres/gpu=8|n{number % 64}")
    return "\n".join(rows) + "\n"


def attempts_in(folder: Path) -> int:
    from warehouse import query

    (row,) = query.rows(folder / "data" / "warehouse.duckdb", "select count(*) as n from marts.attempts")
    return int(row["n"])


def test_a_killed_run_does_not_stay_running_for_ever(prefect: Prefect, killed: Killed) -> None:
    # PF3: its sign of life is missing; long before the next scheduled run it is shown for what it is.
    text = (CASES / "PF3" / "timeline.txt").read_text()
    at = [datetime.strptime(t, "%H:%M:%S") for t in re.findall(r"^\d\d:\d\d:\d\d", text, re.MULTILINE)]  # noqa: DTZ007
    automations = yaml.safe_load((ROOT / "deployments" / "automations.yaml").read_text())["automations"]
    within = automations[0]["trigger"]["within"]
    assert timedelta(seconds=within) < at[3] - at[1]
    found = prefect.ended(killed.run, seconds=within + 60)
    assert found["name"] == "Crashed"
    assert "its process was killed" in found["message"]


def test_people_see_the_report_and_the_runs(prefect: Prefect, artifacts: dict[str, Row], tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("no chromium here")
    pictures = Path(os.environ.get("GOODPUT_SCREENSHOTS", tmp_path))
    causes = artifacts["root-causes-demo"]
    names = [one["key"] for one in artifacts.values() if "demo" in one["key"]]
    with browser_help.opened(browser) as page:
        for name, path, words in (
            ("artifacts", "/artifacts", names),
            ("root-causes", f"/artifacts/key/{causes['key']}", ["Root causes", "Created root-causes-demo"]),
            ("table", f"/artifacts/artifact/{causes['latest_id']}", ["share_of_unexpected", "GPU HBM3 Memory"]),
            ("run", f"/runs/flow-run/{causes['flow_run_id']}", ["Completed", "artifacts: runs-demo"]),
        ):
            page.shows(prefect.env["PREFECT_UI_URL"] + path, words, pictures / f"{name}.png")


PERIOD_SECONDS = 10
COMMAND = """
import fcntl, sys, time
start, end, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def note(what):
    with open(path, "a") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.write(f"{what} {start} {end} {time.time()}\\n")
note("begin")
time.sleep(0.5)
print("JobID|JobIDRaw|Cluster|JobName|User|State|ExitCode|Submit|Start|End|Elapsed|AllocTRES|NodeList")
print(f"{end}|{end}|c1|llm|u|FAILED|1:0|2026-11-01T00:00:00|2026-11-01T00:10:00|2026-11-01T10:00:00|09:50:00|gres/gpu=8|n1")
note("end")
"""


class Asked:
    """A command that notes which windows it is asked for, and when."""

    def __init__(self, folder: Path) -> None:
        self._log, script = folder / "asked.log", folder / "export.py"
        script.write_text(COMMAND)
        self.config = folder / "goodput.toml"
        words = [sys.executable, str(script), "{start_epoch}", "{end_epoch}", str(self._log)]
        source = (
            f'[[sources]]\nname = "jobs"\ncommand = {json.dumps(words)}\nwindow = "{PERIOD_SECONDS}s"\ndelay = "0s"\n'
        )
        self.config.write_text(f'[clusters.c1]\nzone = "UTC"\n\n{source}')

    def windows(self, what: str = "end") -> list[tuple[int, float]]:
        """Start of each window that the command began or ended with, and when that was, in the order of time."""
        lines = [line.split() for line in self._log.read_text().splitlines()] if self._log.exists() else []
        return [(int(start), float(at)) for word, start, _, at in lines if word == what]


def test_an_outage_of_five_periods_is_caught_up(prefect: Prefect, worker: Worker, tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    data = load(asked.config).data
    schedule = {"schedule": {"interval": PERIOD_SECONDS}, "active": True, "parameters": {"config": str(asked.config)}}
    (made,) = prefect.post(f"/deployments/{prefect.deployment('ingest')['id']}/schedules", [schedule])
    eventually(lambda: len(asked.windows()) >= 2, f"the schedule runs: {prefect.logs()}")

    # PF6: the server goes away in the middle of a run, whose report of success is lost; what it loaded stays.
    before = len(asked.windows("begin"))
    eventually(lambda: len(asked.windows("begin")) > before, "a run is under way", every=0.05)
    prefect.stop()
    down = time.time()
    with lease.hold(data, "test", name="ingest.lock", wait_seconds=90):  # no run is in the middle of a window
        prefect.kill(worker)
    eventually(lambda: time.time() > down + 5 * PERIOD_SECONDS, "five periods are over", every=1.0)
    missed = len(asked.windows())

    prefect.start()
    prefect.worker("--name", "third", "--limit", "2")
    over = down + 5 * PERIOD_SECONDS
    eventually(lambda: asked.windows()[-1][0] > over - PERIOD_SECONDS, f"caught up: {prefect.logs()}", seconds=300)
    prefect.delete(f"/deployments/{prefect.deployment('ingest')['id']}/schedules/{made['id']}")

    begun, ended = asked.windows("begin"), asked.windows("end")
    begun = begun[: len(ended)]
    starts = [start for start, _ in ended]
    assert starts[-1] - starts[missed - 1] >= 4 * PERIOD_SECONDS
    assert starts == list(range(starts[0], starts[-1] + 1, PERIOD_SECONDS)), (
        "each window once, oldest first, none left out"
    )
    assert [start for start, _ in begun] == starts, "none was asked for in vain"
    for (_, finish), (_, begin) in zip(ended, begun[1:], strict=False):
        assert finish <= begin, "no two at the same time"
    pipeline.build(load(asked.config), wait_seconds=60)
    assert len(starts) <= attempts_in(tmp_path) <= len(asked.windows())  # a run may still be under way
