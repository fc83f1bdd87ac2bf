"""Gather the rows of many exports into few parts, and commit parts and manifest together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from flows.manifest import Change, FileState, Manifest, Piece
from transforms import lake
from transforms.lake import Damage, Part, UnreadablePartError
from transforms.tables import TABLES, Table

MAX_BYTES = 96 << 20
MAX_PIECES = 5_000
BLOCK_ROWS = 50_000
WRITERS = 4
MERGE_AT = 16
MERGE_BYTES = 24 << 20
MERGE_ROWS = 3_000_000


@dataclass(slots=True)
class Rows:
    """Rows by table, not yet written, and their size in memory."""

    frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    size_bytes: int = 0

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Take the rows of one table."""
        if frame.height:
            self.frames.setdefault(table, []).append(frame)
            self.size_bytes += int(frame.estimated_size())

    def identified(self, export_id: str) -> Rows:
        """Return the same rows as those of the piece `export_id`."""
        ident = pl.lit(export_id).alias("export_id")
        frames = {name: [f.with_columns(ident) for f in frames] for name, frames in self.frames.items()}
        return Rows(frames, self.size_bytes)

    def take(self) -> dict[str, list[pl.DataFrame]]:
        """Return everything, by table, in its order, and be empty again."""
        taken = {n: _blocks(frames, list(TABLES[n].schema)) for n, frames in sorted(self.frames.items())}
        self.frames, self.size_bytes = {}, 0
        return taken


def _blocks(frames: list[pl.DataFrame], columns: list[str]) -> list[pl.DataFrame]:
    """Return the same rows in frames of contiguous memory; small ones are put together."""
    blocks, waiting = [], list[pl.DataFrame]()
    for frame in frames:
        waiting.append(frame)
        if sum(f.height for f in waiting) >= BLOCK_ROWS:
            blocks.append(waiting)
            waiting = []
    return [pl.concat(block, rechunk=True).select(columns) for block in [*blocks, waiting] if block]


