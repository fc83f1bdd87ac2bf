"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of exports that lie beside the checkout; the test is skipped where it is absent."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("no ../shared here")
    return path
