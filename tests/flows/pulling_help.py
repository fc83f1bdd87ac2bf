"""Sources with commands: shared by the tests of pulling."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flows.config import Config, SourceConfig, parse
from flows.manifest import Pull
from flows.windows import Window
from transforms.stream import opened

CLUSTER = '[clusters.c1]\nzone = "{zone}"\n'
NOON = datetime(2025, 11, 29, 12, tzinfo=UTC)
WINDOW = Window(NOON - timedelta(hours=2), NOON - timedelta(hours=1))
NO_DELAY = "delay = 0\n"
DAILY = 'delay = 0\nwindow = "1d"\n'
HEADER = "JobID|JobIDRaw|Cluster|JobName|User|State|ExitCode|Submit|Start|End|Elapsed|AllocTRES|NodeList"
JOB = "|".join(
    "{n} {n} c1 llm u FAILED 1:0 2026-11-01T00:00:00 2026-11-01T00:10:00 2026-11-01T10:00:00 09:50:00 gres/gpu=8 n1".split()
)


def python(code: str, *arguments: str) -> list[str]:
    """A command that runs some Python."""
    return [sys.executable, "-c", code, *arguments]


def sh(code: str) -> list[str]:
    return ["sh", "-c", code]


def toml(command: list[str], more: str = "", name: str = "src") -> str:
    return f'[[sources]]\nname = "{name}"\ncommand = {json.dumps(command)}\n{more}\n'


def config(home: Path, *sources: str, zone: str = "UTC") -> Config:
    return parse(CLUSTER.format(zone=zone) + "".join(sources), home / "goodput.toml")


def one(home: Path, command: list[str], more: str = "", zone: str = "UTC") -> tuple[Config, SourceConfig]:
    """A configuration with one command, and that source."""
    found = config(home, toml(command, more), zone=zone)
    return found, found.sources[0]


def printed(pull: Pull) -> bytes:
    """What a command printed, from the file that keeps it."""
    assert pull.path is not None
    with Path(pull.path).open("rb") as handle:
        return opened(handle).read()


def everything(home: Path) -> bytes:
    """All bytes of all files below a folder, decompressed where they are an output that was kept."""
    found = b""
    for path in home.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            found += raw + (opened(path.open("rb")).read() if path.suffix == ".zst" else b"")
    return found


def sacct(log: Path, *, before: str = "", number: str = "{end_epoch}") -> list[str]:
    """A command that prints one job for each window, and notes in `log` that it was asked for it."""
    job = JOB.format(n=number)
    return sh(f"echo {{start}} >> {log}; {before} echo '{HEADER}'; echo '{job}'")


def since(start: datetime) -> str:
    return f"since = {start:%Y-%m-%dT%H:%M:%SZ}"


def hours(count: float) -> datetime:
    """So many hours before noon: tests that need no clock ask until noon."""
    return NOON - timedelta(hours=count)


def days_ago(count: int) -> datetime:
    """The begin of a day so many days ago: as many whole days are over since."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=count)


def home_of(home: Path, *sources: str) -> Path:
    """Write a configuration for commands that run in processes of their own."""
    (home / "goodput.toml").write_text('[clusters.c1]\nzone = "UTC"\n' + "".join(sources))
    return home / "goodput.toml"
