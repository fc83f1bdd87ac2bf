"""Bring lake and manifest together again: remove what killed runs left, set damaged parts aside."""

from __future__ import annotations

from pathlib import Path

from flows.batches import Batch
from flows.cli.words import counted
from flows.config import Config
from flows.ingesting import jobs
from flows.manifest import LOADED, Manifest
from transforms import lake

_NAMED = 3
_LOST = "select distinct path from pieces where is_current and is_lost"
_TRIED = "select path from pieces where is_current and status != ?"


def repair(data: Path, manifest: Manifest) -> list[str]:
    """Make the lake hold exactly the parts the manifest owns. The caller holds the writer's lease.

    Parts that no commit owns are removed, files of others moved to `quarantine/`. Parts that are missing, empty or cut are
    moved to `quarantine/`, and the pieces with rows in them are marked to be read again from their files.

    Returns:
        Messages: which files of others were moved, and what `losses` says of damaged parts.
    """
    folder = data / "lake"
    owned = manifest.parts()
    lake.sweep(folder, owned.keys())
    quarantine, notes = data / "quarantine", []
    if strange := lake.foreign(folder, owned.keys()):
        lake.set_aside(folder, quarantine, strange)
        notes.append(f"files that ingest did not write were moved from the lake to {quarantine}: {_listed(strange)}")
    return notes + _lose(data, manifest, lake.damaged(folder, {p.path: p.size_bytes for p in owned.values()}))


def repair_content(data: Path, manifest: Manifest) -> list[str]:
    """Read every part in full, and do with those that cannot be read as `repair` does, with the same messages.

    That takes a while: it is for when something failed. The caller holds the writer's lease.
    """
    return _lose(data, manifest, lake.unread(data / "lake", manifest.parts()))


def _lose(data: Path, manifest: Manifest, damages: list[lake.Damage]) -> list[str]:
    batch = Batch(data / "lake", manifest)
    if damages:
        batch.lose(damages)
        batch.commit()
    return losses(data, manifest, batch)


def losses(data: Path, manifest: Manifest, batch: Batch) -> list[str]:
    """Return messages on what a batch, now committed, lost: one names the parts, one the files that cannot be read again."""
    if not batch.damages:
        return []
    number, those = len(batch.damages), f"moved to {data / 'quarantine'}, `goodput ingest` reads their exports again"
    were = f"{counted(number, 'damaged part')} of the lake {'was' if number == 1 else 'were'}"
    notes = [f"{were} {those}: {_listed(batch.damages)}"]
    gone = sorted({p.path for p in manifest.pieces_of(batch.lost) if p.is_lost and not Path(p.path).exists()})
    if gone:
        notes.append(f"rows of these files may be lost, since the files are gone; restore them: {'; '.join(gone)}")
    return notes


def lacking(config: Config, manifest: Manifest) -> str | None:
    """Return what the lake should hold and does not, though an ingest may bring it back; None = nothing. Changes nothing.

    What an ingest tried to bring back, and could not, is not lacking any more: it is known to be lost.
    """
    owned = {part.path: part.size_bytes for part in manifest.parts().values()}
    if damages := lake.damaged(config.data / "lake", owned):
        more = f"; and {len(damages) - _NAMED:,} more" if len(damages) > _NAMED else ""
        number, are = f"{len(damages):,} of {counted(len(owned), 'part')}", "is" if len(damages) == 1 else "are"
        return f"{number} of the lake {are} missing or damaged ({_listed(damages[:_NAMED])}{more})"
    lost = {path for (path,) in manifest.select(f"{_LOST} and path not in ({_TRIED})", (LOADED,))}
    if lost and (again := lost & {job.found.name for job in jobs(config)[0] if job.found.problem is None}):
        return f"rows of {counted(len(again), 'export')} were lost and not read again yet"
    return None


def _listed(damages: list[lake.Damage]) -> str:
    return "; ".join(f"{d.path} {d.reason}" for d in damages)
