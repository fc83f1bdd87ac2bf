"""A command imports what it needs; the help that lists them all says what each does."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
Goodput = Callable[..., Any]


def test_a_command_imports_no_other_command() -> None:
    """What is called every hour, or in a loop, pays for what it uses only."""
    code = "import sys; from flows.cli import execute; execute(['status', '--help']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = {m.removeprefix("flows.cli.") for m in ran.stdout.splitlines()[-1].split() if m.startswith("flows.cli.")}
    # The modules of commands have the commands' names; `coverage` and the like are parts that several use.
    assert loaded & set(COMMANDS) == {"status"}


@pytest.mark.parametrize("arguments", [["--help"], []])
def test_help_lists_every_command_in_order_and_says_what_it_does(goodput: Goodput, arguments: list[str]) -> None:
    listed = re.findall(r"^│ ([a-z]+) +[A-Z]\w+\b.*│$", goodput(*arguments).out, re.MULTILINE)
    assert listed == list(COMMANDS)
