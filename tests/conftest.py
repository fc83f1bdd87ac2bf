"""Fixtures that every test may use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from flows import pipeline
from flows.config import Config, load
from transforms import lake
from warehouse import digest, query

if TYPE_CHECKING:
    from flows.reports import IngestReport
    from warehouse.build import BuildReport

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of exports that lie beside the checkout; the test is skipped where it is absent."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("no ../shared here")
    return path


class Site:
    """A folder with exports and a configuration, and the warehouse made from them.

    Everything goes through the plain functions that the command line calls.
    """

    def __init__(self, folder: Path, settings: str, collected_at: str = "2026-12-01T00:00:00Z") -> None:
        self.folder = folder
        self._settings = settings
        self._sources: list[str] = []
        self._collected_at = collected_at
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, content: bytes | str, **source: object) -> Path:
        """Write an export, and configure it as a source of its own with `source` as its keys."""
        path = self.folder / "exports" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        keys = {"path": f"exports/{name}", "collected_at": self._collected_at, **source}
        lines = [f"{k} = {v if k == 'collected_at' else json.dumps(v)}" for k, v in keys.items()]
        self._sources.append("\n".join(["[[sources]]", *lines]))
        return path

    def config(self) -> Config:
        """Write goodput.toml and load it."""
        path = self.folder / "goodput.toml"
        path.write_text("\n\n".join([self._settings, *self._sources]) + "\n", encoding="utf-8")
        return load(path)

    def run(self) -> tuple[IngestReport, BuildReport]:
        """Ingest and build; the checks of the build must hold."""
        ingested, built = pipeline.run(self.config())
        assert built.published, built.failed_checks
        return ingested, built

    @property
    def warehouse(self) -> Path:
        """The published file."""
        return self.folder / "data" / "warehouse.duckdb"

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a query on the published warehouse."""
        return query.rows(self.warehouse, sql)

    def column(self, sql: str) -> list[Any]:
        """Return the first column of a query's answer."""
        return [next(iter(row.values())) for row in self.rows(sql)]

    def digest(self) -> dict[str, str]:
        """Return the digest of every mart."""
        return digest.digest(self.warehouse)

    def lake(self, table: str) -> pl.DataFrame:
        """Return the rows of a normalized table."""
        return lake.scan(self.folder / "data" / "lake", table).collect()


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., Site]:
    """Make sites: `site(settings, name="a")`."""

    def make(settings: str, name: str = "site", **kwargs: str) -> Site:
        return Site(tmp_path / name, settings, **kwargs)

    return make
