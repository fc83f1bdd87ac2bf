"""One writer at a time for each data folder: a lock that dies with its process, and says who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

FILE_NAME = "writer.lock"
SILENT_SECONDS = 1.0
"""How long a wait may last before it is told of."""
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes: process, host, what it does, and since when (UTC, ISO 8601)."""

    pid: int
    host: str
    command: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (`{self.command}`, since {self.since})"


OnWait = Callable[[Holder], None]
"""Told whom a caller waits for."""


class BusyError(Exception):
    """Another process writes to the data folder; the message names it."""

    def __init__(self, data: Path, holder: Holder | None) -> None:
        self.holder = holder
        who = str(holder) if holder else "another process"
        super().__init__(f"{who} is writing to {data}; wait until it ends, or stop it, and run this again")


@contextmanager
def hold(
    data: Path, command: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None, name: str = FILE_NAME
) -> Iterator[None]:
    """Hold the only right to write to `data`.

    The lock is the kernel's (flock on the file `name`), so a killed holder leaves none behind and nothing has to expire. The
    file's content only serves the message; the file stays.

    Args:
        data: data folder; made if absent.
        command: what the holder does, for the message of those who come second: "ingest".
        wait_seconds: how long to wait for another writer before giving up.
        on_wait: told the holder once the wait has lasted a second, and again when somebody else holds it meanwhile.
        name: file that is locked.

    Raises:
        BusyError: another process (or another call in this one) holds it after `wait_seconds`, or took the file away.
    """
    data.mkdir(parents=True, exist_ok=True)
    path = data / name
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b") as handle:
        began, told = time.monotonic(), None
        while not _try(handle):
            waited, held = time.monotonic() - began, holder(data, name)
            if waited >= wait_seconds:
                raise BusyError(data, held)
            if on_wait and waited >= SILENT_SECONDS and held and held != told:
                on_wait(held)
                told = held
            time.sleep(_POLL_SECONDS)
        if not _is_at(handle, path):  # its last holder removed it, so that others lock another file
            raise BusyError(data, None)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps(asdict(Holder(os.getpid(), socket.gethostname(), command, since)))
        handle.truncate(0)
        handle.write(text.encode())
        handle.flush()
        yield


def holder(data: Path, name: str = FILE_NAME) -> Holder | None:
    """Return who holds, or last held, the lock; None where that cannot be told."""
    try:
        return Holder(**json.loads((data / name).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _is_at(handle: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except OSError:
        return False


def _try(handle: BinaryIO) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
