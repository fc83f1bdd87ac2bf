"""sacct text to job attempts: real exports with independent answers, and hostile ones."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.sacct_reading import CTX, HEADER, LINE, read
from transforms.outcome import Context

FOX = (
    "JobID JobIDRaw User Account State Start End AveCPU AveDiskRead AveDiskWrite AveRSS AveVMSize ElapsedRaw ExitCode Layout "
    "MaxRSS MaxVMSize MinCPU ReqCPUS ReqMem ReqNodes Reservation Submit Suspended SystemCPU TimelimitRaw UserCPU NodeList "
    "Partition AllocTRES Priority JobName"
).split()
XDMOD = (
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end elapsed exitcode state nnodes "
    "ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname"
).split()


# --- real exports


@pytest.mark.parametrize(
    ("path", "columns", "used", "steps"),
    [
        ("gcm_meta/sample-sacct-output-midnight-edge-case.txt", (), 306, 880),
        ("gcm_meta/sample-sacct-output-midnight-edge-case-small.txt", (), 3, 8),
        ("gcm_meta/sample-sacct-output.txt", (), 0, 68),
        ("gcm_meta/sample-sacct-running-output.txt", (), 0, 10),
        ("sonar_fox/sacct-output.txt", FOX, 29, 67),
        ("slurm2sql/test-data1.csv", (), 2, 3),
        ("xdmod/phillips.log", XDMOD, 4285, 0),
        ("xdmod/unit/input__accounting-logs-with-job-arrays.log", XDMOD, 6, 0),
        ("xdmod/unit/input__accounting-logs.log", XDMOD, 4, 0),
        ("xdmod/unit/input__non-ended-job-state.log", XDMOD, 2, 0),
        ("xdmod/unit/input__unknown-job-state.log", XDMOD, 2, 0),
        ("xdmod/unit/input__utf8-multibyte-chars.log", XDMOD, 1, 0),
    ],
)
def test_real_exports_line_by_line(shared: Path, path: str, columns: tuple[str, ...], used: int, steps: int) -> None:
    data = (shared / "exports" / "public" / path).read_bytes()
    result = read(data, Context(CTX.collected_at, "c1", zone="UTC", columns=tuple(columns)))
    assert (result.used, result.ignored["job_step"], result.rejects) == (used, steps, [])
    assert result.jobs.height == used


def test_phillips_agrees_with_an_independent_accounting_system(shared: Path) -> None:
    """XDMoD's own totals, without what never got nodes: jobs, wall, CPU, node, GPU and wait hours."""
    data = (shared / "exports" / "public" / "xdmod" / "phillips.log").read_bytes()
    jobs = read(data, Context(CTX.collected_at, zone="UTC", columns=tuple(XDMOD))).jobs.filter(~pl.col("is_request"))
    wall = pl.col("elapsed_seconds")
    hours = jobs.select(
        wall.sum(),
        (wall * pl.col("cpus")).sum().alias("cpu"),
        (wall * pl.col("node_count")).sum().alias("node"),
        (wall * pl.col("gpus")).sum().alias("gpu"),
        (pl.col("started_at") - pl.col("submitted_at")).dt.total_seconds().sum().alias("wait"),
    )
    assert jobs.height == 4046
    assert [round(v / 3600, 4) for v in hours.row(0)] == [438.8203, 11767.9883, 1344.8686, 506.9128, 18829.9292]
    assert jobs["cluster"].unique().to_list() == ["phillips"]


def test_pending_arrays_agree_with_xdmod(shared: Path) -> None:
    folder = shared / "exports" / "public" / "xdmod" / "unit"
    data = (folder / "input__accounting-logs-with-job-arrays.log").read_bytes()
    expected = [
        len(tasks) for tasks in json.loads((folder / "output__accounting-logs-with-job-arrays.json").read_text())
    ]
    jobs = read(data, Context(CTX.collected_at, "c1", zone="UTC", columns=tuple(XDMOD))).jobs
    assert [1 if n is None else n for n in jobs["array_tasks_pending"]] == expected


def test_fox_agrees_with_another_parser(shared: Path) -> None:
    """The same rows as JSON from the daemon that read them; values are equal, job by job."""
    folder = shared / "exports" / "public" / "sonar_fox"
    ctx = Context(CTX.collected_at, "fox", zone="Europe/Oslo", columns=tuple(FOX))
    jobs = read((folder / "sacct-output.txt").read_bytes(), ctx).jobs
    found = {row["job_id"]: row for row in jobs.iter_rows(named=True)}
    told = [
        dict(f.split("=", 1) for f in row)
        for row in csv.reader((folder / "sacctd-output.txt").read_text().splitlines())
    ]
    told = [row for row in told if "." not in row["JobID"]]
    assert {row["JobID"] for row in told} == set(found)
    texts = {
        "JobName": "job_name",
        "User": "user",
        "Account": "account",
        "Partition": "partition",
        "NodeList": "node_list",
    }
    times = {"Submit": "submitted_at", "Start": "started_at", "End": "ended_at"}
    for row in told:
        ours = found[row["JobID"]]
        assert ours["state_raw"] == row["State"]
        assert ours["elapsed_seconds"] == int(row.get("ElapsedRaw", 0))
        assert ours["time_limit_seconds"] == int(row["TimelimitRaw"]) * 60
        assert {ours[n]: None for n in texts.values()} == {row[n]: None for n in texts}
        assert [ours[n] for n in times.values()] == [
            datetime.fromisoformat(row[n]) if n in row else None for n in times
        ]


@pytest.mark.parametrize("when", ["export_2", "export_final"])
def test_all_columns_and_few_columns_tell_the_same_facts(shared: Path, when: str) -> None:
    """`--format=ALL` with steps and a short list without: the same attempts under the same ids."""
    folder = shared / "exports" / "slurm_22_05" / when
    ctx = Context(CTX.collected_at, zone="UTC")
    every, few = (read((folder / name).read_bytes(), ctx).jobs for name in ("sacct_all.txt", "sacct_alloc.txt"))
    assert every.height == few.height == {"export_2": 6, "export_final": 49}[when]
    ended = [frame.filter(pl.col("ended_at").is_not_null())["record_id"].sort().to_list() for frame in (every, few)]
    assert ended[0] == ended[1]


# --- hostile input

TEXT = st.text(st.characters(exclude_characters="\n|", exclude_categories=("Cs",)), max_size=12)


@given(st.binary(max_size=400), st.sampled_from([7, 64, 4096]))
@settings(max_examples=300, deadline=None)
def test_any_bytes_after_a_header_keep_the_balance(data: bytes, chunk: int) -> None:
    read(HEADER.encode() + data, chunk_bytes=chunk)


FIELD = st.sampled_from(
    ["7", "7.batch", "x", "", "FAILED", "2025-05-04T08:00:00", "Unknown", "|", "\n", "\r\n", '"', "é", "\xff"]
)


@given(
    st.lists(st.lists(FIELD, min_size=1, max_size=10).map("|".join), max_size=12).map("\n".join),
    st.sampled_from([9, 4096]),
)
@settings(max_examples=300, deadline=None)
def test_nearly_right_lines_keep_the_balance(text: str, chunk: int) -> None:
    read((HEADER + text).encode("latin-1"), chunk_bytes=chunk)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_free_text_comes_back_as_it_was(names: list[tuple[str, str]]) -> None:
    text = HEADER + "".join(LINE.replace("train", n).replace("note", c) for n, c in names)
    result = read(text)
    assert result.column("job_name") == [n or None for n, _ in names]
    assert result.column("comment") == [c.removesuffix("\r") or None for _, c in names], "a last \\r ends the line"
