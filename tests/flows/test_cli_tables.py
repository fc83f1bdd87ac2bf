"""Tables on terminals of any width: no cell is ever broken over lines."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    rows = [line for line in lines if re.match(r"[0-9a-f]{10}  2026-11-30 \d\d:\d\d(:\d\d)? ", line)]
    assert len(rows) == 11
    assert len([r for r in rows if re.search(r" (gpu_system_processor|network_switch_cable) ", r)]) == 2
    assert max(map(len, [lines[0], *rows])) <= columns
    assert "at_utc" in lines[0]
    left_out = [line for line in error if line.startswith("left out for want of width: ")]
    assert bool(left_out) == ("class" not in lines[0] or "job" not in lines[0])


def test_a_node_fits_into_80_columns(demo_folder: Path) -> None:
    lines, _ = on_terminal(80, "node", "gpu008", "--config", str(demo_folder / "goodput.toml"))
    tables = [line for line in lines if re.search(r"2026-11-30 \d\d:\d\d", line)]
    assert tables
    assert max(map(len, tables)) <= 80


def test_numbers_stand_to_the_right(demo_folder: Path) -> None:
    lines, _ = on_terminal(200, "interruptions", "--config", str(demo_folder / "goodput.toml"))
    ends = {len(line.rstrip()) for line in lines[:12]}
    assert len(ends) == 1
