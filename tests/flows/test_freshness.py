"""A source is stale when it is overdue by its own habits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows import pipeline
from flows.config import Config
from flows.freshness import Freshness, freshness, interval
from flows.manifest import opened
from tests.flows.ingest_help import config, labels, write

START = datetime(2026, 5, 1, tzinfo=UTC)
TOML = """
[clusters.c1]
zone = "UTC"
[[sources]]
name = "often"
path = "exports/often_{collected_at}.jsonl"
[[sources]]
name = "rare"
path = "exports/rare_{collected_at}.jsonl"
[[sources]]
name = "fixed"
path = "exports/fixed.jsonl"
collected_at = 2020-01-01T00:00:00Z
[[sources]]
name = "never"
path = "exports/never_*.jsonl"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Config:
    """Two days of a source that comes hourly; one that came once; one that is not of now; one that never came."""
    for hour in range(48):
        write(tmp_path, f"often_{START + timedelta(hours=hour):%Y%m%dT%H%M%SZ}.jsonl", labels(hour))
    write(tmp_path, f"rare_{START + timedelta(hours=47):%Y%m%dT%H%M%SZ}.jsonl", labels(60) + "broken\n")
    write(tmp_path, "fixed.jsonl", labels(61))
    settings = config(tmp_path, TOML)
    pipeline.ingest(settings)
    return settings


def looked(settings: Config, hours: float) -> dict[str | None, Freshness]:
    with opened(settings.data) as manifest:
        return {f.source: f for f in freshness(settings, manifest, START + timedelta(hours=hours))}


def test_each_source_by_its_own_habit(settings: Config) -> None:
    found = looked(settings, 50.5)
    assert list(found) == ["often", "rare", "fixed", "never"]
    often = found["often"]
    assert (often.files, often.formats, often.usual_seconds) == (48, {"annotations"}, 3600)
    assert (often.collected_at, often.age_seconds) == (START + timedelta(hours=47), 3.5 * 3600)
    assert {name: f.is_stale for name, f in found.items()} == {
        "often": True, "rare": False, "fixed": False, "never": True,
    }  # fmt: skip
    assert (found["rare"].lines_rejected, found["rare"].usual_seconds) == (1, None)
    assert (found["never"].files, found["never"].collected_at, found["never"].age_seconds) == (0, None, None)


def test_it_is_not_stale_before_three_intervals_nor_one_of_unknown_habit_before_two_days(settings: Config) -> None:
    assert not looked(settings, 50)["often"].is_stale
    assert not looked(settings, 95)["rare"].is_stale
    assert looked(settings, 95.1)["rare"].is_stale


def test_files_that_are_gone_still_count(settings: Config) -> None:
    for path in (settings.base / "exports").glob("often_*"):
        path.unlink()
    assert looked(settings, 48)["often"].files == 48


def test_a_source_that_is_no_longer_configured_is_told_and_never_stale(settings: Config) -> None:
    _, kept = TOML.split('[[sources]]\nname = "rare"')
    fewer = config(settings.base, '[clusters.c1]\nzone = "UTC"\n[[sources]]\nname = "rare"' + kept)
    gone = looked(fewer, 999)[None]
    assert (gone.files, gone.is_stale) == (48, False)


def test_an_export_that_failed_is_no_news(settings: Config) -> None:
    write(settings.base, f"rare_{START + timedelta(hours=900):%Y%m%dT%H%M%SZ}.jsonl", b"\x1f\x8b broken gzip")
    pipeline.ingest(settings)
    rare = looked(settings, 1000)["rare"]
    assert (rare.files, rare.files_failed) == (1, 1)
    assert (rare.collected_at, rare.is_stale) == (START + timedelta(hours=47), True)


def test_an_export_that_failed_and_is_gone_is_no_problem(settings: Config) -> None:
    """Nobody can mend it: `goodput report` says no more than `goodput check` that something of the source fails."""
    broken = write(settings.base, f"rare_{START + timedelta(hours=900):%Y%m%dT%H%M%SZ}.jsonl", b"\x1f\x8b broken gzip")
    pipeline.ingest(settings)
    before = looked(settings, 1000)
    broken.unlink()
    after = looked(settings, 1000)
    assert (before["rare"].files_failed, after["rare"].files_failed) == (1, 0)
    assert (after["rare"].files, after["rare"].lines_rejected) == (1, 1), "what was read stays counted"


def test_an_export_that_failed_and_that_no_source_matches_any_more_is_no_problem(settings: Config) -> None:
    write(settings.base, f"rare_{START + timedelta(hours=900):%Y%m%dT%H%M%SZ}.jsonl", b"\x1f\x8b broken gzip")
    pipeline.ingest(settings)
    fewer = config(settings.base, TOML.replace("rare_{", "other_{"))
    gone = looked(fewer, 1000)[None]
    assert (gone.files, gone.files_failed) == (1, 0)


def test_a_new_habit_counts_after_some_rounds() -> None:
    """Daily for a month, then hourly for a day: what comes hourly now is not waited for for three days."""
    daily = [START + timedelta(days=d) for d in range(30)]
    hourly = [daily[-1] + timedelta(hours=h) for h in range(1, 25)]
    assert interval([*daily, *hourly]) == 3600


def test_nothing_was_read_yet(settings: Config) -> None:
    assert all(f.is_stale and f.files == 0 for f in freshness(settings, None, START))
