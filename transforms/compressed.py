"""Undo gzip, zstd and xz, in bounded memory, giving every byte before the place where a damaged file breaks off."""

from __future__ import annotations

import io
import lzma
from typing import Any, BinaryIO, cast

from isal import igzip_lib

_READ_BYTES = 256 << 10

GZIP, ZSTD, XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"


class DamagedError(Exception):
    """Compressed data breaks off or is corrupt; the message says which."""


def is_compressed(head: bytes) -> bool:
    """Tell whether the first bytes of a file are gzip, zstd or xz."""
    return head.startswith((GZIP, ZSTD, XZ))


def opened(raw: BinaryIO) -> BinaryIO:
    """Return `raw` with gzip, zstd or xz undone, told by magic bytes; `raw` must be seekable.

    Reading the result raises DamagedError where the data breaks off, after all that could be read was given out.
    Several members or frames in one file are read one after the other.

    Sources: RFC 1952 (1f 8b), RFC 8878 (28 b5 2f fd), the .xz format (fd 37 7a 58 5a 00).
    """
    start = raw.tell()
    magic = raw.read(6)
    raw.seek(start)
    if magic.startswith(GZIP):
        return cast("BinaryIO", _Gzip(raw))
    if magic.startswith(ZSTD):
        return cast("BinaryIO", _Zstd(raw))
    if magic.startswith(XZ):
        return cast("BinaryIO", _Xz(raw))
    return raw


def _member() -> Any:
    """Return a decompressor of one gzip member; it checks the checksum."""
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


class _Gzip(io.RawIOBase):
    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._member = _member()
        self._input = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        view = memoryview(buffer)
        while True:
            data = self._some(len(view))
            if data is None:
                return 0
            if data:
                view[: len(data)] = data
                return len(data)

    def _some(self, size: int) -> bytes | None:
        """Return at most `size` bytes, perhaps none yet; None = the end."""
        member = self._member
        if member.eof and not self._next_member():
            return None
        member = self._member
        if not self._input and member.needs_input:
            self._input = self._raw.read(_READ_BYTES)
            if not self._input:
                raise DamagedError("the gzip data breaks off")
        data, self._input = self._input, b""
        try:
            return cast("bytes", member.decompress(data, size))
        except igzip_lib.error as error:
            raise DamagedError(f"the gzip data is corrupt ({error})") from error

    def _next_member(self) -> bool:
        """Begin the member after the one that ended; tell whether there is one. Zero bytes pad a file."""
        rest: bytes = self._member.unused_data
        while True:
            rest = (rest or self._raw.read(_READ_BYTES)).lstrip(b"\0")
            if rest:
                break
            if not (rest := self._raw.read(_READ_BYTES)):
                return False
        if len(rest) < len(GZIP):
            rest += self._raw.read(_READ_BYTES)
        if not rest.startswith(GZIP):
            raise DamagedError("bytes follow the gzip data that are none")
        self._member, self._input = _member(), rest
        return True


class _Zstd(io.RawIOBase):
    # pyarrow's reader tells a frame that breaks off from one that ends; zstandard's stream_reader does not.
    def __init__(self, raw: BinaryIO) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        try:
            return int(self._stream.readinto(buffer))
        except OSError as error:
            raise DamagedError(f"the zstd data breaks off or is corrupt ({error})") from error


class _Xz(io.RawIOBase):
    def __init__(self, raw: BinaryIO) -> None:
        self._file = lzma.LZMAFile(raw)  # noqa: SIM115 - the caller closes `raw`

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        try:
            data = self._file.read1(len(buffer))
        except EOFError as error:
            raise DamagedError("the xz data breaks off") from error
        except lzma.LZMAError as error:
            raise DamagedError(f"the xz data is corrupt ({error})") from error
        memoryview(buffer)[: len(data)] = data
        return len(data)
