"""Situations of a training run as its log and the scheduler tell them, with the ledger each one must give.

Each is a run of its own. Steps take ten seconds, unless a situation says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.flows.training_help import Run, States

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
