"""The SQL keeps one style, so that a change shows as a change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_sqlfluff_finds_nothing() -> None:
    """Also that it can parse every file: what it cannot parse it cannot lint."""
    command = [sys.executable, "-m", "sqlfluff", "lint", "--disable-progress-bar", "warehouse"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
