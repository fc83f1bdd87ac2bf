"""What was typed in the shell, kept for the next time in the user's own state folder."""

from __future__ import annotations

import os
from pathlib import Path

MOST_BYTES = 1_000_000
"""A longer history loses its older half when a shell starts."""


def history_file(data: Path) -> Path | None:
    """Return the file that keeps the history, there and readable by its user only; None = it cannot be kept.

    Args:
        data: folder of the warehouse, which others read: never the place.
    """
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if os.path.isabs(home) else _home()  # noqa: PTH117 - a relative one counts as not set
    if base is None:
        return None
    path = base / "goodput" / "sql_history"
    if path.resolve().is_relative_to(data.resolve()):
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        path.chmod(0o600)
        _shorten(path)
    except OSError:
        return None
    return path


def _home() -> Path | None:
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError:
        return None


def _shorten(path: Path) -> None:
    """Drop the older half of a long history; an entry begins after an empty line."""
    if path.stat().st_size <= MOST_BYTES:
        return
    text = path.read_bytes()
    start = text.find(b"\n\n", len(text) // 2)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(text[start + 1 :] if start >= 0 else b"")
    fresh.replace(path)
