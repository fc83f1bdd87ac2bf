"""A hundred kills (SIGKILL) at moments that chance picks: readers see a whole build each time, and the work is completed.

In each round the same exports are added to two sites. On one commands are killed one after the other, on the other nobody
is; then the work is completed, and both must hold the same. The seed is printed; GOODPUT_KILL_SEED repeats one.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest

from flows import demo
from tests.flows.kill_help import Runner, Site, runner
from warehouse import publish

pytestmark = pytest.mark.slow

KILLS, KILLS_A_ROUND = 100, 12
MOST_SECONDS = 600.0
FIRST_DAY = date(2026, 11, 10)
SOURCE = """
[[sources]]
name = "daily"
path = "exports/daily/sacct-{collected_at}.txt"
"""
HEADER = "JobID|JobName|User|State|Submit|Start|End|Elapsed|AllocTRES|NNodes|NodeList\n"


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a command's life.

    Attributes:
        name: what it is called here.
        command: the command.
        begin: the step that it begins with; None = the command's begin.
        seconds: how long it took undisturbed.
    """

    name: str
    command: tuple[str, ...]
    begin: str | None
    seconds: float


def day_of_jobs(number: int) -> str:
    """An export of one day: a training that fails, is started again and completes, and 40 other jobs."""
    day = FIRST_DAY + timedelta(days=number)
    rows = []
    for job in range(43):
        name, user, state = ("llama-70b", "alice", "FAILED") if job < 2 else ("other", "bob", "COMPLETED")
        state = "COMPLETED" if job == 2 else state
        name, user = ("llama-70b", "alice") if job == 2 else (name, user)
        start, end = f"{day}T{job % 12:02d}:00:00", f"{day}T{job % 12:02d}:50:00"
        tres = "billing=8,cpu=8,gres/gpu=8,node=1"
        number_of_job = 90_000 + number * 100 + job
        rows.append(f"{number_of_job}|{name}|{user}|{state}|{start}|{start}|{end}|00:50:00|{tres}|1|n{job % 12:02d}\n")
    return HEADER + "".join(rows)


def add_day(sites: tuple[Site, ...], number: int) -> None:
    for site in sites:
        folder = site.home / "exports/daily"
        folder.mkdir(exist_ok=True)
        unfinished = folder / ".unfinished"
        unfinished.write_text(day_of_jobs(number))
        unfinished.rename(folder / f"sacct-{FIRST_DAY + timedelta(days=number)}.txt")


def backfill(number: int) -> tuple[str, ...]:
    """Load one day, and one that was loaded before once more."""
    first, last = FIRST_DAY + timedelta(days=number - 1), FIRST_DAY + timedelta(days=number)
    return ("backfill", "--here", "--start", str(first), "--end", str(last), "--source", "daily", "--reprocess", "all")


def phases(goodput: Runner, site: Site, number: int) -> list[Phase]:
    """Measure an undisturbed run and backfill, a day each."""
    add_day((site,), number)
    ran = goodput.done(site, "run")
    at = {name: second for second, name in reversed(ran.steps)}
    build, closing = at["mkdir builds/ID.spill"], at["database: checkpoint"]
    add_day((site,), number + 1)
    loaded = goodput.done(site, *backfill(number + 1))
    filled = next(second for second, name in loaded.steps if name == "mkdir builds/ID.spill")
    return [
        Phase("ingest", ("run",), None, build),
        Phase("build", ("run",), "mkdir builds/ID.spill", closing - build),
        Phase("publish", ("run",), "database: checkpoint", ran.seconds - closing),
        Phase("backfill", (), None, filled),
    ]


def fresh(home: Path) -> Site:
    config = demo.prepare(home)
    config.write_text(config.read_text() + SOURCE)
    return Site(home)


def test_a_hundred_kills_at_random_moments(tmp_path: Path) -> None:
    seed = int(os.environ.get("GOODPUT_KILL_SEED") or random.SystemRandom().randrange(10**6))
    sys.stdout.write(f"GOODPUT_KILL_SEED={seed}\n")
    chance, began = random.Random(seed), time.monotonic()
    site, calm = fresh(tmp_path / "killed"), fresh(tmp_path / "calm")
    (tmp_path / "runner").mkdir()
    killed: Counter[str] = Counter()
    with runner(tmp_path / "runner") as goodput:
        add_day((site, calm), 0)
        goodput.done(site, "run")
        measured = phases(goodput, site, 1)
        day = 2
        add_day((calm,), 1)
        add_day((calm,), 2)
        goodput.done(calm, "run")
        with duckdb.connect(str(publish.published(site.data)), read_only=True) as session:
            seen = session.execute("from marts.interruptions order by all").fetchall()
            while killed.total() < KILLS:
                assert time.monotonic() - began < MOST_SECONDS, f"seed {seed}: {dict(killed)}"
                day += 1
                one_round(goodput, site, calm, day, measured, chance, killed)
            assert session.execute("from marts.interruptions order by all").fetchall() == seen, "its snapshot stays"
    durations = {p.name: round(p.seconds, 2) for p in measured}
    sys.stdout.write(f"seconds undisturbed {durations}, kills {dict(killed)}, {day} days\n")


def one_round(
    goodput: Runner,
    site: Site,
    calm: Site,
    day: int,
    measured: list[Phase],
    chance: random.Random,
    killed: Counter[str],
) -> None:
    """Add a day, kill until a command gets through, complete the work, compare."""
    before = calm.digest()
    add_day((site, calm), day)
    goodput.done(calm, "run")
    expected = calm.digest()
    assert expected != before
    for _ in range(min(KILLS_A_ROUND, KILLS - killed.total())):
        phase = chance.choice(measured)
        step = (phase.begin, 1) if phase.begin else None
        command = phase.command or backfill(day)
        ended = goodput.run(site, *command, step=step, seconds=chance.uniform(0, phase.seconds))
        assert site.digest() in (before, expected), "what readers see is whole"
        if ended.code == 0:
            break
        assert ended.code == -9, ended.output
        killed[phase.name] += 1
    goodput.done(site, "run")
    assert site.digest() == expected
    assert site.strangers() == []
    assert site.damage() == []
