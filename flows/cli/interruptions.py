"""`goodput interruptions`: a table of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from fnmatch import fnmatchcase
from typing import Annotated, Any

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.tables import Steps, say_table
from flows.cli.terminal import note, say, say_json, say_wrapped, warn
from flows.cli.words import WEAK, counted, gpu_hours, is_class_weak, is_weak, spoken, sure

Row = Mapping[str, Any]

COLUMNS = ("id", "at_utc", "run", "job", "class", "cause", "sure", "node", "down", "held_gpuh", "waiting_gpuh")

NARROW = (("run", 14), ("at_utc", 16), ("held_gpuh", 0), ("down", 0), ("at_utc", 11), ("run", 0), ("node", 8),
          ("waiting_gpuh", 0), ("class", 0), ("job", 0), ("node", 0), ("sure", 0))  # fmt: skip
"""Never the id, the day and minute, or the cause."""

SHORT = {"unexpected": "unexp.", "unexpected?": "unexp.?", "scheduler": "sched.", "scheduler?": "sched.?"}
"""Classes on a narrow terminal."""

HELD = ("stalled_gpu_seconds", "lost_work_gpu_seconds", "starting_gpu_seconds")

MAX_RUNS = 10


def interruptions(
    *,
    since: Annotated[
        str | None, Parameter(help="Only those of the last 45m, 24h, 7d, 2w, or since a day or time.")
    ] = None,
    run: Annotated[
        str | None,
        Parameter(help="Only those of some runs: id, name, part of the name, or a pattern such as 'llama-*'."),
    ] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """List interruptions: when, of what, why, how sure, and what each cost. Times are UTC."""
    settings = facts.configuration(config)
    conditions: list[str] = ["true"]
    params: list[object] = []
    if since is not None:
        conditions.append("i.interrupted_at >= ?")
        params.append(facts.moment(since))
    if run is not None:
        conditions.append("list_contains(?::varchar[], i.run_id)")
        params.append(_runs_called(settings, run))
    found = facts.rows(
        settings, f"{facts.INTERRUPTIONS} where {' and '.join(conditions)} order by i.interrupted_at", params
    )
    if json:
        say_json(found)
    elif found:
        rows = [brief(row) for row in found]
        say_table(rows, COLUMNS, narrow=narrow(rows), right=("sure", "down", *COLUMNS[-2:]), short=SHORT)
        for line in summary(found):
            say_wrapped(line, 2)
        note("`goodput explain ID` shows the evidence of one")
    else:
        _say_none(settings)
    return 0


def narrow(rows: Sequence[Row]) -> Steps:
    """Return how the table becomes narrower: a run that every row shares goes first; years that differ stay."""
    is_one_run = len({row["run"] for row in rows}) == 1
    is_one_year = len({row["at_utc"].astimezone(UTC).year for row in rows}) == 1
    steps = [step for step in NARROW if step != ("at_utc", 11) or is_one_year]
    return [("run", 0), *steps] if is_one_run else steps


def brief(row: facts.Row) -> facts.Row:
    """Return an interruption as one line of a table."""
    return {
        "id": row["interruption_id"][: facts.ID_DIGITS],
        "at_utc": row["interrupted_at"],
        "run": row["run"] or row["run_id"],
        "job": row["job_id"],
        "class": f"{row['class']}?" if is_class_weak(row) else row["class"],
        "cause": row["cause"],
        "sure": sure(row),
        "node": row["culprit_node"],
        "down": spoken(row["down_seconds"]),
        "held_gpuh": gpu_hours(held(row)),
        "waiting_gpuh": gpu_hours(waiting(row)),
    }


def held(row: Row) -> int | None:
    """Return what was lost on GPUs that were held, GPU-seconds: stalled, done again, starting up. None = unknown."""
    return None if row["lost_gpu_seconds"] is None else sum(row[part] or 0 for part in HELD)


def waiting(row: Row) -> int | None:
    """Return what was lost while waiting for the next start, its GPUs not held, GPU-seconds. None = unknown."""
    return None if row["lost_gpu_seconds"] is None else row["down_gpu_seconds"] or 0


def summary(found: list[facts.Row]) -> list[str]:
    """Return sentences that count interruptions by class, sum up what they cost, and explain the table's marks."""
    planned = sum(bool(row["is_planned"]) for row in found)
    scheduler = sum(row["class"] == "scheduler" for row in found)
    unexpected = len(found) - planned - scheduler
    lines = [
        f"{counted(len(found), 'interruption')}: {planned} planned, {unexpected} unexpected, {scheduler} by the scheduler"
    ]
    priced = [row for row in found if row["lost_gpu_seconds"] is not None]
    if priced:
        lines.append(
            f"GPU-hours lost: {gpu_hours(sum(held(r) or 0 for r in priced))} held (done again, starting up, stalled"
            f"{_assumed(priced)}), "
            f"{gpu_hours(sum(waiting(r) or 0 for r in priced))} waiting for the next start (down)"
        )
    lines += unpriced(found)
    return lines + marks(found)


