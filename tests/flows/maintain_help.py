"""Data folders that need maintenance: shared by its tests."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flows import pipeline
from flows.config import Config
from flows.manifest import opened
from tests.flows.ingest_help import config, labels, write
from transforms import lake

NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=400)
COMMAND = """
[clusters.c1]
zone = "UTC"
[[sources]]
name = "told"
command = ["cat", "told.jsonl"]
format = "annotations"
"""


def fragmented(home: Path, times: int = 4) -> None:
    """A lake of small parts: as many ingests, each with rows of the same days."""
    for number in range(times):
        write(home, f"e{number}.jsonl", labels(*range(number * 28, number * 28 + 5)) + "broken\n")
        pipeline.ingest(config(home))


def parts(home: Path) -> list[str]:
    return lake.parts_on_disk(home / "data/lake")


def scramble(path: Path) -> None:
    """Damage what a part holds, as a bad disk does: its length stays."""
    content = bytearray(path.read_bytes())
    content[4:64] = (byte ^ 0x5A for byte in content[4:64])
    path.write_bytes(content)


def landed(home: Path, text: str = COMMAND) -> tuple[Config, list[Path]]:
    """A command that was asked for a window, twice: the second output took the place of the first."""
    settings = config(home, text)
    (home / "told.jsonl").write_text(labels(1, 2))
    pipeline.ingest(settings)
    [first] = (home / "data/landing/told").glob("*.zst")
    second = first.with_name(first.name.replace("_20", "_21"))
    shutil.copy2(first, second)
    pipeline.ingest(settings)
    with opened(home / "data") as manifest:
        [pull] = manifest.pulls("told")
        manifest.store_pull(replace(pull, path=str(second), tries=2))
    return settings, [first, second]