class Batch:
    """The rows of one commit. Unterminated last lines get parts of their own, since those are soon dropped again.

    Args:
        lake_folder: the lake.
        manifest: the manifest, which is changed by `commit` only.
        max_bytes: rows held in memory before they are written.

    Attributes:
        damages: parts that were found damaged, and set aside.
        lost: batches that had rows in them.
    """

    def __init__(self, lake_folder: Path, manifest: Manifest, *, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self.damages: list[Damage] = []
        self.lost: set[str] = set()
        self._lake = lake_folder
        self._manifest = manifest
        self._begin()

    def _begin(self) -> None:
        self._number = self._manifest.next_batch()
        self._files = 0
        self._change = Change()
        self._rows = {False: Rows(), True: Rows()}

    def name(self, *, is_tail: bool = False) -> str:
        """Return the name that parts of this batch begin with."""
        return f"b{self._number:08d}{'t' if is_tail else ''}"

    def write(self, rows: Rows, *, is_tail: bool = False) -> list[Part]:
        """Write rows as parts; they belong to the lake once they are given to `add` and committed."""
        todo = [
            (self._path(folder, is_tail=is_tail), TABLES[name], part)
            for name, blocks in rows.take().items()
            for folder, part in _partitions(TABLES[name], blocks)
        ]
        with ThreadPoolExecutor(WRITERS, "lake") as workers:  # most of the time of a part is waiting for the disk
            return list(workers.map(lambda job: lake.write(self._lake, *job), todo))

    def _path(self, folder: str, *, is_tail: bool = False) -> str:
        self._files += 1
        return f"{folder}/{lake.part_name(self.name(is_tail=is_tail), self._files)}"

    def discard(self, parts: list[Part]) -> None:
        """Remove parts that were written for an export that then failed."""
        lake.remove(self._lake, [p.path for p in parts])

    def add(self, piece: Piece, rows: Rows, parts: list[Part]) -> None:
        """Take a piece with its rows, and the parts that already hold some of them."""
        name = self.name(is_tail=piece.is_tail)
        self._change.pieces.append(replace(piece, batch=name))
        self._change.parts += [(p, {name}) for p in parts]
        for table, frames in rows.frames.items():
            for frame in frames:
                self._rows[piece.is_tail].add(table, frame)

    def drop(self, pieces: tuple[Piece, ...]) -> None:
        """Take the rows of older pieces out of the lake."""
        self._change.dropped |= {p.export_id: p.batch for p in pieces}

    def supersede(self, path: str) -> None:
        """Say that a file holds something else than its pieces tell."""
        self._change.superseded.add(path)

    def lose(self, damages: Iterable[Damage]) -> None:
        """Move damaged parts to `quarantine/` beside the lake; the commit marks what stood in them to be read again."""
        for damage in damages:
            lake.set_aside(self._lake, self._lake.with_name("quarantine"), [damage])
            batches = self._manifest.batches_of(damage.path)
            self._change.removed_parts.add(damage.path)
            self._change.lost |= batches
            self.damages.append(damage)
            self.lost |= batches

    def settle(self, state: FileState) -> None:
        """Say that a file was read to its end."""
        self._change.files.append(state)

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return (
            sum(r.size_bytes for r in self._rows.values()) >= self.max_bytes or len(self._change.pieces) >= MAX_PIECES
        )

    def commit(self) -> None:
        """Write what is left, then change the manifest in one transaction, then remove parts that were replaced."""
        change = self._change
        for is_tail, rows in self._rows.items():
            change.parts += [(p, {self.name(is_tail=is_tail)}) for p in self.write(rows, is_tail=is_tail)]
        again = self._manifest.known(p.export_id for p in change.pieces)
        self._rewrite(change.dropped | again)
        self._manifest.commit(change)
        lake.remove(self._lake, change.removed_parts)
        self._begin()

    def _rewrite(self, dropped: dict[str, str]) -> None:
        """Write the parts that hold rows of `dropped` pieces anew without them."""
        change, stored = self._change, self._manifest.parts()
        for path, batches in self._manifest.parts_of(set(dropped.values()) - {""}).items():
            part = stored[path]
            try:
                held = lake.export_ids(self._lake, path)
                if held.isdisjoint(dropped):
                    continue
                rest = None
                if not held <= dropped.keys():
                    rest = lake.without(self._lake, path, TABLES[part.table], dropped.keys())
            except UnreadablePartError as error:
                self.lose([error.damage])
                continue
            change.removed_parts.add(path)
            if rest is not None:
                where = self._path(part.folder, is_tail=part.is_tail)
                written = lake.write(self._lake, where, TABLES[part.table], rest)
                change.parts.append((written, batches))

    def merge(self) -> int:
        """Merge the small parts of folders that hold many; return how many parts went into others."""
        groups = mergeable(list(self._manifest.parts().values()))
        return sum(len(self.merge_group(group)[0]) for group in groups)

    def merge_group(self, parts: list[Part]) -> tuple[list[Part], Part | None]:
        """Put one part in the place of several of a folder, and commit that. Damaged ones are lost (`lose`), no others.

        Returns:
            The parts that went into another, and that one; none where fewer than two can be read.
        """
        table, frames, whole = TABLES[parts[0].table], list[pl.DataFrame](), list[Part]()
        for part in parts:
            try:
                frames.append(lake.read(self._lake, table, [part.path]))
                whole.append(part)
            except UnreadablePartError as error:
                self.lose([error.damage])
        if len(whole) < 2:
            self.commit()
            return [], None
        batches = {b for p in whole for b in self._manifest.batches_of(p.path)}
        where = self._path(parts[0].folder, is_tail=parts[0].is_tail)
        merged = lake.write(self._lake, where, table, pl.concat(frames))
        self._change.parts.append((merged, batches))
        self._change.removed_parts |= {p.path for p in whole}
        self.commit()
        return whole, merged


def _partitions(table: Table, blocks: list[pl.DataFrame]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield what `lake.partitions` yields for all blocks together: quicker one by one, each lies in one stretch of memory."""
    found: dict[str, list[pl.DataFrame]] = {}
    for block in blocks:
        for folder, part in lake.partitions(table, block):
            found.setdefault(folder, []).append(part)
    for folder in sorted(found):
        yield folder, pl.concat(found[folder])


def mergeable(parts: list[Part], at_least: int = MERGE_AT) -> list[list[Part]]:
    """Return the groups of parts to merge: in each folder, the smallest first, as many as stay small together.

    Parts of unterminated last lines are merged with their like only: their rows may leave again, and who looks for rows
    that left looks for them there.

    Args:
        parts: all parts.
        at_least: fewer than so many small parts in a folder are left alone.
    """
    folders: dict[tuple[str, bool], list[_Group]] = {}
    for part in sorted(parts, key=lambda p: (p.size_bytes, p.path)):
        groups = folders.setdefault((part.folder, part.is_tail), [_Group()])
        if not groups[-1].fits(part):
            groups.append(_Group())
        groups[-1].add(part)
    return [group.parts for _, groups in sorted(folders.items()) for group in groups if len(group.parts) >= at_least]


@dataclass(slots=True)
class _Group:
    """Parts that stay small together: on the disk, and in memory whatever their compression."""

    parts: list[Part] = field(default_factory=list)
    size_bytes: int = 0
    rows: int = 0

    def fits(self, part: Part) -> bool:
        return self.size_bytes + part.size_bytes <= MERGE_BYTES and self.rows + part.rows <= MERGE_ROWS

    def add(self, part: Part) -> None:
        self.parts.append(part)
        self.size_bytes += part.size_bytes
        self.rows += part.rows
