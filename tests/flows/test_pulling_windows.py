"""Which windows a command is asked for, and with what words."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.catching_up import in_turn
from flows.config import SourceConfig
from flows.due_windows import PullError, due, failing, gone, is_overdue, is_snapshot, upcoming, words
from flows.manifest import Pull
from flows.windows import Window, between
from tests.flows.pulling_help import one

HOUR = timedelta(hours=1)
DAY = datetime(2026, 11, 29, tzinfo=UTC)


def at(hour: float) -> datetime:
    return DAY + hour * HOUR


def hours(*starts: float) -> list[Window]:
    return [Window(at(s), at(s + 1)) for s in starts]


def source(command: tuple[str, ...] = ("sacct", "{start}"), **more: object) -> SourceConfig:
    return SourceConfig("", **{"name": "s", "command": command, "window": 3600, "delay": 600, **more})  # type: ignore[arg-type]


def tried(start: float, status: str = "loaded", length: float = 1, tries: int = 1) -> Pull:
    return Pull("s", at(start), at(start + length), status, at(start + length), tries)


def test_without_since_the_first_pull_is_of_the_last_whole_window() -> None:
    assert due(source(), [], at(12.5)) == hours(11)


def test_a_window_is_due_once_its_delay_is_over() -> None:
    """At 12:09 records of 11 to 12 o'clock may still be on their way."""
    assert due(source(), [], at(12) + timedelta(minutes=9)) == hours(10)
    assert due(source(), [], at(12) + timedelta(minutes=10)) == hours(11)
    assert due(source(delay=0), [], at(12)) == hours(11)


def test_a_window_that_is_still_open_is_never_due() -> None:
    assert due(source(), [tried(10)], at(11.9)) == []
    assert due(source(since=at(13)), [], at(12.5)) == []
    assert upcoming(source(), at(12.5)) == hours(12)[0]
    assert upcoming(source(), at(12.1)) == hours(11)[0], "11 to 12 is over, its delay is not"


def test_since_says_where_the_first_window_begins() -> None:
    assert due(source(since=at(8)), [], at(12.5)) == hours(8, 9, 10, 11)
    assert due(source(since=at(8.5)), [], at(12.5)) == hours(8, 9, 10, 11), "the window that holds it counts"
    assert due(source(since=at(8)), [tried(10)], at(12.5)) == hours(8, 9, 11), "a gap stays a gap until it is filled"
    assert due(source(since=at(10)), [tried(5)], at(12.5)) == hours(10, 11)


def test_after_an_outage_each_window_is_due_once_oldest_first() -> None:
    assert due(source(), [tried(5)], at(11.5)) == hours(6, 7, 8, 9, 10)


def test_a_failed_window_is_due_again_also_the_very_first() -> None:
    assert due(source(), [tried(9, "failed"), tried(10)], at(12.5)) == hours(9, 11)
    assert due(source(), [tried(9, "failed")], at(12.5)) == hours(9, 10, 11)


def test_windows_of_another_length_count_for_what_they_hold() -> None:
    """After `window` was changed nothing is asked for twice that was loaded as a whole."""
    assert due(source(), [tried(6, length=3), tried(9)], at(12.5)) == hours(10, 11)
    six = source(window=6 * 3600)
    assert due(six, [tried(h) for h in range(11)], at(12.5)) == [Window(at(6), at(12))]
    assert due(six, [tried(h) for h in range(12)], at(12.5)) == []
    assert due(six, [tried(h) for h in range(12) if h != 3], at(12.5)) == [Window(at(0), at(6))]


def test_a_path_is_never_asked() -> None:
    assert due(SourceConfig("a"), [], at(12)) == []


def test_a_command_that_tells_only_of_now_is_asked_for_the_newest_window_and_the_older_ones_are_gone() -> None:
    """What `scontrol show reservation` would have said at eight o'clock nobody can know at noon."""
    now_only = source(("scontrol", "show", "reservation"))
    assert is_snapshot(now_only)
    assert not is_snapshot(source(("ssh", "h", "sacct -S {start}")))
    assert due(now_only, [tried(7)], at(12.5)) == hours(11)
    assert gone(now_only, [tried(7)], at(12.5)) == hours(8, 9, 10)
    assert due(now_only, [tried(7), tried(11)], at(12.5)) == []
    assert gone(source(), [tried(7)], at(12.5)) == []


def test_windows_that_fail_for_ever_come_after_those_never_asked_for() -> None:
    """Else three of them would keep a source from ever going on."""
    pulls = [tried(5, "failed", tries=9), tried(6, "failed", tries=2), tried(7)]
    windows = due(source(), pulls, at(10.5))
    assert windows == hours(5, 6, 8, 9)
    assert in_turn(windows, pulls) == hours(8, 9, 6, 5)


def test_failing_are_failed_windows_that_are_still_wanted() -> None:
    pulls = [tried(5, "failed"), tried(8, "failed"), tried(9)]
    assert failing(source(), pulls, at(10.5)) == [pulls[0], pulls[1]]
    assert failing(source(since=at(7)), pulls, at(10.5)) == [pulls[1]]
    assert failing(source(("scontrol",)), pulls, at(10.5)) == [], "nobody can ask for it any more"


