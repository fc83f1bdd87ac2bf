"""The manifest: pieces and parts change together or not at all, and a missing or foreign one is an error."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from flows.manifest import (
    FILE_NAME,
    Change,
    FileState,
    Manifest,
    ManifestError,
    Piece,
    export_id,
    opened,
    opened_to_read,
)
from flows.pieces import Span, is_fresh, plan, settings_of, sha256
from transforms.lake import Part
from warehouse.inputs import EXPORTS

NOW = datetime(2026, 1, 1, 12, 30, 0, 5, tzinfo=UTC)


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    with opened(tmp_path) as found:
        yield found


def piece(path: str = "/a", offset: int = 0, length: int = 10, **more: object) -> Piece:
    known = Piece(
        export_id=export_id(path, offset, length, "s"), path=path, source="fake", cluster=None, byte_offset=offset,
        byte_length=length, sha256="s", collected_at=NOW, first_line=1, lines=2, lines_used=2, lines_ignored=0,
        lines_rejected=0, settings="x {}", batch="b1",
    )  # fmt: skip
    return replace(known, **more)  # type: ignore[arg-type]


def test_pieces_come_back_as_they_went_in(manifest: Manifest) -> None:
    first, second = piece(), piece(offset=10, is_tail=True, is_open=True, message="m", batch="b1t")
    manifest.commit(Change(pieces=[second, first]))
    assert manifest.pieces("/a") == [first, second]
    assert manifest.pieces("/b") == []


def test_exports_fit_the_table_the_warehouse_declares(manifest: Manifest) -> None:
    manifest.commit(Change(pieces=[piece(), piece(path="/b", status="failed", lines=None, message="why")]))
    rows = manifest.exports()
    assert [set(row) for row in rows] == [set(EXPORTS.schema)] * 2
    frame = pl.DataFrame(rows, schema=EXPORTS.schema)
    assert frame["collected_at"].to_list() == [NOW, NOW]


def test_a_change_that_fails_changes_nothing(manifest: Manifest) -> None:
    part = Part("t/x.parquet", "t", 1, 100)
    manifest.commit(Change(pieces=[piece()], parts=[(part, {"b1"})]))
    twice = Change(pieces=[piece(path="/b")], dropped={piece().export_id: "b1"}, parts=[(part, {"b2"})])
    with pytest.raises(sqlite3.IntegrityError):
        manifest.commit(twice)
    assert manifest.pieces("/a") == [piece()]
    assert manifest.pieces("/b") == []
    assert manifest.next_batch() == 2


def test_it_is_synced_at_every_commit_and_survives_reopening(tmp_path: Path) -> None:
    with opened(tmp_path) as manifest:
        assert manifest._db.execute("pragma synchronous").fetchone() == (2,), "2 = FULL"
        manifest.commit(Change(pieces=[piece()], files=[FileState("/a", 10, 5, 7)]))
    with opened(tmp_path) as manifest:
        assert manifest.pieces("/a") == [piece()]
        assert manifest.file("/a") == FileState("/a", 10, 5, 7)


def test_parts_are_found_by_the_batches_their_rows_come_from(manifest: Manifest) -> None:
    parts = [(Part(f"t/{n}.parquet", "t", 1, 1), {f"b{n}"}) for n in (1, 2)]
    manifest.commit(Change(parts=list(parts)))
    merged = Part("t/3.parquet", "t", 2, 2)
    manifest.commit(Change(parts=[(merged, {"b1", "b2"})], removed_parts={"t/1.parquet", "t/2.parquet"}))
    assert manifest.parts() == {merged.path: merged}
    assert manifest.parts_of(["b1"]) == {merged.path: {"b1", "b2"}}


def test_superseded_pieces_stay_but_are_not_the_files(manifest: Manifest) -> None:
    manifest.commit(Change(pieces=[piece()]))
    manifest.commit(Change(superseded={"/a"}, pieces=[piece(length=3)]))
    assert manifest.pieces("/a") == [piece(length=3)]
    assert len(manifest.exports()) == 2


def test_lost_pieces_are_shown_as_failed(manifest: Manifest) -> None:
    manifest.commit(Change(pieces=[piece()]))
    manifest.commit(Change(lost={"b1"}))
    [export] = manifest.exports()
    assert export["status"] == "failed"
    assert not is_fresh(manifest.pieces("/a")[0], "x {}")


def test_a_lake_without_its_manifest_is_refused(tmp_path: Path) -> None:
    """Making a new one would remove every part as nobody's, and with it rows of files that are gone."""
    (tmp_path / "lake/t").mkdir(parents=True)
    (tmp_path / "lake/t/x.parquet").write_bytes(b"")
    with pytest.raises(ManifestError, match="missing"), opened(tmp_path):
        pass
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize(("content", "message"), [(b"no database at all" * 100, "cannot be read"), (b"", "")])
def test_a_damaged_manifest_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    if not message:
        with opened(tmp_path) as manifest:
            assert manifest.exports() == [], "an empty file is what a kill before the first commit leaves"
        return
    with pytest.raises(ManifestError, match=message), opened(tmp_path):
        pass


@contextmanager
def another_user() -> Iterator[Path]:
    """Yield a folder with a manifest that this process, as another user, may not read."""
    with tempfile.TemporaryDirectory() as made:  # below the tests' own folder another user may not even look
        folder = Path(made)
        folder.chmod(0o755)
        with opened(folder):
            pass
        (folder / FILE_NAME).chmod(0)
        me = os.geteuid()
        if me == 0:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(me)


