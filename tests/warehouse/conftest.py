"""Small models, lakes and builds for tests of the warehouse's machinery."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from transforms.tables import TABLES
from warehouse.build import BuildReport, build
from warehouse.inputs import Inputs

BEGAN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PYTHON = sys.executable

WriteModels = Callable[[dict[str, str]], Path]
Build = Callable[..., BuildReport]


@pytest.fixture
def write_models(tmp_path: Path) -> WriteModels:
    """Write model files; a text without its grain line gets one."""

    def write(texts: dict[str, str], folder: str = "models") -> Path:
        for name, text in texts.items():
            path = tmp_path / folder / f"{name}.sql"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if text.startswith("--") else f"-- One row per row.\n{text}")
        return tmp_path / folder

    return write


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Folder of lake and builds."""
    path = tmp_path / "data"
    path.mkdir()
    return path


@pytest.fixture
def make(data: Path, write_models: WriteModels, tmp_path: Path) -> Build:
    """Build from model texts; each call begins a minute after the one before."""
    calls = 0

    def run(texts: dict[str, str] | None = None, **arguments: Any) -> BuildReport:
        nonlocal calls
        calls += 1
        folder = f"models-{calls}"
        models = write_models(texts or {"marts/answer": f"select {calls} as n"}, folder)  # type: ignore[call-arg]
        checks = tmp_path / "checks"
        checks.mkdir(exist_ok=True)
        defaults = {
            "inputs": Inputs(lake=data / "lake"),
            "started_at": BEGAN + timedelta(minutes=calls),
            "code_version": "test",
            "models": models,
            "check_files": checks,
        }
        return build(data, **(defaults | arguments))

    return run


@pytest.fixture
def write_part(data: Path) -> Callable[..., Path]:
    """Write rows of a normalized table as one part of the lake; columns not given are null, or left out altogether."""

    def write(table: str, rows: list[dict[str, Any]], name: str = "a", leave_out: tuple[str, ...] = ()) -> Path:
        path = data / "lake" / table / "cluster=x" / "date=unknown" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = TABLES[table].schema
        pl.DataFrame(rows, schema={k: v for k, v in schema.items() if k not in leave_out}).write_parquet(path)
        return path

    return write
