"""Training logs of real bug reports: the ledger they must give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.conftest import Site
from tests.flows.training_help import SETTINGS, at, states, stops

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "cases"


def case(site: Callable[..., Site], name: str, *others: str, settings: str = SETTINGS, **log: object) -> Site:
    """Build from a case's exports; its checks must hold."""
    made = site(settings, name=name)
    for other in ("sacct.txt", *others):
        made.add(other, (CASES / name / other).read_bytes(), cluster="c1")
    made.add("train.log", (CASES / name / "train.log").read_bytes(), **({"cluster": "c1"} | log))
    made.run()
    return made


@pytest.mark.parametrize("source", [{"job_id": "501"}, {}], ids=["the path names the job", "nothing names it"])
def test_gp1_replayed_steps_after_a_restart(site: Callable[..., Site], source: dict[str, str]) -> None:
    """Steps 11 and 12 were done twice: 22 steps are 20 steps of progress."""
    made = case(site, "GP1", **source)
    assert states(made) == {
        "productive": 200,
        "lost_work": 20,
        "stalled": 6,
        "starting": 240,
        "down_unexpected": 360,
        "stopping": 4,
    }
    assert sum(states(made).values()) == 830
    assert made.column("select round(100 * effective_training_time, 1) from marts.runs") == [24.1]
    assert made.column("select assumed_gpu_seconds from marts.runs") == [0]
    assert stops(
        made,
        "last_progress_at, detection_seconds, lost_work_measured_seconds, lost_work_assumed_seconds, restart_seconds, "
        "stalled_gpu_seconds, lost_gpu_seconds, flags",
    ) == [(at(240), 6, 20, None, 120, 6 * 16, (6 + 20 + 120 + 360) * 16, [])]


def test_gp3_checkpoint_begun_but_never_committed(site: Callable[..., Site]) -> None:
    """The save of step 15 was begun and never durable: steps 11 to 17 are lost."""
    made = case(site, "GP3", job_id="503")
    assert states(made) == {
        "productive": 200,
        "lost_work": 70,
        "stalled": 2,
        "starting": 90,
        "down_unexpected": 168,
        "stopping": 5,
    }
    assert made.column("select round(100 * effective_training_time, 1) from marts.runs") == [37.4]
    assert made.rows("select step, is_durable, restored_by_attempt from marts.checkpoints order by step") == [
        {"step": 10, "is_durable": True, "restored_by_attempt": 2},
        {"step": 15, "is_durable": False, "restored_by_attempt": None},
        {"step": 20, "is_durable": True, "restored_by_attempt": None},
    ]


def test_ca2_time_is_lost_from_the_last_step_not_from_the_time_out(site: Callable[..., Site]) -> None:
    """The watchdogs speak half an hour after the last step, at 11:01:02 UTC; the job ends at 11:32:00."""
    settings = '[clusters.c1]\nzone = "UTC"\ngpus_per_node = 8\n'
    made = case(site, "CA2", "kern.log", "rank_map.csv", settings=settings, zone="Europe/Berlin", job_id="820")
    assert stops(made, "last_progress_at, interrupted_at, detection_seconds, stalled_gpu_seconds") == [
        (datetime(2025, 5, 4, 11, 1, 2, tzinfo=UTC), datetime(2025, 5, 4, 11, 32, tzinfo=UTC), 1858, 1858 * 32)
    ]
    assert states(made)["stalled"] == 1858


def test_ca2_the_silent_rank_is_the_culprit(site: Callable[..., Site]) -> None:
    """Seven ranks report the time-out; the eighth hangs in a GPU whose system processor had stopped answering."""
    settings = '[clusters.c1]\nzone = "UTC"\ngpus_per_node = 2\n'
    made = case(site, "CA2", "kern.log", "rank_map.csv", settings=settings, zone="Europe/Berlin", job_id="820")
    assert stops(made, "cause, culprit_node, culprit_gpu, hardware") == [
        ("gpu_system_processor", "gn082", "0000:86:00.0", "confirmed")
    ]
    evidence = {
        row["class"]: row
        for row in made.rows("select class, node, role, text from marts.interruption_evidence where role <> 'noise'")
    }
    assert evidence["silent_rank"]["node"] == "gn082"
    assert "rank 5" in evidence["silent_rank"]["text"]
    assert evidence["xid_119"]["role"] == "initiating"
    assert evidence["xid_45"]["role"] == "clean-up"
