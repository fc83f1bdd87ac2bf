"""The demo's folder: a replay of the Llama 3 run, or what a real Slurm printed; each with its truth and configuration."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from flows import lease

CONFIG, EXPORTS, TRUTH = "goodput.toml", "exports", "truth.jsonl"
RECORD = "demo.json"
"""Says what a demo's folder was made from; written first, where `goodput.toml` is written last."""
LOCK = "demo.lock"
"""Locked by whoever makes or runs the demo."""
MOST_NODES, MOST_DAYS, MOST_NODE_DAYS = 32_768, 400, 819_200
"""Largest replay: one machine carries a year of 2,048 nodes (16,384 GPUs); 819,200 are 400 days of them."""
_DAY_BYTES, _NODE_DAY_BYTES = 5_700_000, 4_500  # as measured: the training log is one for all, kernel logs one a node
EXAMPLES = {"slurm": "slurm_22_05"}
"""Bundled exports, by the name that `--example` takes."""

Made = dict[str, Any]


class DemoExistsError(Exception):
    """The folder holds something else already; the message says what to do."""


class ReplayError(Exception):
    """No such replay can be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What shapes a replay.

    Attributes:
        seed: what chance is drawn from.
        nodes: nodes of the run.
        days: length of the run, days.
        mix: how often each cause occurs.
    """

    seed: int = 1
    nodes: int = 2048
    days: int = 54
    mix: str = "llama3"

    @property
    def is_published(self) -> bool:
        """Whether it is the fleet of the Llama 3 paper, so that the paper's figures compare."""
        return (self.nodes, self.days, self.mix) == (2048, 54, "llama3")

    @property
    def export_bytes(self) -> int:
        """About how large its exports become, bytes."""
        return self.days * (_DAY_BYTES + self.nodes * _NODE_DAY_BYTES)

    def __str__(self) -> str:
        return f"a replay with --seed {self.seed} --nodes {self.nodes} --days {self.days} --mix {self.mix}"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the only right to make and run the demo in a folder; the folder is made where there is none.

    Raises:
        BusyError: another process makes or runs it; the message names it.
        DemoExistsError: the folder cannot be a demo's: it holds other things, or is a link to nowhere.
    """
    if folder.is_symlink() and not folder.exists():
        raise DemoExistsError(
            f"{folder} is a link to {folder.readlink()}, which is not there; make that folder, or name another one: `goodput demo DIR`"
        )
    if not any((folder / name).exists() for name in (LOCK, RECORD)):
        _held(folder)  # nothing is put into a folder of something else, not even a lock
    with lease.hold(folder, "demo", name=LOCK):
        try:
            yield
        except ReplayError:
            if [p.name for p in folder.iterdir()] == [LOCK]:
                (folder / LOCK).unlink()
                folder.rmdir()
            raise


def prepare(folder: Path, example: str = "slurm") -> Path:
    """Put a bundled example into a folder and return its configuration; a folder that holds it is left as it is.

    The caller is `alone` in the folder, or knows that nobody else comes.

    Raises:
        DemoExistsError: the folder holds other things.
    """
    return _made(folder, {"example": EXAMPLES[example]}, lambda: write_exports(folder, EXAMPLES[example]))


def prepare_replay(folder: Path, replay: Replay, progress: Callable[[str], None] | None = None) -> Path:
    """Generate a replay into a folder and return its configuration; a folder that holds it already is left as it is.

    The caller is `alone` in the folder, or knows that nobody else comes.

    Args:
        folder: folder to make.
        replay: what shapes it.
        progress: told what the generator does.

    Raises:
        DemoExistsError: the folder holds other things, another replay for example.
        ReplayError: there is no such mix, or the fleet is too small or too large.
    """
    _bounded(replay)
    return _made(folder, _wanted(replay), lambda: _generate(folder, replay, progress))


def holds(folder: Path, replay: Replay) -> bool:
    """Tell whether a folder holds a replay, whole.

    Raises:
        DemoExistsError: the folder holds other things than a demo.
    """
    return _held(folder) == _wanted(replay) and (folder / CONFIG).exists()


def write_exports(folder: Path, data: str = EXAMPLES["slurm"]) -> None:
    """Write `exports/`, `truth.jsonl` and `goodput.toml`: what a real Slurm printed while it was broken on purpose.

    The configuration is written last, so that a folder with one is whole.
    """
    root = resources.files("flows") / "demo_data" / data
    for name in (EXPORTS, TRUTH, CONFIG):
        _copy(root / name, folder / name)


def _wanted(replay: Replay) -> Made:
    return {"replay": asdict(replay), "generator": _generator()}


def _bounded(replay: Replay) -> None:
    """Refuse a replay that one machine could not carry, before anything of it is generated."""
    node_days = replay.nodes * replay.days
    if replay.nodes <= MOST_NODES and replay.days <= MOST_DAYS and node_days <= MOST_NODE_DAYS:
        return
    raise ReplayError(
        f"--nodes {replay.nodes} --days {replay.days} is more than one machine carries: give at most {MOST_NODES:,} nodes, "
        f"{MOST_DAYS} days, and {MOST_NODE_DAYS:,} node-days (nodes times days; 2,048 nodes for {MOST_DAYS} days, {MOST_NODES:,} "
        f"for {MOST_NODE_DAYS // MOST_NODES})"
    )


def _made(folder: Path, wanted: Made, write: Callable[[], None]) -> Path:
    config, record = folder / CONFIG, folder / RECORD
    held = _held(folder)
    if held is not None and held != wanted:
        raise DemoExistsError(
            f"{folder} holds {_told(held, wanted)}; remove it, or name another folder: `goodput demo DIR`"
        )
    if held == wanted and config.exists():
        return config
    if links := [name for name in (EXPORTS, TRUTH, CONFIG, RECORD) if (folder / name).is_symlink()]:
        raise DemoExistsError(
            f"{folder / links[0]} is a link, and nothing is written through it; remove it, or name another folder: `goodput demo DIR`"
        )
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / EXPORTS, ignore_errors=True)  # what an interrupted call left
    record.write_text(json.dumps(wanted) + "\n", encoding="utf-8")
    try:
        write()
    except ReplayError:
        record.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
        raise
    return config


def _held(folder: Path) -> Made | None:
    """Return what a folder was made from; None = it is empty, or not there.

    Raises:
        DemoExistsError: it holds other things than a demo.
    """
    try:
        made = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        if folder.exists() and (not folder.is_dir() or any(p.name != LOCK for p in folder.iterdir())):
            raise DemoExistsError(
                f"{folder} is there already and holds no demo; name another folder: `goodput demo DIR`"
            ) from None
        return None
    return made if isinstance(made, dict) else {}


def _told(held: Made, wanted: Made) -> str:
    if "example" in held:
        return f"the example {held['example']}"
    if held.get("replay") == wanted.get("replay"):
        return "this replay as another version of the generator wrote it"
    try:
        return str(Replay(**held["replay"]))
    except (KeyError, TypeError):
        return "another demo"


def _generate(folder: Path, replay: Replay, progress: Callable[[str], None] | None) -> None:
    from flows.replay import generate

    try:
        generate(folder, seed=replay.seed, nodes=replay.nodes, days=replay.days, mix=replay.mix, progress=progress)
    except ValueError as error:
        raise ReplayError(str(error)) from error


def _generator() -> str:
    """Return a hash of the generator's files: the same parameters make the same exports as long as it stays the same."""
    found = hashlib.sha256()
    for name, content in sorted(_files(resources.files("flows") / "replay", "")):
        found.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return found.hexdigest()[:16]


def _files(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for child in folder.iterdir():
        if child.is_dir() and child.name != "__pycache__":
            found += _files(child, f"{prefix}{child.name}/")
        elif child.is_file():
            found.append((prefix + child.name, child.read_bytes()))
    return found


def _copy(source: Traversable, target: Path) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        for child in source.iterdir():
            _copy(child, target / child.name)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
