"""The demo's folder: exports, their truth, and a configuration to the scale of their time."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

DATA = "slurm_22_05"

CONFIG, EXPORTS, TRUTH = "goodput.toml", "exports", "truth.jsonl"


class DemoExistsError(Exception):
    """The folder holds something else already; the message says what to do."""


def prepare(folder: Path) -> Path:
    """Make a demo folder and return its configuration. A folder that holds this demo already is left as it is.

    Raises:
        DemoExistsError: the folder holds other things.
    """
    config = folder / CONFIG
    if config.exists() and (folder / TRUTH).exists():
        return config
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DemoExistsError(f"{folder} is there already and holds no demo; name another folder: `goodput demo DIR`")
    write_exports(folder)
    return config


def write_exports(folder: Path) -> None:
    """Write `exports/`, `truth.jsonl` and `goodput.toml`: what a real Slurm printed while it was broken on purpose.

    The configuration is written last, so that a folder with one is whole.
    """
    root = resources.files("flows") / "demo_data" / DATA
    _copy(root / EXPORTS, folder / EXPORTS)
    _copy(root / TRUTH, folder / TRUTH)
    _copy(root / CONFIG, folder / CONFIG)


def _copy(source: Traversable, target: Path) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        for child in source.iterdir():
            _copy(child, target / child.name)
    else:
        target.write_bytes(source.read_bytes())
