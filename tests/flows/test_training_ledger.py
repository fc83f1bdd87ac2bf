"""The ledger measured from training logs: every second of a run in the state that its log shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.conftest import Site
from tests.flows.training_help import HEADER, SETTINGS, Log, at, job, measured, states, stops

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "cases"


def case(site: Callable[..., Site], name: str, *others: str, settings: str = SETTINGS, **log: object) -> Site:
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


def two_attempts(log: Log) -> tuple[Log, str, str]:
    """Attempts from 0 to 300 and from 320 to 620 seconds, each with a start."""
    return log, job("NODE_FAIL", 0, 300), job("COMPLETED", 320, 620)


def test_a_save_between_printed_steps_splits_the_time_in_proportion(site: Callable[..., Site]) -> None:
    """Every tenth step is printed, the state of step 25 is restored: half of the time from 20 to 30 is lost."""
    log = Log().start(0).step(140, 10).step(200, 20, 6).saved(235, 25).step(260, 30, 6)
    log.start(320).loaded(330, 25).step(400, 30, 6).step(460, 40, 6).step(520, 50, 6).saved(530, 50)
    log.lines[1] = log.lines[1].replace("10000.0", "6000.0")
    made = measured(site, *two_attempts(log))
    assert states(made) == {
        "starting": (140 - 60) + (400 - 30 - 320),
        "productive": 60 + 60 + 30 + (520 - 370),
        "lost_work": 30,
        "stalled": 40,
        "down_unexpected": 20,
        "stopping": 100,
    }


def test_a_save_begun_between_printed_steps_tells_when_that_step_ended(site: Callable[..., Site]) -> None:
    """The line of the save says when step 25 was over; what follows it is lost, less what the save itself held up."""
    log = Log().start(0).step(140, 10, 6).step(200, 20, 6).begun(230, 25).saved(240, 25).step(270, 30, 6)
    log.start(320).loaded(330, 25).step(400, 30, 6).step(460, 40, 6).saved(530, 40)
    made = measured(site, *two_attempts(log))
    assert states(made) == {
        "starting": 80 + 50,
        "productive": 60 + 60 + 30 + 90,
        "checkpointing": 10,
        "lost_work": 30,
        "stalled": 30,
        "down_unexpected": 20,
        "stopping": 160,
    }
    assert made.rows("select step, save_seconds, blocking_seconds from marts.checkpoints where step = 25") == [
        {"step": 25, "save_seconds": 10, "blocking_seconds": 10}
    ]


def test_what_a_save_holds_up_is_checkpointing(site: Callable[..., Site]) -> None:
    """The step after the save of step 5 takes 25 seconds where the median is 10: 15 are the save's, whoever is lost."""
    log = Log().start(0).steps(40, 1, 5).begun(80, 5).saved(94, 5).steps(105, 6, 12)
    log.start(320).loaded(330, 5).steps(350, 6, 20)
    made = measured(site, *two_attempts(log))
    assert states(made) == {
        "starting": 30 + 20,
        "productive": 50 + 150,
        "checkpointing": 15,
        "lost_work": 70,
        "stalled": 300 - 165,
        "down_unexpected": 20,
        "stopping": 620 - 490,
    }
    assert made.rows(
        "select step, begun_at, durable_at, save_seconds, blocking_seconds, restorations, restored_at, "
        "restored_by = (select interruption_id from marts.interruptions) as is_by_it from marts.checkpoints"
    ) == [
        {
            "step": 5,
            "begun_at": at(80),
            "durable_at": at(94),
            "save_seconds": 14,
            "blocking_seconds": 15,
            "restorations": 1,
            "restored_at": at(330),
            "is_by_it": True,
        }
    ]


def test_an_older_checkpoint_takes_back_what_earlier_attempts_did(site: Callable[..., Site]) -> None:
    """Attempt 3 goes back to step 5: what attempts 1 and 2 did after it is lost by the stop before attempt 3.

    What attempt 2 had to do again stays charged to the stop before attempt 2.
    """
    log = Log().start(0).steps(40, 1, 5).saved(81, 5).steps(90, 6, 10).saved(131, 10).steps(140, 11, 13)
    log.start(220).loaded(225, 10).steps(240, 11, 15).saved(281, 15).steps(290, 16, 17)
    log.start(420).loaded(425, 5).steps(440, 6, 20).saved(581, 20)
    made = measured(site, log, job("FAILED", 0, 200), job("FAILED", 220, 400), job("COMPLETED", 420, 600))
    assert states(made) == {
        "starting": 30 + 10 + 10,
        "productive": 50 + 150,
        "lost_work": 80 + 70,
        "stalled": (200 - 160) + (400 - 300),
        "down_unexpected": 20 + 20,
        "stopping": 20,
    }
    assert stops(made, "lost_work_measured_seconds, restart_seconds, lost_gpu_seconds") == [
        (30, 10, (30 + 40 + 20 + 10) * 16),  # steps 11 to 13
        (50 + 70, 10, (120 + 100 + 20 + 10) * 16),  # steps 6 to 10 of attempt 1, all of attempt 2
    ]
    charged = made.rows(
        "select l.run_attempt, i.run_attempt as stop, l.seconds from marts.ledger as l "
        "inner join marts.interruptions as i on l.interruption_id = i.interruption_id "
        "where l.state = 'lost_work' order by l.started_at"
    )
    assert [tuple(c.values()) for c in charged] == [(1, 2, 50), (1, 1, 30), (2, 2, 70)]


