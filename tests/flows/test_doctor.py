"""`goodput doctor`: each thing it looks at, healthy and not; it writes nothing and stands on whatever it finds."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import namedtuple
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from flows import lease
from flows.cli import doctor_build, doctor_data
from tests.conftest import Site
from warehouse import publish

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "cases"
SETTINGS = """
[clusters.c1]
zone = "UTC"
gpus_per_node = 8
"""
Goodput = Callable[..., Any]
Found = list[tuple[str, str, str]]


def ago(**span: float) -> str:
    return f"{datetime.now(UTC) - timedelta(**span):%Y-%m-%dT%H:%M:%SZ}"


def make(folder: Path, collected_at: str) -> Site:
    made = Site(folder, SETTINGS, collected_at)
    made.add("sacct.txt", (CASES / "ID1" / "sacct_D.txt").read_bytes(), cluster="c1")
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make(tmp_path_factory.mktemp("built") / "site", ago(hours=1))
    made.run()
    return made.folder


@pytest.fixture
def home(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A healthy site of one's own, with no Prefect server set."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    return Path(shutil.copytree(built, tmp_path / "home", symlinks=True))


@pytest.fixture
def look(goodput: Goodput, home: Path) -> Callable[[], tuple[int, Found]]:
    """Run the command on `home`: its exit code, and each finding as level, what about, text with the next step."""

    def call() -> tuple[int, Found]:
        return findings(goodput, home / "goodput.toml")

    return call


def findings(goodput: Goodput, config: Path) -> tuple[int, Found]:
    ran = goodput("doctor", "--json", "--config", config)
    assert ran.err == ""
    rows = json.loads(ran.out)["findings"]
    return ran.code, [(r["level"], r["about"], f"{r['text']}; {r['next_step']}") for r in rows]


def bad(found: Found) -> list[tuple[str, str]]:
    return [(level, about) for level, about, _ in found if level != "ok"]


def text_of(found: Found, level: str, about: str) -> str:
    (text,) = (t for lev, a, t in found if (lev, a) == (level, about))
    return text


def tree(folder: Path) -> dict[str, object]:
    """Everything below a folder: kind, time of change, content."""
    return {
        str(p.relative_to(folder)): (p.lstat().st_mtime_ns, p.lstat().st_mode, p.is_file() and p.read_bytes())
        for p in [folder, *folder.rglob("*")]
    }


def test_a_healthy_site_has_a_line_for_each_thing_and_exit_0(goodput: Goodput, home: Path) -> None:
    ran = goodput("doctor", "--config", home / "goodput.toml")
    lines = ran.out.splitlines()
    assert (ran.code, ran.err, lines[-1]) == (0, "", f"0 problems, 0 warnings, {len(lines) - 1} ok")
    about = [re.fullmatch(r"ok {7}([a-z ]+): \S.*", line) for line in lines[:-1]]
    assert [a and a[1] for a in about] == [
        *("python", "prefect", "polars", "duckdb", "pyarrow", "configuration", "other files", "data folder"),
        *("filesystem", "disk", "writer", "clock", "exports", "build", "storage version", "checks", "sources"),
        "prefect server",
    ]


def test_it_writes_nothing(goodput: Goodput, home: Path) -> None:
    before = tree(home)
    assert goodput("doctor", "--config", home / "goodput.toml").code == 0
    assert tree(home) == before


def test_wrong_use_exits_2(goodput: Goodput) -> None:
    assert goodput("doctor", "--jsn").code == 2
    assert goodput("doctor", "surplus").code == 2


def test_without_a_configuration_the_rest_is_looked_at(goodput: Goodput, tmp_path: Path) -> None:
    code, found = findings(goodput, tmp_path / "none.toml")
    assert code == 1
    assert "goodput init" in text_of(found, "problem", "configuration")
    assert {"python", "prefect server"} <= {about for _, about, _ in found}
    assert not list(tmp_path.iterdir())


def test_each_mistake_of_a_configuration_is_a_problem_with_its_line(goodput: Goodput, tmp_path: Path) -> None:
    (tmp_path / "goodput.toml").write_text('[[sources]]\npath = "x"\nformat = "nix"\nclustr = "c"\n')
    code, found = findings(goodput, tmp_path / "goodput.toml")
    told = [text for level, about, text in found if (level, about) == ("problem", "configuration")]
    assert code == 1
    assert told
    assert all("goodput.toml: line " in text for text in told)


def test_before_the_first_run_there_are_warnings_only_and_nothing_is_made(goodput: Goodput, tmp_path: Path) -> None:
    (tmp_path / "goodput.toml").write_text("")
    code, found = findings(goodput, tmp_path / "goodput.toml")
    assert code == 0
    assert bad(found) == [("warning", a) for a in ("configuration", "data folder", "exports", "build")]
    assert "no [[sources]]" in text_of(found, "warning", "configuration")
    assert [p.name for p in tmp_path.iterdir()] == ["goodput.toml"]


def test_a_source_without_a_file_is_a_problem_as_it_is_an_error_of_run(
    look: Callable[[], tuple[int, Found]], home: Path
) -> None:
    with (home / "goodput.toml").open("a") as handle:
        handle.write('\n[[sources]]\npath = "exports/nothing*.log"\n')
    code, found = look()
    assert (code, bad(found)) == (1, [("problem", "configuration")])


@pytest.mark.parametrize("kind", ["file", "broken link"])
def test_a_data_folder_that_is_none_is_a_problem(goodput: Goodput, tmp_path: Path, kind: str) -> None:
    (tmp_path / "goodput.toml").write_text("")
    if kind == "file":
        (tmp_path / "data").write_text("")
    else:
        (tmp_path / "data").symlink_to("gone")
    code, found = findings(goodput, tmp_path / "goodput.toml")
    assert code == 1
    assert text_of(found, "problem", "data folder")


def test_a_folder_that_this_user_may_not_write_is_a_problem(
    look: Callable[[], tuple[int, Found]], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.access
    builds = home / "data" / "builds"
    monkeypatch.setattr(os, "access", lambda p, mode: False if p == builds else real(p, mode))
    code, found = look()
    assert code == 1
    assert f"{builds} cannot be written" in text_of(found, "problem", "data folder")


@pytest.mark.parametrize(("free", "level"), [(1_000, "problem"), (1_000_000_000, "warning"), (10**11, "ok")])
def test_little_room_is_told(
    look: Callable[[], tuple[int, Found]], monkeypatch: pytest.MonkeyPatch, free: int, level: str
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor_data.shutil, "disk_usage", lambda _: usage(10**12, 0, free))
    assert text_of(look()[1], level, "disk")


@pytest.mark.parametrize(("kind", "level"), [("nfs4", "warning"), ("tmpfs", "warning"), ("xfs", "ok")])
def test_filesystems_that_lose_locks_or_data_are_told(
    look: Callable[[], tuple[int, Found]], monkeypatch: pytest.MonkeyPatch, kind: str, level: str
) -> None:
    monkeypatch.setattr(doctor_data, "filesystem_of", lambda _: kind)
    assert kind in text_of(look()[1], level, "filesystem")


def test_the_filesystem_is_that_of_the_longest_mount_point(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw shared:1 - ext4 /dev/a rw\n"
        "23 22 0:5 / /srv/my\\040data rw - nfs4 host:/x rw\n"
        "24 22 0:6 / /srv rw master:2 - xfs /dev/b rw\n"
    )
    assert doctor_data.filesystem_of(Path("/srv/my data/lake"), mounts) == "nfs4"
    assert doctor_data.filesystem_of(Path("/srv/my database"), mounts) == "xfs"
    assert doctor_data.filesystem_of(Path("/srvx"), mounts) == "ext4"
    assert doctor_data.filesystem_of(Path("/srv"), tmp_path / "none") == "unknown"


def test_who_writes_now_is_named(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    with lease.hold(home / "data", "ingest"):
        code, found = look()
        assert code == 0
        assert re.match(rf"process {os.getpid()} on .*`ingest`.* writes now", text_of(found, "ok", "writer"))
    assert text_of(look()[1], "ok", "writer").startswith("nobody writes now; the last was process")


def test_a_writer_of_days_is_a_warning(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    with lease.hold(home / "data", "run"):
        path = home / "data" / lease.FILE_NAME
        path.write_text(json.dumps({"pid": 7, "host": "h", "command": "run", "since": ago(days=3)}))
        assert "for 3.0 d" in text_of(look()[1], "warning", "writer")


def test_what_a_killed_build_left_is_a_warning(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    (home / "data" / "builds" / "20260101T000000000000Z.duckdb.part").write_text("")
    assert "1 unfinished build" in text_of(look()[1], "warning", "writer")
    with publish.lock(home / "data"):  # it is being built right now
        assert not bad(look()[1])


def test_files_written_in_the_future_are_told(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    ahead = datetime.now(UTC).timestamp() + 7 * 3600
    os.utime(home / "exports" / "sacct.txt", (ahead, ahead))
    code, found = look()
    assert (code, bad(found)) == (0, [("warning", "clock")])
    assert re.search(r"sacct.txt was written (7|6\.9+)\S* h from now", text_of(found, "warning", "clock"))


def test_exports_collected_in_the_future_are_told(goodput: Goodput, tmp_path: Path) -> None:
    made = make(tmp_path / "s", ago(days=-3))
    made.run()
    _, found = findings(goodput, made.folder / "goodput.toml")
    assert "1 export collected in the future" in text_of(found, "warning", "clock")


@pytest.mark.parametrize(("days", "is_told"), [(0, False), (2, True)])
def test_a_file_named_for_today_is_of_no_future(goodput: Goodput, tmp_path: Path, days: int, is_told: bool) -> None:
    """A date alone is the end of that day, which is ahead all day long; and a file that is gone is asked nothing."""
    config, day = tmp_path / "goodput.toml", datetime.now(UTC) + timedelta(days=days)
    shutil.copy(CASES / "ID1" / "sacct_D.txt", tmp_path / f"sacct-{day:%Y%m%d}.txt")
    config.write_text(SETTINGS + '[[sources]]\npath = "sacct-{collected_at}.txt"\ncluster = "c1"\n')
    assert goodput("run", "--config", config).code == 0
    assert ("collected in the future" in str(findings(goodput, config))) is is_told
    (tmp_path / f"sacct-{day:%Y%m%d}.txt").unlink()
    assert "collected in the future" not in str(findings(goodput, config))


def test_exports_that_failed_or_that_no_parser_knows_are_problems(goodput: Goodput, tmp_path: Path) -> None:
    made = make(tmp_path / "s", ago(hours=1))
    made.add("odd.txt", "what is this\n" * 3)
    made.add("cut.jsonl.gz", b"\x1f\x8bno gzip at all")
    made.run()
    code, found = findings(goodput, made.folder / "goodput.toml")
    told = [text for level, about, text in found if (level, about) == ("problem", "exports")]
    assert code == 1
    assert len(told) == 2
    assert "cut.jsonl.gz" in told[0]
    assert "odd.txt: no parser knows this format" in told[1]
    assert text_of(found, "ok", "exports").startswith("1 of 3 files read")


@pytest.mark.parametrize("content", [None, b"", b"no database at all" * 100])
def test_a_lake_without_its_manifest_is_a_problem(
    look: Callable[[], tuple[int, Found]], home: Path, content: bytes | None
) -> None:
    path = home / "data" / "manifest.sqlite"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    before = tree(home)
    code, found = look()
    assert (code, bad(found)) == (1, [("problem", "exports")])
    assert "backup" in text_of(found, "problem", "exports")
    assert tree(home) == before


def test_a_lake_without_warehouse_is_a_warning(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    (home / "data" / "warehouse.duckdb").unlink()
    shutil.rmtree(home / "data" / "builds")
    code, found = look()
    assert (code, bad(found)) == (0, [("warning", "build")])
    assert "goodput build" in text_of(found, "warning", "build")


def test_a_link_to_nothing_and_a_missing_link_are_problems(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    link = home / "data" / "warehouse.duckdb"
    link.unlink()
    assert "goodput rollback" in text_of(look()[1], "problem", "build")
    link.symlink_to("builds/gone.duckdb")
    code, found = look()
    assert code == 1
    assert "builds/gone.duckdb, which is not there" in text_of(found, "problem", "build")


def test_a_file_in_place_of_the_link_is_a_problem(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    link = home / "data" / "warehouse.duckdb"
    shutil.copy(link.resolve(), home / "copy")
    link.unlink()
    (home / "copy").rename(link)
    problems = [text for level, about, text in look()[1] if (level, about) == ("problem", "build")]
    assert len(problems) == 1
    assert "not the link" in problems[0]


def test_what_this_user_may_not_read_does_not_hide_the_rest(
    look: Callable[[], tuple[int, Found]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied", "the/folder")

    monkeypatch.setattr(publish, "builds", refused)
    code, found = look()
    assert (code, bad(found)) == (1, [("problem", "build")])
    assert "the/folder: Permission denied; may this user read it?" in text_of(found, "problem", "build")
    assert found[-1][1] == "prefect server"


def the_build(home: Path) -> Path:
    path = (home / "data" / "warehouse.duckdb").resolve()
    path.chmod(0o644)
    return path


def test_a_damaged_build_is_a_problem(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    the_build(home).write_bytes(b"\0" * 9_000)
    code, found = look()
    assert code == 1
    assert "cannot be opened" in text_of(found, "problem", "build")


def test_broken_rules_are_problems(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    with duckdb.connect(str(the_build(home))) as con:
        con.execute("insert into marts.attempts from marts.attempts")
    code, found = look()
    assert code == 1
    told = [text for level, about, text in found if (level, about) == ("problem", "checks")]
    assert any(text.startswith("attempts_have_one_key: ") for text in told)
    assert ("ok", "checks") not in [(level, about) for level, about, _ in found]


def test_an_old_build_is_a_warning(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    with duckdb.connect(str(the_build(home))) as con:
        con.execute("update ops.builds set started_at = started_at - interval 3 days")
    assert "3.0 d old" in text_of(look()[1], "warning", "build")


def test_a_newer_storage_version_is_a_warning() -> None:
    assert doctor_build._storage("v1.0.0+").level == "ok"
    newer = doctor_build._storage("v1.5.0+")
    assert (newer.level, "goodput build" in newer.next_step) == ("warning", True)


def test_a_build_that_is_not_the_newest_is_told(look: Callable[[], tuple[int, Found]], home: Path) -> None:
    link = home / "data" / "warehouse.duckdb"
    shutil.copy(link.resolve(), link.resolve().with_name("29991231T000000000000Z.duckdb"))
    told = text_of(look()[1], "warning", "build")
    assert "not the newest build" in told
    assert "`goodput rollback 29991231T000000000000Z " in told
    assert "`goodput build --force " in told, "without it there is nothing new, so nothing is built"


def test_the_usual_interval_is_that_between_rounds_of_collecting() -> None:
    start = datetime(2026, 5, 1, tzinfo=UTC)
    rounds = [start + timedelta(hours=h, seconds=s) for h in (0, 1, 2, 3) for s in (0, 5, 9)]
    assert doctor_build.interval(rounds) == pytest.approx(3600, abs=10)
    assert doctor_build.interval(rounds[:6]) is None  # two rounds: one gap tells nothing


@pytest.mark.parametrize(
    ("hours", "level", "told"),
    [
        ((1, 2, 3), "ok", "1 source "),
        ((4, 5, 6), "warning", "nothing new for 4.0 h, usually every 60 min"),  # 48 h are not waited for
        ((72, 144, 216), "ok", "1 source "),  # comes every three days: not stale after three
        ((47,), "ok", "1 source "),
        ((49,), "warning", "nothing new for 2.0 d"),
    ],
)
def test_sources_that_bring_nothing_new_are_told(
    goodput: Goodput, tmp_path: Path, hours: tuple[int, ...], level: str, told: str
) -> None:
    made = Site(tmp_path / "s", SETTINGS)
    sacct = (CASES / "ID1" / "sacct_D.txt").read_bytes()
    for hour in hours:
        made.add(f"sacct_{hour}.txt", sacct, cluster="c1", collected_at=ago(hours=hour))
    made.run()
    _, found = findings(goodput, made.folder / "goodput.toml")
    assert told in text_of(found, level, "sources")
