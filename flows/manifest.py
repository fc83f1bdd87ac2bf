"""The landing manifest: which bytes of which file were read, when they were collected, and which parts hold their rows.

SQLite at `data/manifest.sqlite`. It is the one truth about the lake: parts are written first, then one transaction names
them and the pieces they hold, so that a process killed in between leaves parts that nobody owns and nothing else.

An export piece is known by path, offset, length and SHA-256. Rows are taken out of the lake only when the same bytes are
read again: an unterminated last line that went on, a new parser version, other settings, a lost part, a file that holds
again what an earlier version of it held. A file that was deleted, rotated away, cut or overwritten keeps the rows that
were read from it: records are deduplicated by their content later, and what a file said once is not unsaid by its next
version.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, field, fields, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from flows.manifest_rows import FAILED, LOADED, UNKNOWN_FORMAT, FileState, Piece, Pull
from flows.manifest_schema import PULLS, SCHEMA, VERSION
from transforms.lake import Part

__all__ = [
    "FAILED",
    "FILE_NAME",
    "LOADED",
    "UNKNOWN_FORMAT",
    "Change",
    "FileState",
    "Manifest",
    "ManifestError",
    "Piece",
    "Pull",
    "export_id",
    "opened",
    "opened_to_read",
]

FILE_NAME = "manifest.sqlite"


class ManifestError(Exception):
    """The manifest cannot be used, or does not belong to this lake; the message says what to do."""


_COLUMNS = tuple(f.name for f in fields(Piece))
_INSERT_PIECE = f"insert or replace into pieces values ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - question marks only
_EXPORT_COLUMNS = _COLUMNS[: _COLUMNS.index("is_tail")]
_LOST = {"status": FAILED, "message": "a part of the lake with rows of it was damaged; not read again yet"}
_SETTLED = """
    select export_id from pieces where not is_current and not is_lost and path in (
        select path from pieces where is_current group by path having min(status = ? and not is_lost)
    )
