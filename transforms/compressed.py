"""Undo gzip, zstd and xz, in bounded memory, giving every byte before the place where a damaged file breaks off."""

from __future__ import annotations

import io
import lzma
from typing import TYPE_CHECKING, BinaryIO, cast

from isal import igzip_lib

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_READ_BYTES = 256 << 10
_WRITE_BYTES = 256 << 10  # given out at once: what comes before a break is not lost with it

GZIP, ZSTD, XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"


class DamagedError(EOFError):
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
        return _Reader(_Gzip(raw))
    if magic.startswith(ZSTD):
        return _Reader(_Zstd(raw))
    if magic.startswith(XZ):
        return _Reader(_Xz(raw))
    return raw


class _Reader(io.BufferedReader):
    """Gives out what came before a break before it raises."""

    def read(self, size: int | None = -1, /) -> bytes:
        left = -1 if size is None else size
        parts: list[bytes] = []
        while left:
            try:
                part = self.read1(left)
            except DamagedError:
                if parts:
                    break
                raise
            if not part:
                break
            parts.append(part)
            left -= len(part) if left > 0 else 0
        return b"".join(parts)


class _Decompressor(io.RawIOBase):
    """Base of the decompressors: once broken, always broken."""

    _damage: DamagedError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        if self._damage is not None:
            raise self._damage
        try:
            return self._into(memoryview(buffer).cast("B"))
        except DamagedError as error:
            self._damage = error
            raise

    def _into(self, view: memoryview) -> int:
        """Write some bytes to `view` and return how many; 0 = the end."""
        raise NotImplementedError


class _Gzip(_Decompressor):
    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._member = _member()
        self._input = b""

    def _into(self, view: memoryview) -> int:
        while (data := self._some(len(view))) == b"":
            pass
        if data is None:
            return 0
        view[: len(data)] = data
        return len(data)

    def _some(self, size: int) -> bytes | None:
        """Return at most `size` bytes, perhaps none yet; None = the end."""
        if self._member.eof and not self._next_member():
            return None
        if not self._input and self._member.needs_input:
            self._input = self._raw.read(_READ_BYTES)
            if not self._input:
                raise DamagedError("the gzip data breaks off")
        data, self._input = self._input, b""
        try:
            return self._member.decompress(data, min(size, _WRITE_BYTES))
        except _ISAL_ERROR as error:
            raise DamagedError(f"the gzip data is corrupt ({error})") from error

    def _next_member(self) -> bool:
        """Begin the member after the one that ended; tell whether there is one. Zero bytes pad a file."""
        rest = (self._member.unused_data or self._raw.read(_READ_BYTES)).lstrip(b"\0")
        while not rest:
            if not (rest := self._raw.read(_READ_BYTES)):
                return False
            rest = rest.lstrip(b"\0")
        if len(rest) < len(GZIP):
            rest += self._raw.read(_READ_BYTES)
        if not rest.startswith(GZIP):
            raise DamagedError("bytes follow the gzip data that are none")
        self._member, self._input = _member(), rest
        return True


_ISAL_ERROR = cast("type[Exception]", igzip_lib.error)  # its stub calls the class an instance


def _member() -> igzip_lib.IgzipDecompressor:
    """Return a decompressor of one gzip member; it checks the checksum."""
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


class _Zstd(_Decompressor):
    # pyarrow's reader tells a frame that breaks off from one that ends; zstandard's stream_reader does not.
    def __init__(self, raw: BinaryIO) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")

    def _into(self, view: memoryview) -> int:
        try:
            return int(self._stream.readinto(view))
        except OSError as error:
            raise DamagedError(f"the zstd data breaks off or is corrupt ({error})") from error


class _Xz(_Decompressor):
    def __init__(self, raw: BinaryIO) -> None:
        self._file = lzma.LZMAFile(raw)  # noqa: SIM115 - the caller closes `raw`

    def _into(self, view: memoryview) -> int:
        try:
            data = self._file.read1(len(view))
        except EOFError as error:
            raise DamagedError("the xz data breaks off") from error
        except lzma.LZMAError as error:
            raise DamagedError(f"the xz data is corrupt ({error})") from error
        view[: len(data)] = data
        return len(data)
