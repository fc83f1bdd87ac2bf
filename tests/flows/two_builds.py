"""A data folder with two builds of the demo, the earlier one altered: what tests of the report and of builds look at."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

from flows.config import Config, load
from warehouse import publish

EARLIER, LATER = "20260101T000000000000Z", "20260102T000000000000Z"


def altered(path: Path, *statements: str) -> Path:
    """Change a build by SQL."""
    path.chmod(0o644)
    with duckdb.connect(str(path)) as con:
        for statement in statements:
            con.execute(statement)
    path.chmod(0o444)
    return path


def two_builds(home: Path, demo_folder: Path, *statements: str) -> Config:
    """Return the configuration of a folder whose earlier build was changed by SQL and whose later one is published."""
    data = home / "data"
    publish.folder_of(data).mkdir(parents=True)
    shutil.copy(demo_folder / "goodput.toml", home / "goodput.toml")
    shutil.copy(demo_folder / "data/manifest.sqlite", data / "manifest.sqlite")
    (home / "exports").symlink_to(demo_folder / "exports")
    paths = [publish.folder_of(data) / f"{name}{publish.SUFFIX}" for name in (EARLIER, LATER)]
    for path in paths:
        shutil.copy(publish.published(demo_folder / "data"), path)
        path.chmod(0o444)
    altered(paths[0], *statements)
    publish.switch(data, paths[1])
    return load(home / "goodput.toml")
