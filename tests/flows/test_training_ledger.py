"""The ledger measured from training logs: every second of a run in the state that its log shows.

Each situation is a run of its own, all in one warehouse. Steps take ten seconds, unless a situation says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Site
from tests.flows.training_help import HEADER, SETTINGS, Run, States, at

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "cases"
SITUATIONS: dict[str, tuple[Run, States]] = {}


def situation(tell: Callable[[Run], States]) -> Callable[[Run], States]:
    """Register a situation: a function that tells a run's attempts and log, and returns what the ledger must say."""
    run = Run(tell.__name__)
    SITUATIONS[tell.__name__] = (run, tell(run))
    return tell


@situation
def proportion(run: Run) -> States:
    """Every tenth step is printed, the state of step 25 is restored: half of the time from 20 to 30 is lost."""
    run.job("NODE_FAIL", 0, 300).job("COMPLETED", 320, 620)
    run.start(0).step(140, 10, 6).step(200, 20, 6).saved(235, 25).step(260, 30, 6)
    run.start(320).loaded(330, 25).step(400, 30, 6).step(460, 40, 6).step(520, 50, 6).saved(530, 50)
    return {
        "starting": 80 + 50,
        "productive": 60 + 60 + 30 + 150,
        "lost_work": 30,
        "stalled": 40,
        "down_unexpected": 20,
        "stopping": 100,
    }


@situation
def save_begun(run: Run) -> States:
    """The line of the save tells when step 25 was over; what follows is lost, less what the save itself held up."""
    run.job("NODE_FAIL", 0, 300).job("COMPLETED", 320, 620)
    run.start(0).step(140, 10, 6).step(200, 20, 6).begun(230, 25).saved(240, 25).step(270, 30, 6)
    run.start(320).loaded(330, 25).step(400, 30, 6).step(460, 40, 6).saved(530, 40)
    return {
        "starting": 80 + 50,
        "productive": 60 + 60 + 30 + 90,
        "checkpointing": 10,
        "lost_work": 30,
        "stalled": 30,
        "down_unexpected": 20,
        "stopping": 160,
    }


@situation
def blocking(run: Run) -> States:
    """The step after the save of step 5 takes 25 seconds where the median is 10: 15 are the save's, lost or not."""
    run.job("NODE_FAIL", 0, 300).job("COMPLETED", 320, 620)
    run.start(0).steps(40, 1, 5).begun(80, 5).saved(94, 5).steps(105, 6, 12)
    run.start(320).loaded(330, 5).steps(350, 6, 20)
    return {
        "starting": 30 + 20,
        "productive": 50 + 150,
        "checkpointing": 15,
        "lost_work": 70,
        "stalled": 135,
        "down_unexpected": 20,
        "stopping": 130,
    }


@situation
def rollback(run: Run) -> States:
    """Attempt 3 goes back to step 5, behind the 10 that attempt 2 had loaded."""
    run.failing((0, 200), (220, 400)).job("COMPLETED", 420, 600)
    run.start(0).steps(40, 1, 5).saved(81, 5).steps(90, 6, 10).saved(131, 10).steps(140, 11, 13)
    run.start(220).loaded(225, 10).steps(240, 11, 15).saved(281, 15).steps(290, 16, 17)
    run.start(420).loaded(425, 5).steps(440, 6, 20).saved(581, 20)
    return {
        "starting": 30 + 10 + 10,
        "productive": 50 + 150,
        "lost_work": 80 + 70,
        "stalled": 40 + 100,
        "down_unexpected": 20 + 20,
        "stopping": 20,
    }


@situation
def late_save(run: Run) -> States:
    """An asynchronous save that helpers finish after the job's end counts, since the next attempt restored it."""
    run.job("NODE_FAIL", 0, 300).job("COMPLETED", 320, 420)
    run.start(0).steps(40, 1, 20).begun(231, 20).step(240, 21).saved(304, 20)
    run.start(320).loaded(330, 20).steps(350, 21, 25)
    return {
        "starting": 30 + 20,
        "productive": 200 + 50,
        "lost_work": 10,
        "stalled": 60,
        "down_unexpected": 20,
        "stopping": 30,
    }


@situation
def no_load_line(run: Run) -> States:
    """Every fifth step is printed: the attempt whose first line is step 15 began after 12, which was durable."""
    run.job("NODE_FAIL", 0, 300).job("COMPLETED", 320, 620)
    run.start(0).step(60, 5).step(110, 10).saved(131, 12).step(160, 15).step(210, 20)
    run.start(320).step(380, 15).step(430, 20)
    return {
        "starting": 10 + 30,
        "productive": 120 + 30 + 50,
        "lost_work": 80,
        "stalled": 90,
        "down_unexpected": 20,
        "stopping": 190,
    }