def test_a_command_is_overdue_two_windows_and_the_delay_after_what_it_loaded_last() -> None:
    pulls = [tried(5), tried(6, "failed")]
    assert not is_overdue(source(), pulls, at(8) + timedelta(minutes=10))
    assert is_overdue(source(), pulls, at(8) + timedelta(minutes=11))
    assert is_overdue(source(), [tried(5, "failed")], at(9)), "nothing was ever loaded"
    assert not is_overdue(source(), [], at(9)), "it was never asked"


def asked(tmp_path: Path, zone: str, start: str, *command: str) -> list[str]:
    config, first = one(tmp_path, ["x", *command], zone=zone)
    begin = datetime.fromisoformat(start)
    return words(config, first, Window(begin, begin + HOUR))[1:]


def test_limits_are_told_in_the_zone_of_the_cluster_in_utc_and_in_seconds(tmp_path: Path) -> None:
    told = asked(tmp_path, "Europe/Berlin", "2026-07-01T22:00:00+00:00", "{start}/{end}", "-u{start_utc},{end_utc}", "@{start_epoch}", "{end_epoch}")  # fmt: skip
    assert told == ["2026-07-02T00:00:00/2026-07-02T01:00:00", "-u2026-07-01T22:00:00Z,2026-07-01T23:00:00Z", "@1782943200", "1782946800"]  # fmt: skip


def test_the_zone_of_a_source_is_its_own_else_the_tz_of_its_environment(tmp_path: Path) -> None:
    """A command told to work in UTC is asked in UTC, and what it prints is read as UTC, whatever the cluster's zone is."""
    for more in ('zone = "UTC"', 'environment = { TZ = "UTC" }'):
        config, first = one(tmp_path, ["sacct", "{start}"], more, zone="Europe/Berlin")
        assert words(config, first, Window(DAY, at(1))) == ["sacct", "2026-11-29T00:00:00"]
        assert first.zone == "UTC"


def test_without_any_zone_local_times_are_refused_and_others_are_not(tmp_path: Path) -> None:
    config, first = one(tmp_path, ["x", "{start_utc}"])
    bare = SourceConfig("", name="s", command=("x", "{start}"), cluster="other")
    with pytest.raises(PullError, match="set `zone` on the source or its cluster"):
        words(config, bare, Window(DAY, at(1)))
    assert words(config, first, Window(DAY, at(1))) == ["x", "2026-11-29T00:00:00Z"]


def test_a_time_that_the_clock_shows_twice_is_moved_outwards(tmp_path: Path) -> None:
    """2026-10-25 in Berlin, 02:00 to 03:00 comes twice; both windows ask from before the first to after the second."""
    for start in ("2026-10-25T00:00:00+00:00", "2026-10-25T01:00:00+00:00"):
        told = asked(tmp_path, "Europe/Berlin", start, "{start}", "{end}")
        assert told[0] in ("2026-10-25T01:45:00", "2026-10-25T01:59:59")
        assert told[1] == "2026-10-25T03:00:00"
    before = asked(tmp_path, "Europe/Berlin", "2026-10-24T23:00:00+00:00", "{start}", "{end}")
    assert before == ["2026-10-25T01:00:00", "2026-10-25T03:00:00"]


def test_an_hour_that_the_clock_skips_needs_nothing(tmp_path: Path) -> None:
    told = asked(tmp_path, "Europe/Berlin", "2026-03-29T00:00:00+00:00", "{start}", "{end}")
    assert told == ["2026-03-29T01:00:00", "2026-03-29T03:00:00"]


@settings(max_examples=150, deadline=None)
@given(
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC", "Asia/Kathmandu"]),
    day=st.integers(0, 365), quarter=st.integers(0, 95), minutes=st.sampled_from([15, 60, 360, 1440]),
)  # fmt: skip
def test_however_a_program_understands_the_local_limits_they_hold_the_window(
    zone: str, day: int, quarter: int, minutes: int
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day, minutes=15 * quarter)
    window = Window(start, start + timedelta(minutes=minutes))
    config, first = one(Path("/nowhere"), ["x", "{start}", "{end}"], zone=zone)
    _, *told = words(config, first, window)
    for fold in (0, 1):
        begin, end = (datetime.fromisoformat(t).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for t in told)
        assert begin <= window.start
        assert end >= window.end
        assert window.start - begin <= 2 * HOUR, "not much more than was asked for"
        assert end - window.end <= 2 * HOUR


def test_the_system_understands_a_local_limit_as_we_do(tmp_path: Path) -> None:
    """`date` stands for any program that reads local times through the C library, as Slurm does."""
    (told,) = asked(tmp_path, "Europe/Berlin", "2026-07-01T22:00:00+00:00", "{start}")
    ran = subprocess.run(["date", "-d", told, "+%s"], env={"TZ": "Europe/Berlin", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)  # fmt: skip
    assert int(ran.stdout) == int(datetime(2026, 7, 1, 22, tzinfo=UTC).timestamp())


def test_a_year_of_hours_is_decided_quickly() -> None:
    pulls = [tried(h - 8760) for h in range(8760) if h % 100]
    assert len(due(source(since=at(-8760)), pulls, at(0) + HOUR)) == 88
    assert len(between(at(-8760), at(0), 3600)) == 8760
