"""`goodput demo`: a small replay from its exports to its report, and what a folder is used again for."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows import demo
from flows.cli import execute, facts, replay_report
from flows.cli.evaluate import score_of
from flows.demo import DemoExistsError, Replay, ReplayError
from flows.truth import read

Goodput = Callable[..., Any]

SMALL = Replay(seed=4, nodes=16, days=2)
OPTIONS = ("--seed", "4", "--nodes", "16", "--days", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small replay, generated and built once."""
    path = tmp_path_factory.mktemp("replay") / "d"
    assert execute(["demo", str(path), *OPTIONS]) == 0
    return path


def test_a_replay_leaves_exports_truth_configuration_and_warehouse(folder: Path) -> None:
    for name in ("goodput.toml", "truth.jsonl", "exports", "data/warehouse.duckdb"):
        assert (folder / name).exists()
    assert not list((folder / "exports").rglob("*truth*"))


def test_the_same_replay_again_is_reused_and_reported(goodput: Goodput, folder: Path) -> None:
    config = ("--config", folder / "goodput.toml")
    before = (folder / "goodput.toml").stat().st_mtime_ns
    first = goodput("check", "--digest", *config).out
    ran = goodput("demo", folder, *OPTIONS)
    assert (ran.code, (folder / "goodput.toml").stat().st_mtime_ns) == (0, before)
    assert "generating" not in ran.err
    assert goodput("check", "--digest", *config).out == first
    known = read(folder / "truth.jsonl")
    [run] = known.runs
    assert run.interruptions == len(known.interruptions)
    counts = re.search(r"interruptions +(\d+) = (\d+) planned \+ (\d+) unexpected", ran.out)
    assert counts is not None
    total, planned, unexpected = map(int, counts.groups())
    assert total == planned + unexpected
    found = re.search(r"interruptions found +\d+ of (\d+); missed \d+, invented \d+", ran.out)
    assert found is not None
    assert int(found[1]) == run.interruptions
    assert "at 100,000 GPUs" in ran.out
    assert f"truly {run.ledger['productive'] / sum(run.ledger.values()):.2%}" in ran.out
    assert "goodput explain --last" in ran.out


def test_a_fleet_that_is_not_the_papers_is_not_compared_with_it(goodput: Goodput, folder: Path) -> None:
    out = goodput("demo", folder, *OPTIONS).out
    assert "as published" not in out
    assert "misprint" not in out
    assert Replay().is_published
    assert Replay(seed=9).is_published
    assert not any(r.is_published for r in (SMALL, Replay(days=53), Replay(mix="hbm_heavy")))


def test_the_papers_fleet_is_compared_with_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the printing is looked at here: the paper's columns stand beside what this small fleet found."""
    settings = facts.configuration(folder / "goodput.toml")
    score = score_of(settings, folder / "truth.jsonl", 3600)
    replay_report.say_replay(settings, score, is_published=True)
    out = capsys.readouterr().out
    table = section(out, "What stopped it: Table 5 as published, true and found")
    assert table[1].split()[:5] == ["Faulty", "GPU", "148", "30.1%", "35.3%"]
    [total] = [row for row in table if row.startswith("All unexpected")]
    assert total.split()[:5] == ["All", "unexpected", "419", "94.9%", "100.0%"]
    assert len([row for row in table if re.search(r"\d%", row)]) == 19
    assert [row.split()[2] for row in table if re.match("All (planned|interruptions)", row)] == ["47", "466"]
    prose = " ".join(out.split())
    assert "58.7% printed, 64.0% by its counts: share of GPU issues" in prose
    assert "repeats the misprint: 268 of 419" in prose
    assert prose.count("78% printed") == 1
    for share in ("76.6%", "78.3%", "85.0%"):
        assert f"{share} by its counts" in prose
    assert "94.9% printed, 100% by its counts: sum of the printed percentages" in prose
    assert "at least one a day printed" in prose
    assert "planned of all kinds: 0.87 a day by its counts" in prose


def section(out: str, heading: str) -> list[str]:
    """The lines after a heading, up to the next one; a table's blank lines do not end it."""
    return out.partition(f"{heading}\n")[2].partition("\nAgainst the truth")[0].splitlines()