@situation
def begins_late(run: Run) -> States:
    """The first line is step 30 of an attempt that must have done the steps before: only its start is assumed."""
    run.job("NODE_FAIL", 0, 300).job("COMPLETED", 320, 620)
    run.start(0).steps(40, 1, 10).saved(131, 10)
    run.steps(550, 30, 33)
    return {
        "starting": 30 + 30,
        "productive": 100 + 230,
        "stalled": 170,
        "down_unexpected": 20,
        "stopping": 40,
    }


@situation
def ends_early(run: Run) -> States:
    """The log stops at step 10, the next attempt loads step 20: ten more steps were done, in a hundred seconds."""
    run.job("NODE_FAIL", 0, 300).job("COMPLETED", 320, 420)
    run.start(0).steps(40, 1, 10)
    run.start(320).loaded(330, 20).steps(350, 21, 25)
    return {"starting": 30 + 20, "productive": 200 + 50, "stalled": 70, "down_unexpected": 20, "stopping": 30}


@situation
def skips_forward(run: Run) -> States:
    """The counter jumps from 10 to 21, with a start in the log: nothing is done again, nothing invented."""
    run.job("NODE_FAIL", 0, 300).job("COMPLETED", 320, 620)
    run.start(0).steps(40, 1, 10).saved(131, 10)
    run.start(320).steps(350, 22, 25)
    return {"starting": 30 + 20, "productive": 100 + 40, "stalled": 170, "down_unexpected": 20, "stopping": 240}


@situation
def clock_steps_back(run: Run) -> States:
    """Lines a second out of order are no restart."""
    run.job("COMPLETED", 0, 60)
    run.start(0).step(10, 1, 0.5).step(11, 3, 0.5).step(10, 2, 0.5).step(11, 4, 0.5).step(12, 6, 0.5)
    run.step(11, 5, 0.5).steps(13, 7, 40, 1)
    return {"starting": 9, "productive": 37, "stopping": 14}


@situation
def several_ranks(run: Run) -> States:
    """Two ranks print each step, a second apart: it is done once."""
    run.job("COMPLETED", 0, 150).start(0)
    for number in range(1, 11):
        run.step(30 + 10 * number, number).step(31 + 10 * number, number)
    return {"starting": 30, "productive": 100, "stopping": 20}


@situation
def running(run: Run) -> States:
    """What a running attempt did since its last durable checkpoint is neither kept nor lost yet."""
    run.job("RUNNING", 0, 300)
    run.start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 15)
    return {"starting": 30, "productive": 100, "pending": 170}


@situation
def not_resumed(run: Run) -> States:
    """Failed, and nothing came after: what was not durable is lost."""
    run.failing((0, 200))
    run.start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 15)
    return {"starting": 30, "productive": 100, "lost_work": 50, "stalled": 20}


@situation
def save_after_the_last_line(run: Run) -> States:
    """Every fifth step is printed, and a save of step 13 is the last word: that step was done, and is kept."""
    run.failing((0, 200))
    run.start(0).step(80, 5).step(130, 10).saved(160, 13)
    return {"starting": 30, "productive": 130, "stalled": 40}


@situation
def no_checkpoints(run: Run) -> States:
    """The log tells no checkpoints: half of the configured interval of 60 seconds is assumed to be lost."""
    run.failing((0, 200))
    run.start(0).steps(40, 1, 15)
    return {"starting": 30, "productive": 120, "lost_work": 30, "stalled": 20}


@situation
def crash_loop(run: Run) -> States:
    """Attempt 2 saves nothing, attempt 3 never begins a step; attempt 4 saves."""
    run.failing((0, 200), (220, 300), (320, 400), (420, 600)).job("COMPLETED", 620, 700)
    run.start(0).steps(40, 1, 10).saved(131, 10)
    run.start(220).loaded(225, 10).steps(240, 11, 13)
    run.start(320)
    run.start(420).loaded(425, 10).steps(440, 11, 20).saved(531, 20)
    run.start(620).loaded(625, 20).steps(640, 21, 22)
    return {
        "starting": 30 + 10 + 80 + 10 + 10,
        "productive": 100 + 100 + 20,
        "lost_work": 30,
        "stalled": 70 + 40 + 70,
        "down_unexpected": 4 * 20,
        "stopping": 50,
    }


