"""A backfill that is killed and disturbed, against one clean run: `python benchmarks/backfill.py [FOLDER]`.

FOLDER holds a goodput.toml and the exports it names, as `goodput demo` leaves them; its data folder is not touched. Without one a small
replay is made. In a copy of the configuration, `goodput backfill` loads everything window by window. On the way it is killed (SIGKILL)
three times, a reader keeps a session open on a build that was published before, and a schedule fires again and again in other processes:
`goodput build` at first (an ingest between two kills would load all that is left, and nothing would be left to kill), from the third kill
on `goodput ingest` too. Then another copy is loaded by one `goodput run`, and the digests of both are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flows.config import load
from flows.coverage import Survey
from flows.manifest import opened_to_read
from flows.replay import generate

ROOT = Path(__file__).resolve().parents[1]
KILLS = 3
READER = """
import sys
from pathlib import Path
from warehouse import publish, session
with session.reading(publish.resolve(publish.link_of(Path(sys.argv[1])))) as con:
    for _ in sys.stdin:
        sums = con.execute("select count(*), sum(gpu_seconds) from marts.ledger").fetchall()
        print(con.execute("select max(build_id) from ops.builds").fetchall(), sums, flush=True)
"""


@dataclass(slots=True)
class Figures:
    """What was seen.

    Attributes:
        windows: windows that held anything.
        tries_seconds: seconds of each try: the first three end with a kill.
        commits_when_killed: how many commits (about one a window) there were at each kill.
        commits: how many there were in the end.
        schedule_runs: how often the schedule ran something to its end.
        schedule_failures: what it could not do for another reason than a writer at work.
        backfill_seconds: all tries together, the builds of those that ended well included.
        run_seconds: one clean `goodput run`.
        dry_run_seconds: the dry run after all.
        marts: digests compared, and the one of all together.
        is_equal: all of them are equal.
        is_snapshot_kept: the reader's session told the same before and after.
        is_nothing_left: the dry run has nothing to do.
    """

    windows: int = 0
    tries_seconds: list[float] = field(default_factory=list)
    commits_when_killed: list[int] = field(default_factory=list)
    commits: int = 0
    schedule_runs: int = 0
    schedule_failures: list[str] = field(default_factory=list)
    backfill_seconds: float = 0.0
    run_seconds: float = 0.0
    dry_run_seconds: float = 0.0
    marts: int = 0
    is_equal: bool = False
    is_snapshot_kept: bool = False
    is_nothing_left: bool = False

    @property
    def is_right(self) -> bool:
        """Whether all is as it should be."""
        return self.is_equal and self.is_snapshot_kept and self.is_nothing_left and not self.schedule_failures


class Site:
    """A copy of a configuration beside the same exports."""

    def __init__(self, source: Path, folder: Path) -> None:
        folder.mkdir(parents=True)
        shutil.copy(source / "goodput.toml", folder)
        (folder / "exports").symlink_to(source / "exports")
        self.folder = folder

    def command(self, *arguments: str) -> list[str]:
        """Return a command of the program for this site."""
        return [sys.executable, "-m", "flows.cli", *arguments, "--config", str(self.folder / "goodput.toml")]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
        return subprocess.Popen(
            self.command(*arguments), cwd=ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str) -> str:
        """Run a command to its end and return what it printed.

        Raises:
            RuntimeError: it failed.
        """
        with self.start(*arguments) as process:
            printed, said = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{arguments}: {process.returncode}: {said}")
        return printed

    def windows(self, period: tuple[str, ...]) -> list[dict[str, Any]]:
        """Return the windows that a backfill would load."""
        plan = json.loads(self.run("backfill", *period, "--dry-run", "--json"))
        return [w for w in plan["windows"] if w["to_load"]]

    def commits(self) -> int:
        """Return how many commits the manifest has seen."""
        with opened_to_read(self.folder / "data") as manifest:
            return manifest.next_batch() - 1 if manifest else 0

    def digest(self) -> list[str]:
        """Return the digest of every mart."""
        return self.run("check", "--digest").splitlines()


def measured(source: Path, work: Path, *, seed: int, schedule_seconds: float) -> Figures:
    """Backfill with kills, a schedule and a reader; compare with one clean run."""
    figures, rng = Figures(), random.Random(seed)  # noqa: S311 - moments, no secrets
    clean, disturbed = Site(source, work / "clean"), Site(source, work / "disturbed")
    began = time.monotonic()
    clean.run("run")
    figures.run_seconds = round(time.monotonic() - began, 1)
    period = _period(disturbed)
    todo = disturbed.windows(period)
    figures.windows = len(todo)
    disturbed.run("backfill", *period[:2], "--end", todo[len(todo) // 10]["end"])
    with _Reader(disturbed) as reader:
        before = reader.ask()
        with _Schedule(disturbed, schedule_seconds, figures) as schedule:
            _disturb(disturbed, period, figures, rng, schedule)
        figures.is_snapshot_kept = reader.ask() == before
    figures.commits = disturbed.commits()
    began = time.monotonic()
    figures.is_nothing_left = "nothing to do" in disturbed.run("backfill", *period, "--dry-run")
    figures.dry_run_seconds = round(time.monotonic() - began, 1)
    disturbed.run("build")
    expected = clean.digest()
    figures.marts = len(expected)
    figures.is_equal = figures.marts > 1 and disturbed.digest() == expected
    return figures


def _period(site: Site) -> tuple[str, ...]:
    """Return the options for everything there is."""
    extent = Survey(load(site.folder / "goodput.toml"), None).extent()
    if extent is None:
        raise RuntimeError("the configuration matches no file")
    start, end = extent
    return ("--start", start.isoformat(), "--end", end.isoformat())


def _disturb(site: Site, period: tuple[str, ...], figures: Figures, rng: random.Random, schedule: _Schedule) -> None:
    """Backfill; kill it a random number of commits later, three times; then let it end."""
    for number in range(KILLS + 1):
        began = time.monotonic()
        if number == KILLS:
            schedule.commands = ("ingest", "build")
        with site.start("backfill", *period) as process:
            if number < KILLS:
                share = max((figures.windows - site.commits()) // 4, 1)
                _kill_at(site, process, site.commits() + rng.randint(1, share), figures)
            said = process.communicate()[1]
        figures.tries_seconds.append(round(time.monotonic() - began, 1))
    if process.returncode:
        raise RuntimeError(f"the last try ended with {process.returncode}: {said}")
    figures.backfill_seconds = round(sum(figures.tries_seconds), 1)


def _kill_at(site: Site, process: subprocess.Popen[str], commits: int, figures: Figures) -> None:
    while site.commits() < commits:
        if process.poll() is not None:
            raise RuntimeError("it ended before it could be killed")
        time.sleep(0.02)
    process.kill()
    figures.commits_when_killed.append(site.commits())


class _Schedule:
    """Runs commands in turn, with a pause before each; they wait for a writer at work as long as they would anywhere."""

    def __init__(self, site: Site, seconds: float, figures: Figures) -> None:
        self.commands: tuple[str, ...] = ("build",)
        self._site, self._seconds, self._figures = site, seconds, figures
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._fire)

    def __enter__(self) -> _Schedule:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _fire(self) -> None:
        while not self._stop.wait(self._seconds):
            for name in self.commands:
                with self._site.start(name) as process:
                    said = process.communicate()[1]
                if not process.returncode:
                    self._figures.schedule_runs += 1
                elif "is writing to" not in said:
                    self._figures.schedule_failures.append(f"{name}: {process.returncode}: {said[-500:]}")


class _Reader:
    """A session that stays open on the build that was published when it began."""

    def __init__(self, site: Site) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", READER, str(site.folder / "data")], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> _Reader:
        return self

    def ask(self) -> str:
        """Return what the session tells."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the reader has no pipes")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def main() -> int:
    """Print the figures as JSON; exit 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="holds goodput.toml and exports/; made if not given")
    parser.add_argument("--seed", type=int, default=1, help="what the moments of the kills are drawn from")
    parser.add_argument("--schedule-seconds", type=float, default=20.0, help="pause between two runs of the schedule")
    parser.add_argument("--work", type=Path, help="folder to make for the two copies; a temporary one if not given")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, work = asked.folder or Path(folder) / "replay", asked.work or Path(folder) / "work"
        if asked.folder is None:
            generate(source, seed=11, nodes=48, days=6)
        figures = measured(source.resolve(), work.resolve(), seed=asked.seed, schedule_seconds=asked.schedule_seconds)
    sys.stdout.write(json.dumps(asdict(figures), indent=2) + "\n")
    return 0 if figures.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
