"""`goodput interruptions`: a table of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import note, say, say_json, say_table

COLUMNS = ("id", "interrupted_at", "run", "job", "class", "cause", "sure", "node", "down", "gpu_hours")


def interruptions(
    *,
    since: Annotated[str | None, Parameter(help="Only those of the last 45m, 24h, 7d, 2w.")] = None,
    run: Annotated[str | None, Parameter(help="Only those of one run: its name or id.")] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """List interruptions: when, of what, why, how sure, and what each cost."""
    settings = facts.configuration(config)
    conditions: list[str] = ["true"]
    params: list[object] = []
    if since is not None:
        conditions.append("i.interrupted_at >= ?")
        params.append(datetime.now(UTC) - facts.duration(since))
    if run is not None:
        conditions.append("? in (i.run, i.run_id)")
        params.append(run)
    found = facts.rows(
        settings, f"{facts.INTERRUPTIONS} where {' and '.join(conditions)} order by i.interrupted_at", params
    )
    if json:
        say_json(found)
        return 0
    if found:
        say_table([brief(row) for row in found], COLUMNS)
        say(summary(found))
        note("`goodput explain ID` shows the evidence of one")
    else:
        _say_none(settings)
    return 0


def brief(row: facts.Row) -> facts.Row:
    """Return an interruption as one line of a table."""
    return {
        "id": row["interruption_id"][: facts.ID_DIGITS],
        "interrupted_at": row["interrupted_at"],
        "run": row["run"] or row["run_id"],
        "job": row["job_id"],
        "class": row["class"],
        "cause": row["cause"],
        "sure": facts.percent(row["confidence"]),
        "node": row["culprit_node"],
        "down": facts.spoken(row["down_seconds"]),
        "gpu_hours": facts.gpu_hours(row["lost_gpu_seconds"]),
    }


def summary(found: list[facts.Row]) -> str:
    """Return a sentence that counts interruptions by class."""
    planned = sum(bool(row["is_planned"]) for row in found)
    scheduler = sum(row["class"] == "scheduler" for row in found)
    lost = sum(row["lost_gpu_seconds"] or 0 for row in found)
    text = f"{len(found)} interruptions: {planned} planned, {len(found) - planned - scheduler} unexpected"
    return f"{text}, {scheduler} by the scheduler; {facts.gpu_hours(lost)} GPU-hours lost"


def _say_none(settings: facts.Config) -> None:
    last = facts.rows(settings, "select max(interrupted_at) as at, count(*) as n from marts.interruptions")[0]
    say("no interruptions match")
    if last["n"]:
        note(f"the warehouse holds {last['n']}, the last at {last['at']:%Y-%m-%d %H:%M} UTC")
