"""What a shell remembers between two statements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warehouse.console import Snapshot

ROWS = 50
"""Rows of an answer that are shown, until the user asks for more."""


@dataclass(slots=True)
class State:
    """The state of one shell.

    Attributes:
        data: folder of the warehouse.
        folders: folders whose files queries may read and write.
        snapshot: the build that is read.
        form: how answers are shown: table, record, csv or json.
        rows: how many rows are shown.
        output: file that the next answer goes to.
        told: id of the newer build that the user was told of.
        is_left: whether the user leaves.
    """

    data: Path
    folders: tuple[Path, ...]
    snapshot: Snapshot
    form: str
    rows: int = ROWS
    output: Path | None = None
    told: str | None = None
    is_left: bool = False

    def names(self) -> list[str]:
        """Return the names of tables and macros."""
        return [r.name for r in self.snapshot.relations()] + [m.name for m in self.snapshot.macros()]
