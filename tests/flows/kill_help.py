"""A data folder that commands are killed over, and what must hold of it then: shared by the tests that kill."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flows.config import Config, load
from flows.manifest import opened
from transforms import lake
from warehouse import build, publish
from warehouse.digest import digest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        code: exit code; -9 = killed.
        seconds: from begin to end.
        output: what it printed.
        steps: the steps it took, each with the seconds since the begin.
    """

    code: int
    seconds: float
    output: str
    steps: list[tuple[float, str]]

    @property
    def names(self) -> Counter[str]:
        """How often it took the steps of each name, in the order of the first."""
        return Counter(name for _, name in self.steps)


class Runner:
    """Runs command lines in children of a process that has imported everything; see `tests.flows.kill_server`."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process, self._output, self._trace = process, folder / "output", folder / "trace"

    def run(
        self, site: Site, *command: str, step: tuple[str, int] | None = None, seconds: float | None = None
    ) -> Ended:
        """Run `goodput COMMAND` on a site; killed at its n-th step of a name, or some seconds after that, or after its begin."""
        for path in (self._output, self._trace):
            path.write_text("")
        job = {
            "command": [*command, "--config", str(site.home / "goodput.toml")],
            "data": str(site.data),
            "step": step,
            "seconds": seconds,
            "trace": str(self._trace),
            "output": str(self._output),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        steps = [(float(at), name) for at, _, name in (s.partition(" ") for s in self._trace.read_text().splitlines())]
        return Ended(answer["code"], answer["seconds"], self._output.read_text(errors="replace"), steps)

    def done(self, site: Site, *command: str) -> Ended:
        """Run a command undisturbed; it must succeed."""
        ended = self.run(site, *command)
        assert ended.code == 0, ended.output
        return ended


@contextmanager
def runner(folder: Path) -> Iterator[Runner]:
    """Start the process that commands are forked from."""
    command = [sys.executable, "-m", "tests.flows.kill_server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Runner(process, folder)


class Site:
    """A folder with exports, `goodput.toml` and a data folder, whose state can be kept and brought back."""

    def __init__(self, home: Path) -> None:
        self.home, self.data = home, home / "data"

    @property
    def config(self) -> Config:
        """Its configuration, as it is now."""
        return load(self.home / "goodput.toml")

    def keep(self, name: str) -> None:
        """Keep the data folder as it is now."""
        shutil.copytree(self.data, self.home / f"kept-{name}", symlinks=True)

    def bring_back(self, name: str) -> None:
        """Make the data folder as it was when it was kept."""
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.copytree(self.home / f"kept-{name}", self.data, symlinks=True)

    def let_a_minute_pass(self) -> None:
        """Make what a killed command was writing older: only then it is taken for left behind."""
        for path in self.data.glob("landing/*/.*.unfinished"):
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 120))

    def landed(self) -> int:
        """Return the number of outputs of commands that are kept."""
        return len(list(self.data.glob("landing/*/*.zst")))

    def digest(self) -> dict[str, str] | None:
        """Return the digest of what readers see; None where nothing was published. A damaged build raises."""
        link = publish.link_of(self.data)
        return digest(link) if link.is_symlink() else None

    def strangers(self) -> list[str]:
        """Return the files in the data folder that nobody owns, and those that are missing."""
        builds = publish.builds(self.data)
        with opened(self.data) as manifest:
            owned = {f"lake/{p}" for p in manifest.parts()}
            read = {e["path"] for e in manifest.exports()}  # of what commands printed, with what was asked for twice
        owned |= {p.path.relative_to(self.data).as_posix() for p in builds}
        owned |= {"writer.lock", "manifest.sqlite", "warehouse.duckdb", "builds/.lock"}
        may_be = {f"builds/{name}" for name in (publish.ROLLED_BACK, publish.WORK, build.MEMORY)}
        may_be |= {Path(p).relative_to(self.data).as_posix() for p in read if p.startswith(f"{self.data}/landing/")}
        there = {p.relative_to(self.data).as_posix() for p in self.data.rglob("*") if p.is_symlink() or not p.is_dir()}
        there |= {p.relative_to(self.data).as_posix() for p in publish.folder_of(self.data).iterdir()}
        # What a killed backfill had been told is set aside when the next one is told it again.
        may_be |= {p for p in there if p.startswith("quarantine/landing/")}
        return sorted(there - owned - may_be) + [f"no {p}" for p in sorted(owned - there)]

    def damage(self) -> list[lake.Damage]:
        """Return the parts of the lake that cannot be read."""
        return lake.verify(self.data / "lake")