"""
_FLAGS = ("is_tail", "is_open", "is_current", "is_lost")


def export_id(path: str, offset: int, length: int, sha256: str | None) -> str:
    """Return the identity of a piece: 32 hex digits over path, offset, length and content."""
    return hashlib.sha256(f"{path}\x1f{offset}\x1f{length}\x1f{sha256 or ''}".encode()).hexdigest()[:32]


@dataclass(slots=True)
class Change:
    """What one commit does to the manifest.

    Attributes:
        pieces: pieces to add; one with the id of an older piece takes its place.
        dropped: ids of pieces whose rows are read again.
        superseded: paths whose current pieces stay, but are no longer what the file holds.
        files: states of files that were read to their end.
        parts: parts to add, each with the batches its rows come from.
        removed_parts: parts that others take the place of.
        lost: batches of which a part was lost.
    """

    pieces: list[Piece] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    superseded: set[str] = field(default_factory=set)
    files: list[FileState] = field(default_factory=list)
    parts: list[tuple[Part, Collection[str]]] = field(default_factory=list)
    removed_parts: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


class Manifest:
    """An open manifest. Use `opened`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def file(self, path: str) -> FileState | None:
        """Return what a file looked like when it was read last."""
        row = self._db.execute("select * from files where path = ?", (path,)).fetchone()
        return FileState(*row) if row else None

    def pieces(self, path: str) -> list[Piece]:
        """Return the current pieces of a file, in the file's order."""
        return self._pieces("path = ? and is_current order by byte_offset, byte_length", (path,))

    def files(self) -> dict[str, FileState]:
        """Return what every file looked like when it was read last, by path."""
        return {row[0]: FileState(*row) for row in self._db.execute("select * from files")}

    def by_file(self) -> Iterator[tuple[str, list[Piece]]]:
        """Yield every file with its pieces in the file's order, those of its earlier versions too."""
        rows = self._rows("true order by path, byte_offset, byte_length, export_id")
        for path, group in groupby(rows, key=itemgetter("path")):
            yield path, [_piece(row) for row in group]

    def past(self, path: str) -> list[Piece]:
        """Return the pieces of earlier versions of a file that was overwritten, cut or rotated."""
        return self._pieces("path = ? and not is_current order by byte_offset, export_id", (path,))

    def known(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the batch of each of `ids` that the manifest holds."""
        found = (
            self._db.execute("select export_id, batch from pieces where export_id = ?", (i,)).fetchone() for i in ids
        )
        return dict(row for row in found if row)

    def pieces_of(self, batches: Iterable[str]) -> list[Piece]:
        """Return the pieces with rows in any of `batches`."""
        return [p for b in sorted(batches) for p in self._pieces("batch = ? order by export_id", (b,))]

    def exports(self) -> list[dict[str, Any]]:
        """Return every piece as a row of `warehouse.inputs.EXPORTS`, in a fixed order."""
        pieces = self._pieces("true order by path, byte_offset, export_id")
        return [{c: getattr(p, c) for c in _EXPORT_COLUMNS} | (_LOST if p.is_lost else {}) for p in pieces]

    def settled(self) -> set[str]:
        """Return the ids of pieces of earlier versions of files whose present version was read, all of it.

        What failed or was rejected of such a piece can be mended by nobody: it is a fact, and no problem.
        """
        return {export for (export,) in self._db.execute(_SETTLED, (LOADED,))}

    def parts(self) -> dict[str, Part]:
        """Return the parts that make up the lake, by path."""
        rows = self._db.execute('select path, "table", rows, size_bytes from parts order by path')
        return {row[0]: Part(*row) for row in rows}

    def parts_of(self, batches: Iterable[str]) -> dict[str, set[str]]:
        """Return the parts that may hold rows of `batches`, each with all its batches."""
        query = "select distinct part from part_batches where batch = ?"
        found = {part for b in batches for (part,) in self._db.execute(query, (b,))}
        return {p: self.batches_of(p) for p in sorted(found)}

    def batches_of(self, part: str) -> set[str]:
        """Return the batches that a part's rows come from."""
        return {b for (b,) in self._db.execute("select batch from part_batches where part = ?", (part,))}

    def pulls(self, source: str) -> list[Pull]:
        """Return what became of each window that a source's command was asked for, oldest first."""
        if not self._db.execute("select 1 from sqlite_master where name = 'pulls'").fetchone():
            return []  # a manifest of version 1, opened to read
        rows = self._db.execute("select * from pulls where source = ? order by window_start, window_end", (source,))
        return [_pull(row) for row in rows]

    def pull(self, source: str, start: datetime, end: datetime) -> Pull | None:
        """Return what became of one window; None = nobody asked for it yet."""
        query = "select * from pulls where source = ? and window_start = ? and window_end = ?"
        row = self._db.execute(query, (source, start.isoformat(), end.isoformat())).fetchone()
        return _pull(row) if row else None

    def store_pull(self, pull: Pull) -> None:
        """Keep what became of one try, in a transaction of its own."""
        times = {n: getattr(pull, n).isoformat() for n in ("window_start", "window_end", "pulled_at")}
        row = astuple(replace(pull, **times))
        with self._transaction():
            self._db.execute(f"insert or replace into pulls values ({', '.join('?' * len(row))})", row)  # noqa: S608 - question marks only

    def select(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the manifest's tables, for sums that need no piece one by one."""
        return self._db.execute(sql, values).fetchall()

    def vacuum(self) -> None:
        """Give the room of removed rows back to the disk."""
        self._db.execute("vacuum")

    def batches(self) -> dict[str, str]:
        """Return the batch of every piece, by its id."""
        return dict(self._db.execute("select export_id, batch from pieces where status = 'loaded'"))

    def part_batches(self) -> dict[str, frozenset[str]]:
        """Return the parts that make up the lake, each with the batches its rows come from."""
        found: dict[str, set[str]] = {}
        for part, batch in self._db.execute("select part, batch from part_batches"):
            found.setdefault(part, set()).add(batch)
        return {part: frozenset(batches) for part, batches in found.items()}

    def next_batch(self) -> int:
        """Return the number of the batch that the next commit makes."""
        (value,) = self._db.execute("select value from counters where name = 'batch'").fetchone()
        return int(value) + 1

    def content(self) -> str:
        """Return what stands for all that the lake holds: another text after every change but a merge of parts."""
        rows = self._db.execute("select value from counters where name in ('content', 'manifest') order by name")
        return "-".join(str(value) for (value,) in rows)

    def commit(self, change: Change) -> None:
        """Make a change, whole or not at all."""
        with self._transaction():
            is_news = self._is_news(change)
            self._mark(change)
            self._store_parts(change)
            self._db.executemany("delete from pieces where export_id = ?", [(i,) for i in change.dropped])
            self._db.executemany(_INSERT_PIECE, map(_row, change.pieces))
            self._db.executemany("insert or replace into files values (?, ?, ?, ?)", map(astuple, change.files))
            if is_news:
                self._db.execute("update counters set value = value + 1 where name = 'content'")

    def _is_news(self, change: Change) -> bool:
        """Tell whether a change is one of what the lake holds; the same failure of the same file is none."""
        if change.lost or not change.dropped.keys() <= {p.export_id for p in change.pieces}:
            return True
        return any(
            piece.status == LOADED
            or [_exported(piece)] != [_exported(p) for p in self._pieces("export_id = ?", (piece.export_id,))]
            for piece in change.pieces
        )

    def _mark(self, change: Change) -> None:
        self._db.executemany(
            "update pieces set is_current = 0 where path = ?", [(p,) for p in sorted(change.superseded)]
        )
        lost = [(b, LOADED) for b in sorted(change.lost)]
        self._db.executemany("update pieces set is_lost = 1 where batch = ? and status = ?", lost)

    def _store_parts(self, change: Change) -> None:
        gone = [(p,) for p in sorted(change.removed_parts)]
        self._db.executemany("delete from parts where path = ?", gone)
        self._db.executemany("delete from part_batches where part = ?", gone)
        for part, batches in change.parts:
            self._db.execute("insert into parts values (?, ?, ?, ?)", astuple(part))
            self._db.executemany("insert into part_batches values (?, ?)", [(part.path, b) for b in sorted(batches)])
        if change.parts or change.pieces:
            self._db.execute("update counters set value = value + 1 where name = 'batch'")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("begin immediate")
            yield
            self._db.execute("commit")
        except BaseException as error:
            if self._db.in_transaction:  # a full disk has ended it already
                self._db.execute("rollback")
            if isinstance(error, sqlite3.OperationalError):
                raise ManifestError(
                    f"{FILE_NAME} cannot be written ({error}): is there room in the data folder, and may this user write "
                    "there? What was read stays"
                ) from error
            raise

    def _pieces(self, where: str, values: Sequence[object] = ()) -> list[Piece]:
        return [_piece(row) for row in self._rows(where, values)]

    def _rows(self, where: str, values: Sequence[object] = ()) -> Iterator[dict[str, Any]]:
        rows = self._db.execute(f"select {', '.join(_COLUMNS)} from pieces where {where}", values)  # noqa: S608 - `where` is ours
        return (dict(zip(_COLUMNS, row, strict=True)) for row in rows)


@contextmanager
def opened(data: Path) -> Iterator[Manifest]:
    """Open the manifest of a data folder, making it where there is none.

    Raises:
        ManifestError: it is damaged, was written by a newer version, or is missing although the lake has parts.
    """
    path = data / FILE_NAME
    is_empty = path.is_file() and not path.stat().st_size
    if (is_empty or not path.exists()) and any((data / "lake").rglob("*.parquet")):
        raise ManifestError(
            f"{path} is {'empty' if is_empty else 'missing'}, but {data / 'lake'} holds parts that only it can tell about: restore it from a backup, or "
            "move the lake away to read every export that is still there anew"
        )
    data.mkdir(parents=True, exist_ok=True)
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    except sqlite3.DatabaseError as error:
        raise _unusable(path, error) from error
    try:
        try:
            _prepare(connection, path)
        except sqlite3.DatabaseError as error:
            raise _unusable(path, error) from error
        yield Manifest(connection)
    finally:
        connection.close()


@contextmanager
def opened_to_read(data: Path) -> Iterator[Manifest | None]:
    """Open the manifest of a data folder as it is, without making or mending anything; None where nothing was read yet.

    Raises:
        ManifestError: as `opened`.
    """
    path = data / FILE_NAME
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        if any((data / "lake").rglob("*.parquet")):
            raise ManifestError(f"{path} is missing or empty, but only it can tell about the lake: restore a backup")
        yield None
        return
    try:
        connection = _to_read(path)
    except sqlite3.DatabaseError as error:
        raise _unusable(path, error) from error
    try:
        (version,) = connection.execute("pragma user_version").fetchone()
        if version not in (1, VERSION):
            raise ManifestError(f"{path} has version {version}, this program reads version {VERSION}")
        yield Manifest(connection)
    except sqlite3.DatabaseError as error:
        raise _unusable(path, error) from error
    finally:
        connection.close()


def _unusable(path: Path, error: sqlite3.DatabaseError) -> ManifestError:
    """Return the error that says what to do: a manifest that is whole must not be exchanged for an older one."""
    try:
        path.open("rb").close()
    except PermissionError:
        return ManifestError(f"{path}: permission denied; run this as its owner, or have yourself allowed to read it")
    except OSError:
        return ManifestError(f"{path} cannot be opened ({error}): is it a file? If it is damaged, restore a backup")
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ManifestError(f"{path} is held by another program ({error}); run this again when that has ended")
    return ManifestError(f"{path} cannot be read ({error}): restore it from a backup")


def _to_read(path: Path) -> sqlite3.Connection:
    """Open a manifest read-only; one whose writer was killed in a commit first has that commit taken back.

    Raises:
        sqlite3.DatabaseError: it cannot be opened.
        ManifestError: that commit must be taken back by somebody who may write.
    """
    where = path.absolute().as_uri()
    connection = sqlite3.connect(f"{where}?mode=ro", uri=True, isolation_level=None, timeout=5)
    try:
        connection.execute("select count(*) from sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
            return connection  # the caller meets it again, and says so
    else:
        return connection
    connection.close()
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise ManifestError(
            f"{path} is as a killed writer left it; let its owner run `goodput status` once, which mends it"
        )
    with closing(sqlite3.connect(f"{where}?mode=rw", uri=True, isolation_level=None, timeout=5)) as writer:
        writer.execute("select count(*) from sqlite_master").fetchone()
    return sqlite3.connect(f"{where}?mode=ro", uri=True, isolation_level=None, timeout=5)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("pragma synchronous = full")
    (version,) = connection.execute("pragma user_version").fetchone()
    if version == 0:
        connection.executescript(f"begin immediate; {SCHEMA} {PULLS} pragma user_version = {VERSION}; commit;")
    elif version == 1:
        connection.executescript(f"begin immediate; {PULLS} pragma user_version = {VERSION}; commit;")
    elif version != VERSION:
        raise ManifestError(f"{path} has version {version}, this program reads version {VERSION}: install a newer one")


def _exported(piece: Piece) -> list[Any]:
    return [getattr(piece, column) for column in _EXPORT_COLUMNS]


def _row(piece: Piece) -> tuple[Any, ...]:
    return astuple(replace(piece, collected_at=piece.collected_at.isoformat()))  # type: ignore[arg-type]


def _pull(row: Sequence[Any]) -> Pull:
    source, start, end, status, pulled_at, *rest = row
    begin, stop, tried = map(datetime.fromisoformat, (start, end, pulled_at))
    return Pull(source, begin, stop, status, tried, *rest)


def _piece(row: Mapping[str, Any]) -> Piece:
    typed = {**row, "collected_at": datetime.fromisoformat(row["collected_at"])}
    return Piece(**{**typed, **{name: bool(row[name]) for name in _FLAGS}})