def test_the_table_of_causes_adds_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every row, block and total: true = right + wrong + not tellable; the totals are those of the truth."""
    settings = facts.configuration(folder / "goodput.toml")
    score = score_of(settings, folder / "truth.jsonl", 3600)
    replay_report.say_replay(settings, score, is_published=False)
    rows = {}
    for line in section(capsys.readouterr().out, "What stopped it: true and found"):
        if found := re.fullmatch(r"(\S.*?)((?: +\d+){5})", line):
            rows[found[1]] = [int(number) for number in found[2].split()]
    assert all(true == right + wrong + untold for true, _, right, wrong, untold in rows.values())
    totals = {name: rows.pop(f"All {name}") for name in ("unexpected", "planned", "interruptions")}
    assert [sum(column) for column in zip(*rows.values(), strict=True)] == totals["interruptions"]
    [run] = read(folder / "truth.jsonl").runs
    assert {name: row[0] for name, row in totals.items()} == {name: getattr(run, name) for name in totals}


@pytest.mark.parametrize("columns", [80, 100])
def test_the_report_fits_its_width(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    settings = facts.configuration(folder / "goodput.toml")
    score = score_of(settings, folder / "truth.jsonl", 3600)
    replay_report.say_replay(settings, score, is_published=True)
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert len(lines) > 60
    assert [line for line in lines if len(line.rstrip()) > columns] == []


def test_the_waterfall_ends_at_what_is_left(goodput: Goodput, folder: Path) -> None:
    lines = goodput("demo", folder, *OPTIONS).out.partition("Where the GPU-hours went\n")[2].splitlines()
    rows = [re.match(r"([=-]|elapsed) *\w* +([\d,.]+) ", line) for line in lines[: lines.index("")]]
    hours = [float(row[2].replace(",", "")) for row in rows if row is not None]
    assert len(hours) >= 3
    assert rows[-1] is not None
    assert rows[-1][1] == "="
    assert hours[0] - sum(hours[1:-1]) == pytest.approx(hours[-1], abs=0.1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--seed", "5", "--nodes", "16", "--days", "2"), "--seed 4 --nodes 16 --days 2 --mix llama3; remove it"),
        (("--example", "slurm"), "--seed 4 --nodes 16 --days 2 --mix llama3; remove it"),
    ],
)
def test_another_demo_in_the_folder_is_refused(
    goodput: Goodput, folder: Path, options: tuple[str, ...], told: str
) -> None:
    ran = goodput("demo", folder, *options)
    assert (ran.code, told in ran.err) == (2, True)
    assert (folder / "data" / "warehouse.duckdb").exists()


def test_a_replay_is_not_put_over_an_example(tmp_path: Path) -> None:
    demo.prepare(tmp_path / "d")
    with pytest.raises(DemoExistsError, match="holds the example slurm_22_05"):
        demo.prepare_replay(tmp_path / "d", SMALL)


def test_what_another_version_of_the_generator_wrote_is_refused(folder: Path, tmp_path: Path) -> None:
    record = json.loads((folder / demo.RECORD).read_text())
    (tmp_path / demo.RECORD).write_text(json.dumps(record | {"generator": "other"}))
    with pytest.raises(DemoExistsError, match="another version of the generator"):
        demo.prepare_replay(tmp_path, SMALL)


def test_what_an_interrupted_call_left_is_made_anew(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "d"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("data", "goodput.toml"))
    left = copy / "exports" / "left_over.txt"
    left.write_text("half a file")
    assert not demo.holds(copy, SMALL)
    demo.prepare_replay(copy, SMALL)
    assert demo.holds(copy, SMALL)
    assert not left.exists()


@pytest.mark.parametrize("wrong", [Replay(mix="none"), Replay(nodes=1), Replay(days=0)])
def test_a_replay_that_cannot_be_leaves_nothing(tmp_path: Path, wrong: Replay) -> None:
    with pytest.raises(ReplayError):
        demo.prepare_replay(tmp_path / "d", wrong)
    assert not (tmp_path / "d").exists()


def test_wrong_options_are_told(goodput: Goodput, tmp_path: Path) -> None:
    ran = goodput("demo", tmp_path / "d", "--mix", "none")
    assert (ran.code, "llama3" in ran.err) == (2, True)
    assert "generating" not in ran.err, "nothing is said to begin that cannot be done"
    ran = goodput("demo", tmp_path / "d", "--example", "slurm", "--seed", "3")
    assert (ran.code, "leave --seed" in ran.err) == (2, True)
