"""Accounting equals that of an independent system: Open XDMoD on the same real sacct export."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.conftest import Site

COLUMNS = (
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end elapsed exitcode state "
    "nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname"
).split()
METRICS = {
    "job_count": "sum(jobs_ended)",
    "started_job_count": "sum(jobs_started)",
    "running_job_count": "sum(jobs_running)",
    "total_wallduration_hours": "sum(wall_hours)",
    "total_cpu_hours": "sum(cpu_hours)",
    "total_node_hours": "sum(node_hours)",
    "total_gpu_hours": "sum(gpu_hours)",
    "total_waitduration_hours": "sum(wait_hours)",
}


@pytest.fixture(scope="module")
def phillips(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("xdmod"), '[clusters.phillips]\nzone = "UTC"\n')
    export = (shared / "exports/public/xdmod/phillips.log").read_bytes()
    made.add("phillips.log", export, format="slurm_sacct", columns=COLUMNS, cluster="phillips")
    made.run()
    return made


def expected(shared: Path, metric: str) -> dict[str, float]:
    """Read XDMoD's figures of the resource by UTC day."""
    path = shared / f"exports/public/xdmod/expected/resource__{metric}__timeseries-Day.csv"
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    head = next(i for i, row in enumerate(rows) if row[:1] == ["Day"])
    column = next(i for i, name in enumerate(rows[head]) if name.startswith("[phillips]"))
    return {row[0]: float(row[column]) for row in rows[head + 1 :] if len(row) > column}


@pytest.mark.parametrize("metric", METRICS)
def test_daily_figures_equal_xdmod(metric: str, phillips: Site, shared: Path) -> None:
    """Per UTC day, to four decimals; a job is split at midnight, its wait booked on the start day."""
    found = {
        str(row["day"]): float(row["value"])
        for row in phillips.rows(f"select day, {METRICS[metric]} as value from marts.job_usage_daily group by day")
    }
    for day, value in expected(shared, metric).items():
        assert found.get(day, 0.0) == pytest.approx(value, abs=5.1e-5), day
    assert set(found) <= set(expected(shared, metric))


def test_totals_equal_xdmod(phillips: Site) -> None:
    """4,046 jobs ran; the 239 rows with node list `None assigned` are requests and count nowhere."""
    assert phillips.rows(
        "select sum(jobs_ended) as jobs, round(sum(wall_hours), 4) as wall, round(sum(cpu_hours), 4) as cpu, "
        "round(sum(node_hours), 4) as node, round(sum(gpu_hours), 4) as gpu, round(sum(wait_hours), 4) as wait "
        "from marts.job_usage_daily"
    ) == [{"jobs": 4046, "wall": 438.8203, "cpu": 11767.9883, "node": 1344.8686, "gpu": 506.9128, "wait": 18829.9292}]
    assert phillips.lake("job_attempts")["is_request"].sum() == 4285 - 4046
