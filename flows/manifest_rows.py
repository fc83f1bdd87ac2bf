"""The rows of the landing manifest: files, pieces of exports, and what became of pulls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from os import stat_result

LOADED, FAILED, UNKNOWN_FORMAT = "loaded", "failed", "unknown_format"


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file looked like when it was read last."""

    path: str
    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: str, stat: stat_result) -> FileState:
        """Make it from what the system says of the file."""
        return cls(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an export, with the fate of its lines; the columns of `warehouse.inputs.EXPORTS`, and these.

    Attributes:
        is_tail: an unterminated last line, dropped and read again when the file goes on.
        is_open: its last line was rejected, so that what follows may belong to it: read again when the file goes on.
        is_current: the file still held these bytes when it was read last.
        is_lost: a part with its rows was lost; it is to be read again.
        settings: hash of the parser's version and the settings it was read with.
        batch: batch of parts that holds its rows.
    """

    export_id: str
    path: str
    source: str | None
    cluster: str | None
    byte_offset: int
    byte_length: int
    sha256: str | None
    collected_at: datetime
    first_line: int
    lines: int | None = None
    lines_used: int | None = None
    lines_ignored: int | None = None
    lines_rejected: int | None = None
    ignored_by: str = "{}"
    status: str = LOADED
    message: str | None = None
    is_tail: bool = False
    is_open: bool = False
    is_current: bool = True
    is_lost: bool = False
    settings: str = ""
    batch: str = ""

    @property
    def end(self) -> int:
        """Offset of the first byte after the piece."""
        return self.byte_offset + self.byte_length


@dataclass(frozen=True, slots=True)
class Pull:
    """What became of asking a source's command for one window; the last try counts.

    Attributes:
        source: name of the source.
        window_start: UTC begin of the window.
        window_end: its end.
        status: loaded = the command succeeded (its output is a file like any other), or failed.
        pulled_at: UTC time of the try.
        tries: how often it was asked for, this try included.
        path: file that keeps the output; None = it failed.
        sha256: of the output as the command printed it.
        byte_length: of the same.
        settings: hash of the command and what it was run with.
        message: why it failed, or what should be known.
    """

    source: str
    window_start: datetime
    window_end: datetime
    status: str
    pulled_at: datetime
    tries: int = 1
    path: str | None = None
    sha256: str | None = None
    byte_length: int | None = None
    settings: str = ""
    message: str | None = None
