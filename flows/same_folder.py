"""Tell whether a data folder is still the one that `goodput serve` began with.

A volume that is no longer mounted leaves an empty folder, or none, at its place: a run would begin anew there, unseen.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

VARIABLE = "GOODPUT_SERVED_FOLDER"
"""Environment variable in which runs find the folder of the `goodput serve` that started them."""


class OtherFolderError(Exception):
    """The data folder is gone, or another one; the message says what to do."""


def remember(data: Path) -> None:
    """Note, for the processes that this one starts, which folder this is. It exists."""
    found = data.stat()
    os.environ[VARIABLE] = json.dumps([str(data), found.st_dev, found.st_ino])


def check(data: Path) -> None:
    """Check that a data folder is the one that was remembered; nothing where none was, or one at another path.

    Raises:
        OtherFolderError: it is not.
    """
    if not (noted := os.environ.get(VARIABLE)):
        return
    path, device, inode = json.loads(noted)
    if path != str(data):
        return
    todo = "mount its volume or put it back; if this is meant, stop `goodput serve` and start it again"
    try:
        found = data.stat()
    except OSError as error:
        raise OtherFolderError(
            f"the data folder {data} is gone ({error.strerror}); nothing was made in its place: {todo}"
        ) from None
    if (found.st_dev, found.st_ino) != (device, inode):
        raise OtherFolderError(
            f"the data folder {data} is another one than `goodput serve` began with; nothing was written to it: {todo}"
        )
