"""The bundled example, end to end: eleven real interruptions, their verdicts, and the score against the truth."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows import demo
from flows.truth import read_truths

Goodput = Callable[..., Any]

SLURM = ("--example", "slurm")


def test_the_example_runs_end_to_end(goodput: Goodput, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    ran = goodput("demo", folder, *SLURM)
    assert ran.code == 0
    for name in ("goodput.toml", "truth.jsonl", "exports", "data/warehouse.duckdb"):
        assert (folder / name).exists()
    assert re.search(r"interruptions found +11 of 11; missed 0, invented 0", ran.out)
    assert re.search(r"planned or not right +11 of 11 ", ran.out)
    assert "productive" in ran.out
    assert "goodput explain --last" in ran.out
    assert "warning" not in ran.err


def test_every_verdict_is_right(goodput: Goodput, demo_folder: Path) -> None:
    arguments = (
        "evaluate",
        demo_folder / "truth.jsonl",
        "--distance",
        "1m",
        "--json",
        "--config",
        demo_folder / "goodput.toml",
    )
    score = json.loads(goodput(*arguments).out)
    assert score["wrong"] == []
    assert (score["causes"]["right"], score["causes"]["of"]) == (8, 8)
    assert (score["nodes"]["right"], score["nodes"]["of"]) == (6, 6)
    assert (score["unidentifiable"]["right"], score["unidentifiable"]["of"]) == (3, 3)


def test_the_same_example_twice_adds_nothing(goodput: Goodput, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    config = ("--config", folder / "goodput.toml")
    assert goodput("demo", folder, *SLURM).code == 0
    first = goodput("check", "--digest", *config).out
    assert goodput("demo", folder, *SLURM).code == 0
    assert goodput("check", "--digest", *config).out == first


def test_a_folder_of_something_else_is_left_alone(goodput: Goodput, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    for arguments in ((), SLURM):
        ran = goodput("demo", tmp_path, *arguments)
        assert ran.code == 2
        assert "name another folder" in ran.err
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_truth_lies_outside_the_exports(tmp_path: Path) -> None:
    demo.prepare(tmp_path / "d")
    assert not list((tmp_path / "d" / "exports").rglob("*truth*"))
    assert len(read_truths(tmp_path / "d" / "truth.jsonl")) == 11
    sources = tomllib.loads((tmp_path / "d" / "goodput.toml").read_text())["sources"]
    assert all(s["path"].startswith("exports/") for s in sources)


def test_the_bundled_exports_are_what_slurm_printed(shared: Path, tmp_path: Path) -> None:
    demo.write_exports(tmp_path)
    original = shared / "exports" / "slurm_22_05"
    for path in (tmp_path / "exports").rglob("*.*"):
        assert path.read_bytes() == (original / path.relative_to(tmp_path / "exports")).read_bytes()
