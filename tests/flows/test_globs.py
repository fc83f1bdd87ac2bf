"""Patterns for many files match all that is wanted and nothing else, and tomorrow's files too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flows.globs import grouped
from flows.globs_names import Names, job_in, node_in
from flows.landing import find


@pytest.mark.parametrize(
    ("wanted", "others", "expected"),
    [
        (["a/x1.txt", "a/x2.txt"], [], ["a/*.txt"]),
        (["a/sacct-1.txt", "a/sacct-2.txt"], ["a/kern.txt"], ["a/sacct*.txt"]),
        (["d1/sacct.txt", "d2/sacct.txt"], ["d1/other.txt"], ["*/sacct.txt"]),
        (["d1/sacct.txt", "d2/sacct.txt"], ["d3/sacct.txt"], ["d1/sacct.txt", "d2/sacct.txt"]),
        (["a/kern.log", "a/train.log", "b/train.log", "c/train.log"], [], ["a/*.log", "b/train.log", "c/train.log"]),
        (["a/[1].txt"], ["a/1.txt"], ["a/[[]1].txt"]),
        (["a/one"], ["a/two"], ["a/one"]),
        # A date is the time of collection; tomorrow's file has another one, and may be compressed.
        (["a/sacct-20261130T030500Z.txt"], [], ["a/sacct-{collected_at}.txt"]),
        (["a/s-2026-11-30.txt", "a/s-2026-12-01.txt.gz"], [], ["a/s-{collected_at}.txt*"]),
        (["a/nodes_20261125.txt"], ["a/other.txt"], ["a/nodes_{collected_at}.txt"]),
        (["a/gpu1-20261125.log", "a/gpu2-20261125.log"], [], ["a/gpu*-{collected_at}.log"]),
        (["20261130T0305Z/s.txt"], [], ["{collected_at}/s.txt"]),
        # A date that would claim a file without one is no capture: that file would then fail.
        (["a/nodes_20261125.txt"], ["a/nodes_readme.txt"], ["a/nodes_20261125.txt"]),
        (["a/s-20261130.txt", "a/s-2026-11.txt"], ["a/october.txt"], ["a/s-*.txt"]),
        (["a/s-20261399.txt"], [], ["a/s-20261399.txt"]),
        # A month is no day: it says nothing of the time of collection.
        (["a/sacct-2026-11.txt"], ["a/october.txt"], ["a/sacct-*.txt"]),
        (["a/k.log", "a/k.log.1", "a/k.log.2.gz"], ["a/train.log"], ["a/k.log*"]),
        (["a/gpu1.log", "a/gpu2.log", "a/gpu3.log.gz"], ["a/notes.txt"], ["a/*.log*"]),
        (["a/{node}.txt"], [], ["a/?node}.txt"]),
    ],
)
def test_globs_cover_what_is_wanted_and_nothing_else(
    tmp_path: Path, wanted: list[str], others: list[str], expected: list[str]
) -> None:
    for name in wanted + others:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = grouped([tmp_path / w for w in wanted], [tmp_path / n for n in wanted + others])
    assert [os.path.relpath(pattern, tmp_path) for pattern, _ in found] == expected
    assert sum(count for _, count in found) == len(wanted)
    assert sorted(str(f.path) for pattern, _ in found for f in find(pattern)) == sorted(
        str(tmp_path / w) for w in wanted
    )


@pytest.mark.parametrize(
    ("wanted", "others", "expected"),
    [
        (["a/gpu001.txt", "a/gpu002.txt"], [], ["a/{node}.txt"]),
        (["a/gpu001.txt", "a/gpu002.txt"], ["a/notes.txt"], ["a/gpu*.txt"]),
        (["a/dmesg-gpu001-20261125.log", "a/dmesg-gpu002-20261126.log.gz"], [], ["a/dmesg-{node}-{collected_at}.log*"]),
        (["a/login.txt"], [], ["a/{node}.txt"]),
        (["gpu001/dmesg.txt", "gpu002/dmesg.txt"], [], ["{node}/dmesg.txt"]),
        (["a/dmesg.txt"], [], ["a/dmesg.txt"]),
        # What looks like a node in one name alone may be anything; what differs between files of one kind is one.
        (["a/xid149.log"], [], ["a/xid149.log"]),
        (["case5/dmesg.txt"], [], ["case5/dmesg.txt"]),
        (["a/x1.log", "a/x2.log"], [], ["a/{node}.log"]),
        # A date beside it says that more files will come.
        (["a/x1-20261125.log"], [], ["a/{node}-{collected_at}.log"]),
        # Where a file of another kind would fit as well, the date alone must do.
        (["a/x1-20261125.log"], ["a/sacct-20261125.log"], ["a/x1-{collected_at}.log"]),
    ],
)
def test_the_node_is_captured_where_the_path_tells_it_and_nothing_else_fits(
    wanted: list[str], others: list[str], expected: list[str]
) -> None:
    paths = [Path("/x") / name for name in wanted + others]
    found = grouped(paths[: len(wanted)], paths, Names(nodes={"gpu001", "login"}))
    assert [pattern.removeprefix("/x/") for pattern, _ in found] == expected


@pytest.mark.parametrize(
    ("wanted", "others", "expected"),
    [
        (["a/fit-5012.out"], [], ["a/fit-{job_id}.out"]),
        (["a/fit-5012.out", "a/fit-77.out.1"], [], ["a/fit-{job_id}.out*"]),
        (["a/slurm-4990_3.out"], [], ["a/slurm-{job_id}.out"]),
        (["5012/log.out", "4990_3/log.out"], [], ["{job_id}/log.out"]),
        (["a/fit-5012.out"], ["a/fit-notes.out"], ["a/fit-5012.out"]),
        # A number that no export of jobs knows may be a job's, but not a short one, nor one of two, nor a part of a word.
        (["a/fit-7777.out"], [], ["a/fit-{job_id}.out"]),
        (["a/fit-7.out"], [], ["a/fit-7.out"]),
        (["a/fit-7777-8888.out"], [], ["a/fit-7777-8888.out"]),
        (["a/llama405b.out"], [], ["a/llama405b.out"]),
    ],
)
def test_the_job_is_captured_where_the_path_tells_it(wanted: list[str], others: list[str], expected: list[str]) -> None:
    paths = [Path("/x") / name for name in wanted + others]
    found = grouped(paths[: len(wanted)], paths, Names(jobs={"5012", "77", "4990_3", "4990"}))
    assert [pattern.removeprefix("/x/") for pattern, _ in found] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fit-5012_0.out", "5012"), ("5012_3.out", "5012_3"), ("j5012.out", "5012"), ("fit-20261125-5012.out", "5012"),
     ("rank7.log", None), ("fit-7-rank0.log", "7"), ("fit.out", None)],
)  # fmt: skip
def test_what_looks_like_the_id_of_a_job(name: str, expected: str | None) -> None:
    assert job_in(name, {"5012", "5012_3", "7"}) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("x1000c0s0b0n0.log", "x1000c0s0b0n0"), ("dmesg_gpu-a-12_20261101.txt", "gpu-a-12"), ("gpu7-dmesg.log", "gpu7"),
     ("dmesg.1", None), ("kern.log", None), ("dmesg2.txt", None), ("login.txt", None)],
)  # fmt: skip
def test_what_looks_like_the_name_of_a_node(name: str, expected: str | None) -> None:
    assert node_in(name, ()) == expected
