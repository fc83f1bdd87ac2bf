"""What makes verdicts doubtful although nothing failed: zones or names that do not meet, events without node, and such."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flows.cli import facts
from flows.cli.terminal import here
from flows.cli.words import counted

MAX_NAMES = 5

FLAGS = """
select f.source, f.cluster, f.flag, f.records
from (
    select s.source, s.cluster, unnest(map_keys(s.flags)) as flag, unnest(map_values(s.flags)) as records
    from ops.source_freshness as s
) as f
order by f.source, f.cluster, f.flag
"""

_ODD_COLLECTIONS = """
select e.path, max(e.collected_at) as collected_at
from ops.exports as e
where e.status = 'loaded' and (e.collected_at > ? or e.collected_at < timestamptz '1990-01-01 00:00:00+00')
group by e.path
order by e.path
"""

_UNKNOWN_NODES = """
select n.cluster, n.node
from marts.nodes as n
where not n.is_known_to_scheduler and n.faults > 0 and exists (from marts.attempts)
order by n.cluster, n.node
"""


def doubts(settings: facts.Config) -> list[str]:
    """Return what should be known of the published build, each with its next step.

    Raises:
        CommandError: nothing has been published.
    """
    with facts.one_session(settings):
        counts = flags(settings)
        asked = [*_unknown_nodes(settings), *_nodeless(counts), *_ambiguous(counts), *_odd_collections(settings)]
    return [*_zones(settings), *asked]


def flags(settings: facts.Config) -> list[facts.Row]:
    """Return how many records of each source and cluster carry which flag."""
    return facts.rows(settings, FLAGS)


def _zones(settings: facts.Config) -> list[str]:
    from flows.offsets import clashes, told

    return ["; ".join(told(clash)) for clash in clashes(settings)]


def _unknown_nodes(settings: facts.Config) -> list[str]:
    if not facts.has_column(settings, "nodes", "is_known_to_scheduler"):
        return []
    found = facts.rows(settings, _UNKNOWN_NODES)
    if not found:
        return []
    names = ", ".join(row["node"] for row in found[:MAX_NAMES])
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    verb = "is" if len(found) == 1 else "are"
    what = f"{counted(len(found), 'node')} in kernel logs {verb} unknown to the scheduler: {names}{more}; do host names differ?"
    return [
        f"{what} Set `node` on the source or capture {{node}} in its path, and check its `cluster`; until then they explain nothing"
    ]


def _nodeless(counts: list[facts.Row]) -> list[str]:
    return [
        f"{counted(row['records'], 'event')} of {_of(row)} {'names' if row['records'] == 1 else 'name'} no node and can "
        "explain nothing; capture {node} in the path of the source, or set `node` on it"
        for row in counts
        if row["flag"] == "node_missing"
    ]


def _ambiguous(counts: list[facts.Row]) -> list[str]:
    return [
        f"{counted(row['records'], 'record')} of {_of(row)} {'has a time' if row['records'] == 1 else 'have times'} that "
        'came twice as clocks were set back, read as the first; exports printed in UTC (TZ=UTC, zone = "UTC") leave no doubt'
        for row in counts
        if row["flag"] == "time_ambiguous"
    ]


def _odd_collections(settings: facts.Config) -> list[str]:
    limit = datetime.now(UTC) + timedelta(days=1)
    found = facts.rows(settings, _ODD_COLLECTIONS, [limit])
    if not found:
        return []
    names = ", ".join(f"{here(r['path'])} ({r['collected_at']:%Y-%m-%d})" for r in found[:MAX_NAMES])
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    what = f"{counted(len(found), 'export')} would have been collected in the future or before 1990: {names}{more}"
    step = "set `collected_at` on the source, or capture {collected_at} in its path"
    return [f"{what}; jobs that ran then and stamps without a year are read by it: {step}"]


def _of(row: facts.Row) -> str:
    return f"{row['source']} ({row['cluster']})" if row["cluster"] else str(row["source"])
