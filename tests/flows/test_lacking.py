"""A lake that lost rows: a build of the rest would look whole, so none is made until an ingest did what can be done."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flows import pipeline
from flows.manifest import opened
from flows.pipeline import BuildError, build, ingest
from flows.repair import repair
from tests.flows.conftest import Goodput
from tests.flows.ingest_help import TOML, config, ids, labels, write
from warehouse import publish


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path, "a.jsonl", labels(1, 2, 3))
    write(tmp_path, "b.jsonl", labels(4))
    ingest(config(tmp_path))
    assert build(config(tmp_path)).published
    return tmp_path


@pytest.mark.parametrize("gone", ["annotations", ""])
def test_nothing_is_built_from_a_lake_that_lost_a_table_until_it_is_read_again(home: Path, gone: str) -> None:
    before = publish.published(home / "data")
    shutil.rmtree(home / "data/lake" / gone)
    for _ in range(2):  # a refusal changes nothing, so that the next build is refused too
        with pytest.raises(BuildError, match=r"of the lake are missing or damaged .*`goodput ingest`"):
            build(config(home), force=True)
    assert publish.published(home / "data") == before
    ingest(config(home))
    assert build(config(home), force=True).published
    assert ids(home) == ["i1", "i2", "i3", "i4"]


def test_a_run_reads_again_and_builds(home: Path) -> None:
    shutil.rmtree(home / "data/lake/annotations")
    _, built = pipeline.run(config(home))
    assert built.published
    assert len(ids(home)) == 4


def test_what_an_ingest_has_only_noticed_is_lacking_still(home: Path) -> None:
    """Killed between the two, or noticed by `maintain`: the manifest knows that rows are lost, and no file was read again."""
    shutil.rmtree(home / "data/lake/annotations")
    with opened(home / "data") as manifest:
        repair(home / "data", manifest)
    with pytest.raises(BuildError, match="rows of 2 exports were lost and not read again yet"):
        build(config(home))


def test_what_cannot_be_brought_back_holds_up_no_build_for_ever(home: Path) -> None:
    """A file that is gone, and one that can no longer be read: the ingest says so, and then the rest is built."""
    shutil.rmtree(home / "data/lake/annotations")
    (home / "exports/a.jsonl").unlink()
    (home / "exports/b.jsonl").write_bytes(b"\x28\xb5\x2f\xfd broken")
    with pytest.raises(BuildError):
        build(config(home))
    told = ingest(config(home))
    assert "restore them" in told.notes[-1]
    assert not told.is_complete
    assert build(config(home)).published


def test_doctor_tells_that_parts_are_gone_and_what_to_do(home: Path, goodput: Goodput) -> None:
    shutil.rmtree(home / "data/lake/annotations")
    (home / "goodput.toml").write_text(TOML)
    ran = goodput("doctor", "--config", home / "goodput.toml")
    assert ran.code == 1
    assert "of the lake are missing or damaged (annotations/" in ran.out
    assert "`goodput ingest" in ran.out


def test_what_was_read_and_not_built_is_told(home: Path, goodput: Goodput) -> None:
    """Else a build that is not published, for a rule that is broken, would be seen by nobody but who made it."""
    (home / "goodput.toml").write_text(TOML)
    at = ("--config", home / "goodput.toml")
    assert goodput("build", *at).code == 0
    said = "the newest build does not hold all that was read"
    assert said not in goodput("check", *at).err
    assert said not in goodput("doctor", *at).out
    write(home, "c.jsonl", labels(5))
    assert goodput("ingest", *at).code == 0
    assert said in goodput("check", *at).err
    assert said in goodput("doctor", *at).out
