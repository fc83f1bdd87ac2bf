"""The lake: typed Parquet parts in `<table>/cluster=<c>/date=<d>/`, each written whole or not at all.

Which parts count is told by the caller (the landing manifest): a part that nobody owns is what a killed run left. A part
gets its name only when it is complete and on disk, so a reader never meets a half-written one of ours; one that
was damaged later is moved aside: cut or empty, `damaged` names it; of the right length, whoever reads it does.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import polars as pl

from transforms.tables import TABLES, Table

SUFFIX = ".parquet"
UNFINISHED = ".unfinished"
UNKNOWN = "unknown"
_LONGEST_NAME = 120
_OUR_NAME = re.compile(r"/b\d{8,}t?-\d{5,}\.parquet$")
_TAIL_NAME = re.compile(r"/b\d{8,}t-\d{5,}\.parquet$")
_MAGIC = b"PAR1"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the lake.

    Attributes:
        path: its place, relative to the lake, with `/`.
        table: normalized table.
        rows: rows in it.
        size_bytes: length of the file.
    """

    path: str
    table: str
    rows: int
    size_bytes: int

    @property
    def folder(self) -> str:
        """Folder of the part, relative to the lake."""
        return self.path.rpartition("/")[0]

    @property
    def is_tail(self) -> bool:
        """Whether it holds unterminated last lines, whose rows may leave the lake; others' rows do not without need."""
        return _TAIL_NAME.search(self.path) is not None


@dataclass(frozen=True, slots=True)
class Damage:
    """A part that cannot be read, and why."""

    path: str
    reason: str


class UnreadablePartError(Exception):
    """A part is there, and its content is damaged. What the system refuses (`OSError`) is no damage."""

    def __init__(self, path: str, cause: BaseException) -> None:
        self.damage = Damage(path, f"cannot be read ({str(cause).splitlines()[0]})")
        super().__init__(f"{path} {self.damage.reason}")


def folder_name(key: str, value: str | None) -> str:
    """Return `key=value` as one safe folder name: everything but letters, digits and `_.-~` is percent-encoded.

    A name that would be too long for a file system keeps its first characters and gets a hash. Null is `unknown`.
    """
    text = UNKNOWN if value is None else quote(value, safe="")
    if len(text) > _LONGEST_NAME:
        text = f"{text[:80]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return f"{key}={text}"