def test_a_save_durable_after_the_end_counts_if_it_is_restored(site: Callable[..., Site]) -> None:
    """An asynchronous save may be finished by helpers after the job's end; the next attempt restored it."""
    log = Log().start(0).steps(40, 1, 20).begun(231, 20).step(240, 21).saved(304, 20)
    log.start(320).loaded(330, 20).steps(350, 21, 25)
    made = measured(site, *two_attempts(log))
    assert states(made)["lost_work"] == 10
    assert states(made)["productive"] == 200 + 50


def test_without_a_line_of_loading_the_first_step_tells_what_was_loaded(site: Callable[..., Site]) -> None:
    """Every fifth step is printed: the attempt whose first line is step 15 began after 12, which was durable."""
    log = Log().start(0).step(60, 5).step(110, 10).saved(131, 12).step(160, 15).step(210, 20)
    log.start(320).step(380, 15).step(430, 20)
    made = measured(site, *two_attempts(log))
    assert states(made) == {
        "starting": 10 + 30,
        "productive": 120 + 30 + 50,
        "lost_work": 80,
        "stalled": 90,
        "down_unexpected": 20,
        "stopping": 190,
    }


def test_a_log_that_begins_late_leaves_the_start_assumed(site: Callable[..., Site]) -> None:
    """The first line is step 30 of an attempt that must have done the steps before: its start is assumed, and flagged."""
    log = Log().start(0).steps(40, 1, 10).saved(131, 10)
    log.steps(550, 30, 33)
    made = measured(site, *two_attempts(log))
    assert states(made)["productive"] == 100 + (580 - 350)
    assert states(made)["starting"] == 30 + 30
    assert made.rows(
        "select state, seconds from marts.ledger where assumed_gpu_seconds is not null order by started_at"
    ) == [{"state": "starting", "seconds": 30}, {"state": "productive", "seconds": 200}]
    assert stops(made, "flags, lost_work_measured_seconds") == [(["cost_assumed"], 0)]


def test_a_log_that_ends_early_is_told_by_what_is_loaded_next(site: Callable[..., Site]) -> None:
    """The log stops at step 10, the next attempt loads step 20: ten more steps were done, in a hundred seconds."""
    log = Log().start(0).steps(40, 1, 10)
    log.start(320).loaded(330, 20).steps(350, 21, 25)
    made = measured(site, *two_attempts(log))
    assert states(made)["productive"] == 200 + 50
    assert states(made)["stalled"] == 300 - 230
    assert stops(made, "last_progress_at, detection_seconds, lost_work_measured_seconds") == [(at(230), 70, 0)]


def test_a_restart_that_skips_forward_loses_nothing(site: Callable[..., Site]) -> None:
    """The iteration counter jumps from 10 to 21, with a start in the log: nothing is done again, nothing invented."""
    log = Log().start(0).steps(40, 1, 10).saved(131, 10)
    log.start(320).steps(350, 22, 25)
    made = measured(site, *two_attempts(log))
    assert states(made) == {
        "starting": 30 + 20,
        "productive": 100 + 40,
        "stalled": 170,
        "down_unexpected": 20,
        "stopping": 240,
    }


def test_clocks_that_step_back_a_second_do_not_make_a_restart(site: Callable[..., Site]) -> None:
    log = Log().start(0).step(10, 1, 0.5).step(11, 3, 0.5).step(10, 2, 0.5).step(11, 4, 0.5).step(12, 6, 0.5)
    log.step(11, 5, 0.5).steps(13, 7, 40, 1)
    made = measured(site, log, job("COMPLETED", 0, 60))
    assert made.column("select interruptions from marts.runs") == [0]
    assert states(made) == {"starting": 9, "productive": 37, "stopping": 14}


