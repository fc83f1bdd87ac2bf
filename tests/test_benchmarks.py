"""Benchmarks run on inputs of any size: they use the models and parsers as they are now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.slow
def test_the_attribution_join_is_measured() -> None:
    """Both sides run and give a ratio; how large it is, a small input cannot tell."""
    command = [sys.executable, str(BENCHMARKS / "attribution.py"), "--attempts", "2000", "--events", "5000"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert "ratio " in done.stdout
