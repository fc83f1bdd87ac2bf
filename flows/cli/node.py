"""`goodput node`: the history of one node."""

from __future__ import annotations

import re
from typing import Annotated

from cyclopts import Parameter

from flows.cli import facts, names
from flows.cli.node_faults import NARROW as FAULTS_NARROW
from flows.cli.node_faults import grouped
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.tables import Steps, say_table
from flows.cli.terminal import CommandError, say, say_json, say_wrapped, title
from flows.cli.words import counted, gpu_hours, sure

QUERIES = {
    "states": "select started_at, ended_at, state, reason, set_by from marts.node_states where node = ? order by started_at",
    "faults": """
        select class, code, device, gpu_index, first_at, last_at, events, cleared_at, cleared_by, text, is_fatal, evidence_class
        from marts.faults
        where node = ?
        order by first_at
    """,
    "interruptions": f"{facts.INTERRUPTIONS} where i.culprit_node = ? order by i.interrupted_at",
    "nodes": "select * from marts.nodes where node = ? order by cluster",
}

ATTEMPTS = """
select job_id, attempt, "user", job_name, state, gpus, started_at, ended_at
from marts.attempts
where list_contains(?::varchar[], node_list)
order by started_at
"""

MAX_ATTEMPTS = 20

_STATES_NARROW = (("reason", 12), ("started_at", 16), ("ended_at", 16), ("set_by", 0), ("reason", 6))
_BLAMED_NARROW = (("run", 14), ("interrupted_at", 16), ("gpu", 0), ("run", 0), ("lost_gpu_hours", 0))
_ATTEMPTS_NARROW = (("job_name", 12), ("started_at", 16), ("ended_at", 16), ("user", 8), ("job_name", 0), ("gpus", 0),
                    ("user", 0))  # fmt: skip


def node(
    name: Annotated[str, Parameter(help="Name of the node, as Slurm or a log prints it.")],
    /,
    *,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Show a node's history: rate of blame, states, faults, interruptions blamed on it, attempts. Times are UTC."""
    settings = facts.configuration(config)
    found = _history(settings, name)
    if not any(found.values()):
        name = _known(settings, name)
        found = _history(settings, name)
    if json:
        say_json({"node": name, **found})
        return 0
    blamed = counted(len(found["interruptions"]), "interruption")
    say(f"{name}: {blamed} blamed on it, {counted(len(found['faults']), 'fault')}; times are UTC")
    for row in found["nodes"]:
        say_wrapped(exposure(row), 2)
    _say_part("States", found["states"], _STATES_NARROW)
    _say_part("Faults, fatal ones first", grouped(found["faults"]), FAULTS_NARROW)
    _say_part("Blamed for", [_blamed(row, found["faults"]) for row in found["interruptions"]], _BLAMED_NARROW)
    attempts = found["attempts"]
    more = f", the last {MAX_ATTEMPTS} of {len(attempts)}" if len(attempts) > MAX_ATTEMPTS else ""
    _say_part(f"Attempts{more}", attempts[-MAX_ATTEMPTS:], _ATTEMPTS_NARROW)
    return 0


def _history(settings: facts.Config, name: str) -> dict[str, list[facts.Row]]:
    found = {kind: facts.rows(settings, sql, [name]) for kind, sql in QUERIES.items()}
    found["attempts"] = facts.rows(settings, ATTEMPTS, [_lists_with(settings, name)])
    return found


def _known(settings: facts.Config, name: str) -> str:
    """Return the node that is meant by what a log prints.

    Raises:
        CommandError: no mart speaks of it.
    """
    known = [row["node"] for row in facts.rows(settings, "select distinct node from marts.nodes")]
    if (found := names.resolved(name, known)) is None:
        hint = names.meant_node(name, known) or '; `goodput sql "from marts.nodes"` lists them'
        raise CommandError(f"no mart speaks of a node {name!r}{hint}")
    return found


def exposure(row: facts.Row) -> str:
    """Return how often a node is blamed for the time that tracked runs held it, in words."""
    stranger = (
        "" if row.get("is_known_to_scheduler", True) else "; the scheduler knows no such node: do host names differ?"
    )
    blamed = f"{row['cluster']}: {row['blamed']:,} blamed"
    if not row["exposure_days"]:
        return f"{blamed}; no tracked run held it, so it has no rate{stranger}"
    days = f"{row['exposure_days']:.3g}"
    low, high = (_rate(row[f"blamed_per_1000_days_{end}"]) for end in ("lower", "upper"))
    rate = f"{_rate(row['blamed_per_1000_days'])} per 1,000 node-days ({low} to {high}, 95% interval)"
    return f"{blamed} in {days} {'node-day' if days == '1' else 'node-days'}: {rate}{stranger}"


def _rate(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _lists_with(settings: facts.Config, name: str) -> list[str]:
    """Return the compressed node lists that hold a node; those without the letters it begins with are left out unread."""
    from transforms.parsing.nodelist import BadHostListError, expand

    letters = re.match(r"\D*", name)
    stem = letters[0] if letters else ""
    query = "select distinct node_list from marts.attempts where contains(node_list, ?)"
    found = []
    for row in facts.rows(settings, query, [stem]):
        try:
            if name in expand(row["node_list"]):
                found.append(row["node_list"])
        except BadHostListError:
            continue
    return found


def _say_part(heading: str, found: list[facts.Row], narrow: Steps) -> None:
    title(heading)
    if found:
        say_table(found, tuple(found[0]), narrow=narrow)
    else:
        say("none")


def _blamed(row: facts.Row, faults: list[facts.Row]) -> facts.Row:
    indexes = {fault["device"]: fault["gpu_index"] for fault in faults if fault["gpu_index"] is not None}
    return {
        "id": row["interruption_id"][: facts.ID_DIGITS],
        "interrupted_at": row["interrupted_at"],
        "run": row["run"] or row["run_id"],
        "cause": row["cause"],
        "sure": sure(row),
        "gpu": indexes.get(row["culprit_gpu"], row["culprit_gpu"]),
        "lost_gpu_hours": gpu_hours(row["lost_gpu_seconds"]),
    }
