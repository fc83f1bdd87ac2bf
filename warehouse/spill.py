"""Where sessions that read put what does not fit in memory, and what killed ones left there."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = ".reading-"


@contextmanager
def folder(beside: Path) -> Iterator[Path]:
    """Yield an empty folder on the volume of the file `beside`, removed at the end; elsewhere where that may not be written.

    Folders for temporary files are often kept in memory, and small; then a large sort would fill the memory that it was
    to spare.
    """
    try:
        made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside.parent))
    except OSError:  # a reader without the right to write there
        made = Path(tempfile.mkdtemp(prefix=f"goodput{PREFIX}"))
    handle = os.open(made, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # ends with the process; tells `sweep` that it lives
        yield made
    finally:
        os.close(handle)
        shutil.rmtree(made, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove the folders that killed sessions left in `folder`."""
    for path in folder.glob(f"{PREFIX}*"):
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:  # its session has just ended
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(handle)
