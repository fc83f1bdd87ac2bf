"""Keep what a command prints: compressed, hashed as it was printed, under its name only once it is whole and on the disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets as random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import zstandard

from flows.config import Config
from flows.due_windows import PullError
from flows.secret_values import Mask
from transforms.stream import is_compressed

_UNFINISHED = ".unfinished"
_SWEEP_SECONDS = 60.0
_MAGIC_BYTES = 6


class NotKeptError(Exception):
    """What a command printed cannot be kept; the cause is ours, not the command's."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


class Printed:
    """Compresses what a command prints into a file, and hashes it as it was printed. What is compressed already stays so."""

    def __init__(self, handle: BinaryIO, mask: Mask) -> None:
        self.mask, self.length = mask, 0
        self._handle, self._digest = handle, hashlib.sha256()
        self._packer = zstandard.ZstdCompressor(write_checksum=True).stream_writer(handle, closefd=False)
        self._first = b""
        self._is_packed: bool | None = None  # the first bytes tell

    @property
    def sha256(self) -> str:
        """Hash of what was printed so far."""
        return self._digest.hexdigest()

    def write(self, block: bytes) -> None:
        """Take the next block.

        Raises:
            NotKeptError: it holds the value of a secret, or the disk is full.
        """
        if self.mask.is_in(block):
            raise NotKeptError(PullError("it printed the value of a secret; nothing of it was kept"))
        self._digest.update(block)
        self.length += len(block)
        self._first += block
        if self._is_packed is not None or len(self._first) >= _MAGIC_BYTES:
            try:
                self._pass_on()
            except OSError as error:
                raise NotKeptError(error) from error

    def _pass_on(self) -> None:
        if self._is_packed is None:
            self._is_packed = is_compressed(self._first)
        block, self._first = self._first, b""
        if self._is_packed:
            self._handle.write(block)
        else:
            self._packer.write(block)

    def finish(self) -> None:
        """Bring everything to the disk.

        Raises:
            OSError: it is full.
        """
        self._pass_on()
        if not self._is_packed:
            self._packer.flush(zstandard.FLUSH_FRAME)
        self._handle.flush()
        os.fsync(self._handle.fileno())


@contextmanager
def unfinished(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Yield a new file that no pattern matches, locked as long as it is written; removed if it is still there at the end."""
    path = folder / f".{random.token_hex(8)}{_UNFINISHED}"
    with path.open("xb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield path, handle
        finally:
            path.unlink(missing_ok=True)


def keep(path: Path, folder: Path, name: str, pulled_at: datetime) -> Path:
    """Give a finished file its name, under which it is an export, and bring the name to the disk."""
    while (kept := folder / f"{name}_{pulled_at:%Y%m%dT%H%M%S.%fZ}.zst").exists():
        pulled_at += timedelta(microseconds=1)
    path.rename(kept)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return kept


def sweep(config: Config) -> None:
    """Remove what killed processes left unfinished."""
    for path in left(config.data):
        path.unlink(missing_ok=True)


def left(data: Path) -> Iterator[Path]:
    """Yield what killed processes left unfinished, also of sources that are gone; what another still writes is locked."""
    for path in sorted((data / "landing").glob(f"*/.*{_UNFINISHED}")):
        try:
            with path.open("rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_old = time.time() - os.fstat(handle.fileno()).st_mtime > _SWEEP_SECONDS
        except OSError:  # it is gone, locked, or of another user
            continue
        if is_old:
            yield path
