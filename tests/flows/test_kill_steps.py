"""Killed (SIGKILL) before each step at which a command changes the disk: readers see a whole build, the next run completes.

The steps are those that an undisturbed run of the same work takes, as seen from outside (`tests.flows.kill_steps`), so a new
kind of step is killed too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.flows.kill_help import Runner, Site, runner
from tests.flows.kill_scene import scene, weeks
from transforms import lake
from transforms.tables import TABLES

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Case:
    """A command that is killed.

    Attributes:
        state: data folder it begins with.
        command: what is killed.
        after: what completes the work.
        steps: some of the steps it must be seen to take; the premise of the test.
    """

    state: str
    command: tuple[str, ...]
    after: tuple[str, ...]
    steps: tuple[str, ...]


WRITE = (
    "write lake/FOLDER/PART.parquet.unfinished",
    "fsync lake/FOLDER/PART.parquet.unfinished",
    "rename lake/FOLDER/PART.parquet",
    "fsync lake/FOLDER",
    "manifest: begin",
    "manifest: insert parts",
    "manifest: insert pieces",
    "manifest: insert files",
    "manifest: commit",
)
PUBLISH = (
    "open builds/.lock",
    "mkdir builds/ID.spill",
    "database: attach",
    "database: comment",
    "database: checkpoint",
    "database: detach",
    "chmod builds/ID.duckdb.part",
    "fsync builds/ID.duckdb.part",
    "rename builds/ID.duckdb",
    "fsync builds",
    "symlink .warehouse.duckdb.SESSION",
    "rename warehouse.duckdb",
    "fsync .",
    "rmdir builds/ID.spill",
)
REAL = ("rename", "remove", "manifest: commit")
BACKFILL = ("backfill", "--here", "--start", f"{weeks()[0]:%Y-%m-%d}", "--source", "weekly", "--reprocess", "all")
CASES = {
    "ingest": Case(
        "published",
        ("ingest",),
        ("ingest",),
        (
            *WRITE,
            "remove lake/FOLDER/PART.parquet",
            "remove lake/FOLDER/PART.parquet.unfinished",
            "mkdir quarantine",
            "rename quarantine/node_states/cluster=llm/date=DAY/PART.parquet",
            "rename quarantine/node_states/cluster=llm/date=DAY/theirs.parquet",
            "manifest: update pieces",
            "manifest: delete pieces",
            "manifest: delete parts",
        ),
    ),
    "build": Case(
        "ingested",
        ("build",),
        ("run",),
        (
            *PUBLISH,
            "remove lake/FOLDER/PART.parquet",
            "remove builds/ID.duckdb.part",
            "remove builds/ID.duckdb.part.wal",
            "remove builds/ID.spill/duckdb_temp_block-1.block",
            "remove .warehouse.duckdb.SESSION",
            "remove builds/ID.duckdb",
        ),
    ),
    "backfill": Case(
        "published",
        BACKFILL,
        BACKFILL,
        (
            "open landing/weekly/.RANDOM.unfinished",
            "fsync landing/weekly/.RANDOM.unfinished",
            "rename landing/weekly/ID-ID_ID.zst",
            "fsync landing/weekly",
            "manifest: insert pulls",
            *WRITE,
            *PUBLISH,
        ),
    ),
    "maintain": Case(
        "built", ("maintain",), ("maintain",), ("remove lake/FOLDER/PART.parquet", "rmdir lake/FOLDER", *WRITE[:6])
    ),
    "rollback": Case(
        "built", ("rollback",), ("build", "--force"), ("symlink .warehouse.duckdb.SESSION", "rename warehouse.duckdb")
    ),
    "first run": Case("empty", ("run",), ("run",), ("manifest: make", "mkdir lake", "mkdir builds", *WRITE, *PUBLISH)),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return scene(tmp_path_factory.mktemp("kill") / "site")


@pytest.fixture(scope="module")
def goodput(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with runner(tmp_path_factory.mktemp("runner")) as process:
        yield process


@pytest.fixture(scope="module")
def met() -> set[str]:
    """Steps that some command was killed before: the first run takes most of those of ingest and build once more."""
    return set()


def rows(site: Site) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each normalized table, however often each is there; without the piece they were read in, and when it was
    collected, which for what a command printed is now.
    """
    told = ("export_id", "collected_at")
    frames = {name: lake.scan(site.data / "lake", name).drop(told, strict=False).collect() for name in TABLES}
    return {name: sorted(map(hashable, frame.rows()), key=repr) for name, frame in frames.items()}


def hashable(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


def completed(site: Site, goodput: Runner, case: Case, *, built: bool = True) -> dict[str, Any]:
    """All that must be the same after a kill and the work's completion as if nobody had been killed."""
    site.let_a_minute_pass()
    for command in [case.after] + [("run",)] * (built and case.after != ("run",)):
        goodput.done(site, *command)
    found = {"lake": rows(site), "landed": site.landed(), "strangers": site.strangers(), "damage": site.damage()}
    return found | ({"marts": site.digest()} if built else {})


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare all that was found with what was expected.

    Where a command was asked twice for a window, what it printed is in the lake twice: marts take each record once.
    """
    if found["landed"] > expected["landed"]:
        found, expected = (
            {**one, "landed": None, "lake": {name: sorted(set(rows), key=repr) for name, rows in one["lake"].items()}}
            for one in (found, expected)
        )
    assert found == {key: expected[key] for key in found}


@pytest.mark.parametrize("name", CASES)
def test_killed_before_every_step(
    site: Site, goodput: Runner, met: set[str], name: str, subtests: pytest.Subtests
) -> None:
    """Before the first step of each name; before the last too, where it makes something real. Where only the lake was touched
    and is as expected the second time, so are the marts, which are made of nothing else.
    """
    case = CASES[name]
    site.bring_back(case.state)
    before = site.digest()
    steps = goodput.done(site, *case.command).names
    after = site.digest()
    expected = completed(site, goodput, case)
    assert set(case.steps) <= steps.keys()
    assert expected["damage"] == []
    for step in [s for s in steps if s not in met]:
        for count in sorted({1, steps[step] if step.startswith(REAL) else 1}):
            with subtests.test(step=step, count=count):
                site.bring_back(case.state)
                ended = goodput.run(site, *case.command, step=(step, count))
                assert ended.code == -9, ended.output
                assert site.digest() in (before, after), "what readers see is whole"
                found = completed(site, goodput, case, built=count == 1 or name != "ingest")
                check(found, expected)
    met.update(steps)
