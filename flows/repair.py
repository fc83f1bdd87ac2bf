"""Bring lake and manifest together again: remove what killed runs left, set damaged parts aside."""

from __future__ import annotations

from pathlib import Path

from flows.manifest import Change, Manifest
from transforms import lake


def repair(data: Path, manifest: Manifest) -> list[str]:
    """Make the lake hold exactly the parts the manifest owns. The caller holds the writer's lease.

    Parts that no commit owns are removed, files of others moved to `quarantine/`. Parts that are missing, empty or cut are moved to `quarantine/`, and
    the pieces with rows in them are marked to be read again from their files.

    Returns:
        Messages: one that names all damaged parts, and one that names files that can no longer be read again.
    """
    folder = data / "lake"
    owned = manifest.parts()
    lake.sweep(folder, owned.keys())
    quarantine, notes = data / "quarantine", []
    if strange := lake.foreign(folder, owned.keys()):
        lake.set_aside(folder, quarantine, strange)
        notes.append(f"files that ingest did not write were moved from the lake to {quarantine}: {_listed(strange)}")
    damages = lake.damaged(folder, {p.path: p.size_bytes for p in owned.values()})
    if not damages:
        return notes
    batches = {b for d in damages for b in manifest.batches_of(d.path)}
    lake.set_aside(folder, quarantine, damages)
    manifest.commit(Change(removed_parts={d.path for d in damages}, lost=batches))
    notes.append(
        f"{len(damages)} damaged parts of the lake were moved to {quarantine}, their exports are read again: {_listed(damages)}"
    )
    gone = sorted({p.path for p in manifest.pieces_of(batches) if p.is_lost and not Path(p.path).exists()})
    if gone:
        notes.append(f"rows of these files may be lost, since the files are gone; restore them: {'; '.join(gone)}")
    return notes


def _listed(damages: list[lake.Damage]) -> str:
    return "; ".join(f"{d.path} {d.reason}" for d in damages)
