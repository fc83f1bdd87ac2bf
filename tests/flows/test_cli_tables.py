"""Tables on terminals of any width: no cell is ever broken over lines."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from flows.cli.interruptions import COLUMNS, narrow
from flows.cli.tables import fitted

ROOT = Path(__file__).resolve().parents[2]


def test_a_table_that_fits_is_left_as_it_is() -> None:
    assert fitted({"id": 10, "name": 20}, (("name", 5),), 32) == {"id": 10, "name": 20}


def test_columns_shrink_no_further_than_they_must() -> None:
    assert fitted({"id": 10, "name": 20}, (("name", 5),), 30) == {"id": 10, "name": 18}


def test_columns_leave_in_the_order_given_and_shortened_ones_grow_again() -> None:
    natural = {"id": 10, "run": 20, "job": 6, "class": 10}
    steps = (("run", 8), ("job", 0), ("class", 0))
    assert fitted(natural, steps, 40) == {"id": 10, "run": 8, "job": 6, "class": 10}
    assert fitted(natural, steps, 39) == {"id": 10, "run": 15, "class": 10}
    assert fitted(natural, steps, 25) == {"id": 10, "run": 13}


def test_times_are_cut_to_the_minute_or_not_at_all() -> None:
    assert fitted({"at": 19, "x": 10}, (("at", 16),), 30) == {"at": 16, "x": 10}
    assert fitted({"at": 19, "x": 10}, (("at", 16), ("at", 11)), 27) == {"at": 11, "x": 10}


def on_terminal(columns: int, *arguments: str) -> tuple[list[str], list[str]]:
    """Return the lines that a command writes to a terminal of a width, and to a standard error apart."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "flows.cli", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=follower, stderr=pipe, cwd=ROOT, env=env
    ) as process:
        os.close(follower)
        written = b""
        try:
            while block := os.read(leader, 1 << 16):
                written += block
        except OSError:  # how Linux says that the last writer closed the terminal
            pass
        assert process.stderr is not None
        error = process.stderr.read().decode()
    os.close(leader)
    return re.sub(r"\x1b\[[\d;]*m", "", written.decode()).splitlines(), error.splitlines()


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
def test_interruptions_keep_id_time_and_cause_whole(demo_folder: Path, columns: int) -> None:
    lines, error = on_terminal(columns, "interruptions", "--config", str(demo_folder / "goodput.toml"))
    rows = [line for line in lines if re.match(r"[0-9a-f]{10}  (2026-)?11-30 \d\d:\d\d(:\d\d)? ", line)]
    assert len(rows) == 11
    assert len([r for r in rows if re.search(r" (gpu_system_processor|network_switch_cable) ", r)]) == 2
    assert max(map(len, [lines[0], *rows])) <= columns
    assert "at_utc" in lines[0]
    told = next((line for line in error if line.startswith("left out for want of width: ")), "")
    left_out = set(told.partition(": ")[2].split(", ")) - {""}
    assert left_out == set(COLUMNS) - set(lines[0].split())
    # All are of one run: its name tells least. What was held is assumed for all of them, and summed up below.
    if columns >= 80:
        assert left_out <= {"run", "held_gpuh", "down", "waiting_gpuh"}
        assert not left_out or "run" in left_out
    assert max(map(len, lines)) <= columns


def test_years_that_differ_are_never_left_out() -> None:
    rows = [{"run": "a", "at_utc": datetime(year, 1, 1, tzinfo=UTC)} for year in (2025, 2026)]
    assert ("at_utc", 11) not in narrow(rows)
    assert ("at_utc", 11) in narrow(rows[:1])
    assert narrow(rows)[0] == ("run", 0)
    assert narrow([*rows, {**rows[0], "run": "b"}])[0] == ("run", 14)


@pytest.mark.parametrize("columns", [80, 120])
def test_evidence_is_wrapped_to_the_terminal(demo_folder: Path, columns: int) -> None:
    """All but paths, which have no place to break."""
    lines, _ = on_terminal(columns, "explain", "--last", "--all", "--config", str(demo_folder / "goodput.toml"))
    words = [line for line in lines if len(line.split()) > 1]
    assert any(line.startswith("  initiating") for line in words)
    assert max(map(len, words)) <= columns


@pytest.mark.parametrize("command", [["explain", "--job", "14"], ["node", "gpu008"]])
def test_sentences_are_wrapped_to_the_terminal(demo_folder: Path, command: list[str]) -> None:
    lines, _ = on_terminal(80, *command, "--config", str(demo_folder / "goodput.toml"))
    ours = [line for line in lines if re.match(r"  (stopped|verdict|hardware|\(initiating)|llm: ", line)]
    assert ours
    assert max(map(len, ours)) <= 80
    assert any(re.match(r" {2,12}\w", after) for line, after in pairwise(lines) if line in ours)


def test_a_node_fits_into_80_columns(demo_folder: Path) -> None:
    lines, _ = on_terminal(80, "node", "gpu008", "--config", str(demo_folder / "goodput.toml"))
    tables = [line for line in lines if re.search(r"2026-11-30 \d\d:\d\d", line)]
    assert tables
    assert max(map(len, tables)) <= 80


def test_numbers_stand_to_the_right(demo_folder: Path) -> None:
    lines, _ = on_terminal(200, "interruptions", "--config", str(demo_folder / "goodput.toml"))
    ends = {len(line.rstrip()) for line in lines[:12]}
    assert len(ends) == 1


@pytest.mark.parametrize("columns", [60, 80])
def test_a_score_fits_the_terminal(demo_folder: Path, tmp_path: Path, columns: int) -> None:
    lines = [json.loads(line) for line in (demo_folder / "truth.jsonl").read_text().splitlines()]
    signature = {"signature": "a_signature_of_many_words", "node": "gpu012", "causes": ["gpu_system_processor"]}
    wrong = [line | {"is_planned": not line.get("is_planned")} | signature for line in lines[:4]]
    far = {"cluster": "llm", "interrupted_at": "2026-11-30T01:00:00Z", "causes": ["network_switch_cable", "nic"]}
    run = {"kind": "run", "cluster": "llm", "run": "alice/llama-pretrain", "ledger": {"productive": 7.6e10}}
    file = tmp_path / "truth.jsonl"
    file.write_text("\n".join(map(json.dumps, [*wrong, *lines[5:], far | signature, run | {"manual": 3}])))
    printed, _ = on_terminal(columns, "evaluate", str(file), "--config", str(demo_folder / "goodput.toml"))
    for heading in ("Wrong", "Missed", "By cause", "GPU-hours of alice/llama-pretrain by state"):
        assert heading in printed
    assert [line for line in printed if len(line.rstrip()) > columns] == []
