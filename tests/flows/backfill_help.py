"""Sources with a window a day, and what becomes of them: shared by the tests of coverage and backfill."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from flows.backfill import BackfillReport, Plan, Reprocess, carry_out, plan
from flows.config import Config, parse
from flows.coverage import State, coverage
from flows.manifest import opened_to_read
from tests.flows.ingest_help import ROOT, label

NOW = datetime(2026, 1, 20, tzinfo=UTC)
START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 8, tzinfo=UTC)
DAILY = """
[clusters.c1]
zone = "UTC"
[[sources]]
name = "daily"
path = "exports/daily_{collected_at}.jsonl"
"""
OTHER = """
[[sources]]
name = "other"
path = "exports/other_{collected_at}.jsonl"
"""


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


def config(home: Path, text: str = DAILY) -> Config:
    (home / "exports").mkdir(parents=True, exist_ok=True)
    (home / "goodput.toml").write_text(text)
    return parse(text, home / "goodput.toml")


def write(home: Path, day: int, *numbers: int, name: str = "daily", text: str | None = None) -> Path:
    """Write the export of one day: labels with these numbers, or the day's."""
    path = home / f"exports/{name}_2026-01-{day:02d}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(label(n) for n in numbers or (day,)) if text is None else text)
    return path


def states(
    home: Path, text: str = DAILY, now: datetime = NOW, start: datetime = START, end: datetime = END
) -> list[State]:
    settings = config(home, text)
    with opened_to_read(settings.data) as manifest:
        return coverage(settings, manifest, start, end, now)


def told(home: Path, text: str = DAILY, now: datetime = NOW) -> dict[str, str]:
    """State of each window that has one, with its reason."""
    found = {}
    for one in states(home, text, now):
        if one.state != "none":
            found[f"{one.source} {one.window}"] = f"{one.state}: {one.reason}" if one.reason else one.state
    return found


def planned(home: Path, text: str = DAILY, reprocess: Reprocess = "none", now: datetime = NOW) -> Plan:
    settings = config(home, text)
    with opened_to_read(settings.data) as manifest:
        return plan(settings, manifest, start=START, end=END, now=now, reprocess=reprocess)


def todo(home: Path, text: str = DAILY, reprocess: Reprocess = "none", now: datetime = NOW) -> list[str]:
    """The windows that a backfill would work on, in its order."""
    return [f"{s.state.source} {s.state.window}" for s in planned(home, text, reprocess, now).todo]


def backfilled(home: Path, text: str = DAILY, now: datetime = NOW, **options: object) -> BackfillReport:
    """Backfill without building."""
    asked = {"start": START, "end": END, "build": False, "clock": lambda: now} | options
    return carry_out(config(home, text), **asked)  # type: ignore[arg-type]


def worked_on(report: BackfillReport) -> list[str]:
    return [f"{o.source} {o.window} {o.status}" for o in report.outcomes]


COMMAND = """
[clusters.c1]
zone = "UTC"
[[sources]]
name = "pulled"
command = ["sh", "ask.sh", "{start_utc}"]
window = "1d"
since = 2026-01-01T00:00:00Z
"""


def asking(home: Path, script: str) -> None:
    """Let the command do `script`; $1 is the begin of the window, and each call is noted in `asked`."""
    home.mkdir(exist_ok=True)
    (home / "ask.sh").write_text(f'echo "$1" >> asked\n{script}\n')


PRINTS = """printf '{"interruption_id": "%s", "cause": "gpu_faulty", "made_at": "%s"}\\n' "$1" "$1" """


def asked(home: Path) -> list[str]:
    return [line[:10] for line in (home / "asked").read_text().splitlines()]


KILLED = """
import sys
from datetime import datetime
from flows.backfill import carry_out
from flows.config import load
from tests.flows.backfill_help import END, NOW, START
print("begun", flush=True)
carry_out(load(sys.argv[1]), start=START, end=END, build=False, clock=lambda: NOW, wait_seconds=30)
"""


def start_one(home: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", KILLED, str(home / "goodput.toml")]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
