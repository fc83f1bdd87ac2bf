"""A replay backfilled window by window, killed three times on the way, beside a reader and a schedule: as one clean run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.replay import generate
from tests.flows.ingest_help import ROOT


@pytest.mark.slow
def test_killed_and_disturbed_it_ends_as_one_clean_run(tmp_path: Path) -> None:
    """Three kills, a session open all along, builds and ingests of a schedule in between; nothing is left to do in the end."""
    generate(tmp_path / "replay", seed=11, nodes=48, days=6)
    script = [sys.executable, str(ROOT / "benchmarks" / "backfill.py"), str(tmp_path / "replay")]
    done = subprocess.run(
        [*script, "--schedule-seconds", "1", "--work", str(tmp_path / "work")],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.stdout, done.stderr
    figures = json.loads(done.stdout)
    assert len(figures["commits_when_killed"]) == 3
    assert figures["commits_when_killed"][-1] < figures["commits"], "the last kill left something to do"
    assert figures["schedule_runs"] >= 3
    assert figures["schedule_failures"] == []
    assert figures["is_snapshot_kept"], "a session keeps the build it was opened on"
    assert figures["is_equal"], "the marts are those of one clean run"
    assert figures["is_nothing_left"]
    assert done.returncode == 0
