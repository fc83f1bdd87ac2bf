"""Training logs that tell steps out of order, twice, all in one second, or in absurd numbers: the ledger stands."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from flows import pipeline
from flows.manifest import opened
from tests.conftest import Site
from tests.flows.training_help import HEADER, SETTINGS, Run, at, states, stops
from warehouse import load, runner
from warehouse.session import building

Tell = Callable[[Run], object]


def plain(name: str) -> Run:
    """An attempt that fails after 26 steps and a save of step 12; the next one goes on from there."""
    run = Run(name).failing((0, 300)).job("COMPLETED", 320, 800)
    run.start(1).steps(20, 1, 12).begun(131, 12).saved(140, 12).steps(150, 13, 25).error(299)
    return run.start(322).loaded(330, 12).steps(350, 13, 50)


def told(site: Callable[..., Site], *runs: Run, name: str = "site") -> Site:
    """Ingest runs, one log each, and build."""
    made = site(SETTINGS, name=name, collected_at="2025-05-05T00:00:00Z")
    made.add("sacct.txt", "\n".join([HEADER, *(j for r in runs for j in r.jobs)]) + "\n", cluster="c1")
    for run in runs:
        made.add(f"{run.ident}.log", "\n".join(run.lines) + "\n", cluster="c1", job_id=run.ident)
    made.run()
    return made


def late_rank(run: Run) -> None:
    """Another rank, whose clock is 90 seconds behind, prints the first attempt's steps too."""
    for line in [line for line in run.lines if " iteration " in line]:
        when = (datetime.fromisoformat(f"{line[:19]}+00:00") - at(0)).total_seconds()
        if when + 90 < 300:
            run.say(when + 90, f"[default1]:{line[20:]}")


@pytest.mark.parametrize(
    ("stray", "dropped"),
    [
        (lambda run: run.step(135, 0), 1),
        (lambda run: run.step(135, 0).step(135, 0, 9), 2),
        (lambda run: run.step(275, 0), 1),
        (lambda run: run.step(75, 999), 1),
        (lambda run: run.step(255, 3), 1),
        (late_rank, 18),
    ],
    ids=["zero", "zero_of_two_ranks", "zero_at_the_end", "far_ahead", "told_again", "rank_behind"],
)
def test_a_line_alone_among_far_other_steps_changes_nothing(
    stray: Tell, dropped: int, site: Callable[..., Site]
) -> None:
    """It is neither a restart nor a clock, and is counted."""
    clean, odd = plain("clean"), plain("odd")
    stray(odd)
    made = told(site, clean, odd)
    columns = "interrupted_at, resumed_at, last_progress_at, lost_work_measured_seconds, lost_gpu_seconds"
    assert states(made, odd.name) == states(made, clean.name)
    assert stops(made, columns, odd.name) == stops(made, columns, clean.name)
    assert len(stops(made, columns, odd.name)) == 1
    assert made.rows("select job_id, reason, steps from ops.unmatched_log_events") == [
        {"job_id": odd.ident, "reason": "out of order", "steps": dropped}
    ]


def test_restarts_that_print_every_tenth_step_are_no_strays(site: Callable[..., Site]) -> None:
    """Step 10 is done again, then 20: one line back, and the next one is where the run had been already."""
    run = Run("sparse").job("COMPLETED", 0, 700)
    run.start(0).step(130, 10).step(230, 20).step(360, 10).step(460, 20).step(560, 30).saved(561, 30)
    made = told(site, run)
    assert stops(made, "scheduler_state, interrupted_at, lost_work_measured_seconds") == [("RESTARTED", at(230), 200)]
    assert made.rows("from ops.unmatched_log_events") == []


def test_two_restarts_within_a_second_are_two(site: Callable[..., Site]) -> None:
    """The only step of the second process, its death and the third process fall into two seconds; built again alike."""
    run = Run("quick").failing((0, 300))
    run.start(1).steps(20, 1, 10).start(115).loaded(115, 4).step(115, 5, 0.5).error(116).start(116).loaded(116, 4)
    run.steps(117, 5, 30, 1)
    made = told(site, run)
    assert stops(made, "interrupted_at, resumed_at") == [
        (at(110), at(115)),
        (at(116), at(116)),
        (at(300), None),
    ]
    before = made.digest()
    for _ in range(3):
        pipeline.build(made.config())
        assert made.digest() == before


