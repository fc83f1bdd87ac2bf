"""The ledger measured from training logs: every second of a run in the state that its log shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Site
from tests.flows.training_help import HEADER, SETTINGS, Run, at, states, stops
from tests.flows.training_situations import SITUATIONS


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("ledger"), SETTINGS, "2025-05-05T00:00:00Z")
    runs = [run for run, _ in SITUATIONS.values()]
    made.add("sacct.txt", "\n".join([HEADER, *(j for r in runs for j in r.jobs)]) + "\n", cluster="c1")
    for run in runs:
        made.add(f"{run.ident}.log", "\n".join(run.lines) + "\n", cluster="c1", job_id=run.ident)
    made.run()
    return made


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


def test_pending_work_is_within_the_upper_bound_only(ledger: Site) -> None:
    """Of 300 s, 100 are kept by a checkpoint; the 170 s since then may be kept too, or be lost."""
    bounds = ledger.rows(
        "select round(effective_training_time_lower * 300)::bigint as lower, "
        "round(effective_training_time * 300)::bigint as now, "
        "round(effective_training_time_upper * 300)::bigint as upper from marts.runs where run = 'fit-running'"
    )
    assert bounds == [{"lower": 100, "now": 100, "upper": 270}]


def test_bounds_hold_the_figure_between_them(ledger: Site) -> None:
    wrong = (
        "select run from marts.runs where not (0 <= effective_training_time_lower and effective_training_time_lower "
        "<= effective_training_time and effective_training_time <= effective_training_time_upper "
        "and effective_training_time_upper <= 1)"
    )
    assert ledger.column(wrong) == []


def test_a_save_between_lines_without_a_stamp_has_no_length(site: Callable[..., Site]) -> None:
    """Both of its lines carry the time of the step before; the stamped save after it took ten seconds."""
    run = Run("bare").job("RUNNING", 0, 300)
    run.start(0).steps(40, 1, 10).begun(130, 10).saved(130, 10).steps(170, 11, 15).begun(210, 15).saved(220, 15)
    first = next(i for i, line in enumerate(run.lines) if "saving" in line)
    for i in (first, first + 1):
        run.lines[i] = run.lines[i][len("2025-05-04 10:00:00 ") :]
    made = site(SETTINGS, "2025-05-04T10:05:00Z")
    made.add("sacct.txt", "\n".join([HEADER, *run.jobs]) + "\n", cluster="c1")
    made.add("bare.log", "\n".join(run.lines) + "\n", cluster="c1", job_id=run.ident)
    made.run()
    saves = made.rows(
        "select step, begun_at = durable_at as is_same, save_seconds from marts.checkpoints order by step"
    )
    assert [tuple(s.values()) for s in saves] == [(10, True, None), (15, False, 10)]


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
