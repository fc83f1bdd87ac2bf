"""What a daily report tells of the published build, as plain tables: stops, causes, freshness, changes, builds.

Whoever shows them cleans the texts: names and paths in them come from exports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from flows import manifest
from flows.config import Config
from flows.freshness import freshness
from warehouse import changes, history, publish, query

Value = str | int | float | bool | datetime | None
Row = Mapping[str, Value]

LAST_BUILDS = 10

_IN_PERIOD = "($since is null or {0} >= $since) and {0} < $until"
_RUNS = f"""
with limits as (
    select
        run_id,
        greatest(started_at, coalesce($since, started_at)) as begin_at,
        least(observed_until, $until) as end_at
    from marts.runs
),
elapsed as (select run_id, (epoch_us(end_at) - epoch_us(begin_at)) / 3.6e9 as hours from limits where end_at > begin_at),
stops as (
    select
        run_id,
        count(*) as interruptions,
        count(*) filter (where class = 'unexpected') as unexpected,
        count(*) filter (where is_planned) as planned,
        sum(lost_gpu_seconds) / 3600 as lost_gpu_hours
    from marts.interruptions
    where {_IN_PERIOD.format("interrupted_at")}
    group by run_id
),
clipped as (
    select
        run_id,
        state,
        gpus * (
            epoch_us(least(ended_at, $until)) - epoch_us(greatest(started_at, coalesce($since, started_at)))
        ) / 1e6 as gpu_seconds
    from marts.ledger
    where started_at < $until and ($since is null or ended_at > $since)
),
spent as (
    select run_id, sum(gpu_seconds) filter (where state = 'productive') as productive, sum(gpu_seconds) as whole
    from clipped
    group by run_id
)
select
    runs.cluster,
    coalesce(runs.run, runs.run_id) as run,
    runs.ended_at is null as is_running,
    round(elapsed.hours, 3) as elapsed_hours,
    coalesce(stops.interruptions, 0) as interruptions,
    coalesce(stops.unexpected, 0) as unexpected,
    coalesce(stops.planned, 0) as planned,
    round(elapsed.hours / nullif(stops.interruptions, 0), 3) as mtti_hours,
    round(elapsed.hours / nullif(stops.unexpected, 0), 3) as mtti_unexpected_hours,
    round(coalesce(spent.productive, 0) / nullif(spent.whole, 0), 4) as effective_training_time,
    round(stops.lost_gpu_hours, 2) as lost_gpu_hours
from marts.runs as runs
inner join elapsed on runs.run_id = elapsed.run_id
left join stops on runs.run_id = stops.run_id
left join spent on runs.run_id = spent.run_id
order by runs.cluster, runs.started_at, runs.run_id
"""  # noqa: S608 - no value in it
_CAUSES = f"""
with found as (select * from marts.interruptions where {_IN_PERIOD.format("interrupted_at")})
select
    cluster,
    cause,
    any_value(label) as label,
    class,
    count(*) as interruptions,
    if(
        class = 'unexpected', round(count(*) / (sum(count(*)) over (partition by cluster, class)), 4), null
    ) as share_of_unexpected,
    round(sum(lost_gpu_seconds) / 3600, 2) as lost_gpu_hours
