"""The run that a full-size replay plays: the paper's figures, and what each kind of stop must look like."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from flows.replay.fleet import build_fleet
from flows.replay.holding import Holding, free
from flows.replay.jobs import all_jobs
from flows.replay.ledger import ledger, spans
from flows.replay.mixes import TABLE_5
from flows.replay.model import Line
from flows.replay.node_exports import write_sel
from flows.replay.roster import Roster
from flows.replay.scenes import incident_lines
from flows.replay.signatures import SIGNATURES
from flows.replay.slurm_exports import write_reservations
from flows.replay.text import slurm_time
from flows.replay.timeline import Attempt, Timeline, play

NODES, DAYS = 2048, 54


@pytest.fixture(scope="module")
def full() -> Timeline:
    return play(build_fleet(NODES, 1), SIGNATURES, "llama3", NODES, DAYS, 1)


def stopped(timeline: Timeline) -> list[Attempt]:
    return [a for a in timeline.attempts if a.stop is not None]


def test_a_full_replay_has_the_papers_counts(full: Timeline) -> None:
    stops = [a.stop for a in stopped(full) if a.stop]
    assert len(stops) == 466
    assert Counter(s.cause for s in stops if s.planned is None) == Counter(TABLE_5)
    assert Counter(s.cause for s in stops if s.planned) == {"planned_maintenance": 31, "operator_change": 16}
    assert sum(s.is_manual for s in stops) == 3
    assert (full.attempts[0].started_at, full.attempts[-1].ended_at) == (full.start, full.start + DAYS * 86_400)
    assert full.attempts[-1].end is None


def test_effective_training_time_is_above_nine_tenths(full: Timeline) -> None:
    spent = ledger(full)
    assert sum(spent.values()) == DAYS * 86_400 * NODES * 8
    assert 0.90 < spent["productive"] / sum(spent.values()) < 0.93
    assert all(value > 0 for value in spent.values())


def test_the_ledger_has_no_gap_and_no_overlap(full: Timeline) -> None:
    told = list(spans(full))
    assert (told[0][0], told[-1][1]) == (full.start, full.end)
    assert all(a[1] == b[0] and a[0] <= a[1] for a, b in pairwise(told))


def test_watchdogs_end_at_most_a_fifth_and_take_ten_to_thirty_minutes(full: Timeline) -> None:
    hung = [a for a in stopped(full) if a.end and a.end.kind == "watchdog"]
    assert 0 < len(hung) <= 466 / 5
    for attempt in hung:
        assert 600 <= attempt.ended_at - attempt.steps.stalled_at <= 1_900


@pytest.mark.parametrize(
    ("kind", "least", "most", "states"),
    [
        ("exit", 1, 60, {"FAILED"}),
        ("node_fail", 60, 310, {"NODE_FAIL"}),
        ("cancel", 100, 910, {"CANCELLED by 2001", "CANCELLED by 0"}),
    ],
)
def test_each_kind_of_end_takes_its_time(full: Timeline, kind: str, least: int, most: int, states: set[str]) -> None:
    ended = [a for a in stopped(full) if a.stop and not a.stop.planned and a.end and a.end.kind == kind]
    assert ended
    for attempt in ended:
        assert least <= attempt.ended_at - attempt.steps.stalled_at <= most
        assert attempt.end is not None
        assert attempt.end.state in states


def test_some_attempts_die_before_they_have_saved_anything_and_all_take_steps(full: Timeline) -> None:
    assert all(len(a.steps.ends) > 0 for a in full.attempts)
    loops = sum(a.steps.durable == a.steps.resumed for a in stopped(full))
    assert 10 <= loops <= 100
    for attempt, following in pairwise(full.attempts):
        assert following.steps.resumed == attempt.steps.durable <= attempt.steps.last


def test_a_checkpoint_that_was_not_safe_in_time_does_not_count(full: Timeline) -> None:
    cut = [a for a in stopped(full) if a.steps.saves and a.steps.saves[-1].durable_at is None]
    assert cut, "in 466 stops some come while a checkpoint is being written"
    for attempt in cut:
        assert attempt.steps.durable < attempt.steps.saves[-1].iteration


def test_maintenance_is_announced_and_its_nodes_leave_the_run(full: Timeline, tmp_path: Path) -> None:
    """Each planned window stands in an export that is older than the stop it explains."""
    write_reservations(tmp_path, full.reservations, full)
    texts = {path.stem[-16:]: path.read_text() for path in tmp_path.iterdir()}
    planned = [a for a in stopped(full) if a.stop and a.stop.planned == "reservation"]
    assert len(planned) == len(full.reservations) > 5
    for attempt, window in zip(planned, full.reservations, strict=True):
        assert window.start <= attempt.ended_at < window.end
        before = [t for s, t in texts.items() if s < slurm_time(attempt.ended_at).replace("-", "").replace(":", "")]
        assert any(f"ReservationName={window.name} StartTime={slurm_time(window.start)}" in t for t in before)
        assert set(window.nodes) <= set(attempt.nodes)
        assert not set(window.nodes) & set(full.attempts[attempt.number + 1].nodes)
    drained = [a for a in stopped(full) if a.stop and a.stop.planned == "drain"]
    rollouts = [e for e in full.events if any(w in e.reason for w in ("planned", "kernel upgrade", "scheduled"))]
    for attempt in drained:
        assert any(e.node in attempt.nodes and e.start <= attempt.ended_at < e.end for e in rollouts)


def test_a_node_that_failed_is_down_and_replaced(full: Timeline) -> None:
    down = {(e.node, e.start) for e in full.events if e.state == "DOWN*"}
    failed = [a for a in stopped(full) if a.end and a.end.kind == "node_fail"]
    for attempt in failed:
        assert (attempt.node, attempt.ended_at) in down
        assert attempt.node not in full.attempts[attempt.number + 1].nodes
    for attempt in full.attempts:
        assert len(set(attempt.nodes)) == NODES


def test_when_all_spares_are_out_the_next_one_due_comes_back_early() -> None:
    roster = Roster(build_fleet(16, 1), 16, random.Random(1))
    for n in range(5):
        at = 1_000_000.0 + 400 * n
        node = roster.nodes(at)[0]
        roster.take_out(node, at, at + 300.0, "gpu lost", is_silent=True)
    held = roster.nodes(1_010_000.0)
    assert len(set(held)) == 16
    for event in roster.events:
        assert event.start < event.end
        assert event.node not in held or event.end <= 1_001_600


def test_what_incidents_leave_lies_near_them(full: Timeline) -> None:
    """No line is older than the attempt it speaks of, or more than a week younger than its end."""
    seen = set()
    for attempt, line in incident_lines(full, 1):
        assert line.node in full.fleet.clock_offset
        assert attempt.started_at <= line.at <= attempt.ended_at + 7 * 86_400, (attempt.stop, line)
        seen.add((attempt.number, line.stream))
    assert {stream for _, stream in seen} == {"kernel", "sel", "training", "health", "diagnostic"}
    hung = {a.number for a in stopped(full) if a.end and a.end.kind == "watchdog"}
    assert all((number, "training") in seen for number in hung)


def test_others_use_only_what_is_free(full: Timeline) -> None:
    holding = Holding(full)
    jobs, job_ids = all_jobs(full, holding, 1)
    assert len(set(job_ids)) == 4
    assert len(jobs) > 5_000
    assert {j.raw for j in jobs if j.user == "llama"} == set(job_ids)
    for job in jobs:
        if job.partition == "preempt" and job.start is not None:
            mine = free(full, holding, job.nodes[0], start=full.start, end=full.end)
            assert any(a <= job.start and job.end <= b for a, b in mine)


def test_holding_knows_each_attempts_nodes(full: Timeline) -> None:
    holding = Holding(full)
    for attempt in full.attempts[::20]:
        middle = (attempt.started_at + attempt.ended_at) / 2
        held = {n for n in full.fleet.nodes if holding(n, middle)}
        assert held == set(attempt.nodes)
        assert not holding(attempt.nodes[0], attempt.ended_at + 30.0)


def test_sel_listings_repeat_what_came_before_with_numbers_in_hex(full: Timeline, tmp_path: Path) -> None:
    lines = [
        Line(full.start + 50_000.0 * n, "gpu0007", "sel", f"Fan FAN{n} | Lower Critical | Asserted") for n in range(20)
    ]
    write_sel(tmp_path / "sel", lines, full)
    first, second, *_ = (p.read_text().splitlines() for p in sorted((tmp_path / "sel").iterdir()))
    assert len(first) == 13
    assert second[:13] == first
    assert second[16].startswith("gpu0007:   11 | 06/")
    assert second[16].endswith("| Fan FAN16 | Lower Critical | Asserted")


def test_days_too_few_for_their_stops_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.replay.timeline._TRIES", 1)
    with pytest.raises(ValueError, match="give more days"):
        play(build_fleet(40_000, 1), SIGNATURES, "llama3", 40_000, 1, 1)
