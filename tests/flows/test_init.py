"""`goodput init` proposes a configuration that can be used at once, guesses nothing in silence and overwrites nothing."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows import config
from flows.globs import grouped
from flows.init_text import jobs_without_header, quoted
from flows.landing import find

Goodput = Callable[..., Any]

HEADER = "JobID|JobIDRaw|Cluster|JobName|User|State|Submit|Start|End|Elapsed|NNodes|AllocTRES|NodeList"


def job(number: int, name: str, gpus: int, hours: int, cluster: str = "c") -> str:
    nodes = max(gpus // 8, 1)
    times = f"2026-05-04T00:00:0{number}|2026-05-04T01:00:00|2026-05-05T00:00:00|{hours:02}:00:00"
    return (
        f"{number}|{number}|{cluster}|{name}|u|FAILED|{times}|{nodes}|cpu=8,gres/gpu={gpus},node={nodes}|n[1-{nodes}]"
    )


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_real_cluster(goodput: Goodput, at: Path, shared: Path) -> None:
    shutil.copytree(shared / "exports" / "slurm_22_05", at / "exports")
    ran = goodput("init", "exports")
    assert ran.code == 0
    assert "check `zone`" in ran.err
    text = (at / "goodput.toml").read_text()
    found = config.load(at / "goodput.toml")
    assert found.only_cluster == "llm"
    assert found.settings_rows()["clusters"][0]["gpus_per_node"] == 8
    rule = found.settings_rows()["runs"][0]
    assert dict(zip(rule["match_columns"], rule["match_globs"], strict=True)) == {
        "user": "alice",
        "job_name": "llama-pretrain",
    }
    assert 'zone = "UTC" # CHECK' in text
    assert "# [[runs]] # 11 attempts" not in text
    assert "11 attempts, up to 64 GPUs" in text
    read = {f.path.name for s in found.sources for f in find(s.path)}
    assert read >= {"sacct_all.txt", "sacct_alloc.txt", "sacctmgr_events.txt", "kern.log"}
    assert not read & {"README.md", "truth.jsonl"}
    assert goodput("run").code == 0


def test_the_hard_cases_give_a_configuration_that_parses(goodput: Goodput, at: Path, shared: Path) -> None:
    ran = goodput("init", shared / "cases")
    assert ran.code == 0
    found = config.load(at / "goodput.toml")
    files = [f.path for s in found.sources for f in find(s.path)]
    assert len(files) == len(set(files)), "no file stands in two sources"
    assert any(f.name == "sacct_berlin.txt" for f in files)


def test_nothing_is_overwritten(goodput: Goodput, at: Path) -> None:
    (at / "goodput.toml").write_text("# mine\n")
    ran = goodput("init", at)
    assert (ran.code, (at / "goodput.toml").read_text()) == (2, "# mine\n")
    assert "move it away" in ran.err


def test_exports_nobody_knows_give_no_configuration(goodput: Goodput, at: Path) -> None:
    (at / "x.txt").write_text("hello\n")
    assert goodput("init", "x.txt").code == 1
    assert goodput("init", "missing.txt").code == 2
    assert not (at / "goodput.toml").exists()


def test_the_largest_runs_are_proposed_largest_first(goodput: Goodput, at: Path) -> None:
    rows = [
        job(1, "big", 64, 9),
        job(2, "big", 64, 9),
        job(3, "bigger", 64, 20),
        job(4, "debug", 8, 99),
        job(5, "eval*", 32, 2),
    ]
    (at / "sacct.txt").write_text("\n".join([HEADER, *rows, ""]))
    assert goodput("init", "sacct.txt").code == 0
    rules = config.load().settings_rows()["runs"]
    # debug has more hours than eval but never half the GPUs of the largest; the star in a name is no wildcard.
    assert [rule["match_globs"][1] for rule in rules] == ["bigger", "big", "eval[*]"]
    assert "# 2 attempts, up to 64 GPUs, 1,152.0 GPU-hours" in (at / "goodput.toml").read_text()


def test_jobs_without_a_header_are_told_how_to_be_read(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    (at / "bare.txt").write_text(job(1, "a", 8, 1) + "\n")
    ran = goodput("init", at)
    assert ran.code == 0
    text = (at / "goodput.toml").read_text()
    assert '# path = "bare.txt"' in text
    assert "# all 13, in order" in text
    assert "1 files cannot be read" in ran.err


def test_of_many_files_that_cannot_be_read_those_that_can_be_helped_are_listed(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    for number in range(50):
        (at / f"notes{number:02}.txt").write_text("hello\n")
    (at / "zzz.txt").write_text(job(1, "a", 8, 1) + "\n")
    assert goodput("init", at).code == 0
    text = (at / "goodput.toml").read_text()
    assert '# path = "zzz.txt"' in text
    assert "# Not read: 21 more files" in text


def test_a_header_is_not_taken_for_a_job() -> None:
    assert jobs_without_header(HEADER) == 0
    assert jobs_without_header("Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User") == 0
    assert jobs_without_header("71500|CANCELLED by 12|2026-05-04T01:00:00") == 3


def test_names_in_exports_cannot_write_configuration(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, 'x" }\\n[warehouse]\\ndata = "/etc', 8, 1, 'c"]'), ""]))
    (at / "odd\n[warehouse]\ndata = 1.txt").write_text("a\r[clusters.evil]\n")
    assert goodput("init", at).code == 0
    raw = tomllib.loads((at / "goodput.toml").read_text())
    assert (raw["warehouse"], list(raw["clusters"])) == ({"data": "data"}, ['c"]'])


@pytest.mark.parametrize(
    "text", ["plain", 'quote"', "back\\slash", "tab\t", "esc\x1b", "\x7f", "模型", "\U0001f600", "\u202e", ""]
)
def test_quoted_texts_are_read_back_as_they_were(text: str) -> None:
    assert tomllib.loads(f"x = {quoted(text)}") == {"x": text}


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
