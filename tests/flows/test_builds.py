"""`goodput builds`, `diff`, `rollback` and `report`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.conftest import Goodput
from tests.flows.two_builds import EARLIER, LATER, altered, two_builds
from warehouse import publish, query


@pytest.fixture
def home(tmp_path: Path, demo_folder: Path) -> Path:
    """Two builds; the earlier one lacks an interruption, judges another otherwise, and a third with other confidence."""
    sql = "select interruption_id as id from marts.interruptions order by interrupted_at"
    ids = [row["id"] for row in query.rows(publish.link_of(demo_folder / "data"), sql)]
    two_builds(
        tmp_path,
        demo_folder,
        f"delete from marts.interruptions where interruption_id = '{ids[0]}'",
        f"update marts.interruptions set cause = 'nic' where interruption_id = '{ids[1]}'",
        f"update marts.interruptions set confidence = 0.123 where interruption_id = '{ids[2]}'",
    )
    return tmp_path


def test_builds_are_listed_with_what_tells_them_apart(goodput: Goodput, home: Path) -> None:
    config = ["--config", home / "goodput.toml"]
    first, second = json.loads(goodput("builds", "--json", *config).out)
    assert (first["build"], second["build"]) == (EARLIER, LATER)
    assert (first["published"], second["published"]) == (False, True)
    assert (first["rolled_back"], second["rolled_back"]) == (False, False)
    assert second["interruptions"] > 0
    assert second["started_at"] == "2026-01-02T00:00:00+00:00"
    assert second["age_seconds"] > 0
    assert second["size_mb"] > 0
    shown = goodput("builds", *config)
    assert (EARLIER in shown.out, LATER in shown.out, shown.err) == (True, True, "")


def test_a_rollback_is_said_and_how_it_ends(goodput: Goodput, home: Path) -> None:
    config = ["--config", home / "goodput.toml"]
    ran = goodput("rollback", *config)
    assert (ran.code, ran.out) == (0, f"published {EARLIER} instead of {LATER}\n")
    assert "until there is something new" in ran.err
    assert "goodput build --force" in ran.err
    listed = goodput("builds", *config)
    assert f"{LATER} was rolled back" in listed.err
    assert goodput("rollback", *config).code == 1, "there is none before it"
    back = json.loads(goodput("rollback", LATER, "--json", *config).out)
    assert back == {"published": LATER, "before": EARLIER, "newest_held_back": None}
    assert goodput("builds", *config).err == ""


def test_status_tells_the_published_build_from_newer_ones(goodput: Goodput, home: Path) -> None:
    """After a rollback readers see an older build: to call that the last one would hide that newer ones were set aside."""
    config = ["--config", home / "goodput.toml"]

    def last_line() -> str:
        (line,) = (line for line in goodput("status", *config).out.splitlines() if " build 20" in line)
        return line

    assert last_line().startswith("last build "), "the published one is the newest"
    assert goodput("rollback", *config).code == 0
    assert last_line().startswith("published build ")
    assert f"; there is 1 newer build (rolled back), the newest {LATER}: `goodput builds " in last_line()
    told = json.loads(goodput("status", "--json", *config).out)["build"]
    assert (told["newer_builds"], told["is_rolled_back"]) == ([LATER], True)
    (home / "data/builds" / publish.ROLLED_BACK).unlink()
    assert "1 newer build (not published)" in last_line(), "nobody rolled it back: its build was killed"


def test_where_the_published_build_is_gone_readers_are_told_of_those_that_are_kept(
    goodput: Goodput, home: Path
) -> None:
    config = ["--config", home / "goodput.toml"]
    (home / "data/builds" / f"{LATER}.duckdb").unlink()
    for command in ("report", "interruptions"):
        said = goodput(command, *config).err
        assert f"`goodput rollback {EARLIER} " in said
        assert "goodput run" not in said
    assert goodput("rollback", EARLIER, *config).code == 0, "what was advised helps"
    assert goodput("interruptions", *config).code == 0


def test_a_build_that_was_never_published_is_no_rollback(goodput: Goodput, home: Path) -> None:
    data = home / "data"
    publish.switch(data, publish.folder_of(data) / f"{EARLIER}.duckdb")
    assert "was made but not published" in goodput("builds", "--config", home / "goodput.toml").err


def test_a_damaged_build_is_named(goodput: Goodput, home: Path) -> None:
    broken = publish.folder_of(home / "data") / f"{EARLIER}.duckdb"
    broken.chmod(0o644)
    broken.write_bytes(b"x")
    ran = goodput("builds", "--config", home / "goodput.toml")
    assert ran.code == 0
    assert f"{EARLIER} cannot be opened" in ran.err
    ran = goodput("diff", "--config", home / "goodput.toml")
    assert ran.code == 1
    assert f"{EARLIER}.duckdb cannot be opened" in ran.err


def test_diff_compares_the_published_build_with_the_one_before(goodput: Goodput, home: Path) -> None:
    config = ["--config", home / "goodput.toml"]
    told = json.loads(goodput("diff", "--json", *config).out)
    assert (told["old"], told["new"]) == (EARLIER, LATER)
    assert [row["change"] for row in told["interruptions"]] == ["added", "changed", "changed"]
    shown = goodput("diff", *config)
    assert shown.code == 0
    assert "2 interruptions differ: 1 new, 0 gone, 1 judged otherwise" in shown.out
    assert "nic" in shown.out
    assert "1 more kept their verdict with another confidence" in shown.err
    every = goodput("diff", "--all", *config)
    assert "3 interruptions differ" in every.out


def test_diff_of_named_builds_the_other_way_round(goodput: Goodput, home: Path) -> None:
    config = ["--config", home / "goodput.toml"]
    told = json.loads(goodput("diff", LATER, "20260101", "--json", *config).out)
    assert [row["change"] for row in told["interruptions"]] == ["gone", "changed", "changed"]


def test_diff_tells_what_the_same_interruptions_cost_before_and_now(
    goodput: Goodput, tmp_path: Path, demo_folder: Path
) -> None:
    """With a longer checkpoint interval the earlier build assumed more lost work: an hour of GPUs more, and less training."""
    two_builds(
        tmp_path,
        demo_folder,
        "update marts.interruptions set lost_gpu_seconds = lost_gpu_seconds + 3600, "
        "lost_work_gpu_seconds = lost_work_gpu_seconds + 3600 "
        "where interruption_id = (select min(interruption_id) from marts.interruptions)",
        "update marts.runs set effective_training_time = effective_training_time - 0.02",
    )
    config = ["--config", tmp_path / "goodput.toml"]
    cost = json.loads(goodput("diff", "--json", *config).out)["cost"]
    for part in ("lost", "held"):
        assert cost[f"old_{part}_gpu_seconds"] == cost[f"new_{part}_gpu_seconds"] + 3600
    assert [round(r["new_effective_training_time"] - r["old_effective_training_time"], 6) for r in cost["runs"]] == [
        0.02
    ] * cost["number_of_runs"]
    out = goodput("diff", *config).out
    assert "both tell the same interruptions, with the same verdicts\n" in out
    was, now = (f"{cost[f'{side}_lost_gpu_seconds'] / 3600:,.2f}" for side in ("old", "new"))
    assert f"GPU-hours lost: {was} before, {now} now; on GPUs held: " in out
    share = cost["runs"][0]
    assert f"{share['old_effective_training_time']:.2%} before, {share['new_effective_training_time']:.2%} now" in out


def test_diff_is_silent_about_costs_that_are_the_same(goodput: Goodput, tmp_path: Path, demo_folder: Path) -> None:
    two_builds(tmp_path, demo_folder, "update marts.interruptions set lost_gpu_seconds = lost_gpu_seconds")
    ran = goodput("diff", "--config", tmp_path / "goodput.toml")
    assert ran.out == "both tell the same interruptions, with the same verdicts\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["2026"], "several builds have ids that begin with"),
        (["nonsense"], "there is no build"),
        ([EARLIER, "nonsense"], "there is no build"),
    ],
)
def test_a_build_that_is_not_there_is_an_error(
    goodput: Goodput, home: Path, arguments: list[str], message: str
) -> None:
    ran = goodput("diff", *arguments, "--config", home / "goodput.toml")
    assert ran.code == 1
    assert message in ran.err
    assert "goodput builds" in ran.err


def test_diff_without_a_build_before_says_so(goodput: Goodput, home: Path) -> None:
    config = ["--config", home / "goodput.toml"]
    assert goodput("rollback", *config).code == 0
    ran = goodput("diff", *config)
    assert ran.code == 1
    assert f"no build before {EARLIER} is kept" in ran.err


def test_the_report_has_every_table(goodput: Goodput, home: Path) -> None:
    config = ["--config", home / "goodput.toml"]
    ran = goodput("report", *config)
    assert ran.code == 0
    for heading in (
        "Interruptions and training time",
        "Root causes",
        "Freshness of the sources",
        "What changed",
        "Last builds",
    ):
        assert f"\n{heading}\n" in ran.out
    sections = json.loads(goodput("report", "--json", *config).out)["sections"]
    assert [s["key"] for s in sections] == ["runs", "root-causes", "freshness", "changes", "builds"]
    assert "all" in {row["period"] for row in sections[0]["rows"]}


def test_the_report_of_a_period(goodput: Goodput, home: Path) -> None:
    config = ["--config", home / "goodput.toml"]
    sections = json.loads(goodput("report", "--since", "2000-01-01", "--json", *config).out)["sections"]
    assert {row["period"] for row in sections[0]["rows"]} == {"since 2000-01-01"}
    assert goodput("report", "--since", "yesterday", *config).code == 2


def test_names_from_exports_are_harmless_in_the_report(goodput: Goodput, home: Path) -> None:
    altered(publish.published(home / "data"), "update marts.runs set run = 'x' || chr(27) || '[31m'",
            "update marts.interruptions set run = 'x' || chr(27) || '[31m', culprit_node = chr(27) || ']0;x'")  # fmt: skip
    config = ["--config", home / "goodput.toml"]
    assert "\x1b" not in goodput("report", *config).out
    assert "\x1b" not in goodput("diff", "--all", *config).out


def test_a_build_of_a_former_version_is_an_error_with_its_next_step(goodput: Goodput, home: Path) -> None:
    altered(publish.published(home / "data"), "drop table marts.ledger")
    ran = goodput("report", "--config", home / "goodput.toml")
    assert ran.code == 1
    assert "run `goodput build " in ran.err
