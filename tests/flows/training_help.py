"""Training logs as Megatron-LM writes them, and the scheduler's records beside them, for tests of the ledger."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

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


def at(seconds: float) -> datetime:
    """Return the instant so many seconds after 10:00."""
    return BEGAN + timedelta(seconds=seconds)


def job(state: str, start: int, end: int | None, *, ident: str = "501", name: str = "fit", suspended: int = 0) -> str:
    """Return a line of sacct: an attempt on two nodes of eight GPUs, from `start` to `end` seconds after 10:00."""
    begun, over = (f"{at(s):%Y-%m-%dT%H:%M:%S}" if s is not None else "Unknown" for s in (start, end))
    elapsed = timedelta(seconds=(end if end is not None else start) - start - suspended)
    shown = f"0{elapsed}" if elapsed < timedelta(hours=10) else f"{elapsed}"
    return (
        f"{ident}|{name}|ana|{state}|0:0|{begun}|{begun}|{begun}|{over}|{shown}|{timedelta(seconds=suspended)!s:0>8}|2|"
        "gn[001-002]|cpu=128,gres/gpu=16,node=2"
    )


class Log:
    """Lines of a training log; every time is in seconds after 10:00."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, when: float, text: str) -> Log:
        """Add a line."""
        self.lines.append(f"{at(when):%Y-%m-%d %H:%M:%S} {text}")
        return self

    def start(self, when: float) -> Log:
        """The process begins."""
        return self.say(when, "using world size: 16, data-parallel size: 2, tensor-model-parallel size: 8")

    def loaded(self, when: float, step: int) -> Log:
        """A checkpoint is restored."""
        return self.say(when, f"  successfully loaded checkpoint from /ck [ t 1/8, p 1/1 ] at iteration {step}")

    def begun(self, when: float, step: int) -> Log:
        """A save begins."""
        return self.say(when, f"saving checkpoint at iteration {step:7d} to /ck in torch_dist format")

    def saved(self, when: float, step: int) -> Log:
        """A save is durable."""
        return self.say(when, f"  successfully saved checkpoint from iteration {step:7d} to /ck [ t 1/8, p 1/1 ]")

    def step(self, when: float, step: int, each: float = 10) -> Log:
        """A step ends; `each` is the time per step that the line tells."""
        return self.say(
            when,
            f" iteration {step:8d}/ 100000 | consumed samples: {step * 256:12d} | elapsed time per iteration (ms): "
            f"{each * 1000:.1f} | learning rate: 1.500000E-04 | global batch size:   256 | lm loss: 2.900000E+00 | "
            "loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        )

    def steps(self, when: float, first: int, last: int, each: float = 10, every: int = 1) -> Log:
        """Steps `first` to `last`; the first ends at `when`, and every so many are printed."""
        for number in range(first, last + 1):
            if (number - first) % every == 0:
                self.step(when + (number - first) * each, number, each)
        return self

    def error(self, when: float) -> Log:
        """A process dies of a Python exception."""
        return self.say(when, "RuntimeError: CUDA error: unspecified launch failure")


def measured(site: Callable[..., Site], log: Log | str, *jobs: str, name: str = "site", **source: Any) -> Site:
    """Build from a log of job 501 and the scheduler's records; the build's checks must hold."""
    made = site(SETTINGS, name=name, collected_at="2025-05-05T00:00:00Z")
    made.add("sacct.txt", "\n".join([HEADER, *jobs]) + "\n", cluster="c1")
    text = log if isinstance(log, str) else "\n".join(log.lines) + "\n"
    made.add("train.log", text, **({"cluster": "c1", "job_id": "501"} | source))
    made.run()
    return made


def states(site: Site) -> dict[str, int]:
    """Return the seconds in each state."""
    rows = site.rows("select state, sum(seconds)::bigint as seconds from marts.ledger group by state")
    return {row["state"]: row["seconds"] for row in rows}


def stops(site: Site, columns: str) -> list[tuple[Any, ...]]:
    """Return columns of the interruptions, in order of time."""
    return [tuple(r.values()) for r in site.rows(f"select {columns} from marts.interruptions order by interrupted_at")]
