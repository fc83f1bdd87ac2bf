"""What the command line says of commands that are asked for exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from flows import pipeline
from tests.flows.pulling_help import DAILY, config, days_ago, home_of, sacct, sh, since, toml

if TYPE_CHECKING:
    from tests.flows.conftest import Goodput


def test_the_command_line_shows_pulls_and_ends_with_1_where_one_failed(tmp_path: Path, goodput: Goodput) -> None:
    file = home_of(
        tmp_path,
        toml(sacct(tmp_path / "log"), DAILY + since(days_ago(2)), name="acct"),
        toml(["no-such-program"], name="events"),
    )
    ran = goodput("ingest", "--config", file)
    assert ran.code == 1
    assert "asked 2 commands for 3 windows: 2 loaded, 1 failed\n" in ran.out
    assert "read 2 of 2 exports" in ran.out
    assert "error: events " in ran.err
    assert "`no-such-program` was not found" in ran.err
    assert "asks for it again" in ran.err
    told = json.loads(goodput("ingest", "--json", "--config", file).out)
    assert [(p["source"], p["status"], p["tries"]) for p in told["pulls"]] == [("events", "failed", 2)]
    assert goodput("run", "--config", file).code == 1
    assert (tmp_path / "data/warehouse.duckdb").exists(), "everything else was done"
    check = goodput("check", "--config", file)
    assert check.code == 1
    assert "error: events " in check.err
    assert "warning: events " in goodput("status", "--config", file).err


def test_windows_that_fail_alike_are_told_of_once(tmp_path: Path, goodput: Goodput) -> None:
    file = home_of(tmp_path, toml(sh("echo no slurm >&2; exit 3 # {start}"), DAILY + since(days_ago(3)), name="acct"))
    ran = goodput("ingest", "--config", file)
    assert "asked 1 command for 3 windows: 0 loaded, 3 failed" in ran.out
    assert ran.err.count("no slurm") == 1
    assert f"the same for 2 other windows: {days_ago(2):%Y-%m-%d}, {days_ago(1):%Y-%m-%d}\n" in ran.err


def test_sources_shows_what_was_asked_and_what_is_due(tmp_path: Path, goodput: Goodput) -> None:
    file = home_of(tmp_path, toml(sacct(tmp_path / "log"), DAILY + since(days_ago(5)), name="acct"))
    before = goodput("sources", "--config", file)
    assert "acct: `sh -c" in before.out
    assert "  not asked yet\n" in before.out
    assert f"  due now: {days_ago(5):%Y-%m-%d}, 5 windows until {days_ago(0):%Y-%m-%d}" in before.out
    assert "matches no file" not in before.err
    goodput("ingest", "--config", file)
    after = goodput("sources", "--config", file).out
    assert ": 5 files\n" in after
    assert after.count("data/landing/acct/") == 3, "the newest"
    assert "loaded, " in after
    assert "  due next: " in after
    (told,) = json.loads(goodput("sources", "--json", "--config", file).out)["sources"]
    assert (told["name"], told["due"], told["failing"], told["is_overdue"]) == ("acct", 0, 0, False)
    assert told["last_pull"]["status"] == "loaded"
    assert told["command"][0] == "sh"


def test_a_command_that_brings_nothing_for_long_is_told_of(tmp_path: Path, goodput: Goodput) -> None:
    file = home_of(tmp_path, toml(sacct(tmp_path / "log"), DAILY + since(days_ago(9)), name="acct"))
    settings = config(tmp_path, toml(sacct(tmp_path / "log"), DAILY + since(days_ago(9)), name="acct"))
    pipeline.ingest(settings, until=days_ago(5))
    for command in ("status", "check", "doctor"):
        ran = goodput(command, "--config", file)
        assert "acct: its last loaded window ended" in ran.out + ran.err
    assert "overdue: " in goodput("sources", "--config", file).out
    goodput("ingest", "--config", file)
    assert "acct: its last" not in goodput("status", "--config", file).err


def test_doctor_looks_for_programs_and_secrets(tmp_path: Path, goodput: Goodput) -> None:
    file = home_of(
        tmp_path,
        toml(["no-such-program"], name="one"),
        toml(sh(":"), 'secrets = ["NO_SUCH_SECRET"]', name="two"),
        toml(sh(":"), name="three"),
    )
    out = goodput("doctor", "--config", file).out
    assert "problem  commands: one: the program `no-such-program` is not found here" in out
    assert "warning  commands: two: the secret NO_SUCH_SECRET is not in this environment" in out
    assert "three: not asked yet" in out