@situation
def mixed(run: Run) -> States:
    """Nothing is told of attempt 2, so its costs are assumed; attempt 1 is kept up to its last durable checkpoint."""
    run.failing((0, 200), (220, 400)).job("COMPLETED", 420, 600)
    run.start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 14)
    run.start(420).loaded(425, 10).steps(440, 11, 20)
    return {
        "starting": 30 + 30 + 10,
        "productive": 100 + 120 + 100,
        "lost_work": 40 + 30,
        "stalled": 30,
        "down_unexpected": 40,
        "stopping": 70,
    }


@situation
def suspended(run: Run) -> States:
    """The scheduler tells how long it was suspended, the log's longest silence when."""
    run.job("COMPLETED", 0, 240, suspended=100)
    run.start(0).steps(40, 1, 5).steps(190, 6, 10)
    return {"starting": 30, "productive": 100, "suspended": 100, "stopping": 10}


@situation
def restart_inside(run: Run) -> States:
    """The launcher starts the processes again, and the scheduler never notices."""
    run.job("FAILED", 0, 400).job("COMPLETED", 420, 500)
    run.start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 13).error(190)
    run.start(200).loaded(210, 10).steps(230, 11, 20).saved(321, 20).steps(330, 21, 22)
    run.start(420).loaded(425, 20).steps(440, 21, 25)
    return {
        "starting": 30 + 20 + 10,
        "productive": 100 + 100 + 50,
        "lost_work": 30 + 20,
        "stalled": 30 + 60,
        "down_unexpected": 10 + 20,
        "stopping": 20,
    }


@situation
def loop_inside(run: Run) -> States:
    """Four restarts inside one attempt, none of which saved anything."""
    run.job("COMPLETED", 0, 640)
    for turn in range(0, 400, 100):
        run.start(turn).loaded(turn + 10, 0).steps(turn + 30, 1, 5).error(turn + 90)
    run.start(400).loaded(410, 0).steps(430, 1, 20).saved(621, 20)
    return {
        "starting": 5 * 20,
        "productive": 200,
        "lost_work": 4 * 50,
        "stalled": 4 * 20,
        "down_unexpected": 4 * 10,
        "stopping": 20,
    }


@situation
def silent_restart(run: Run) -> States:
    """Steps are done again without any word of a start: progress stopped with the last step before."""
    run.job("COMPLETED", 0, 340)
    run.start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 15).steps(240, 11, 20)
    return {"starting": 30, "productive": 200, "lost_work": 50, "down_unexpected": 50, "stopping": 10}


@situation
def one_slow_step(run: Run) -> States:
    """Fifty steps of ten seconds, and one of thirty: slow is not lost."""
    run.job("COMPLETED", 0, 600)
    run.start(0).steps(40, 1, 50).step(560, 51)
    return {"starting": 30, "productive": 530, "stopping": 40}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("ledger"), SETTINGS, "2025-05-05T00:00:00Z")
    runs = [run for run, _ in SITUATIONS.values()]
    made.add("sacct.txt", "\n".join([HEADER, *(j for r in runs for j in r.jobs)]) + "\n", cluster="c1")
    for run in runs:
        made.add(f"{run.ident}.log", "\n".join(run.lines) + "\n", cluster="c1", job_id=run.ident)
    made.run()
    return made


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


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_second_is_in_the_state_that_the_log_shows(name: str, ledger: Site) -> None:
    run, expected = SITUATIONS[name]
    assert states(ledger, run.name) == expected


def test_an_older_checkpoint_takes_back_what_earlier_attempts_did(ledger: Site) -> None:
    """Each stop is charged what had to be done again because of it, in whatever attempt it was done first."""
    assert stops(ledger, "lost_work_measured_seconds, restart_seconds, lost_gpu_seconds", "fit-rollback") == [
        (30, 10, (30 + 40 + 20 + 10) * 16),  # steps 11 to 13
        (50 + 70, 10, (120 + 100 + 20 + 10) * 16),  # steps 6 to 10 of attempt 1, all of attempt 2
    ]
    charged = ledger.rows(
        "select l.run_attempt, i.run_attempt as stop, l.seconds from marts.ledger as l "
        "inner join marts.interruptions as i on l.interruption_id = i.interruption_id "
        "where l.state = 'lost_work' and i.run = 'fit-rollback' order by l.started_at"
    )
    assert [tuple(c.values()) for c in charged] == [(1, 2, 50), (1, 1, 30), (2, 2, 70)]


