"""`goodput explain` tells what of a cost is measured and what assumed, part by part, as the ledger does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Site
from tests.flows.conftest import Goodput
from tests.flows.training_help import HEADER, SETTINGS, Run

FOOTNOTE = "assumed = from checkpoint_interval and restart_overhead"


def of(run: Run, folder: Path) -> Site:
    """Build a warehouse of one run."""
    site = Site(folder, SETTINGS, "2025-05-05T00:00:00Z")
    site.add("sacct.txt", "\n".join([HEADER, *run.jobs]) + "\n", cluster="c1")
    site.add("train.log", "\n".join(run.lines) + "\n", cluster="c1", job_id=run.ident)
    site.run()
    return site


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Three attempts on 16 GPUs; no log tells of the one in the middle. 30 s of starting are assumed where none is seen."""
    run = Run("mixed").failing((0, 200), (220, 400)).job("COMPLETED", 420, 600)
    run.start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 14)
    run.start(420).loaded(425, 10).steps(440, 11, 20)
    return of(run, tmp_path_factory.mktemp("explain"))


def told(goodput: Goodput, site: Site, stop: int) -> tuple[str, dict[str, object]]:
    """Return what `explain` prints of the stop with this number, and its JSON."""
    ident = site.column("select interruption_id from marts.interruptions order by interrupted_at")[stop]
    config = ("--config", site.folder / "goodput.toml")
    return goodput("explain", ident, *config).out, json.loads(goodput("explain", ident, "--json", *config).out)


def test_the_start_of_an_attempt_without_log_is_assumed_though_the_one_that_stopped_has_one(
    goodput: Goodput, made: Site
) -> None:
    out, row = told(goodput, made, 0)
    assert "0.13  starting up again (assumed)\n" in out  # 30 s
    assert "0.18  done again since the last checkpoint\n" in out, "40 s, which the log of the attempt shows"
    assert FOOTNOTE in out
    assert (row["starting_measured_gpu_seconds"], row["starting_assumed_gpu_seconds"]) == (None, 30 * 16)


def test_the_start_of_an_attempt_with_a_log_is_measured_though_the_one_that_stopped_has_none(
    goodput: Goodput, made: Site
) -> None:
    out, row = told(goodput, made, 1)
    assert "0.04  starting up again\n" in out  # 10 s
    assert "0.13  done again since the last checkpoint (assumed)\n" in out, "half of the interval of 60 s"
    assert FOOTNOTE in out
    assert (row["starting_measured_gpu_seconds"], row["starting_assumed_gpu_seconds"]) == (10 * 16, None)


@pytest.mark.parametrize("stop", [0, 1])
def test_what_is_told_is_what_the_ledger_has(goodput: Goodput, made: Site, stop: int) -> None:
    _, row = told(goodput, made, stop)
    [ledger] = made.rows(
        "select sum(measured_gpu_seconds)::bigint as measured, sum(assumed_gpu_seconds)::bigint as assumed "
        f"from marts.ledger where state = 'starting' and run_attempt = {stop + 2}"
    )
    assert (row["starting_measured_gpu_seconds"], row["starting_assumed_gpu_seconds"]) == tuple(ledger.values())
    assert row["starting_gpu_seconds"] == (ledger["measured"] or 0) + (ledger["assumed"] or 0)


def test_nothing_is_marked_where_logs_tell_all_or_nothing_follows(
    goodput: Goodput, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = Run("measured").failing((0, 200)).job("FAILED", 220, 400)
    run.start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 14)
    run.start(220).loaded(225, 10).steps(240, 11, 20).saved(341, 20)
    site = of(run, tmp_path_factory.mktemp("measured"))
    first, last = (told(goodput, site, stop) for stop in (0, 1))
    assert "starting up again\n" in first[0]
    assert "starting up again" not in last[0]
    assert "assumed" not in first[0] + last[0]
    assert (last[1]["starting_measured_gpu_seconds"], last[1]["starting_assumed_gpu_seconds"]) == (None, None)


def test_work_of_an_older_attempt_that_a_log_shows_is_no_assumption(
    goodput: Goodput, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The last attempt loads step 10 of the first one, after whose steps 11 to 14 the second had gone on: they are lost with
    the stop before the last, of the third attempt, which has no log. Theirs is measured, and only its own is assumed."""
    run = Run("older").failing((0, 200), (220, 400), (420, 600)).job("COMPLETED", 620, 800)
    run.start(0).steps(40, 1, 10).saved(131, 10).steps(140, 11, 14).saved(181, 14)
    run.start(220).loaded(225, 14).steps(240, 15, 20).saved(301, 20)
    run.start(620).loaded(625, 10).steps(640, 11, 20)
    site = of(run, tmp_path_factory.mktemp("older"))
    out, row = told(goodput, site, 2)
    [ledger] = site.rows(
        "select sum(measured_gpu_seconds)::bigint as measured, sum(assumed_gpu_seconds)::bigint as assumed "
        f"from marts.ledger where state = 'lost_work' and interruption_id = '{row['interruption_id']}'"
    )
    assert ledger["assumed"] == 30 * 16, "half of the interval of 60 s"
    assert ledger["measured"] > 0
    assert row["lost_work_assumed_gpu_seconds"] == 30 * 16
    assert row["lost_work_gpu_seconds"] == ledger["measured"] + ledger["assumed"]
    assert "done again since the last checkpoint, of 3 attempts (0.13 of it assumed)\n" in out
