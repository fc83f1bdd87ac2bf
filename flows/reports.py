"""What an ingest did, as plain values for the command line and for Prefect."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from flows.manifest import FAILED, LOADED, UNKNOWN_FORMAT, Piece, Pull

UNCHANGED, SKIPPED, NO_FILE = "unchanged", "skipped", "no_file"


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What became of one file, or of a source that matches none.

    Attributes:
        path: the file; the pattern where no file matches it.
        source: its format; None = unknown.
        lines: lines read now; `used` + `ignored` + `rejected` of them.
        used: lines that made rows.
        ignored: lines passed over by a rule of the format.
        rejected: lines that could not be read; they are kept in ops.rejects.
        ignored_by: the ignored ones by rule.
        status: loaded, unchanged (nothing new in it), failed, unknown_format, skipped (a folder) or no_file.
        message: what went wrong or should be known.
    """

    path: str
    source: str | None = None
    lines: int = 0
    used: int = 0
    ignored: int = 0
    rejected: int = 0
    ignored_by: dict[str, int] = field(default_factory=dict)
    status: str = LOADED
    message: str | None = None

    @classmethod
    def of(cls, path: str, pieces: Sequence[Piece]) -> ExportReport:
        """Sum up the pieces of a file that were read now."""
        failed = [p for p in pieces if p.status == FAILED]
        ignored: Counter[str] = Counter()
        for piece in pieces:
            ignored.update(json.loads(piece.ignored_by))
        return cls(
            path=path,
            source=pieces[0].source if pieces else None,
            lines=sum(p.lines or 0 for p in pieces),
            used=sum(p.lines_used or 0 for p in pieces),
            ignored=ignored.total(),
            rejected=sum(p.lines_rejected or 0 for p in pieces),
            ignored_by=dict(sorted(ignored.items())),
            status=FAILED if failed else LOADED,
            message=failed[0].message if failed else None,
        )


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did.

    Attributes:
        exports: every file the configuration names, in order, then every source that matches none.
        notes: what should be known beside: parts that were set aside, rows that could not be read again.
        merged_parts: small parts of the lake that were merged into larger ones.
        pulls: windows that commands were asked for now, each with what became of it.
    """

    exports: tuple[ExportReport, ...] = ()
    notes: tuple[str, ...] = ()
    merged_parts: int = 0
    pulls: tuple[Pull, ...] = ()

    def with_status(self, *statuses: str) -> list[ExportReport]:
        """Return the exports with one of these statuses."""
        return [e for e in self.exports if e.status in statuses]

    @property
    def lines(self) -> int:
        """Lines read now."""
        return sum(e.lines for e in self.exports)

    @property
    def used(self) -> int:
        """Lines that made rows."""
        return sum(e.used for e in self.exports)

    @property
    def ignored(self) -> int:
        """Lines passed over by a rule of their format."""
        return sum(e.ignored for e in self.exports)

    @property
    def rejected(self) -> int:
        """Lines that could not be read."""
        return sum(e.rejected for e in self.exports)

    @property
    def failed(self) -> list[ExportReport]:
        """Exports that could not be read as a whole, and sources that match no file."""
        return self.with_status(FAILED, NO_FILE)

    @property
    def unknown(self) -> list[ExportReport]:
        """Exports that no parser knows."""
        return self.with_status(UNKNOWN_FORMAT)

    @property
    def failed_pulls(self) -> list[Pull]:
        """Windows whose command failed."""
        return [p for p in self.pulls if p.status == FAILED]

    @property
    def is_complete(self) -> bool:
        """Whether every export could be read and every command did its work."""
        return not self.failed and not self.failed_pulls

    @property
    def changed(self) -> bool:
        """Whether rows were committed to the lake, or files read that hold none."""
        return any(e.status == LOADED or e.lines for e in self.exports)