def marks(found: Sequence[Row]) -> list[str]:
    """Return what the question marks mean: a weak cause says nothing against the class, nor a weak class against the cause."""
    weak = [row for row in found if is_weak(row)]
    lines = []
    if weak:
        planned = sum(bool(row["is_planned"]) and not is_class_weak(row) for row in weak)
        anyway = f"; {planned} of {len(weak)} planned all the same, whichever cause it was" if planned else ""
        lines.append(f"? = weak: the cause is below {WEAK:.0%}, so that another one is likelier{anyway}")
    if any(is_class_weak(row) for row in found):
        lines.append(f"? after a class = the class is below {WEAK:.0%}, so that another one is likelier")
    return lines


def _assumed(priced: Sequence[Row]) -> str:
    """Return for how many held hours are computed from the configuration, not measured."""
    number = sum("cost_assumed" in (row.get("flags") or ()) for row in priced)
    if not number:
        return ""
    some = "" if number == len(priced) else f" for {number:,} of {len(priced):,}"
    return f"; assumed{some}: no training log"


def unpriced(found: Sequence[Row]) -> list[str]:
    """Return what to do where no record tells how many GPUs were lost, or none names a GPU."""
    lines = []
    if lacking := [row for row in found if row["lost_gpu_seconds"] is None]:
        clusters = ", ".join(sorted({f"[clusters.{row['cluster']}]" for row in lacking}))
        lines.append(
            f"GPU-hours unknown for {counted(len(lacking), 'interruption')}: no export tells how many GPUs the jobs held; "
            f"set gpus_per_node in {clusters} of goodput.toml"
        )
    if empty := [row for row in found if row["gpus"] == 0]:
        lines.append(
            f"0 GPUs counted for {counted(len(empty), 'interruption')}: AllocTRES names none of their jobs' GPUs; "
            "is gres/gpu among AccountingStorageTRES?"
        )
    return lines


def _runs_called(settings: facts.Config, wanted: str) -> list[str]:
    """Return the ids of the runs with this id or name; where none has it, those whose name holds it or fits the pattern."""
    runs = facts.rows(settings, "select run_id, run from marts.runs order by started_at desc, run_id")
    exact = [r["run_id"] for r in runs if wanted in (r["run_id"], r["run"])]
    if exact:
        return exact
    folded = wanted.casefold()
    pattern = folded if any(c in folded for c in "*?[") else f"*{folded}*"
    found = [r["run_id"] for r in runs if fnmatchcase((r["run"] or "").casefold(), pattern)]
    if not found:
        names = list(dict.fromkeys(r["run"] or r["run_id"] for r in runs))
        more = f" and {len(names) - MAX_RUNS} more" if len(names) > MAX_RUNS else ""
        there = (
            f"there are {', '.join(names[:MAX_RUNS])}{more}"
            if names
            else "no run is tracked; see [[runs]] in goodput.toml"
        )
        warn(f"no run is called {wanted}; {there}")
    return found


def _say_none(settings: facts.Config) -> None:
    last = facts.rows(settings, "select max(interrupted_at) as at, count(*) as n from marts.interruptions")[0]
    say("no interruptions match")
    if last["n"]:
        note(f"the warehouse holds {last['n']}, the last at {last['at']:%Y-%m-%d %H:%M} UTC")