def test_ranks_that_disagree_give_one_ledger_in_any_order(site: Callable[..., Site]) -> None:
    """Two ranks end the first step in one second, and say that it took 30 or 12 seconds."""
    digests = []
    for order in ((30, 12), (12, 30)):
        made = site(SETTINGS, name=str(order[0]), collected_at="2025-05-05T00:00:00Z")
        run = Run("two").failing((0, 300))
        made.add("sacct.txt", "\n".join([HEADER, *run.jobs]) + "\n", cluster="c1")
        for number, first in enumerate(order):
            rank = Run("two").step(40, 1, first).steps(50, 2, 20)
            text = "\n".join(line[:20] + f"[default{first}]:" + line[20:] for line in rank.lines)
            made.add(f"{number}.log", f"{text}\n", cluster="c1", job_id=run.ident)
        made.run()
        assert states(made)["starting"] == 40 - 12, "of two that say so at once, the shorter time holds"
        digests.append(made.digest())
    assert digests[0] == digests[1]


@pytest.mark.parametrize("huge", [2**63 - 1, 10**15])
def test_no_number_of_an_older_lake_stops_a_build(huge: int, site: Callable[..., Site], tmp_path: Path) -> None:
    """Every number a line may tell, in a lake that was written without bounds."""
    runs = [plain(f"huge-{number}") for number in range(4)]
    runs.append(Run("huge-hang").failing((0, 300)).start(0).steps(20, 1, 5))
    runs[-1].say(
        290,
        "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600070 milliseconds "
        "before timing out.",
    )
    made = told(site, *runs)
    with opened(made.config().data) as manifest:
        inputs = pipeline.inputs_of(made.config(), manifest)
    # A part that is not as it was written is set aside, so a copy is spoilt.
    older = tmp_path / "older"
    shutil.copytree(inputs.lake, older)
    parts = list((older / "log_events").rglob("*.parquet"))
    assert parts
    step, first, last = pl.col("event") == "step", pl.col("step") == 1, pl.col("step").is_in([25, 50])
    edits = [
        pl.when(first).then(1e300).otherwise("step_seconds").alias("step_seconds"),
        pl.when(step & last).then(huge).otherwise("step").alias("step"),
        pl.when(step & (pl.col("step") % 2 == 0)).then(huge).otherwise("samples").alias("samples"),
        pl.when(pl.col("event").str.starts_with("checkpoint")).then(huge).otherwise("step").alias("step"),
        pl.when(pl.col("event") == "nccl_timeout").then(1e300).otherwise("seconds").alias("seconds"),
    ]
    spoil(parts, dict(zip((run.ident for run in runs), edits, strict=True)))
    models = runner.load()
    (tmp_path / "spill").mkdir()
    with building(tmp_path / "older.duckdb", tmp_path / "spill") as con:
        load.inputs(con, replace(inputs, lake=older))
        for model in runner.order(models, load.known()):
            if model.schema != "ops":
                runner.create(con, model)
        measured = con.execute("select count(distinct run_id) from intermediate.training__attempts").fetchall()
        negative = con.execute("select count(*) from marts.ledger where seconds < 0").fetchall()
    assert (measured, negative) == ([(len(runs),)], [(0,)])


def spoil(parts: list[Path], edits: dict[str, pl.Expr]) -> None:
    """Write parts of the lake anew, with each job's edit."""
    for part in parts:
        rows = pl.read_parquet(part, hive_partitioning=False)
        changed = [
            rows.filter(pl.col("job_id") == job).with_columns(edit).cast(rows.schema) for job, edit in edits.items()
        ]
        pl.concat(changed).write_parquet(part)


@pytest.mark.parametrize(("is_saved", "cause"), [(True, "operator_change"), (False, "unknown")])
def test_a_last_save_that_is_done_is_no_stall(is_saved: bool, cause: str, site: Callable[..., Site]) -> None:
    """Training ends in order with a save that may take minutes, in which no step is printed; one that never ends is odd."""
    run = Run("last").job("COMPLETED", 0, 380).job("COMPLETED", 420, 900)
    run.start(1).steps(20, 1, 24).say(251, "[after training is done] datetime: 2025-05-04 10:04:11").begun(251, 24)
    if is_saved:
        run.saved(372, 24)
    run.start(421).loaded(430, 24).steps(450, 25, 60)
    made = told(site, run)
    assert stops(made, "cause") == [(cause,)]


def test_an_attempt_that_never_stepped_made_no_progress(site: Callable[..., Site]) -> None:
    """Its log begins and loads, and hangs: that steps went on until its end is what nobody saw."""
    run = plain("hung").failing((820, 2000)).job("COMPLETED", 2020, 2500)
    run.start(822).loaded(830, 50).start(2022).loaded(2030, 50).steps(2050, 51, 90)
    made = told(site, run)
    hung = stops(made, "interrupted_at, last_progress_at")[-1]
    assert hung == (at(2000), None)