def test_steps_printed_by_several_ranks_count_once(site: Callable[..., Site]) -> None:
    log = Log().start(0)
    for number in range(1, 11):
        log.step(30 + 10 * number, number).step(31 + 10 * number, number)
    made = measured(site, log, job("COMPLETED", 0, 150))
    assert states(made) == {"starting": 30, "productive": 100, "stopping": 20}
    assert made.column("select sum(steps)::bigint from marts.step_times") == [9]


def test_a_running_attempt_holds_pending_work_since_its_last_save(site: Callable[..., Site]) -> None:
    log = Log().start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 15)
    made = measured(site, log, job("RUNNING", 0, None).replace("00:00:00|00:00:00|2|", "00:05:00|00:00:00|2|"))
    assert states(made) == {"starting": 30, "productive": 100, "pending": 170}
    assert made.column("select interruptions from marts.runs") == [0]


def test_a_failed_end_without_a_next_attempt_loses_what_was_not_durable(site: Callable[..., Site]) -> None:
    log = Log().start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 15)
    made = measured(site, log, job("FAILED", 0, 200))
    assert states(made) == {"starting": 30, "productive": 100, "lost_work": 50, "stalled": 20}
    assert stops(made, "lost_work_measured_seconds, flags") == [(50, ["not_resumed"])]


def test_a_log_that_tells_no_checkpoints_leaves_the_lost_work_assumed(site: Callable[..., Site]) -> None:
    """Half of the configured interval of 60 seconds, as without a log; all else is measured."""
    log = Log().start(0).steps(40, 1, 15)
    made = measured(site, log, job("FAILED", 0, 200))
    assert states(made) == {"starting": 30, "productive": 120, "lost_work": 30, "stalled": 20}
    assert stops(made, "lost_work_measured_seconds, lost_work_assumed_seconds, flags") == [
        (None, 30, ["cost_assumed", "not_resumed"])
    ]
    assert made.rows(
        "select round(effective_training_time_lower * 200)::bigint as lower, "
        "round(effective_training_time_upper * 200)::bigint as upper from marts.runs"
    ) == [{"lower": 90, "upper": 150}]


def test_a_crash_loop_is_one_incident(site: Callable[..., Site]) -> None:
    """Attempts 2 and 3 save nothing, and one of them never begins a step: one incident until attempt 4 saves."""
    log = Log().start(0).steps(40, 1, 10).saved(131, 10)
    log.start(220).loaded(225, 10).steps(240, 11, 13)
    log.start(320)
    log.start(420).loaded(425, 10).steps(440, 11, 20).saved(531, 20)
    log.start(620).loaded(625, 20).steps(640, 21, 22)
    ends = [(0, 200), (220, 300), (320, 400), (420, 600)]
    made = measured(site, log, *(job("FAILED", *e) for e in ends), job("COMPLETED", 620, 700))
    first, second, third, fourth = stops(made, "incident_id, restart_seconds, lost_work_measured_seconds")
    assert first[0] == second[0] == third[0] != fourth[0]
    assert [s[1:] for s in (first, second, third, fourth)] == [(10, 0), (80, 30), (10, 0), (10, 0)]
    assert states(made)["starting"] == 30 + 10 + 80 + 10 + 10


def test_attempts_with_and_without_a_log_mix(site: Callable[..., Site]) -> None:
    """Nothing is told of attempt 2: its costs are assumed; attempt 1 is kept up to its last durable checkpoint."""
    log = Log().start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 14)
    log.start(420).loaded(425, 10).steps(440, 11, 20)
    made = measured(site, log, job("FAILED", 0, 200), job("FAILED", 220, 400), job("COMPLETED", 420, 600))
    assert stops(
        made,
        "lost_work_measured_seconds, lost_work_assumed_seconds, restart_seconds, last_progress_at is null, flags",
    ) == [(40, None, 30, False, ["cost_assumed"]), (None, 30, 10, True, ["cost_assumed"])]
    assert made.column("select assumed_gpu_seconds from marts.runs") == [180 * 16]


def test_suspended_time_is_where_the_log_is_silent(site: Callable[..., Site]) -> None:
    log = Log().start(0).steps(40, 1, 5).steps(190, 6, 10)
    made = measured(site, log, job("COMPLETED", 0, 240, suspended=100))
    assert states(made) == {"starting": 30, "productive": 100, "suspended": 100, "stopping": 10}
    assert made.rows("select started_at, ended_at from marts.ledger where state = 'suspended'") == [
        {"started_at": at(90), "ended_at": at(190)}
    ]


