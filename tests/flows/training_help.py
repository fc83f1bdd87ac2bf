"""Training logs as Megatron-LM writes them, and the scheduler's records beside them, for tests of the ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from tests.conftest import Site

SETTINGS = """
[clusters.c1]
zone = "UTC"
gpus_per_node = 8

[[runs]]
match = { job_name = "fit*" }
key = ["job_name"]
checkpoint_interval = "60s"
restart_overhead = "30s"
"""
BEGAN = datetime(2025, 5, 4, 10, 0, 0, tzinfo=UTC)
HEADER = "JobID|JobName|User|State|ExitCode|Submit|Eligible|Start|End|Elapsed|Suspended|NNodes|NodeList|AllocTRES"

States = dict[str, int]
"""Seconds in each state of the ledger."""


def at(seconds: float) -> datetime:
    """Return the instant so many seconds after 10:00."""
    return BEGAN + timedelta(seconds=seconds)


class Run:
    """A run on two nodes of eight GPUs: its attempts and the lines of its log. Times are in seconds after 10:00."""

    def __init__(self, name: str) -> None:
        self.name = f"fit-{name}"
        self.ident = str(crc32(name.encode()) % 10**6 + 1000)
        self.jobs: list[str] = []
        self.lines: list[str] = []

    def job(self, state: str, start: int, end: int, *, suspended: int = 0) -> Run:
        """Add an attempt of the run's job; one that is running was last seen at `end`."""
        begun = f"{at(start):%Y-%m-%dT%H:%M:%S}"
        over = "Unknown" if state == "RUNNING" else f"{at(end):%Y-%m-%dT%H:%M:%S}"
        elapsed, paused = (f"{timedelta(seconds=s)!s:0>8}" for s in (end - start - suspended, suspended))
        self.jobs.append(
            f"{self.ident}|{self.name}|ana|{state}|0:0|{begun}|{begun}|{begun}|{over}|{elapsed}|{paused}|2|gn[001-002]|"
            "cpu=128,gres/gpu=16,node=2"
        )
        return self

    def failing(self, *ends: tuple[int, int]) -> Run:
        """Add attempts that fail, from and to."""
        for start, end in ends:
            self.job("FAILED", start, end)
        return self

    def say(self, when: float, text: str) -> Run:
        """Add a line to the log."""
        self.lines.append(f"{at(when):%Y-%m-%d %H:%M:%S} {text}")
        return self

    def start(self, when: float) -> Run:
        """The process begins."""
        return self.say(when, "using world size: 16, data-parallel size: 2, tensor-model-parallel size: 8")

    def loaded(self, when: float, step: int) -> Run:
        """A checkpoint is restored."""
        return self.say(when, f"  successfully loaded checkpoint from /ck [ t 1/8, p 1/1 ] at iteration {step}")

    def begun(self, when: float, step: int) -> Run:
        """A save begins."""
        return self.say(when, f"saving checkpoint at iteration {step:7d} to /ck in torch_dist format")

    def saved(self, when: float, step: int) -> Run:
        """A save is durable."""
        return self.say(when, f"  successfully saved checkpoint from iteration {step:7d} to /ck [ t 1/8, p 1/1 ]")

    def step(self, when: float, step: int, each: float = 10) -> Run:
        """A step ends; `each` is the time per step that the line tells."""
        return self.say(
            when,
            f" iteration {step:8d}/ 100000 | consumed samples: {step * 256:12d} | elapsed time per iteration (ms): "
            f"{each * 1000:.1f} | learning rate: 1.500000E-04 | global batch size:   256 | lm loss: 2.900000E+00 | "
            "loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        )

    def steps(self, when: float, first: int, last: int, each: float = 10) -> Run:
        """Steps `first` to `last` end, the first at `when`, each so many seconds after the one before."""
        for number in range(first, last + 1):
            self.step(when + (number - first) * each, number, each)
        return self

    def error(self, when: float) -> Run:
        """A process dies of a Python exception."""
        return self.say(when, "RuntimeError: CUDA error: unspecified launch failure")


def states(site: Site, run: str = "%") -> States:
    rows = site.rows(
        "select l.state, sum(l.seconds)::bigint as seconds from marts.ledger as l "
        f"inner join marts.runs as r on l.run_id = r.run_id where r.run like '{run}' group by l.state"
    )
    return {row["state"]: row["seconds"] for row in rows}


def stops(site: Site, columns: str, run: str = "%") -> list[tuple[Any, ...]]:
    """Return columns of the run's interruptions, in order of time."""
    rows = site.rows(f"select {columns} from marts.interruptions where run like '{run}' order by interrupted_at")
    return [tuple(row.values()) for row in rows]
