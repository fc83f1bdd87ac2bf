"""What `goodput doctor` sees of the published build: whole, right, recent; and which sources bring nothing new."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from flows.cli import facts
from flows.cli.findings import OK, PROBLEM, WARNING, Finding
from flows.cli.terminal import CommandError
from flows.cli.words import counted, spoken

STALE_SECONDS = 48 * 3600.0
"""A source with nothing new for so long is stale where too few collections tell how often it usually comes."""
STALE_INTERVALS = 3
ROUND_SECONDS = 600.0
"""Files collected within so long of each other, as one per node, are one round of collecting."""

_NEWEST = """
select s.source, s.cluster, s.newest_collected_at
from ops.source_freshness as s
where s.source is not null and s.exports > s.exports_failed
order by s.source, s.cluster
"""
_COLLECTIONS = """
select distinct e.source, e.collected_at
from ops.exports as e
where e.source is not null and e.status = 'loaded'
order by e.source, e.collected_at
"""
_BUILD = """
select
    b.build_id,
    b.started_at,
    b.code_version,
    (
        select d.tags['storage_version'] from duckdb_databases() as d where d.database_name = current_database()
    ) as storage
from ops.builds as b
order by b.started_at desc
limit 1
"""


def build(settings: facts.Config) -> Iterator[Finding]:
    """Look at the link that readers open, the build behind it, its checks, and the freshness of its sources."""
    from warehouse import publish

    link = publish.link_of(settings.data)
    kept = publish.builds(settings.data)
    if not link.exists():
        yield _missing(settings, kept_any=bool(kept))
        return
    if not link.is_symlink():
        step = "move it away, then `goodput build`"
        yield Finding("build", PROBLEM, f"{link} is a file, not the link that a build switches", step)
    if kept and not kept[-1].is_published:
        text = f"readers see {link.resolve().stem}, not the newest build, {kept[-1].build_id}"
        step = (
            f"after a rollback that is meant; else `goodput rollback {kept[-1].build_id}` publishes it, and "
            "`goodput build --force` a new one"
        )
        yield Finding("build", WARNING, text, step)
    try:
        found = facts.rows(settings, _BUILD)
    except CommandError as error:
        yield Finding("build", PROBLEM, str(error))
        return
    if not found:
        yield Finding("build", PROBLEM, "the published build does not say when it was made", "`goodput build`")
        return
    yield _age(found[0])
    if kept and kept[-1].is_published:
        yield from _waiting(settings)
    yield _storage(found[0]["storage"])
    yield from _checks(settings)
    yield from freshness(settings, datetime.now(UTC))


def _missing(settings: facts.Config, *, kept_any: bool) -> Finding:
    from warehouse import publish

    link = publish.link_of(settings.data)
    if link.is_symlink():
        step = "`goodput rollback BUILD` publishes one of `goodput builds`" if kept_any else "`goodput build`"
        return Finding("build", PROBLEM, f"{link} points to {link.readlink()}, which is not there", step)
    if kept_any:
        text = f"{link} is missing although builds are kept"
        return Finding("build", PROBLEM, text, "`goodput rollback BUILD` publishes one of `goodput builds`")
    has_lake = next((settings.data / "lake").rglob("*.parquet"), None) is not None
    step = "`goodput build` makes one of what was read" if has_lake else "`goodput run` makes the first"
    return Finding("build", WARNING, "nothing is published yet", step)


def _age(row: facts.Row) -> Finding:
    seconds = (datetime.now(UTC) - row["started_at"]).total_seconds()
    text = f"{row['build_id']} by version {row['code_version']}"
    if seconds < 0:
        step = "is the clock of this machine right?"
        return Finding("build", WARNING, f"{text} was made {spoken(-seconds)} from now", step)
    if seconds > STALE_SECONDS:
        return Finding("build", WARNING, f"{text} is {spoken(seconds)} old", "`goodput run`, best on a schedule")
    return Finding("build", OK, f"{text}, {spoken(seconds)} old")


def _waiting(settings: facts.Config) -> Iterator[Finding]:
    """Look whether the newest build holds all that was read."""
    from flows.manifest import ManifestError
    from flows.pipeline import needs_build

    try:
        if needs_build(settings):
            yield Finding("build", WARNING, facts.NOT_BUILT, facts.BUILD_NEXT)
    except ManifestError:  # `exports` says so
        return


def _storage(found: str | None) -> Finding:
    from warehouse.session import STORAGE_VERSION

    version = (found or "unknown").removesuffix("+")
    if version == STORAGE_VERSION:
        return Finding("storage version", OK, f"{version}: DuckDB clients from {version} on can open the build")
    text = f"{version}, not {STORAGE_VERSION}: older DuckDB clients may not open the build"
    return Finding("storage version", WARNING, text, "`goodput build` writes another")


def _checks(settings: facts.Config) -> Iterator[Finding]:
    from warehouse import checks, publish

    try:
        broken = checks.run_published(publish.link_of(settings.data))
    except (checks.CheckError, publish.NoWarehouseError) as error:
        yield Finding("checks", PROBLEM, str(error).splitlines()[0], "`goodput build` makes another build")
        return
    for failed in broken:
        text = f"{failed.name}: {counted(failed.count, 'row')} against the rule: {failed.rule}"
        yield Finding("checks", PROBLEM, text, "`goodput check` shows the rows")
    if not broken:
        yield Finding("checks", OK, "the published build keeps every rule")


def freshness(settings: facts.Config, now: datetime) -> Iterator[Finding]:
    """Look for sources that brought nothing new for three times their usual interval, or 48 h where that is unknown.

    Args:
        settings: configuration; a build is published.
        now: UTC.
    """
    collected: dict[str, list[datetime]] = {}
    for row in facts.rows(settings, _COLLECTIONS):
        collected.setdefault(row["source"], []).append(row["collected_at"])
    newest = facts.rows(settings, _NEWEST)
    stale = 0
    for row in newest:
        age = (now - row["newest_collected_at"]).total_seconds()
        usual = interval(collected.get(row["source"], []))
        if age <= (STALE_SECONDS if usual is None else STALE_INTERVALS * usual):
            continue
        stale += 1
        name = f"{row['source']} of {row['cluster']}" if row["cluster"] else row["source"]
        often = f", usually every {spoken(usual)}" if usual is not None else ""
        step = "does its collector still run, and does its `path` match the new files? `goodput sources` shows"
        yield Finding("sources", WARNING, f"{name}: nothing new for {spoken(age)}{often}", step)
    if newest and not stale:
        yield Finding("sources", OK, f"{counted(len(newest), 'source')} bring what is new when they usually do")


def interval(collected: list[datetime]) -> float | None:
    """Return how many seconds usually lie between two rounds of collecting; None where fewer than three tell.

    Args:
        collected: times of collection, in order.
    """
    rounds = [(b - a).total_seconds() for a, b in pairwise(collected)]
    gaps = [gap for gap in rounds if gap > ROUND_SECONDS]
    return median(gaps) if len(gaps) >= 2 else None
