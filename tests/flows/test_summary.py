"""The report's tables agree with the marts, whatever period they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows import summary
from flows.config import Config, load
from flows.summary import Period, Section
from tests.flows.two_builds import EARLIER, LATER, altered, two_builds
from warehouse import publish, query
from warehouse.publish import NoWarehouseError

LONG_AFTER = datetime(2040, 1, 1, tzinfo=UTC)
ALL = (Period("all"),)


@pytest.fixture
def settings(demo_folder: Path) -> Config:
    return load(demo_folder / "goodput.toml")


def asked(settings: Config, sql: str) -> list[dict[str, Any]]:
    return query.rows(publish.link_of(settings.data), sql)


def runs(settings: Config, now: datetime, since: datetime | None = None) -> Sequence[summary.Row]:
    return summary.runs(settings, now, [Period("asked", since)]).rows


def middle(settings: Config) -> datetime:
    """A moment in the middle of the longest run."""
    sql = "select started_at + (observed_until - started_at) / 2 as at from marts.runs order by elapsed_hours desc limit 1"
    at = asked(settings, sql)[0]["at"]
    assert isinstance(at, datetime)
    return at


def test_every_section_has_its_columns_in_every_row(settings: Config) -> None:
    sections = summary.summary(settings, now=LONG_AFTER)
    assert [s.key for s in sections] == ["runs", "root-causes", "freshness", "changes", "builds"]
    for section in sections:
        assert section.title
        assert section.explanation.endswith(".")
        assert all(set(section.columns) <= set(row) for row in section.rows), section.key
    plain = (str, int, float, bool, datetime, type(None))
    values = [row[c] for s in sections for row in s.rows for c in s.columns]
    assert all(isinstance(value, plain) for value in values)


def test_over_everything_runs_are_as_the_marts_tell_them(settings: Config) -> None:
    told = asked(settings, "select * from marts.runs order by cluster, started_at, run_id")
    found = runs(settings, LONG_AFTER)
    assert len(found) == len(told) >= 1
    for row, run in zip(found, told, strict=True):
        assert (row["run"], row["interruptions"], row["unexpected"]) == (
            run["run"],
            run["interruptions"],
            run["unexpected"],
        )
        assert row["mtti_hours"] == pytest.approx(run["mtti_hours"], abs=1e-3)
        assert row["mtti_unexpected_hours"] == pytest.approx(run["mtti_unexpected_hours"], abs=1e-3)
        assert row["effective_training_time"] == pytest.approx(run["effective_training_time"], abs=1e-4)
        assert row["is_running"] == (run["ended_at"] is None)


def test_two_periods_that_meet_add_up(settings: Config) -> None:
    """An interruption and an hour belong to one of them, never to both or none."""
    cut = middle(settings)
    whole, before, after = runs(settings, LONG_AFTER), runs(settings, cut), runs(settings, LONG_AFTER, cut)
    for name in ("elapsed_hours", "interruptions", "unexpected", "planned"):
        total = sum(row[name] or 0 for row in whole)  # type: ignore[misc]
        parts = sum(row[name] or 0 for row in (*before, *after))  # type: ignore[misc]
        assert parts == pytest.approx(total, abs=0.002), name


def test_effective_training_time_of_two_periods_adds_up(tmp_path: Path, demo_folder: Path) -> None:
    """Weighted with GPU time, the parts make the whole: no second of a state is lost at the limit."""
    settings = two_builds(tmp_path, demo_folder)
    altered(
        publish.published(settings.data),
        "delete from marts.runs where run_id <> (from (select arg_max(run_id, elapsed_hours) from marts.runs))",
        "update marts.ledger set gpus = 8",
    )
    cut = middle(settings)
    [whole], [before], [after] = runs(settings, LONG_AFTER), runs(settings, cut), runs(settings, LONG_AFTER, cut)

    def productive(row: summary.Row) -> float:
        share, hours = row["effective_training_time"], row["elapsed_hours"]
        assert isinstance(share, float)
        assert isinstance(hours, float)
        return share * hours

    assert productive(whole) > 0
    assert productive(before) + productive(after) == pytest.approx(productive(whole), abs=0.002)


def test_an_interruption_at_the_limit_belongs_to_the_later_period(settings: Config) -> None:
    at = asked(settings, "select min(interrupted_at) as at from marts.interruptions")[0]["at"]
    assert sum(int(str(r["interruptions"])) for r in runs(settings, at)) == 0
    assert sum(int(str(r["interruptions"])) for r in runs(settings, at + timedelta(seconds=1), at)) == 1


def test_a_period_without_a_run_has_no_row(settings: Config) -> None:
    found = summary.summary(settings, now=LONG_AFTER)[0].rows
    assert {row["period"] for row in found} == {"all"}, "the demo lies long before that week"


def test_where_nothing_stopped_there_is_no_mtti(settings: Config) -> None:
    first = asked(settings, "select min(interrupted_at) as at from marts.interruptions")[0]["at"]
    found = runs(settings, first)
    assert found
    assert {(r["interruptions"], r["mtti_hours"], r["lost_gpu_hours"]) for r in found} == {(0, None, None)}


def test_causes_add_up_to_the_marts(settings: Config) -> None:
    found = summary.root_causes(settings, LONG_AFTER, ALL).rows
    sql = "select cause, count(*) as n, sum(lost_gpu_seconds) / 3600 as lost from marts.interruptions group by cause"
    told = {row["cause"]: row for row in asked(settings, sql)}
    assert {row["cause"]: row["interruptions"] for row in found} == {cause: row["n"] for cause, row in told.items()}
    for row in found:
        assert row["lost_gpu_hours"] == pytest.approx(told[row["cause"]]["lost"], abs=0.01)
    shares = [row["share_of_unexpected"] for row in found if row["class"] == "unexpected"]
    assert sum(shares) == pytest.approx(1, abs=1e-3)  # type: ignore[arg-type]
    assert {row["share_of_unexpected"] for row in found if row["class"] != "unexpected"} <= {None}


def test_what_changed_since_the_build_before(tmp_path: Path, demo_folder: Path) -> None:
    first, second, third = ids(demo_folder)[:3]
    settings = two_builds(
        tmp_path,
        demo_folder,
        f"delete from marts.interruptions where interruption_id = '{first}'",
        f"update marts.interruptions set cause = 'nic', confidence = 0.3 where interruption_id = '{second}'",
        f"update marts.interruptions set confidence = 0.123 where interruption_id = '{third}'",
    )
    without_history(settings)
    section = summary.changed(settings, LONG_AFTER)
    assert [(r["interruption_id"], r["change"]) for r in section.rows] == [(first, "added"), (second, "changed")]
    changed = section.rows[1]
    assert (changed["old_cause"], changed["old_confidence"]) == ("nic", 0.3)
    assert changed["new_cause"] not in (None, "nic")
    assert LATER in section.explanation
    assert EARLIER in section.explanation
    assert "1 more kept their verdict" in section.explanation


def test_a_history_tells_more_than_the_last_two_builds(tmp_path: Path, demo_folder: Path) -> None:
    """Hourly builds would leave a daily report one hour of changes; the published build remembers those before it."""
    settings = two_builds(tmp_path, demo_folder)
    altered(
        publish.published(settings.data),
        "drop table ops.verdict_changes",
        """
        create table ops.verdict_changes as
        select
            timestamptz '2040-01-01 00:00Z' - to_hours(unnest([50, 20, 3])) as changed_at, unnest(['a', 'b', 'c']) as build_id,
            'changed' as change, 'i1' as interruption_id, timestamptz '2026-01-01 00:00Z' as interrupted_at, 'c1' as cluster,
            'r1' as run_id, null as run, '1' as job_id, ['cause'] as changed, 'nic' as old_cause, 'gpu_hbm' as new_cause,
            0.5 as old_confidence, 0.9 as new_confidence, 'unexpected' as old_class, 'unexpected' as new_class,
            null as old_culprit_node, 'n1' as new_culprit_node
        """,
    )
    rows = summary.changed(settings, LONG_AFTER).rows
    assert [(row["build"], row["run"], row["changed"]) for row in rows] == [("b", "r1", "cause"), ("c", "r1", "cause")]
    longer = summary.changed(settings, LONG_AFTER, LONG_AFTER - timedelta(days=7)).rows
    assert [row["build"] for row in longer] == ["a", "b", "c"]


def ids(demo_folder: Path) -> list[str]:
    sql = "select interruption_id from marts.interruptions order by interrupted_at, interruption_id"
    return [row["interruption_id"] for row in query.rows(publish.link_of(demo_folder / "data"), sql)]


def test_the_only_build_is_compared_with_nothing(tmp_path: Path, demo_folder: Path) -> None:
    settings = two_builds(tmp_path, demo_folder)
    publish.rollback(settings.data, EARLIER)
    without_history(settings)
    section = summary.changed(settings, LONG_AFTER)
    assert section.rows == ()
    assert "no build before it is kept" in section.explanation


def without_history(settings: Config) -> None:
    """Make the published build one of a version that kept no history."""
    altered(publish.published(settings.data), "drop table ops.verdict_changes")


def test_the_last_builds_newest_first(tmp_path: Path, demo_folder: Path) -> None:
    settings = two_builds(tmp_path, demo_folder)
    publish.rollback(settings.data, EARLIER)
    section = summary.last_builds(settings, datetime(2026, 1, 3, tzinfo=UTC))
    assert [(r["build"], r["is_published"], r["is_rolled_back"]) for r in section.rows] == [
        (LATER, False, True),
        (EARLIER, True, False),
    ]
    assert [r["age_seconds"] for r in section.rows] == [86400, 2 * 86400]


def test_freshness_counts_what_was_read_by_source(settings: Config) -> None:
    section: Section = summary.fresh(settings, LONG_AFTER)
    assert [row["source"] for row in section.rows] == [source.name for source in settings.sources]
    assert (
        sum(int(str(row["files"])) for row in section.rows)
        == asked(settings, "select count(distinct path) as n from ops.exports")[0]["n"]
    )
    fixed = {source.name for source in settings.sources if source.collected_at is not None}
    assert {row["source"]: row["is_stale"] for row in section.rows} == {
        source.name: source.name not in fixed for source in settings.sources
    }


def test_texts_are_handed_on_as_they_are(tmp_path: Path, demo_folder: Path) -> None:
    settings = two_builds(tmp_path, demo_folder)
    hostile = "<img src=x>\x1b[31m'; drop table"
    escaped = hostile.replace("'", "''")
    altered(publish.published(settings.data), f"update marts.runs set run = '{escaped}'")
    assert {row["run"] for row in runs(settings, LONG_AFTER)} == {hostile}


def test_before_the_first_build_the_message_says_what_to_run(tmp_path: Path, demo_folder: Path) -> None:
    (tmp_path / "goodput.toml").write_text((demo_folder / "goodput.toml").read_text())
    with pytest.raises(NoWarehouseError, match="run `goodput run` first"):
        summary.summary(load(tmp_path / "goodput.toml"), now=LONG_AFTER)
