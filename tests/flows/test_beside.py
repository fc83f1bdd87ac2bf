"""An export that was put beside the others later, and that no source matches, is told; nothing else beside them is."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from flows import beside, config, demo
from flows.ingesting import jobs
from tests.flows.conftest import Goodput

KERNEL = (
    "2026-10-20T02:00:00+00:00 node{n} kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid=1, GPU has fallen off the bus.\n"
)
LABEL = '{"interruption_id": "i1", "cause": "nic", "made_at": "2026-10-20T02:00:00Z"}\n'
CLUSTER = '[clusters.c]\nzone = "UTC"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kernel logs in a folder of their own, as `goodput init exports` proposes to read them."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    put("exports/kern/node1.log", KERNEL.format(n=1))
    (tmp_path / "goodput.toml").write_text(CLUSTER + source("exports/kern/*.log*"))
    return tmp_path


def put(name: str, content: str | bytes) -> Path:
    path = Path.cwd() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def source(path: str) -> str:
    return f'[[sources]]\npath = "{path}"\ncluster = "c"\n'


def found() -> dict[str, tuple[str, ...]]:
    settings = config.load()
    looked = beside.beside(settings, jobs(settings)[0])
    assert looked.is_whole
    return {str(path.relative_to(Path.cwd())): formats for path, formats in looked.files}


def told(goodput: Goodput) -> dict[str, str]:
    rows = json.loads(goodput("doctor", "--json").out)["findings"]
    (row,) = (r for r in rows if r["about"] == "other files")
    return {k: str(v) for k, v in row.items()}


def test_a_kind_that_is_added_later_is_told_with_the_command_that_proposes_how_to_read_it(
    goodput: Goodput, home: Path
) -> None:
    assert told(goodput)["level"] == "ok"
    put("exports/sel/node7.log", LABEL)
    one = told(goodput)
    assert one["level"] == "warning"
    assert "1 file beside the exports looks like an export and is not read" in one["text"]
    assert "exports/sel/node7.log (annotations)" in one["text"], "although no source names anything in that folder"
    step = "goodput init exports --config proposed.toml"
    assert f"`{step}`" in one["next_step"]
    assert goodput(*step.split()[1:]).code == 0, "what is advised works, and changes nothing that is there"
    assert "exports/sel/node7.log" in (home / "proposed.toml").read_text()
    assert "--config proposed1.toml`" in told(goodput)["next_step"], "the name is free"
    (home / "goodput.toml").write_text(CLUSTER + source("exports/kern/*.log*") + source("exports/sel/*.log"))
    assert told(goodput)["level"] == "ok"


@pytest.mark.usefixtures("home")
def test_check_warns_of_it_and_that_is_no_error(goodput: Goodput) -> None:
    assert goodput("run").code == 0
    before = goodput("check")
    assert "beside" not in before.err
    for n in (7, 8, 9):
        put(f"exports/new/node{n}.log", KERNEL.format(n=n))
    ran = goodput("check")
    assert (ran.code, ran.err.count("error: ")) == (before.code, before.err.count("error: "))
    (line,) = (line for line in ran.err.splitlines() if "beside" in line)
    assert line.startswith("warning: 3 files beside the exports look like exports and are not read")
    assert "exports/new/node7.log (kernel_log), exports/new/node8.log (kernel_log) and 1 more; `goodput init" in line


def test_what_a_source_matches_is_read_and_not_told_also_rotated_and_compressed_and_by_other_names(home: Path) -> None:
    put("exports/kern/node1.log.1", KERNEL.format(n=2))
    put("exports/kern/node1.log.2.gz", gzip.compress(KERNEL.format(n=3).encode()))
    (home / "exports/latest.log").symlink_to(home / "exports/kern/node1.log")
    assert found() == {}
    put("exports/kern/old-node1.gz", gzip.compress(KERNEL.format(n=3).encode()))
    assert found() == {"exports/kern/old-node1.gz": ("kernel_log",)}, "that name no pattern matches: it is lost"


@pytest.mark.usefixtures("home")
def test_what_does_not_look_like_an_export_is_not_told() -> None:
    put("exports/README.md", "# Exports\n\nWhat each of these files is.\n")
    put("exports/kern/nodes.bin", b"\0\1\2")
    put("exports/kern/broken.gz", b"\x1f\x8b\x08 this is no gzip")
    put("exports/empty.txt", "")
    for name in (".node2.log.Xy12", "node2.log~", "node2.log.tmp", "node2.log.part", ".old/node2.log"):
        put(f"exports/new/{name}", KERNEL.format(n=2))
    assert found() == {}, "hidden and unfinished files are not for anybody to read"


def test_what_goodput_keeps_itself_is_not_told(goodput: Goodput, home: Path) -> None:
    """Also where exports and data lie in one folder, and where the outputs of commands lie in it."""
    text = CLUSTER + source("exports/kern/*.log") + source("*.log")
    command = '[[sources]]\nname = "told"\ncommand = ["cat", "told.json"]\nformat = "annotations"\ncluster = "c"\n'
    put("told.json", LABEL)
    put("top.log", KERNEL.format(n=4))
    (home / "goodput.toml").write_text(text + command)
    assert goodput("run").code == 0
    put("data/prefect/server.log", KERNEL.format(n=5))
    assert list((home / "data/landing").rglob("*.zst"))
    assert list(found()) == ["told.json"], "which lies there, is an export, and might be meant to be read"
    (home / "goodput.toml").write_text(text.replace('"*.log"', '"data/*.log"') + command)
    shutil.move("top.log", "data/top.log")
    assert found() == {}


def test_folders_of_another_configuration_are_its_own(home: Path) -> None:
    demo.prepare(home / "exports" / "demo")
    assert found() == {}


def test_the_folder_above_is_looked_through_where_the_next_kind_will_be_put(home: Path) -> None:
    (home / "goodput.toml").write_text(source("exports/kern/*.log"))
    assert beside.folders(config.load()) == [home / "exports"]
    put("beside/the/configuration.log", KERNEL.format(n=1))
    assert found() == {}, "the configuration's own folder may hold anything"
    away = "/mnt/cluster/exports"
    (home / "goodput.toml").write_text(source(f"{away}/kern/{{node}}/*.log"))
    assert beside.folders(config.load()) == [Path(away) / "kern"], "one source does not tell what else lies there"
    (home / "goodput.toml").write_text(source(f"{away}/kern/*.log") + source(f"{away}/slurm/sacct_*.txt"))
    assert beside.folders(config.load()) == [Path(away)]
    (home / "goodput.toml").write_text(source("/kern/*.log") + source("/slurm/*") + source("/var/log/kern.log"))
    assert beside.folders(config.load()) == [Path("/kern"), Path("/slurm")], "a root or a system's logs are no exports"


def test_dots_in_a_path_do_not_lead_to_what_lies_around_the_exports(home: Path) -> None:
    """`/site/../exports` begins like a folder inside `/site`, whose parent would be `/site/..`, and holds everything."""
    (home / "site").mkdir()
    put("beside.log", KERNEL.format(n=1))
    put("exports/kern/other.txt", KERNEL.format(n=2))
    (home / "site/goodput.toml").write_text(source("../exports/kern/*.log"))
    settings = config.load(home / "site/goodput.toml")
    assert beside.folders(settings) == [home / "exports/kern"]
    assert [path.name for path, _ in beside.beside(settings, jobs(settings)[0]).files] == ["other.txt"]


def test_a_folder_with_brackets_in_its_name_is_that_folder(home: Path) -> None:
    """Else the walk would begin above it, among what is none of ours."""
    (home / "a[1]").mkdir()
    (home / "a[1]/goodput.toml").write_text(source("exports/*.log"))
    assert beside.folders(config.load(home / "a[1]/goodput.toml")) == [home / "a[1]/exports"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("limit", ["MOST_SEEN", "MOST_OPENED"])
def test_a_huge_folder_is_left_after_some_thousands_of_files_which_is_said(
    goodput: Goodput, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    for n in range(9):
        put(f"exports/kern/notes{n}.txt", "nothing\n")
    put("exports/zoo/last.log", KERNEL.format(n=7))
    assert "exports/zoo/last.log" in told(goodput)["text"]
    monkeypatch.setattr(beside, limit, 5)
    one = told(goodput)
    assert (one["level"], "there are too many, so only the first" in one["text"]) == ("ok", True)
    put("exports/first.log", KERNEL.format(n=7))
    assert "exports/first.log (kernel_log) (only the first" in told(goodput)["text"]
    assert not beside.beside(config.load(), []).is_whole


def test_links_to_folders_are_not_followed_and_closed_ones_hide_nothing_else(home: Path) -> None:
    (home / "elsewhere").mkdir()
    put("elsewhere/node9.log", KERNEL.format(n=9))
    (home / "exports/link").symlink_to(home / "elsewhere")
    (home / "exports/loop").symlink_to(home / "exports")
    os.mkfifo(home / "exports/pipe")
    (home / "exports/circle.log").symlink_to("circle.log")
    (home / "exports/nowhere.log").symlink_to("gone.log")
    closed = put("exports/closed/node9.log", KERNEL.format(n=9)).parent
    put("exports/z.log", KERNEL.format(n=9))
    closed.chmod(0)
    try:
        assert "exports/z.log" in found()
    finally:
        closed.chmod(0o755)
    shutil.rmtree(closed)
    assert list(found()) == ["exports/z.log"]


def test_without_a_path_there_is_nothing_to_look_at(goodput: Goodput, home: Path) -> None:
    (home / "goodput.toml").write_text('[[sources]]\ncommand = ["true", "{start}"]\n')
    assert "other files" not in goodput("doctor").out
