"""What a command printed and no parser could read is asked for again, and goes away once there is an answer that can be read.

Wrappers end with exit code 0 though the program in them failed: its message is then kept as if it were the answer.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows import pipeline
from flows.manifest import opened
from tests.flows.backfill_help import (
    COMMAND,
    asked,
    asking,
    at,
    backfilled,
    config,
    planned,
    todo,
    told,
)
from tests.flows.conftest import Goodput
from tests.flows.ingest_help import check_balance
from transforms import lake

FORMAT = 'format = "slurm_sacct"\n'
HEADER = "JobID|State|ExitCode|Start|End|NodeList"
JOBS = f"""day=$(echo "$1" | cut -c9-10)
printf '{HEADER}\\n8%s|FAILED|1:0|2026-01-%sT08:00:00|2026-01-%sT09:00:00|n1\\n' $day $day $day"""
GARBAGE = "echo 'sacct: error: slurm_persist_conn_open_without_init'"
QUIET = f"echo '{HEADER}'"
DAYS = [f"2026-01-0{day}" for day in range(1, 8)]
ALL_JOBS = [f"80{day}" for day in range(1, 8)]


def jobs(home: Path) -> list[str]:
    return sorted(lake.scan(home / "data/lake", "job_attempts").collect()["job_id"])


def landed(home: Path, folder: str = "landing") -> int:
    return len(list((home / "data" / folder / "pulled").glob("*.zst")))


def not_read(home: Path) -> list[str]:
    """The status of every export that `goodput check` would call a problem."""
    with opened(home / "data") as manifest:
        return [e["status"] for e in manifest.exports() if e["status"] != "loaded"]


def again(home: Path, script: str, text: str, reprocess: str = "failed") -> list[str]:
    """Backfill with another script behind the command; the windows that were not loaded, and why."""
    asking(home, script)
    return [o.message for o in backfilled(home, text, reprocess=reprocess).failed]


@pytest.mark.parametrize("form", [FORMAT, ""], ids=["failed", "unknown"])
def test_garbage_is_asked_again_by_failed_and_goes_when_the_command_works(tmp_path: Path, form: str) -> None:
    """Else `--reprocess failed` reads the same garbage for ever, and `check` never gets clean."""
    text = COMMAND + form
    assert again(tmp_path, JOBS, text, "none") == []
    assert len(again(tmp_path, GARBAGE, text, "all")) == 7
    assert jobs(tmp_path) == ALL_JOBS, "garbage takes nothing away"
    assert all("sacct: error" in why for why in told(tmp_path, text).values())
    assert todo(tmp_path, text) == [], "only who asks for it has it tried again"
    (tmp_path / "asked").unlink()
    assert again(tmp_path, JOBS, text) == []
    assert sorted(asked(tmp_path)) == DAYS, "each window once"
    assert jobs(tmp_path) == ALL_JOBS
    assert set(told(tmp_path, text).values()) == {"done"}
    assert not_read(tmp_path) == []
    assert (landed(tmp_path), landed(tmp_path, "quarantine/landing")) == (7, 14), "the former answer went too"
    assert todo(tmp_path, text, "failed") == []
    check_balance(tmp_path)


def test_garbage_of_an_ordinary_ingest_is_mended_alike(tmp_path: Path) -> None:
    text = COMMAND + FORMAT
    asking(tmp_path, GARBAGE)
    pipeline.ingest(config(tmp_path, text), until=at(8, 6))
    assert len(not_read(tmp_path)) == 7
    assert again(tmp_path, JOBS, text) == []
    assert jobs(tmp_path) == ALL_JOBS
    assert not_read(tmp_path) == []
    assert not pipeline.ingest(config(tmp_path, text), until=at(8, 6)).failed


def test_an_answer_without_records_takes_the_place_of_garbage_and_not_of_records(tmp_path: Path) -> None:
    """In a quiet hour the right answer is none; what a forgetful system once told stays all the same."""
    text = COMMAND + FORMAT
    again(tmp_path, f'case "$1" in 2026-01-0[1-3]*) {JOBS};; *) {QUIET};; esac', text, "none")
    again(tmp_path, GARBAGE, text, "all")
    assert again(tmp_path, QUIET, text) == []
    assert jobs(tmp_path) == ALL_JOBS[:3]
    assert not_read(tmp_path) == []
    assert set(told(tmp_path, text).values()) == {"done"}


def test_garbage_again_replaces_nothing_and_the_window_stays_failed(tmp_path: Path) -> None:
    text = COMMAND + FORMAT
    again(tmp_path, GARBAGE, text, "none")
    assert len(again(tmp_path, GARBAGE, text)) == 7
    assert landed(tmp_path) == 7, "the same garbage is kept once"
    assert len(again(tmp_path, GARBAGE + "; echo 'at noon'", text)) == 7
    assert landed(tmp_path, "quarantine/landing") == 0
    assert len(todo(tmp_path, text, "failed")) == 7
    assert again(tmp_path, JOBS, text) == []
    assert (landed(tmp_path), not_read(tmp_path)) == (7, [])


def test_garbage_left_beside_an_answer_goes_though_the_same_answer_comes_again(tmp_path: Path) -> None:
    """A process killed before it set the file aside leaves it so; the window must not stay failed for ever."""
    text = COMMAND + FORMAT
    again(tmp_path, GARBAGE, text, "none")
    again(tmp_path, JOBS, text)
    for path in (tmp_path / "data/quarantine/landing/pulled").iterdir():
        path.rename(tmp_path / "data/landing/pulled" / path.name)
    pipeline.ingest(config(tmp_path, text), until=at(8, 6))
    assert len(not_read(tmp_path)) == 7
    assert again(tmp_path, JOBS, text) == []
    assert (landed(tmp_path), not_read(tmp_path), jobs(tmp_path)) == (7, [], ALL_JOBS)


def test_where_the_command_then_fails_that_is_the_reason_told(tmp_path: Path) -> None:
    """What is to be mended now is why the last try failed, not what an earlier one printed."""
    text = COMMAND + FORMAT
    again(tmp_path, GARBAGE, text, "none")
    asking(tmp_path, "echo 'no route to host' >&2; exit 4")
    report = backfilled(tmp_path, text, reprocess="failed", max_active=1)
    assert [o.status for o in report.failed] == ["failed"] * 3 + ["left"] * 4
    assert all("exit code 4: no route to host" in o.message for o in report.failed[:3])


def test_what_was_unreadable_for_want_of_a_setting_is_read_before_it_may_go(tmp_path: Path) -> None:
    """It may be the only copy by now: a system that forgot what is old answers without records."""
    without = (COMMAND + FORMAT).replace('zone = "UTC"\n', "")
    assert len(again(tmp_path, JOBS, without, "none")) == 7
    assert again(tmp_path, QUIET, COMMAND + FORMAT) == []
    assert jobs(tmp_path) == ALL_JOBS


def test_garbage_of_a_command_that_tells_only_of_now_is_not_asked_for_again(tmp_path: Path) -> None:
    """Its answer would be of another time."""
    text = COMMAND.replace(', "{start_utc}"', "").replace("since = 2026-01-01T00:00:00Z\n", "") + FORMAT
    asking(tmp_path, GARBAGE)
    pipeline.ingest(config(tmp_path, text), until=at(8, 6))
    plan = planned(tmp_path, text, "failed", at(8, 6))
    assert [(str(s.state.window), s.needs_pull) for s in plan.todo] == [("2026-01-07", False)]


def test_ingest_names_the_command_that_asks_again(tmp_path: Path, goodput: Goodput) -> None:
    """It does not do so by itself, and what it says of a file in `landing/` tells nobody what to do."""
    since = f"since = {datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}T00:00:00Z"
    config(tmp_path, COMMAND.replace("since = 2026-01-01T00:00:00Z", since) + FORMAT)
    asking(tmp_path, GARBAGE)
    words = ("ingest", "--config", tmp_path / "goodput.toml")
    assert goodput(*words).code == 1
    said = goodput(*words).err
    again = re.search(
        r"windows? could not be read; once they work, `goodput (backfill .* --reprocess failed .*)` asks again", said
    )
    assert again is not None
    asking(tmp_path, JOBS)
    assert goodput(*again[1].split(), "--no-build", "--here").code == 0
    ran = goodput(*words)
    assert (ran.code, "could not be read" in ran.err) == (0, False)


def test_the_plan_says_why_a_window_is_asked_for_again(
    tmp_path: Path, goodput: Goodput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.chdir(tmp_path)
    again(tmp_path, GARBAGE, COMMAND + FORMAT, "none")
    ran = goodput("backfill", "--start", "2026-01-01", "--end", "2026-01-02", "--reprocess", "failed", "--dry-run")
    why = "what the command printed could not be read"
    assert f"2 {why}" in " ".join(ran.out.split())
    (line,) = (" ".join(line.split()) for line in ran.out.splitlines() if line.startswith("2026-01-0"))
    both = "2026-01-01 to 2026-01-02 pulled failed 2 2 asked"
    assert line.startswith(f"{both} {why}: no header of sacct"), "two days, a file each, for the same reason: one line"