def test_a_late_log_is_labelled_where_it_tells_nothing(ledger: Site) -> None:
    assumed = ledger.rows(
        "select l.state, l.seconds from marts.ledger as l inner join marts.runs as r on l.run_id = r.run_id "
        "where r.run = 'fit-begins_late' and l.assumed_gpu_seconds is not null order by l.started_at"
    )
    assert [tuple(a.values()) for a in assumed] == [("starting", 30), ("productive", 200)]
    assert stops(ledger, "flags, lost_work_measured_seconds", "fit-begins_late") == [(["cost_assumed"], 0)]


def test_progress_goes_on_after_the_last_line_where_the_next_attempt_shows_it(ledger: Site) -> None:
    columns = "last_progress_at, detection_seconds, lost_work_measured_seconds"
    assert stops(ledger, columns, "fit-ends_early") == [(at(230), 70, 0)]


def test_measured_and_assumed_losses_stand_in_columns_of_their_own(ledger: Site) -> None:
    columns = "lost_work_measured_seconds, lost_work_assumed_seconds, flags"
    assert stops(ledger, columns, "fit-not_resumed") == [(50, None, ["not_resumed"])]
    assert stops(ledger, columns, "fit-no_checkpoints") == [(None, 30, ["cost_assumed", "not_resumed"])]
    assert stops(ledger, f"{columns}, restart_seconds, last_progress_at", "fit-mixed") == [
        (40, None, ["cost_assumed"], 30, at(170)),
        (None, 30, ["cost_assumed"], 10, None),
    ]
    bounds = ledger.rows(
        "select round(effective_training_time_lower * 200)::bigint as lower, "
        "round(effective_training_time_upper * 200)::bigint as upper from marts.runs where run = 'fit-no_checkpoints'"
    )
    assert bounds == [{"lower": 90, "upper": 150}], "without loss, and with a whole interval lost"


def test_nothing_is_assumed_where_the_log_tells_all(ledger: Site) -> None:
    assumed = ledger.column("select run from marts.runs where assumed_gpu_seconds > 0 order by run")
    assert assumed == ["fit-begins_late", "fit-mixed", "fit-no_checkpoints"]


def test_a_crash_loop_is_one_incident_until_something_is_saved(ledger: Site) -> None:
    found = stops(ledger, "incident_id, restart_seconds, lost_work_measured_seconds", "fit-crash_loop")
    first, second, third, fourth = (f[0] for f in found)
    assert first == second == third != fourth
    assert [f[1:] for f in found] == [(10, 0), (80, 30), (10, 0), (10, 0)]


def test_suspension_lies_in_the_silence(ledger: Site) -> None:
    assert ledger.rows("select started_at, ended_at from marts.ledger where state = 'suspended'") == [
        {"started_at": at(90), "ended_at": at(190)}
    ]


def test_a_restart_inside_an_attempt_is_an_interruption(ledger: Site) -> None:
    """It has an id of its own; the attempt's own end keeps the id that it has without a log: restart ordinal 0."""
    first, second = stops(
        ledger,
        "interruption_id, started_at, interrupted_at, resumed_at, scheduler_state, recovery, "
        "lost_work_measured_seconds, detection_seconds, restart_seconds, down_seconds, run_attempt",
        "fit-restart_inside",
    )
    assert first[1:] == (at(0), at(190), at(200), "RESTARTED", "automatic", 30, 30, 20, 10, 1)
    assert second[1:] == (at(200), at(400), at(420), "FAILED", "automatic", 20, 60, 10, 20, 2)
    own = ledger.rows(
        "select left(sha256(concat_ws(chr(31), cluster, job_id_raw, epoch_us(submitted_at), epoch_us(started_at), "
        "ordinal)), 16) as id from marts.attempts cross join unnest([0, 1]) as o (ordinal) "
        "where job_name = 'fit-restart_inside' and state = 'FAILED' order by ordinal"
    )
    assert [second[0], first[0]] == [o["id"] for o in own]


def test_a_restart_inside_an_attempt_is_no_other_attempt(ledger: Site) -> None:
    (run,) = ledger.rows("select * from marts.runs where run = 'fit-restart_inside'")
    assert (run["attempts"], run["interruptions"]) == (2, 2)
    assert run["ettr"] == pytest.approx(250 / 480, abs=1e-6)
    assert ledger.column("select run_id from marts.attempts where job_name = 'fit-restart_inside'") == (
        [run["run_id"]] * 2
    )


