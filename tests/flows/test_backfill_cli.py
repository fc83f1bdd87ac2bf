"""What `goodput backfill` and `goodput status --coverage` print, and how they end."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from flows import manifest, pipeline
from flows.cli import coverage as calendars
from flows.config import load
from tests.flows.backfill_help import COMMAND, DAILY, OTHER, PRINTS, asking, config, write
from tests.flows.conftest import Goodput
from tests.flows.ingest_help import label

JANUARY = ("--start", "2026-01-01", "--end", "2026-01-07")


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    config(tmp_path, DAILY + OTHER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_plan_comes_first_then_the_work_then_there_is_nothing_to_do(home: Path, goodput: Goodput) -> None:
    write(home, 1)
    write(home, 7)
    write(home, 8)
    ran = goodput("backfill", *JANUARY, "--dry-run")
    assert ran.code == 0
    assert "Plan for 2026-01-01 to 2026-01-07, oldest first, --reprocess none" in ran.out
    plan = next(line.split() for line in ran.out.splitlines() if line.startswith("daily"))
    assert plan[:5] == ["daily", "7", "2", "2", "5"], "a day given as the end is in it"
    assert [line.split()[:3] for line in ran.out.splitlines() if line.startswith("2026-01")] == [
        ["2026-01-01", "daily", "missing"],
        ["2026-01-07", "daily", "missing"],
    ]
    assert not (home / "data").exists(), "a dry run writes nothing"
    ran = goodput("backfill", *JANUARY, "--no-build")
    assert ran.code == 0
    assert "loaded 2 of 2 windows: 2 files, 2 lines, 0 rejected" in ran.out
    ran = goodput("backfill", *JANUARY, "--dry-run")
    assert ran.out.splitlines()[-1] == "nothing to do"
    assert "not in the published build yet" in ran.err


def test_windows_that_are_alike_and_follow_each_other_are_one_line(home: Path, goodput: Goodput) -> None:
    """A month of an hourly command is one line, not 700: what differs must not drown. --json has each window."""
    config(home, COMMAND + OTHER)
    asking(home, f'case "$1" in 2026-01-04*) exit 3;; esac\n{PRINTS}')
    goodput("backfill", "--start", "2026-01-04", "--end", "2026-01-04", "--no-build")
    for day in (2, 3, 4, 6):
        write(home, day, name="other")
    asked_for = ("backfill", *JANUARY, "--reprocess", "failed", "--dry-run")

    def listed(*options: str) -> list[list[str]]:
        lines = goodput(*asked_for, *options).out.splitlines()
        return [line.split("  ") for line in lines if line.startswith("2026-01")]

    shown = [[cell.strip() for cell in line if cell.strip()][:6] for line in listed()]
    assert shown == [
        ["2026-01-01 to 2026-01-03", "pulled", "missing", "3", "0", "asked"],
        ["2026-01-02 to 2026-01-04", "other", "missing", "3", "3", "-"],
        ["2026-01-04", "pulled", "failed", "1", "0", "asked"],
        ["2026-01-05 to 2026-01-07", "pulled", "missing", "3", "0", "asked"],
        ["2026-01-06", "other", "missing", "1", "1", "-"],
    ], "a source's windows are put together though those of another lie between; a gap or another state ends a line"
    backwards = [line[0] for line in listed("--run-backwards")]
    assert backwards[0] == "2026-01-05 to 2026-01-07", "the first to be loaded come first, written as a period is"
    windows = json.loads(goodput(*asked_for, "--json").out)["windows"]
    assert sum(w["to_load"] for w in windows) == 11


def test_a_time_given_as_the_end_is_not_in_the_period(home: Path, goodput: Goodput) -> None:
    write(home, 1)
    write(home, 2)
    ran = goodput("backfill", "--start", "2026-01-01", "--end", "2026-01-02T00:00:00Z", "--dry-run", "--json")
    assert [w["start"] for w in json.loads(ran.out)["windows"] if w["to_load"]] == ["2026-01-01T00:00:00+00:00"]


def test_failed_windows_end_it_with_one_and_the_command_that_does_the_rest(home: Path, goodput: Goodput) -> None:
    text = DAILY + 'format = "annotations"\n'
    config(home, text)
    write(home, 1)
    write(home, 2).write_bytes(b"\x1f\x8b\x08 this is no gzip")
    ran = goodput("backfill", *JANUARY, "--source", "daily", "--no-build")
    assert ran.code == 1
    again = "goodput backfill --start 2026-01-01T00:00:00Z --end 2026-01-08T00:00:00Z --source daily --reprocess failed"
    assert f"`{again}` does only what is left" in ran.err
    assert "error: daily 2026-01-02: exports/daily_2026-01-02.jsonl: cannot be read" in ran.err
    ran = goodput("backfill", *JANUARY, "--no-build")
    assert ran.code == 0
    assert "1 window failed before and will be left" in ran.err
    write(home, 2)
    ran = goodput(*again.split()[1:], "--no-build", "--json")
    assert ran.code == 0
    assert [(o["source"], o["start"][:10], o["status"]) for o in json.loads(ran.out)["outcomes"]] == [
        ("daily", "2026-01-02", "loaded")
    ]


def test_each_window_is_counted_once_in_the_plan(home: Path, goodput: Goodput) -> None:
    config(home, COMMAND)
    asking(home, PRINTS)
    three = ("--start", "2026-01-01", "--end", "2026-01-03", "--no-build")
    assert goodput("backfill", *three).code == 0
    ran = goodput("backfill", *three, "--reprocess", "all", "--dry-run")
    (plan,) = (line for line in ran.out.splitlines() if line.startswith("pulled"))
    assert " ".join(plan.split()) == "pulled 3 3 3 3 to be loaded again", "it was read from a file and asked for: once"


def test_windows_before_since_are_said_to_be_so(home: Path, goodput: Goodput) -> None:
    config(home, COMMAND)
    asking(home, PRINTS)
    ran = goodput("backfill", "--start", "2025-12-30", "--end", "2025-12-31", "--dry-run")
    assert "2 before `since`" in ran.out
    line = COMMAND.splitlines().index("since = 2026-01-01T00:00:00Z") + 1
    assert f"2 windows before `since` of pulled (goodput.toml line {line}); set it earlier" in ran.err


def test_a_file_that_no_parser_knows_is_a_warning_as_it_is_for_ingest(home: Path, goodput: Goodput) -> None:
    write(home, 1, text="what is this\n")
    ran = goodput("backfill", *JANUARY, "--no-build")
    assert ran.code == 0
    assert "warning: exports/daily_2026-01-01.jsonl: no parser knows this format" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--start", "yesterday"), "'yesterday' is no time"),
        (("--start", "2026-01-07", "--end", "2026-01-01"), "--end 2026-01-01 is not after --start 2026-01-07"),
        ((*JANUARY, "--source", "dayly"), 'did you mean "daily"?'),
        ((*JANUARY, "--max-active", "0"), "write 1 to 32"),
        (("--start", "0001-01-01", "--end", "9999-12-31"), "there is no day after it"),
        (("--start", "0001-01-01", "--end", "9999-12-30"), "windows; write a later --start"),
        (("--start", "2026-01-01", "--end", "9999-12-30"), "windows; write an earlier --end"),
        ((*JANUARY, "--reprocess", "some"), "some"),
        ((), "--start"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_touched(
    home: Path, goodput: Goodput, arguments: tuple[str, ...], message: str
) -> None:
    ran = goodput("backfill", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert not (home / "data").exists()


def test_the_calendar_has_a_letter_a_day_and_says_what_is_wrong(home: Path, goodput: Goodput) -> None:
    for day in (1, 2, 4):
        write(home, day)
    pipeline.ingest(load(home / "goodput.toml"))
    write(home, 2, 2, 22)
    write(home, 3)
    ran = goodput("status", "--coverage", *JANUARY)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert "       2026-01" in lines
    assert "       1234567" in lines
    assert "daily  .SM.---" in lines
    assert "other  -------" in lines
    assert "  M missing (not loaded yet): 1" in lines
    assert "2026-01-02  daily   stale    the file changed" in lines
    assert "`goodput backfill --start 2026-01-02T00:00:00Z --end 2026-01-04T00:00:00Z`" in ran.err


def test_the_calendar_shows_what_there_is_where_no_period_is_given(home: Path, goodput: Goodput) -> None:
    write(home, 3)
    write(home, 5)
    assert "daily  M-M" in goodput("status", "--coverage").out.splitlines()
    with manifest.opened_to_read(home / "data") as opened:
        assert opened is None, "and changes nothing"


def test_every_window_is_in_json(home: Path, goodput: Goodput) -> None:
    config(home, DAILY + 'window = "12h"\n')
    write(home, 1)
    made = json.loads(goodput("status", "--coverage", "--since", "2026-01-01", "--end", "2026-01-02", "--json").out)
    assert [(w["source"], w["start"][8:13], w["state"], w["files"]) for w in made["windows"]] == [
        ("daily", "01T00", "none", 0),
        ("daily", "01T12", "missing", 1),
        ("daily", "02T00", "none", 0),
        ("daily", "02T12", "none", 0),
    ]


@pytest.mark.usefixtures("home")
def test_limits_of_a_calendar_without_a_calendar_are_refused(goodput: Goodput) -> None:
    ran = goodput("status", "--start", "2026-01-01")
    assert ran.code == 2
    assert "--coverage" in ran.err
    assert goodput("status", "--coverage", "--source", "dayly").code == 2


def drawn(first: date, days: int, width: int, step: int = 1) -> list[str]:
    rows = {"a_source": {first + timedelta(days=n): "done" for n in range(0, days, step)}}
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC)
    shown = calendars.columns(begin, begin + timedelta(days=days), days=step)
    return list(calendars.calendar(rows, shown, width))


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_a_calendar_fits_its_width_and_leaves_out_no_day(width: int) -> None:
    lines = drawn(date(2026, 1, 15), 150, width)
    assert max(map(len, lines)) <= width
    assert sum(line.removeprefix("a_source").count(".") for line in lines) == 150


def test_months_stand_side_by_side_below_their_names_and_days_below_their_numbers() -> None:
    assert drawn(date(2026, 1, 30), 13, 60) == [
        "          2026-01 2026-02",
        "          3                1",
        "          01      12345678901",
        "a_source  ..      ...........",
        "",
    ]


def test_a_long_calendar_has_a_letter_a_week() -> None:
    lines = drawn(date(2025, 6, 2), 400, 100, step=7)
    assert "2025" in lines[0]
    assert sum(line.removeprefix("a_source").count(".") for line in lines) == 58
    assert max(map(len, lines)) <= 100


def test_the_worst_window_of_a_day_is_shown(home: Path, goodput: Goodput) -> None:
    config(home, DAILY + 'window = "6h"\n')
    write(home, 1)
    pipeline.ingest(load(home / "goodput.toml"))
    (home / "exports/daily_20260101T060000Z.jsonl").write_text(label(9))
    assert (
        "daily  M" in goodput("status", "--coverage", "--start", "2026-01-01", "--end", "2026-01-01").out.splitlines()
    )
