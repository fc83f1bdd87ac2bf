"""The demo's folder: one process at a time, no links to write through, and no more than a machine carries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from flows import demo, lease
from flows.cli import demo as command
from flows.demo import DemoExistsError, Replay, ReplayError
from tests.flows.ingest_help import ROOT

Goodput = Callable[..., Any]
SMALL = ("--seed", "4", "--nodes", "16", "--days", "1")


def test_a_second_demo_in_a_folder_leaves_and_names_the_first(goodput: Goodput, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    with demo.alone(folder):
        demo.prepare(folder)
        before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
        ran = goodput("demo", folder, "--example", "slurm")
        assert (ran.code, f"process {os.getpid()} on " in ran.err, "`demo`" in ran.err) == (1, True, True)
        assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    assert goodput("demo", folder, "--example", "slurm").code == 0, "the lock ends with its holder"


def test_of_demos_that_begin_at_once_one_makes_it_whole(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    call = [sys.executable, "-m", "flows.cli", "demo", str(folder), *SMALL]
    started = [
        subprocess.Popen(call, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    ended = [(process.communicate()[1], process.returncode) for process in started]
    assert 0 in [code for _, code in ended], ended
    assert all("is writing to" in said for said, code in ended if code), ended
    demo.prepare_replay(tmp_path / "alone", Replay(4, 16, 1))
    for path in (tmp_path / "alone/exports").rglob("*"):
        if path.is_file():
            assert (folder / path.relative_to(tmp_path / "alone")).read_bytes() == path.read_bytes(), path


def test_a_lock_alone_is_an_empty_folder_and_goes_with_a_replay_that_cannot_be(
    goodput: Goodput, tmp_path: Path
) -> None:
    with demo.alone(tmp_path / "d"):
        pass
    assert [p.name for p in (tmp_path / "d").iterdir()] == [demo.LOCK], "what a kill leaves before anything is made"
    assert goodput("demo", tmp_path / "d", "--nodes", "3").code == 2
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("name", [demo.EXPORTS, demo.TRUTH, demo.CONFIG])
def test_nothing_is_written_through_a_link(goodput: Goodput, tmp_path: Path, name: str) -> None:
    """What an interrupted call left is made anew, but not in a folder that a link in it leads to."""
    folder, other = tmp_path / "d", tmp_path / "other"
    demo.prepare(folder)
    (folder / demo.CONFIG).unlink()
    other.mkdir()
    (other / "thesis.tex").write_text("x")
    if (folder / name).exists():
        (folder / name).rename(tmp_path / "away")
    (folder / name).symlink_to(other if name == demo.EXPORTS else other / "new")
    ran = goodput("demo", folder, "--example", "slurm")
    assert (ran.code, "is a link" in ran.err) == (2, True)
    assert [p.name for p in other.iterdir()] == ["thesis.tex"]


def test_a_folder_that_is_a_link_to_nowhere_is_told(goodput: Goodput, tmp_path: Path) -> None:
    (tmp_path / "d").symlink_to(tmp_path / "none")
    ran = goodput("demo", tmp_path / "d", *SMALL)
    assert (ran.code, f"is a link to {tmp_path / 'none'}" in ran.err.replace("\n", " ")) == (2, True)
    assert not (tmp_path / "none").exists()


def test_a_folder_of_something_else_gets_no_lock(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(DemoExistsError), demo.alone(tmp_path):
        pytest.fail("the folder is somebody else's")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    "replay",
    [
        Replay(nodes=1_000_000_000),
        Replay(nodes=demo.MOST_NODES + 1, days=1),
        Replay(nodes=16, days=demo.MOST_DAYS + 1),
        Replay(nodes=demo.MOST_NODES, days=26),
    ],
)
def test_more_than_a_machine_carries_is_refused_with_the_limits(tmp_path: Path, replay: Replay) -> None:
    with pytest.raises(ReplayError, match="at most 32,768 nodes, 400 days, and 819,200 node-days"):
        demo.prepare_replay(tmp_path / "d", replay)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("replay", [Replay(), Replay(nodes=2048, days=400), Replay(nodes=demo.MOST_NODES, days=25)])
def test_what_a_machine_carries_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay: Replay) -> None:
    begun: list[Replay] = []
    monkeypatch.setattr(demo, "_generate", lambda _folder, what, _progress: begun.append(what))
    demo.prepare_replay(tmp_path / "d", replay)
    assert begun == [replay]


def test_the_size_of_large_exports_is_told_before_they_are_written(
    goodput: Goodput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(_folder: Path, _replay: Replay, progress: Callable[[str], None]) -> None:
        progress("the first step")
        raise ReplayError("that was enough")

    monkeypatch.setattr(demo, "_generate", begin)
    assert "exports will take about 2.3 GB" in goodput("demo", tmp_path / "d", "--nodes", "16", "--days", "400").err
    assert "exports will take" not in goodput("demo", tmp_path / "d").err


def test_the_size_that_is_told_is_about_right(tmp_path: Path) -> None:
    for replay in (Replay(nodes=16, days=2), Replay(nodes=256, days=2)):
        folder = tmp_path / str(replay.nodes)
        demo.prepare_replay(folder, replay)
        size = sum(p.stat().st_size for p in (folder / "exports").rglob("*") if p.is_file())
        assert size == pytest.approx(replay.export_bytes, rel=0.25)
    assert command.SAID_BYTES == 2e9


def test_a_lock_whose_file_was_removed_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opened the file just before its last holder removed it would lock what nobody else sees."""
    lock = lease._try

    def late(handle: BinaryIO) -> bool:
        (tmp_path / "x.lock").unlink()
        return lock(handle)

    monkeypatch.setattr(lease, "_try", late)
    with pytest.raises(lease.BusyError), lease.hold(tmp_path, "late", name="x.lock"):
        pytest.fail("another one may hold the file that is there now")
