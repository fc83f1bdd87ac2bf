"""What `goodput demo` prints of a replay: headline figures, causes, the paper's doubtful figures, where time went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.cli import facts
from flows.cli.paper_figures import say_figures
from flows.cli.replay_causes import say_causes
from flows.cli.scores import say_score
from flows.cli.terminal import clean, say, say_wrapped, title
from flows.cli.words import gpu_hours
from flows.score import Score

AT_GPUS = 100_000
PRODUCTIVE = "productive"

RUN = """
select r.*, coalesce(stops.manual, 0) as manual, held.nodes,
    r.mtti_unexpected_hours * r.gpus / $1 as at_hours,
    r.mtti_unexpected_hours_lower * r.gpus / $1 as at_hours_lower,
    r.mtti_unexpected_hours_upper * r.gpus / $1 as at_hours_upper
from marts.runs as r
left join (
    select i.run_id, count(*) filter (where i.recovery = 'manual') as manual from marts.interruptions as i group by all
) as stops on r.run_id = stops.run_id
left join (select a.run_id, max(a.nodes) as nodes from marts.attempts as a group by all) as held on r.run_id = held.run_id
order by r.elapsed_gpu_seconds desc
limit 1
"""

LEDGER = """
select l.state, sum(l.gpu_seconds)::bigint as gpu_seconds
from marts.ledger as l
where l.run_id = $1
group by l.state
order by gpu_seconds desc
"""

BLAMED = """
select n.node
from marts.nodes as n
where n.blamed > 0
order by n.blamed desc, n.node
limit 1
"""

Row = Mapping[str, Any]


def say_replay(settings: facts.Config, score: Score, *, is_published: bool) -> None:
    """Print what the warehouse says of a replay, beside the truth, and beside the paper where it is the paper's fleet."""
    found = facts.rows(settings, RUN, [AT_GPUS])
    if not found:
        say("no run is tracked in these exports")
        return
    _say_headline(found[0])
    say_causes(settings, score, is_published=is_published)
    title("Against the truth")
    say_score(score)
    if is_published:
        say_figures(settings)
    _say_waterfall(facts.rows(settings, LEDGER, [found[0]["run_id"]]), score)


def most_blamed(settings: facts.Config) -> str | None:
    """Return the node that is blamed most often; None = none is."""
    found = facts.rows(settings, BLAMED)
    return str(found[0]["node"]) if found else None


def _say_headline(run: Row) -> None:
    title(f"The run {run['run']}")
    nodes = "" if run["nodes"] is None else f" on {run['nodes']:,} nodes"
    say(f"elapsed                  {run['elapsed_hours'] / 24:.1f} days, {run['gpus']:,} GPUs{nodes}")
    say(
        f"interruptions            {run['interruptions']:,} = {run['planned']:,} planned + {run['unexpected']:,} unexpected"
    )
    if run["unexpected"]:
        say("mean time to interruption (MTTI), in hours")
        say(f"  any                    {run['mtti_hours']:.2f}")
        say(f"  unexpected             {_interval(run, 'mtti_unexpected_hours')}")
        say_wrapped(f"  at {AT_GPUS:,} GPUs        {_interval(run, 'at_hours')}: unexpected, at this rate per node", 25)
    say(f"effective training time  {run['effective_training_time']:.2%}")
    say(f"recovered by people      {run['manual']} of {run['interruptions']:,} times")


def _interval(row: Row, name: str) -> str:
    return f"{row[name]:.2f} (95% interval {row[f'{name}_lower']:.2f} to {row[f'{name}_upper']:.2f})"


def _say_waterfall(measured: list[facts.Row], score: Score) -> None:
    """Print elapsed GPU-hours, what each state takes from them, and what is left as productive."""
    title("Where the GPU-hours went")
    states: dict[str, int] = {row["state"]: row["gpu_seconds"] for row in measured}
    true = {state: seconds for run in score.runs for state, seconds, _ in run.states()}
    total, truly = sum(states.values()) or 1, sum(true.values())
    say(f"{'elapsed':<18} {gpu_hours(total):>15} {1:>8.2%}")
    takes = sorted(states.keys() | true.keys(), key=lambda s: (s == PRODUCTIVE, -max(states.get(s, 0), true.get(s, 0))))
    for state in takes:
        seconds = states.get(state, 0)
        sign = "=" if state == PRODUCTIVE else "-"
        told = f"  truly {true.get(state, 0) / truly:.2%}" if truly else ""
        say(f"{sign} {clean(state):<16} {gpu_hours(seconds):>15} {seconds / total:>8.2%}{told}")