@pytest.mark.parametrize("way", [opened, opened_to_read])
def test_a_manifest_that_may_not_be_read_is_not_called_damaged(
    way: Callable[[Path], AbstractContextManager[Manifest | None]],
) -> None:
    """Who then restores a backup loses what was read since."""
    with another_user() as folder, pytest.raises(ManifestError) as error, way(folder):
        pass
    assert "permission denied" in str(error.value)
    assert "restore" not in str(error.value)


def test_a_manifest_that_another_program_holds_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path):
        pass
    connect = sqlite3.connect
    monkeypatch.setattr("flows.manifest.sqlite3.connect", lambda *a, **kw: connect(*a, **kw | {"timeout": 0.05}))
    with closing(connect(tmp_path / FILE_NAME, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with pytest.raises(ManifestError) as error, opened_to_read(tmp_path):
            pass
    assert "is held by another program" in str(error.value)


def test_a_manifest_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as manifest:
        manifest._db.execute("pragma user_version = 99")
    with pytest.raises(ManifestError, match="version 99"), opened(tmp_path):
        pass


SETTINGS = settings_of(["fake"], {"c1": "UTC"})


def chain(path: Path, *lengths: int, **more: object) -> list[Piece]:
    """Pieces as they would be known after reading so many bytes at a time, two lines each."""
    pieces, offset = [], 0
    for number, length in enumerate(lengths):
        found = piece(str(path), offset, length, sha256=sha256(path, offset, length), settings=SETTINGS)
        pieces.append(replace(found, first_line=2 * number + 1))
        offset += length
    return [*pieces[:-1], replace(pieces[-1], **more)]  # type: ignore[arg-type]


def planned(path: Path, pieces: list[Piece], **more: bool) -> tuple[tuple[Span, ...], int, bool]:
    flags = {"is_whole": False, "is_same": False} | more
    found = plan(path, path.stat().st_size, pieces, SETTINGS, **flags)
    return found.spans, len(found.dropped), found.is_superseded


def test_what_is_read_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n3\n4\n5")
    whole, tail = Span(0, 8, 1), Span(8, 1, 1, is_tail=True)
    assert planned(path, []) == ((whole, tail), 0, False)
    assert planned(path, chain(path, 4)) == ((Span(4, 4, 3), replace(tail, first_line=3)), 0, False)
    assert planned(path, chain(path, 4, 4, 1)) == ((), 0, False), "nothing new"
    grown = chain(path, 4, 3, is_tail=True)
    assert planned(path, grown) == ((Span(4, 4, 3), replace(tail, first_line=3)), 1, False), "the tail went on"
    assert planned(path, chain(path, 4, 2, is_open=True))[1] == 1, "what was open is read again"
    assert planned(path, chain(path, 4, 2, status="failed"))[1] == 1, "what failed is read again"
    assert planned(path, chain(path, 4, 4), is_whole=True) == ((Span(0, 9, 1),), 2, False), "a document, as a whole"


def test_a_file_that_holds_something_else_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n3\n")
    pieces = chain(path, 4, 2)
    for text in ("1\nX\n3\n", "1\n", "", "1\nX\n3\n4\n"):
        path.write_text(text)
        assert planned(path, pieces) == ((Span(0, len(text), 1),), 0, True)


def test_pieces_read_otherwise_are_read_again_as_they_were_cut(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n3\n4\n")
    first, second = chain(path, 4, 4)
    stale = [replace(first, settings="old {}"), second]
    assert planned(path, stale, is_same=True) == ((Span(0, 4, 1, collected_at=NOW),), 1, False)
    assert planned(path, [first, replace(second, is_lost=True)])[0] == (Span(4, 4, 3, collected_at=NOW),)


def test_a_cluster_that_was_added_makes_nothing_stale() -> None:
    known = piece(settings=SETTINGS)
    assert is_fresh(known, settings_of(["fake"], {"c1": "UTC", "c2": "Asia/Tokyo"}))
    assert not is_fresh(known, settings_of(["fake"], {"c1": "Asia/Tokyo"}))
    assert not is_fresh(known, settings_of(["fake"], {}))
    assert not is_fresh(known, settings_of(["other"], {"c1": "UTC"}))


KILLED_IN_A_COMMIT = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("pragma cache_size = 1")  # so that pages reach the file before the commit
connection.execute("begin immediate")
connection.execute("update pieces set message = hex(randomblob(2000))")
connection.executemany("insert into files values (?, 1, 1, 1)", [(str(n) * 50,) for n in range(2000)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_killed_in_a_commit_does_not_lock_readers_out(tmp_path: Path) -> None:
    """SQLite leaves a journal that only a writer may roll back: whoever opens the manifest to read has it done first."""
    with opened(tmp_path) as manifest:
        manifest.commit(Change(pieces=[piece(path=f"/{n}") for n in range(200)]))
    killed = subprocess.run([sys.executable, "-c", KILLED_IN_A_COMMIT, str(tmp_path / FILE_NAME)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / f"{FILE_NAME}-journal").exists()
    with opened_to_read(tmp_path) as found:
        assert found is not None
        assert found.pieces("/7") == [piece(path="/7")]
    assert not (tmp_path / f"{FILE_NAME}-journal").exists()