def partitions(table: Table, frame: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (folder relative to the lake, rows) for each cluster and UTC day in `frame`, in the order of folders.

    Rows whose day is null, or outside the years 1 to 9999, go to `date=unknown`.
    """
    if frame.is_empty():
        return
    cluster = pl.col("cluster") if "cluster" in frame.columns else pl.lit(None, pl.String)
    day = _day(pl.col(table.date_column)) if table.date_column else pl.lit(None, pl.Date)
    keyed = frame.with_columns(cluster.alias("_cluster"), day.alias("_day"))
    groups = keyed.partition_by("_cluster", "_day", as_dict=True, include_key=False, maintain_order=True)
    named = {
        f"{table.name}/{folder_name('cluster', c)}/{folder_name('date', str(d) if d else None)}": (c, d)
        for c, d in groups
    }
    for folder in sorted(named):
        yield folder, groups[named[folder]]


def _day(at: pl.Expr) -> pl.Expr:
    """Return the UTC day; null outside the years 1 to 9999, for which a folder has no name and Python no date."""
    return pl.when(at.dt.year().is_between(1, 9999)).then(at.dt.date())


def write(lake: Path, path: str, table: Table, frame: pl.DataFrame) -> Part:
    """Write `frame` as the part `path`: under another name first, synced, then renamed.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    final = lake / path
    final.parent.mkdir(parents=True, exist_ok=True)
    unfinished = final.with_name(final.name + UNFINISHED)
    _write(frame, unfinished)
    with unfinished.open("rb") as handle:
        os.fsync(handle.fileno())
        size = os.fstat(handle.fileno()).st_size
    os.replace(unfinished, final)  # noqa: PTH105 - the one call that makes a part real; tests kill the process around it
    _sync_folder(final.parent)
    return Part(path, table.name, frame.height, size)


def _write(frame: pl.DataFrame, path: Path) -> None:
    try:
        frame.write_parquet(path, compression="zstd", compression_level=1, statistics=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        path.unlink(missing_ok=True)  # where a disk is full, what was begun takes room
        if number := _OS_ERROR.search(str(error)):  # Polars has no error of its own for a full disk
            code = int(number[1])
            raise OSError(code, os.strerror(code), str(path)) from error
        raise


def read(lake: Path, table: Table, paths: Iterable[str]) -> pl.DataFrame:
    """Return the rows of parts with exactly the table's columns; a column declared after a part was written is null.

    Raises:
        UnreadablePartError: a part is damaged.
    """
    frames = [table.enforce(_known_columns(table, _content(lake, p))) for p in paths]
    return pl.concat(frames) if frames else table.schema.to_frame()


def _content(lake: Path, path: str, columns: list[str] | None = None) -> pl.DataFrame:
    try:
        return pl.read_parquet(lake / path, columns=columns, hive_partitioning=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:  # some damage makes Polars panic
        raise UnreadablePartError(path, error) from error


def scan(lake: Path, name: str) -> pl.LazyFrame:
    """Return the rows of the table `name`, typed as declared in `transforms.tables`; no parts, no rows."""
    table = TABLES[name]
    paths = [p for p in parts_on_disk(lake) if p.startswith(f"{name}/")]
    return read(lake, table, paths).lazy()


def export_ids(lake: Path, path: str) -> set[str]:
    """Return the pieces of exports that have rows in a part.

    Raises:
        UnreadablePartError: it is damaged.
    """
    return set(_content(lake, path, ["export_id"])["export_id"].unique().drop_nulls())


def without(lake: Path, path: str, table: Table, pieces: Collection[str]) -> pl.DataFrame:
    """Return the rows of a part that belong to none of `pieces`.

    Raises:
        UnreadablePartError: it is damaged.
    """
    return read(lake, table, [path]).filter(pl.col("export_id").is_in(list(pieces)).not_())


def parts_on_disk(lake: Path) -> list[str]:
    """Return every part's path relative to the lake, sorted."""
    return sorted(p.relative_to(lake).as_posix() for p in lake.rglob(f"*{SUFFIX}"))


def orphans(lake: Path, owned: Collection[str]) -> list[str]:
    """Return what killed runs left: unfinished files, and parts with a name of ours that are not `owned`."""
    gone = [p for p in parts_on_disk(lake) if p not in owned and _OUR_NAME.search(p)]
    return gone + [p.relative_to(lake).as_posix() for p in lake.rglob(f"*{SUFFIX}{UNFINISHED}")]


def sweep(lake: Path, owned: Collection[str]) -> list[str]:
    """Remove the `orphans`. Return their paths."""
    gone = orphans(lake, owned)
    remove(lake, gone)
    return gone


def foreign(lake: Path, owned: Collection[str]) -> list[Damage]:
    """Return Parquet files that somebody else put into the lake: readers would take their rows for ours."""
    reason = "was not written by ingest"
    return [Damage(p, reason) for p in parts_on_disk(lake) if p not in owned and not _OUR_NAME.search(p)]


def part_name(batch: str, number: int) -> str:
    """Return the file name of a part; `batch` is `b`, eight digits, and perhaps `t`."""
    return f"{batch}-{number:05d}{SUFFIX}"


def remove(lake: Path, paths: Iterable[str]) -> None:
    """Remove parts; one that is gone already is no error."""
    for path in paths:
        (lake / path).unlink(missing_ok=True)


def damaged(lake: Path, expected: Mapping[str, int]) -> list[Damage]:
    """Return the parts of `expected` (path to length in bytes) that are missing or not as they were written.

    A part of the right length is taken as whole: it was synced before it got its name. `unread` looks into it.
    """
    found = []
    for path, size in sorted(expected.items()):
        try:
            actual = (lake / path).stat().st_size
        except FileNotFoundError:
            found.append(Damage(path, "is missing"))
            continue
        if actual != size:
            reason = unreadable(lake / path) or "holds other rows than were written"
            found.append(Damage(path, f"{reason} ({actual:,} bytes, written were {size:,})"))
    return found


def unread(lake: Path, paths: Iterable[str]) -> list[Damage]:
    """Read parts in full, which takes as long as it takes, and return those that are damaged."""
    found = []
    for path in paths:
        try:
            _content(lake, path)
        except UnreadablePartError as error:
            found.append(error.damage)
    return found


def verify(lake: Path) -> list[Damage]:
    """Open every part and return those that cannot be read, whoever wrote them."""
    reasons = ((p, unreadable(lake / p)) for p in parts_on_disk(lake))
    return [Damage(path, reason) for path, reason in reasons if reason]


def unreadable(path: Path) -> str | None:
    """Return why a file is no readable Parquet: empty, cut, or a broken footer; None = it can be opened."""
    size = path.stat().st_size
    if not size:
        return "is empty"
    with path.open("rb") as handle:
        head = handle.read(4)
        handle.seek(max(size - 4, 0))
        tail = handle.read(4)
    if head != _MAGIC:
        return "is no Parquet file"
    if size < 12 or tail != _MAGIC:
        return "is cut short"
    try:
        pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        return f"has a broken footer: {error}"
    return None


def set_aside(lake: Path, quarantine: Path, damages: Iterable[Damage]) -> None:
    """Move damaged parts out of the lake, keeping their relative paths; a missing one is skipped."""
    for damage in damages:
        source, target = lake / damage.path, quarantine / damage.path
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)


def _known_columns(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out columns that the table no longer declares."""
    return frame.select(c for c in frame.columns if c in table.schema)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
