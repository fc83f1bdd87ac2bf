"""Let what a command prints for a window take the place of what it printed for the same window before.

The rows of the former output leave the lake; its file is set aside in `quarantine/`, from where it may be put back.
"""

from __future__ import annotations

from pathlib import Path

from flows.batches import Batch
from flows.manifest import LOADED, Manifest, Piece, Pull
from flows.reports import UNCHANGED, ExportReport
from flows.windows import Window

FOLDER = "quarantine/landing"


def name_of(window: Window) -> str:
    """Return what the name of every file begins with that keeps an output for this window."""
    return f"{window.start:%Y%m%dT%H%M%SZ}-{window.end:%Y%m%dT%H%M%SZ}"


def formers(pulled: Pull, seen: Pull | None) -> list[Path]:
    """Return the files that keep other outputs for exactly the window of `pulled`, if it was loaded before."""
    if seen is None or seen.status != LOADED or pulled.status != LOADED or pulled.path is None:
        return []
    kept, window = Path(pulled.path), Window(pulled.window_start, pulled.window_end)
    return sorted(p for p in kept.parent.glob(f"{name_of(window)}_*.zst") if p != kept and not p.is_symlink())


class Superseding:
    """Counts what was replaced, and what was not though another output is there now.

    Args:
        data: the data folder.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self.replaced = self.kept = 0

    def going(self, manifest: Manifest, pulled: Pull, told: ExportReport | None, former: list[Path]) -> list[Path]:
        """Return those of `former` that may go: the new output was read, and does not say nothing where they said something.

        A system that forgets what is old answers with nothing at all, and what it told in time is then the only copy. What
        could not be read said nothing.

        Args:
            manifest: the manifest.
            pulled: the new output.
            told: what became of it when it was read just now; None = it was read before.
            former: files of the former outputs.
        """
        if told is None or told.status == UNCHANGED:
            pieces = manifest.pieces(str(pulled.path))
            is_read, used = bool(pieces) and all(p.status == LOADED for p in pieces), _used(pieces)
        else:
            is_read, used = told.status == LOADED, told.used
        if not is_read:
            return []
        gone = [p for p in former if used or not _used([*manifest.pieces(str(p)), *manifest.past(str(p))])]
        self.kept += len(former) - len(gone)
        return gone

    def replace(self, manifest: Manifest, batch: Batch, former: list[Path]) -> None:
        """Commit the batch without the rows of these files, then set the files aside.

        A process killed between the two leaves files that are read again, until the window is asked again.
        """
        for path in former:
            batch.drop((*manifest.pieces(str(path)), *manifest.past(str(path))))
        batch.commit()
        for path in former:
            target = self._data / FOLDER / path.parent.name / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        self.replaced += len(former)

    def notes(self) -> list[str]:
        """Return what should be known of it."""
        found = []
        if self.replaced:
            text = "files with former outputs of commands were replaced: their rows left the lake, the files are in"
            found.append(f"{self.replaced:,} {text} {self._data / FOLDER}")
        if self.kept:
            text = (
                "files with former outputs of commands, and their rows, stay: asked again, the command told no record"
            )
            found.append(f"{self.kept:,} {text}")
        return found


def _used(pieces: list[Piece]) -> int:
    return sum(p.lines_used or 0 for p in pieces)