from found
group by cluster, cause, class
order by cluster, class = 'unexpected' desc, class, count(*) desc, cause
"""  # noqa: S608 - no value in it

_HAS_HISTORY = "select 1 from duckdb_tables() where schema_name = 'ops' and table_name = 'verdict_changes'"
_CHANGES = """
select *, build_id as build
from ops.verdict_changes
where changed_at >= ?
order by changed_at, interrupted_at, interruption_id
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the report.

    Attributes:
        key: short name, letters and hyphens: runs, root-causes, freshness, changes, builds.
        title: heading.
        explanation: one sentence on what it shows.
        columns: names of its columns, in order.
        rows: values by column; times are UTC, None = unknown or does not apply.
    """

    key: str
    title: str
    explanation: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Period:
    """A period that ends now: its name, and where it begins (UTC); None = with the first record."""

    name: str
    since: datetime | None = None


def periods(now: datetime) -> tuple[Period, ...]:
    """Return the periods of a daily report: the last day, the last week, everything."""
    return (
        Period("last day", now - timedelta(days=1)),
        Period("last week", now - timedelta(days=7)),
        Period("all"),
    )


def summary(config: Config, *, now: datetime, over: Sequence[Period] | None = None) -> list[Section]:
    """Return the tables of the report.

    Args:
        config: the configuration.
        now: UTC time to which periods and ages reach.
        over: periods to sum up; None = the last day, the last week and everything.

    Raises:
        NoWarehouseError: nothing has been published.
        QueryError: the published build is of a version that lacks a mart or column.
        ManifestError: the manifest is damaged or missing.
    """
    asked = periods(now) if over is None else tuple(over)
    return [
        runs(config, now, asked),
        root_causes(config, now, asked),
        fresh(config, now),
        changed(config, now, asked[0].since),
        last_builds(config, now),
    ]


def runs(config: Config, now: datetime, over: Sequence[Period]) -> Section:
    """Return one row per period and tracked run that was under way in it."""
    return Section(
        "runs",
        "Interruptions and training time",
        "Each tracked run that was under way in the period; MTTI is elapsed time by interruptions, none where there were none; "
        "effective training time is the productive share of its GPU time.",
        ("period", "cluster", "run", "is_running", "elapsed_hours", "interruptions", "unexpected", "planned", "mtti_hours",
         "mtti_unexpected_hours", "effective_training_time", "lost_gpu_hours"),
        _by_period(config, _RUNS, now, over),
    )  # fmt: skip


def root_causes(config: Config, now: datetime, over: Sequence[Period]) -> Section:
    """Return one row per period, cluster, cause and class."""
    return Section(
        "root-causes",
        "Root causes",
        "What stopped tracked runs in the period; a share is of the cluster's unexpected interruptions, planned stops and "
        "preemptions have none.",
        ("period", "cluster", "cause", "label", "class", "interruptions", "share_of_unexpected", "lost_gpu_hours"),
        _by_period(config, _CAUSES, now, over),
    )


def _by_period(config: Config, sql: str, now: datetime, over: Sequence[Period]) -> tuple[Row, ...]:
    link = publish.link_of(config.data)
    return tuple(
        {"period": period.name, **row}
        for period in over
        for row in query.rows(link, sql, {"since": period.since, "until": now})
    )


def fresh(config: Config, now: datetime) -> Section:
    """Return one row per configured source; what was read counts, built or not."""
    with manifest.opened_to_read(config.data) as opened:
        found = freshness(config, opened, now)
    return Section(
        "freshness",
        "Freshness of the sources",
        "A source is stale when it brought nothing for three times its usual interval, or for 48 hours where too few "
        "collections tell that. Failed are those that could not be read and are still there.",
        ("source", "format", "files", "files_failed", "collected_at", "age_seconds", "usual_seconds", "is_stale",
         "lines_rejected"),
        tuple(
            {
                "source": f.source if f.source is not None else "(no longer configured)",
                "format": ", ".join(sorted(f.formats)) or None,
                "files": f.files,
                "files_failed": f.files_failed,
                "collected_at": f.collected_at,
                "age_seconds": f.age_seconds,
                "usual_seconds": f.usual_seconds,
                "is_stale": f.is_stale,
                "lines_rejected": f.lines_rejected,
            }
            for f in found
        ),
    )  # fmt: skip


def changed(config: Config, now: datetime, since: datetime | None = None) -> Section:
    """Return one row per interruption that a build has otherwise than the one that was published before it.

    Args:
        config: the configuration.
        now: UTC.
        since: builds made since then count, UTC; None = those of the last day.
    """
    begin = since or now - timedelta(days=1)
    published = publish.published(config.data)
    if query.rows(published, _HAS_HISTORY):
        found = query.rows(published, _CHANGES, [begin])
        text = f"What builds since {begin:%Y-%m-%d %H:%M} UTC changed: interruptions that came, went, or were judged otherwise."
    else:  # of a version that kept no history
        found, text = _since_the_build_before(config, published)
    return Section(
        "changes",
        "What changed",
        text,
        ("change", "interruption_id", "interrupted_at", "cluster", "run", "job_id", "changed", "old_cause", "new_cause",
         "old_confidence", "new_confidence", "old_class", "new_class", "old_culprit_node", "new_culprit_node", "build"),
        tuple({**row, "run": row["run"] or row["run_id"], "changed": ", ".join(row["changed"])} for row in found),
    )  # fmt: skip


def _since_the_build_before(config: Config, published: Path) -> tuple[list[dict[str, Any]], str]:
    kept = publish.builds(config.data)
    position = next((i for i, b in enumerate(kept) if b.is_published), 0)
    if not position:
        return [], f"Build {published.stem} is compared with nothing: no build before it is kept."
    former = kept[position - 1]
    found = [{**row, "build": published.stem} for row in changes.compare(former.path, published)]
    told = [row for row in found if changes.is_verdict(row)]
    rest = (
        f" {len(found) - len(told):,} more kept their verdict with another confidence."
        if len(told) < len(found)
        else ""
    )
    return told, f"Interruptions of build {published.stem}, compared with build {former.build_id}.{rest}"


def last_builds(config: Config, now: datetime) -> Section:
    """Return one row per build that is kept, the newest first."""
    found = reversed(history.kept(config.data, LAST_BUILDS))
    return Section(
        "builds",
        "Last builds",
        "Builds that are kept for `goodput rollback`; readers see the published one.",
        ("build", "started_at", "age_seconds", "is_published", "is_rolled_back", "interruptions", "code_version",
         "size_bytes", "problem"),
        tuple(
            {
                "build": b.build_id,
                "started_at": b.started_at,
                "age_seconds": (now - b.started_at).total_seconds(),
                "is_published": b.is_published,
                "is_rolled_back": b.is_rolled_back,
                "interruptions": b.interruptions,
                "code_version": b.code_version,
                "size_bytes": b.size_bytes,
                "problem": b.problem,
            }
            for b in found
        ),
    )  # fmt: skip
