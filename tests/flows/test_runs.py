"""Which attempts make up one run, also where the scheduler's records are odd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Site

SETTINGS = """
[clusters.c1]
zone = "UTC"
gpus_per_node = 8
"""
HEADER = "JobID|JobIDRaw|JobName|User|State|Submit|Start|End|Elapsed|NNodes|NodeList"


def job(
    ident: str, state: str, start: str, end: str, elapsed: str, *, user: str = "ann", raw: str | None = None
) -> str:
    """A line of sacct on 4 May 2025; the submission is at the start."""
    day = "2025-05-04T"
    over = end if end == "Unknown" else day + end
    return f"{ident}|{raw or ident}|r|{user}|{state}|{day}{start}|{day}{start}|{over}|{elapsed}|1|gn001"


@pytest.fixture
def runs(site: Callable[..., Site]) -> Callable[..., list[dict[str, Any]]]:
    """Load lines and return attempts, interruptions and whether the last was resumed, run by run."""

    def load(*lines: str) -> list[dict[str, Any]]:
        made = site(SETTINGS, collected_at="2025-05-05T00:00:00Z")
        made.add("sacct.txt", "\n".join([HEADER, *lines]) + "\n", cluster="c1")
        made.run()
        return made.rows(
            "select r.run, r.attempts, r.interruptions, "
            "(select count(resumed_at) from marts.interruptions as i where i.run_id = r.run_id) as resumed "
            "from marts.runs as r order by r.started_at, r.run, r.attempts desc"
        )

    return load


def row(attempts: int, interruptions: int, resumed: int, run: str = "ann/r") -> dict[str, Any]:
    return {"run": run, "attempts": attempts, "interruptions": interruptions, "resumed": resumed}


def test_a_requeue_that_starts_before_the_end_is_one_run(runs: Callable[..., Any]) -> None:
    """Clocks are a second apart; a job runs once at a time, so the earlier attempt ends where the next one starts."""
    assert runs(
        job("1", "NODE_FAIL", "08:00:00", "09:00:01", "01:00:01"),
        job("1", "COMPLETED", "09:00:00", "10:00:00", "01:00:00"),
    ) == [row(2, 1, 1)]


def test_a_job_id_used_again_by_another_user_is_another_run(runs: Callable[..., Any]) -> None:
    assert runs(
        job("7", "FAILED", "08:00:00", "09:00:00", "01:00:00", user="al"),
        job("7", "COMPLETED", "10:00:00", "11:00:00", "01:00:00", user="bob"),
    ) == [row(1, 1, 0, "al/r"), row(1, 0, 0, "bob/r")]


def test_a_stale_running_record_ends_where_the_job_starts_again(runs: Callable[..., Any]) -> None:
    """How the first attempt ended was never exported: the time between is unobserved, and nothing is invented."""
    assert runs(
        job("1", "RUNNING", "08:00:00", "Unknown", "09:00:00"),
        job("1", "COMPLETED", "10:00:00", "11:00:00", "01:00:00"),
    ) == [row(2, 0, 0)]


def test_an_attempt_without_length_keeps_its_place(runs: Callable[..., Any]) -> None:
    assert runs(
        job("1", "FAILED", "08:00:00", "09:00:00", "01:00:00"),
        job("2", "FAILED", "09:05:00", "09:05:00", "00:00:00"),
        job("3", "COMPLETED", "09:10:00", "11:00:00", "01:50:00"),
    ) == [row(3, 2, 2)]


def test_two_attempts_without_length_in_one_second_make_no_circle(runs: Callable[..., Any]) -> None:
    found = runs(
        job("1", "NODE_FAIL", "08:00:00", "08:00:00", "00:00:00"),
        job("1", "FAILED", "08:00:00", "08:00:00", "00:00:00").replace("T08:00:00|", "T07:59:00|", 1),
    )
    assert sum(r["attempts"] for r in found) == 2
    assert sum(r["interruptions"] for r in found) == 2


def test_array_tasks_that_stop_and_start_together_are_resumed_each(runs: Callable[..., Any]) -> None:
    assert runs(
        job("5_1", "FAILED", "08:00:00", "09:00:00", "01:00:00", raw="6"),
        job("5_2", "FAILED", "08:00:00", "09:00:00", "01:00:00", raw="7"),
        job("8_1", "COMPLETED", "09:10:00", "11:00:00", "01:50:00", raw="9"),
        job("8_2", "COMPLETED", "09:10:00", "11:00:00", "01:50:00", raw="10"),
    ) == [row(2, 1, 1), row(2, 1, 1)]


def test_overlapping_jobs_of_one_name_are_two_runs(runs: Callable[..., Any]) -> None:
    assert runs(
        job("1", "FAILED", "08:00:00", "10:00:00", "02:00:00"),
        job("2", "COMPLETED", "09:00:00", "12:00:00", "03:00:00"),
        job("3", "COMPLETED", "10:05:00", "11:00:00", "00:55:00"),
    ) == [row(2, 1, 1), row(1, 0, 0)]


def test_a_resize_is_no_interruption(runs: Callable[..., Any]) -> None:
    """The job lives on with other nodes: Slurm closes one record and opens the next."""
    assert runs(
        job("1", "RESIZING", "08:00:00", "09:00:00", "01:00:00"),
        job("1", "COMPLETED", "09:00:00", "10:00:00", "01:00:00"),
    ) == [row(2, 0, 0)]


def test_jobs_of_which_nothing_is_known_are_no_run_together(site: Callable[..., Site]) -> None:
    """An export without names and users: two jobs that follow each other are not the same training because of that."""
    made = site(SETTINGS, collected_at="2025-05-05T00:00:00Z")
    line = "{n}|{n}|FAILED|2025-05-04T0{n}:00:00|2025-05-04T0{n}:00:00|2025-05-04T0{n}:50:00|00:50:00|1|gn001"
    header = "JobID|JobIDRaw|State|Submit|Start|End|Elapsed|NNodes|NodeList"
    made.add("sacct.txt", "\n".join([header, *(line.format(n=n) for n in (1, 2, 3))]) + "\n", cluster="c1")
    made.run()
    assert made.rows("select run, attempts from marts.runs order by run") == [
        {"run": f"job {n}", "attempts": 1} for n in (1, 2, 3)
    ]
