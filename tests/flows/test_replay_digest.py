"""The same records give the same marts, however a replay's exports are cut, repeated and ordered."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from flows.replay import generate

WHOLE = {".json"}
HEADED = ("sacct", "slurm", "inventory")


def run(folder: Path) -> str:
    """Ingest and build; return the digests of every mart."""
    command = [sys.executable, "-m", "flows.cli"]
    config = ["--config", str(folder / "goodput.toml")]
    subprocess.run([*command, "run", *config], check=True, capture_output=True, timeout=300)
    made = subprocess.run(
        [*command, "check", "--digest", *config], check=True, capture_output=True, text=True, timeout=300
    )
    return made.stdout


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    generate(folder, seed=11, nodes=48, days=3)
    return folder


@pytest.mark.slow
def test_cut_repeated_and_shuffled_exports_give_the_same_marts(replay: Path, tmp_path: Path) -> None:
    """Every export is cut at a random line into two files, read in another order, and some are told twice."""
    rng = random.Random("cuts")
    for path in sorted(p for p in (replay / "exports").rglob("*") if p.is_file()):
        lines = path.read_bytes().splitlines(keepends=True)
        name = path.relative_to(replay / "exports")
        parts = [lines]
        if path.suffix not in WHOLE and "reservation" not in path.name and len(lines) > 2:
            cut = rng.randrange(1, len(lines))
            header = lines[:1] if name.parts[0] in HEADED else []
            parts = [lines[:cut], header + lines[cut:]]
            rng.shuffle(parts)
        if rng.random() < 0.3:
            parts.append(lines)
        for number, part in enumerate(parts):
            target = tmp_path / "exports" / f"{number}" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"".join(part))
    config = (replay / "goodput.toml").read_text()
    (tmp_path / "goodput.toml").write_text(config.replace('path = "exports/', 'path = "exports/*/'))
    expected = run(replay)
    assert expected.count("\n") >= 15
    assert run(tmp_path) == expected
