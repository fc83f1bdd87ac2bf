"""Read an export as chunks of whole lines, in bounded memory, whatever its size or compression."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from transforms.compressed import DamagedError, is_compressed, opened
from transforms.outcome import MAX_REJECT_BYTES, Reject, UnreadableExportError

__all__ = ["CHUNK_BYTES", "HEAD_BYTES", "MAX_LINE_BYTES", "Block", "Chunk", "ExportStream", "is_compressed", "opened"]

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


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, uncounted, in a buffer that is used again once the block is released.

    Attributes:
        buffer: holds the lines in its first `length` bytes.
        length: bytes of the lines; 0 where the block carries a reject only.
        byte_offset: where they begin in the (decompressed) file.
        reject: a line after them that never reached the buffer; its number is left 0.
    """

    buffer: bytearray
    length: int
    byte_offset: int
    reject: Reject | None = None


class ExportStream:
    """Lines of one export, or of one piece of it.

    Args:
        data: decompressed bytes, positioned at `byte_offset`.
        head: first bytes of the whole file (at most 64 KiB), so that a piece can still see the header.
        first_line: number of the first line of the piece.
        byte_offset: where the piece begins.
        length: bytes of the piece; None = to the end.

    Lines longer than `max_line` never reach a chunk: they are hashed as they stream by and stand in `long_lines`.
    A compressed export that breaks off gives the lines before the break; the broken line (empty, if the break is
    between two) stands in `long_lines` too, and says what to do.
    After iteration `lines` holds the number of lines seen, `long_lines` those that were rejected.

    Raises (while it is read):
        UnreadableExportError: not one byte of a compressed export can be read.
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
        self._read_some = getattr(data, "readinto1", None) or data.readinto  # type: ignore[attr-defined]
        self._left = length
        # A short span needs no more than itself: fresh memory costs more than reading a small file.
        self._chunk_bytes = chunk_bytes if length is None else max(min(chunk_bytes, length), 1)
        self._max_line = max_line
        self._room = max_line if length is None else min(max_line, length)
        self._damage: str | None = None
        self._free: list[bytearray] = []

    @classmethod
    def of(cls, data: bytes, **kwargs: int) -> ExportStream:
        """Return a stream over `data` held in memory, undoing compression."""
        head, front = bytearray(HEAD_BYTES), cls(opened(io.BytesIO(data)))
        length = front._fill(head, 0, HEAD_BYTES)
        return cls(opened(io.BytesIO(data)), head=bytes(head[:length]), **kwargs)

    def chunks(self) -> Iterator[Chunk]:
        """Yield chunks of whole lines, in order. The last line may lack its newline."""
        line = self.first_line
        for block in self.blocks():
            if block.length:
                data = bytes(memoryview(block.buffer)[: block.length])
                self.release(block)
                first, line = line, line + data.count(b"\n") + (not data.endswith(b"\n"))
                self.lines = line - self.first_line
                yield Chunk(data, first, block.byte_offset)
            if block.reject:
                self.long_lines.append(replace(block.reject, line=line))
                line += 1
                self.lines = line - self.first_line

    def blocks(self, block_bytes: int | None = None) -> Iterator[Block]:
        """Yield blocks of whole lines, in order; the caller counts the lines, and releases each block.

        For parsers that look at few lines and can do without the copy that a chunk is.

        Args:
            block_bytes: most bytes to read at once, where that is less than a chunk.
        """
        self._chunk_bytes = min(block_bytes or self._chunk_bytes, self._chunk_bytes)
        buffer, filled, offset = self._buffer(), 0, self.byte_offset
        while got := self._fill(buffer, filled, self._chunk_bytes):
            filled += got
            while (start := self._long_line(buffer, filled)) is not None:
                block, buffer, filled = self._cut(buffer, filled, start, offset)
                reject, length, tail = self._skip_long_line(bytes(memoryview(buffer)[:filled]), offset + start)
                yield replace(block, reject=reject)
                offset, filled = offset + start + length, len(tail)
                buffer[:filled] = tail
            if cut := buffer.rfind(b"\n", 0, filled) + 1:
                block, buffer, filled = self._cut(buffer, filled, cut, offset)
                yield block
                offset += cut
        yield from self._last(buffer, filled, offset)

    def _cut(self, buffer: bytearray, filled: int, at: int, offset: int) -> tuple[Block, bytearray, int]:
        """Return the first `at` bytes as a block, and a buffer with the rest."""
        rest = self._buffer()
        rest[: filled - at] = memoryview(buffer)[at:filled]
        return Block(buffer, at, offset), rest, filled - at

    def _long_line(self, buffer: bytearray, end: int) -> int | None:
        """Return where the first line longer than allowed begins, complete or not."""
        start = 0
        while end - start > self._max_line:
            found = buffer.rfind(b"\n", start, start + self._max_line + 1)
            if found < 0:
                return start
            start = found + 1
        return None

    def release(self, block: Block) -> None:
        """Take back the buffer of a block that is read no more."""
        self._free.append(block.buffer)

    def _last(self, buffer: bytearray, filled: int, offset: int) -> Iterator[Block]:
        """Yield what is left at the end: lines, of which the last lacks its newline or was broken off."""
        if self._damage is None:
            if filled:
                yield Block(buffer, filled, offset)
            return
        if not filled and offset == self.byte_offset:
            raise UnreadableExportError(f"{self._damage}: copy the file again, then ingest it again")
        cut = buffer.rfind(b"\n", 0, filled) + 1
        reason = f"{self._damage}; the lines before were read: copy the file again, then ingest it again"
        reject = Reject.of(0, reason, bytes(memoryview(buffer)[cut:filled]), offset + cut)
        yield Block(buffer, cut, offset, reject)

    def _buffer(self) -> bytearray:
        return self._free.pop() if self._free else bytearray(self._chunk_bytes * 2 + self._room)

    def _fill(self, buffer: bytearray, start: int, size: int) -> int:
        """Read at most `size` bytes into `buffer`; 0 = the end, or where the data is damaged."""
        if self._left is not None:
            size = min(size, self._left)
        got = 0
        with memoryview(buffer)[start : start + size] as view:
            while got < size and self._damage is None:
                try:
                    count: int = self._read_some(view[got:])
                except DamagedError as error:
                    self._damage = str(error)
                    break
                if not count:
                    break
                got += count
        if self._left is not None:
            self._left -= got
        return got

    def _skip_long_line(self, start: bytes, offset: int) -> tuple[Reject, int, bytes]:
        """Stream past the long line that begins with `start`; return it, its length with newline, what follows it."""
        digest, head, length = hashlib.sha256(), b"", 0
        buffer = bytearray(self._chunk_bytes)
        data = start
        while (cut := data.find(b"\n")) < 0 and data:
            digest.update(data)
            head += data[: MAX_REJECT_BYTES - len(head)]
            length += len(data)
            data = bytes(memoryview(buffer)[: self._fill(buffer, 0, self._chunk_bytes)])
        last = data[: max(cut, 0)]
        digest.update(last)
        head += last[: MAX_REJECT_BYTES - len(head)]
        length += len(last)
        reason = f"line is longer than {self._max_line} bytes"
        reject = Reject(0, reason, head.decode("utf-8", "replace"), length, offset, digest.hexdigest())
        return reject, length + (cut >= 0), data[cut + 1 :]
