"""`goodput node`: the history of one node."""

from __future__ import annotations

import re
from typing import Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import CommandError, say, say_json, say_table, title

QUERIES = {
    "states": "select started_at, ended_at, state, reason, set_by from marts.node_states where node = ? order by started_at",
    "faults": """
        select class, code, device, first_at, last_at, events, cleared_at, cleared_by, text
        from marts.faults
        where node = ?
        order by first_at
    """,
    "interruptions": f"{facts.INTERRUPTIONS} where i.culprit_node = ? order by i.interrupted_at",
}

ATTEMPTS = """
select job_id, attempt, "user", job_name, state, gpus, started_at, ended_at
from marts.attempts
where list_contains(?::varchar[], node_list)
order by started_at
"""

MAX_ATTEMPTS = 20


def node(
    name: Annotated[str, Parameter(help="Name of the node.")],
    /,
    *,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Show a node's history: states, faults, interruptions blamed on it, attempts that ran on it."""
    settings = facts.configuration(config)
    found = {kind: facts.rows(settings, sql, [name]) for kind, sql in QUERIES.items()}
    found["attempts"] = facts.rows(settings, ATTEMPTS, [_lists_with(settings, name)])
    if not any(found.values()):
        raise CommandError(f'no mart speaks of a node {name!r}; `goodput sql "from marts.nodes"` lists them')
    if json:
        say_json({"node": name, **found})
        return 0
    say(f"{name}: {len(found['interruptions'])} interruptions blamed on it, {len(found['faults'])} faults")
    _say_part("States", found["states"])
    _say_part("Faults", found["faults"])
    _say_part("Blamed for", [_blamed(row) for row in found["interruptions"]])
    attempts = found["attempts"]
    more = f", the last {MAX_ATTEMPTS} of {len(attempts)}" if len(attempts) > MAX_ATTEMPTS else ""
    _say_part(f"Attempts{more}", attempts[-MAX_ATTEMPTS:])
    return 0


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


def _say_part(heading: str, found: list[facts.Row]) -> None:
    title(heading)
    if found:
        say_table(found, tuple(found[0]))
    else:
        say("none")


def _blamed(row: facts.Row) -> facts.Row:
    return {
        "id": row["interruption_id"][: facts.ID_DIGITS],
        "interrupted_at": row["interrupted_at"],
        "run": row["run"] or row["run_id"],
        "cause": row["cause"],
        "confidence": facts.percent(row["confidence"]),
        "gpu": row["culprit_gpu"],
        "lost_gpu_hours": facts.gpu_hours(row["lost_gpu_seconds"]),
    }