def test_each_turn_of_a_loop_inside_an_attempt_counts(ledger: Site) -> None:
    found = stops(ledger, "interrupted_at, resumed_at, incident_id, lost_work_measured_seconds", "fit-loop_inside")
    assert [f[:2] for f in found] == [(at(turn + 90), at(turn + 100)) for turn in range(0, 400, 100)]
    assert len({f[2] for f in found}) == 1, "nothing was saved between them"
    assert [f[3] for f in found] == [50] * 4


def test_steps_done_again_without_any_word_are_a_restart(ledger: Site) -> None:
    columns = "interrupted_at, resumed_at, lost_work_measured_seconds"
    assert stops(ledger, columns, "fit-silent_restart") == [(at(180), at(230), 50)]


@pytest.mark.parametrize("name", ["clock_steps_back", "several_ranks", "running", "suspended", "one_slow_step"])
def test_nothing_else_is_an_interruption(name: str, ledger: Site) -> None:
    assert ledger.column(f"select interruptions from marts.runs where run = 'fit-{name}'") == [0]


def test_saves_tell_what_they_cost_and_who_restored_them(ledger: Site) -> None:
    saves = ledger.rows(
        "select c.run, c.step, c.begun_at, c.durable_at, c.save_seconds, c.blocking_seconds, c.is_durable, "
        "c.restorations, c.restored_by_attempt, c.restored_at, c.restored_by = i.interruption_id as is_by_stop "
        "from marts.checkpoints as c left join marts.interruptions as i on c.run_id = i.run_id "
        "where c.run in ('fit-blocking', 'fit-save_begun') and c.step < 40 order by c.run"
    )
    assert [tuple(s.values()) for s in saves] == [
        ("fit-blocking", 5, at(80), at(94), 14, 15, True, 1, 2, at(330), True),
        ("fit-save_begun", 25, at(230), at(240), 10, 10, True, 1, 2, at(330), True),
    ]
    loop = "select step, run_attempt, restorations from marts.checkpoints where run = 'fit-crash_loop' order by step"
    assert [tuple(r.values()) for r in ledger.rows(loop)] == [(10, 1, 2), (20, 4, 1)]


def test_step_times_of_an_hour(ledger: Site) -> None:
    """The first step of an attempt is left out; of fifty, one took thirty seconds."""
    assert ledger.rows("select * exclude (cluster, run_id) from marts.step_times where run = 'fit-one_slow_step'") == [
        {
            "run": "fit-one_slow_step",
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
    assert ledger.column("select sum(steps)::bigint from marts.step_times where run = 'fit-several_ranks'") == [9]


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


def test_lines_that_belong_to_no_attempt_are_counted(site: Callable[..., Site]) -> None:
    """The log names no job: two tracked jobs ran when it spoke, or none did."""
    one, two = Run("one").failing((0, 200)), Run("two").job("COMPLETED", 0, 100)
    one.step(-100, 1).steps(40, 2, 3).step(150, 4).step(2000, 9)
    made = site(SETTINGS, collected_at="2025-05-05T00:00:00Z")
    made.add("sacct.txt", "\n".join([HEADER, *one.jobs, *two.jobs]) + "\n", cluster="c1")
    made.add("train.log", "\n".join(one.lines) + "\n", cluster="c1")
    made.run()
    assert made.rows("select job_id, reason, events, steps from ops.unmatched_log_events order by reason") == [
        {"job_id": None, "reason": "no tracked attempt ran", "events": 2, "steps": 2},
        {"job_id": None, "reason": "several tracked attempts ran", "events": 2, "steps": 2},
    ]


def test_pieces_order_and_repetition_of_a_log_change_nothing(ledger: Site, tmp_path: Path) -> None:
    """Logs cut in two, told twice, the later piece first: the same ledger."""
    made = Site(tmp_path / "cut", SETTINGS, "2025-05-05T00:00:00Z")
    for name, (run, _) in reversed(SITUATIONS.items()):
        middle = len(run.lines) // 2
        for part, lines in (("b", run.lines[middle:]), ("a", run.lines[:middle]), ("all", run.lines)):
            if lines:
                made.add(
                    f"{name}/{part}.log",
                    "\n".join(lines) + "\n",
                    cluster="c1",
                    job_id=run.ident,
                    format="training_log",
                )
    jobs = [j for run, _ in SITUATIONS.values() for j in reversed(run.jobs)]
    made.add("sacct.txt", "\n".join([HEADER, *jobs]) + "\n", cluster="c1")
    made.run()
    assert made.digest() == ledger.digest()
