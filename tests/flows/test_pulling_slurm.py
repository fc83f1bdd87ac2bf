"""A real Slurm is asked for window after window, also while its database is down."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from flows import pipeline
from flows.config import Config, parse
from flows.manifest import Pull, opened
from transforms import lake

pytestmark = pytest.mark.slow
SECONDS = 15
TOML = """
[clusters.llm]
zone = "Asia/Kathmandu"

[[sources]]
name = "jobs"
command = ["sacct", "--allusers", "--duplicates", "--allocations", "--parsable2", "--starttime={start}", "--endtime={end}", "--format=ALL"]
environment = { TZ = "UTC" }
since = %s
window = "15s"
delay = 0

[[sources]]
name = "node-events"
command = ["sacctmgr", "show", "event", "--parsable2", "start={start}", "end={end}", "format=Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User"]
environment = { TZ = "UTC" }
format = "slurm_node_events"
window = "15s"
delay = 0

[[sources]]
name = "reservations"
command = ["scontrol", "show", "reservation", "--oneliner"]
environment = { TZ = "UTC" }
format = "slurm_reservations"
window = "15s"
delay = 0
"""


def run(*words: str | Path) -> str:
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.fixture(scope="module")
def slurm(shared: Path) -> Iterator[Path]:
    """A Slurm with one node, if Debian's packages are there, nobody runs one already, and we may start it."""
    if os.getuid() or not all(map(shutil.which, ("slurmctld", "slurmdbd", "mariadbd", "munged"))):
        pytest.skip("needs root and Slurm's programs")
    if subprocess.run(["sinfo"], capture_output=True, check=False).returncode == 0:
        pytest.skip("another Slurm runs here")
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)  # Slurm's own user writes below it
    try:
        run("bash", shared / "real_slurm" / "up.sh", base, "1")
        yield base
    finally:
        run("bash", shared / "real_slurm" / "down.sh", base)
        time.sleep(2)
        shutil.rmtree(base, ignore_errors=True)


def pulls(settings: Config, name: str) -> list[Pull]:
    with opened(settings.data) as manifest:
        return manifest.pulls(name)


def submitted(exit_code: int) -> str:
    return run("sbatch", "--parsable", "--output=/dev/null", "--gres=gpu:8", "--wrap", f"exit {exit_code}").strip()


def next_window() -> None:
    """Wait until the window that began last is over."""
    time.sleep(SECONDS - time.time() % SECONDS + 1)


def test_sacct_is_asked_window_after_window_also_after_its_database_was_down(slurm: Path, tmp_path: Path) -> None:
    began = datetime.now(UTC)
    settings = parse(TOML % f"{began:%Y-%m-%dT%H:%M:%SZ}", tmp_path / "goodput.toml")
    first = submitted(1)
    run("scontrol", "create", "reservation", "reservationname=m", "starttime=now+1hour", "duration=60", "nodes=gpu001", "users=root", "flags=maint")  # fmt: skip
    next_window()
    report = pipeline.ingest(settings)
    assert {p.source: p.status for p in report.pulls} == dict.fromkeys(
        ("jobs", "node-events", "reservations"), "loaded"
    )
    assert (report.rejected, report.is_complete) == (0, True)

    second = submitted(2)
    run("scontrol", "update", "nodename=gpu001", "state=drain", "reason=firmware upgrade")
    time.sleep(3)  # until the database knows
    pid = int((slurm / "run" / "slurmdbd.pid").read_text())
    os.kill(pid, 15)
    next_window()
    down = pipeline.ingest(settings)
    failed = {p.source: p.message for p in down.failed_pulls}
    assert set(failed) == {"jobs", "node-events"}, "the controller still answers"
    assert "Connection refused" in (failed["jobs"] or "")
    run("slurmdbd")
    time.sleep(3)
    assert pipeline.ingest(settings).is_complete

    found = pulls(settings, "jobs")
    assert {p.status for p in found} == {"loaded"}
    assert any(p.tries > 1 for p in found)
    assert len(found) >= 2
    assert all(a.window_end == b.window_start for a, b in pairwise(found)), "without a gap"
    jobs = lake.scan(settings.data / "lake", "job_attempts").collect()
    assert {first, second} <= set(jobs["job_id"])
    assert set(jobs["cluster"]) == {"llm"}
    for started in jobs["started_at"].drop_nulls():
        assert abs(started - began) < timedelta(minutes=5), "UTC, whatever the zone of the cluster"
    states = lake.scan(settings.data / "lake", "node_states").collect()
    assert "firmware upgrade" in set(states["reason"])
    assert lake.scan(settings.data / "lake", "windows").collect().height >= 1
