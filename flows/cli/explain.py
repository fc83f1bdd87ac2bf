"""`goodput explain`: why one interruption happened, with the lines that prove it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.interruption_report import say_report
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import CommandError, say_json

EVIDENCE = """
select e.*
from marts.interruption_evidence as e
where e.interruption_id = ?
order by e.weight desc nulls last, abs(e.seconds_before_end) nulls last, e.record_id
"""

LOCATIONS = """
select distinct l.record_id, l.path, l.line
from ops.record_locations as l
semi join (select unnest(?::varchar[]) as record_id) as wanted on wanted.record_id = l.record_id
order by l.path, l.line
"""

RESTART = """
select sum(l.measured_gpu_seconds)::bigint as measured, sum(l.assumed_gpu_seconds)::bigint as assumed
from marts.ledger as l
where
    l.state = 'starting' and l.run_id = ?
    and l.run_attempt = (select min(n.run_attempt) from marts.ledger as n where n.run_id = ? and n.run_attempt > ?)
"""

LOST_WORK = """
select sum(l.assumed_gpu_seconds)::bigint as assumed, count(distinct l.run_attempt) as attempts
from marts.ledger as l
where l.state = 'lost_work' and l.interruption_id = ?
"""


def explain(
    interruption: Annotated[str | None, Parameter(help="Id of the interruption, or its beginning.")] = None,
    /,
    *,
    last: Annotated[bool, Parameter(help="The latest interruption.")] = False,
    job: Annotated[str | None, Parameter(help="Every interruption of a job id.")] = None,
    every: Annotated[
        bool, Parameter(name="--all", negative="", help="Every piece of evidence, not only the verdict's own.")
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Tell why a run stopped: verdict, confidence, evidence with file and line, and cost."""
    if sum((interruption is not None, last, job is not None)) != 1:
        raise CommandError("say which: an id, or --last, or --job JOB; `goodput interruptions` lists them", 2)
    settings = facts.configuration(config)
    with facts.one_session(settings):
        found = [described(settings, row) for row in _chosen(settings, interruption, job)]
    if json:
        say_json(found if job is not None else found[0])
    else:
        for one in found:
            say_report(one, is_all=every)
    return 0


def described(settings: facts.Config, row: facts.Row) -> facts.Row:
    """Return an interruption with its evidence, each with the places in files that tell it, and how its cost is known."""
    evidence = facts.rows(settings, EVIDENCE, [row["interruption_id"]])
    places: dict[str, list[str]] = {}
    for place in facts.rows(settings, LOCATIONS, [[e["record_id"] for e in evidence if e["record_id"]]]):
        places.setdefault(place["record_id"], []).append(f"{place['path']}:{place['line']}")
    return {
        **row,
        **_restart(settings, row),
        **_lost_work(settings, row),
        "evidence": [{**e, "places": places.get(e["record_id"], [])} for e in evidence],
    }


def _restart(settings: facts.Config, row: facts.Row) -> facts.Row:
    """Return how much of the starting up again is measured and assumed: that is told of the attempt that follows."""
    [told] = facts.rows(settings, RESTART, [row["run_id"], row["run_id"], row["run_attempt"]])
    return {f"starting_{how}_gpu_seconds": told[how] for how in ("measured", "assumed")}


def _lost_work(settings: facts.Config, row: facts.Row) -> facts.Row:
    """Return how much of the work to be done again is assumed, and how many attempts had done it.

    Where the next attempt loads an old checkpoint, that is also work of attempts before the one that stopped.
    """
    [told] = facts.rows(settings, LOST_WORK, [row["interruption_id"]])
    return {"lost_work_assumed_gpu_seconds": told["assumed"], "lost_work_attempts": told["attempts"]}


def _chosen(settings: facts.Config, interruption: str | None, job: str | None) -> list[facts.Row]:
    if interruption is not None:
        return [facts.one_interruption(settings, interruption)]
    if job is None:
        found = facts.rows(settings, f"{facts.INTERRUPTIONS} order by i.interrupted_at desc, i.interruption_id limit 1")
        if not found:
            raise CommandError("the warehouse holds no interruption; `goodput status` tells what was read")
        return found
    where = "where ? in (i.job_id, i.job_id_raw) order by i.interrupted_at"
    if not (found := facts.rows(settings, f"{facts.INTERRUPTIONS} {where}", [job])):
        raise CommandError(
            f"job {job} has no interruption; is it tracked? See [[runs]] in goodput.toml and marts.attempts"
        )
    return found
