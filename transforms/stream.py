"""Read an export as chunks of whole lines, in bounded memory, whatever its size or compression."""

from __future__ import annotations

import hashlib
import io
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from transforms.outcome import MAX_REJECT_BYTES, Reject

CHUNK_BYTES = 8 << 20
MAX_LINE_BYTES = 1 << 20
HEAD_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines.

    Attributes:
        data: the bytes; ends with a newline unless it is the end of the export.
        first_line: number of its first line in the file, counted from 1.
        byte_offset: where it begins in the (decompressed) file.
    """

    data: bytes
    first_line: int
    byte_offset: int


def opened(raw: BinaryIO) -> BinaryIO:
    """Return `raw` with gzip, zstd or xz undone, told by magic bytes; `raw` must be seekable.

    Sources: RFC 1952 (1f 8b), RFC 8878 (28 b5 2f fd), the .xz format (fd 37 7a 58 5a 00).
    """
    start = raw.tell()
    magic = raw.read(6)
    raw.seek(start)
    if magic.startswith(b"\x1f\x8b"):
        from isal import igzip_threaded

        return cast("BinaryIO", igzip_threaded.open(raw, "rb", threads=1))
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        return cast("BinaryIO", zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True))
    if magic.startswith(b"\xfd7zXZ\x00"):
        return cast("BinaryIO", lzma.LZMAFile(raw))
    return raw


def is_compressed(head: bytes) -> bool:
    """Tell whether the first bytes of a file are gzip, zstd or xz."""
    return head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"))


class ExportStream:
    """Lines of one export, or of one piece of it.

    Args:
        data: decompressed bytes, positioned at `byte_offset`.
        head: first bytes of the whole file (at most 64 KiB), so that a piece can still see the header.
        first_line: number of the first line of the piece.
        byte_offset: where the piece begins.
        length: bytes of the piece; None = to the end.

    Lines longer than `max_line` never reach a chunk: they are hashed as they stream by and stand in `rejects`.
    After iteration `lines` holds the number of lines seen, `long_lines` those that were rejected for length.
    """

    def __init__(
        self,
        data: BinaryIO,
        *,
        head: bytes = b"",
        first_line: int = 1,
        byte_offset: int = 0,
        length: int | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        max_line: int = MAX_LINE_BYTES,
    ) -> None:
        self.head = head
        self.first_line = first_line
        self.byte_offset = byte_offset
        self.lines = 0
        self.long_lines: list[Reject] = []
        self._data = data
        self._left = length
        self._chunk_bytes = chunk_bytes
        self._max_line = max_line

    @classmethod
    def of(cls, data: bytes, **kwargs: int) -> ExportStream:
        """Return a stream over `data` held in memory, undoing compression."""
        raw = opened(io.BytesIO(data))
        return cls(raw, head=opened(io.BytesIO(data)).read(HEAD_BYTES), **kwargs)

    def _read(self) -> bytes:
        size = self._chunk_bytes if self._left is None else min(self._chunk_bytes, self._left)
        block = self._data.read(size) if size else b""
        if self._left is not None:
            self._left -= len(block)
        return block

    def chunks(self) -> Iterator[Chunk]:
        """Yield chunks of whole lines, in order. The last line may lack its newline."""
        rest = b""
        offset, line = self.byte_offset, self.first_line
        while block := self._read():
            data = rest + block
            cut = data.rfind(b"\n") + 1
            if cut:
                lines = data.count(b"\n", 0, cut)
                yield Chunk(data[:cut], line, offset)
                offset, line, rest = offset + cut, line + lines, data[cut:]
            else:
                rest = data
            if len(rest) > self._max_line:
                length, tail = self._skip_long_line(rest, line, offset)
                offset, line, rest = offset + length, line + 1, tail
        if rest:
            yield Chunk(rest, line, offset)
            line += 1
        self.lines = line - self.first_line

    def _skip_long_line(self, start: bytes, line: int, offset: int) -> tuple[int, bytes]:
        """Stream past the long line that begins with `start`; return its length with newline and what follows it."""
        digest, length = hashlib.sha256(start), len(start)
        head = start[:MAX_REJECT_BYTES]
        tail, newline = b"", 0
        while block := self._read():
            cut = block.find(b"\n")
            part = block if cut < 0 else block[:cut]
            digest.update(part)
            length += len(part)
            if cut >= 0:
                tail, newline = block[cut + 1 :], 1
                break
        reason = f"line is longer than {self._max_line} bytes"
        text = head.decode("utf-8", "replace")
        self.long_lines.append(Reject(line, reason, text, length, offset, digest.hexdigest()))
        return length + newline, tail