def test_a_restart_inside_an_attempt_is_an_interruption(site: Callable[..., Site]) -> None:
    """The launcher starts the processes again without the scheduler noticing: two interruptions, of which one ends the job."""
    log = Log().start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 13).error(190)
    log.start(200).loaded(210, 10).steps(230, 11, 20).saved(321, 20).steps(330, 21, 22)
    log.start(420).loaded(425, 20).steps(440, 21, 25)
    made = measured(site, log, job("FAILED", 0, 400), job("COMPLETED", 420, 500))
    first, second = stops(
        made,
        "interruption_id, started_at, interrupted_at, resumed_at, scheduler_state, recovery, "
        "lost_work_measured_seconds, detection_seconds, restart_seconds, down_seconds, run_attempt",
    )
    assert first[0] != second[0]
    assert first[1:] == (at(0), at(190), at(200), "RESTARTED", "automatic", 30, 30, 20, 10, 1)
    assert second[1:] == (at(200), at(400), at(420), "FAILED", "automatic", 20, 60, 10, 20, 2)
    assert states(made) == {
        "starting": 30 + 20 + 10,
        "productive": 100 + 100 + 50,
        "lost_work": 30 + 20,
        "stalled": 30 + 60,
        "down_unexpected": 10 + 20,
        "stopping": 20,
    }
    (run,) = made.rows("select attempts, interruptions, joined_by, ettr, effective_training_time from marts.runs")
    assert (run["attempts"], run["interruptions"]) == (2, 2)
    assert run["ettr"] == pytest.approx(250 / 480, abs=1e-6)
    assert made.column("select run_id from marts.attempts") == made.column("select run_id from marts.runs") * 2
    alone = measured(
        site, Log(), job("FAILED", 0, 400), job("COMPLETED", 420, 500), name="unlogged", format="training_log"
    )
    assert alone.column("select interruption_id from marts.interruptions") == [second[0]], "the end keeps its id"


def test_a_loop_of_restarts_inside_an_attempt(site: Callable[..., Site]) -> None:
    """Each restart is an interruption of its own; those that saved nothing share an incident."""
    log = Log()
    for turn in range(4):
        log.start(100 * turn).loaded(100 * turn + 10, 0).steps(100 * turn + 30, 1, 5).error(100 * turn + 90)
    log.start(400).loaded(410, 0).steps(430, 1, 20).saved(621, 20)
    made = measured(site, log, job("COMPLETED", 0, 640))
    found = stops(made, "interrupted_at, resumed_at, incident_id, lost_work_measured_seconds")
    assert [f[:2] for f in found] == [(at(100 * n + 90), at(100 * n + 100)) for n in range(4)]
    assert len({f[2] for f in found}) == 1
    assert [f[3] for f in found] == [50] * 4
    assert states(made)["productive"] == 200


def test_steps_done_again_without_any_word_are_a_restart(site: Callable[..., Site]) -> None:
    log = Log().start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 15).steps(240, 11, 20)
    made = measured(site, log, job("COMPLETED", 0, 340))
    assert stops(made, "interrupted_at, resumed_at, lost_work_measured_seconds") == [(at(180), at(230), 50)]
    assert states(made) == {
        "starting": 30,
        "productive": 200,
        "lost_work": 50,
        "down_unexpected": 50,
        "stopping": 10,
    }


def test_lines_that_belong_to_no_attempt_are_counted(site: Callable[..., Site]) -> None:
    """A log that names no job, while two tracked jobs run; lines before any; and lines long after the end."""
    log = Log().step(-100, 1).steps(40, 2, 3).step(150, 4).step(2000, 9)
    made = site(SETTINGS, collected_at="2025-05-05T00:00:00Z")
    jobs = [job("FAILED", 0, 200), job("COMPLETED", 0, 100, ident="502", name="fit-2")]
    made.add("sacct.txt", "\n".join([HEADER, *jobs]) + "\n", cluster="c1")
    made.add("train.log", "\n".join(log.lines) + "\n", cluster="c1")
    made.run()
    assert made.rows("select job_id, reason, events, steps from ops.unmatched_log_events order by reason") == [
        {"job_id": None, "reason": "no tracked attempt ran", "events": 2, "steps": 2},
        {"job_id": None, "reason": "several tracked attempts ran", "events": 2, "steps": 2},
    ]


def test_step_times_of_an_hour(site: Callable[..., Site]) -> None:
    log = Log().start(0).steps(40, 1, 50).step(560, 51)
    made = measured(site, log, job("COMPLETED", 0, 600))
    assert made.rows("select * exclude (cluster, run_id) from marts.step_times") == [
        {
            "run": "fit",
            "hour_at": at(0),
            "steps": 50,
            "step_lines": 50,
            "median_step_milliseconds": 10000,
            "p10_step_milliseconds": 10000,
            "p90_step_milliseconds": 10000,
            "p99_step_milliseconds": 20200,
            "max_step_milliseconds": 30000,
            "samples_per_second": round(50 * 256 / 520, 3),
            "slow_steps": 1,
        }
    ]
