"""See each step at which a process is about to change what lies in a data folder, and act there: die, for example.

Python announces every change to a file system to audit hooks before it makes it, whoever asks for it, so no list of calls
can fall behind the code. What libraries do below Python is met where they are called: SQLite's statements, DuckDB's,
Polars' writers, and fsync, which raises no event.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HARMLESS = set("listdir scandir walk fwalk getxattr listxattr chdir kill killpg putenv unsetenv".split())
_TARGETS = {"rename": (1, 3), "symlink": (1, 2), "link": (1, 3)}
"""Where an event has what it makes, and the folder that is relative to; elsewhere the first and the last argument."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DATABASE = re.compile(
    r"\s*(attach|checkpoint|detach|comment|(?:create(?:\s+or\s+replace)?|drop|alter)\s+\w+|insert|update|delete|copy)\b",
    re.IGNORECASE,
)
_NAMES = (
    (re.compile(r"\d{8}T[\d.]+Z"), "ID"),
    (re.compile(r"\bb\d{8}t?-\d+"), "PART"),
    (re.compile(r"(?<=lake/).+(?=/PART)|(?<=lake/)[^.]+$"), "FOLDER"),
    (re.compile(r"(?<=\.warehouse\.duckdb\.).+|(?<=\.rolled-back\.).+|(?<=\.reading-)\w+"), "SESSION"),
    (re.compile(r"(?<=/\.)[0-9a-f]{16}(?=\.unfinished)"), "RANDOM"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
)


class Steps:
    """Counts the steps within `data`, and writes each with its time into `trace`; calls `act` at the `count`-th `name`."""

    def __init__(self, data: Path, trace: Path, name: str | None, count: int, act: Callable[[], None]) -> None:
        self._data, self._name, self._count, self._act = str(data), name, count, act
        self._trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._met: Counter[str] = Counter()
        self._lock = threading.Lock()  # parts are written by several threads
        self._began = time.monotonic()

    def at(self, what: str, path: object, folder: object = None) -> None:
        """Take note of a step that is about to change `path`."""
        place = _place(path, folder)
        if place is None or not f"{place}/".startswith(f"{self._data}/"):
            return
        there = os.path.lexists(place)
        if (what == "mkdir" and there) or (what in ("remove", "rmdir") and not there):
            return
        relative = place[len(self._data) + 1 :] or "."
        for pattern, word in _NAMES:
            relative = pattern.sub(word, relative)
        self.named(f"{what} {relative}")

    def named(self, name: str) -> None:
        """Take note of a step by its name."""
        with self._lock:
            self._met[name] += 1
            os.write(self._trace, f"{time.monotonic() - self._began:.4f} {name}\n".encode())
            if name == self._name and self._met[name] == self._count:
                self._act()

    def watch(self) -> None:
        """Begin; there is no end but that of the process."""
        _watch_python(self)
        _watch_sqlite(self)
        _watch_duckdb(self)
        _watch_polars(self)


def _place(path: object, folder: object) -> str | None:
    """Return the absolute path that a call means, links left as they are; None where it means no path."""
    if isinstance(path, int):
        return str(Path(f"/proc/self/fd/{path}").readlink()) if path >= 0 else None
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    base = Path(f"/proc/self/fd/{folder}").readlink() if isinstance(folder, int) and folder >= 0 else Path.cwd()
    return os.path.normpath(base / os.fsdecode(path))


def _watch_python(steps: Steps) -> None:
    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(args[2], int) and args[2] & _WRITING:
                steps.at("open", args[0])
        elif event.startswith("os.") and (what := event.removeprefix("os.")) not in _HARMLESS and args:
            path, folder = _TARGETS.get(what, (0, -1))
            steps.at(what, args[path], args[folder])

    def announced(name: str, real: Callable[[int], None]) -> Callable[[int], None]:
        def call(handle: Any) -> None:
            steps.at(name, handle if isinstance(handle, int) else handle.fileno())
            real(handle)

        return call

    os.fsync = announced("fsync", os.fsync)
    os.fdatasync = announced("fsync", os.fdatasync)
    sys.addaudithook(hook)


def _watch_sqlite(steps: Steps) -> None:
    def name(sql: str) -> str | None:
        words = re.sub(r"\binto |\bfrom |or replace |immediate|[\"(;].*", "", sql.strip().split("\n")[0]).split()
        return None if words[0] in ("select", "pragma") else f"manifest: {' '.join(words[:2])}"

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            if (found := name(sql)) is not None:
                steps.named(found)
            return super().execute(sql, *args)

        def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
            if given := list(rows):
                steps.named(name(sql) or "")
            return super().executemany(sql, given)

        def executescript(self, sql: str) -> sqlite3.Cursor:
            steps.named("manifest: make")
            return super().executescript(sql)

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **kwargs: connect(*args, **kwargs, factory=Connection)  # type: ignore[assignment]


def _watch_duckdb(steps: Steps) -> None:
    import duckdb

    class Connection:
        """A DuckDB connection, which cannot be derived from."""

        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def __enter__(self) -> Connection:
            self._real.__enter__()
            return self

        def __exit__(self, *args: object) -> Any:
            return self._real.__exit__(*args)

        def cursor(self) -> Connection:
            return Connection(self._real.cursor())

        def execute(self, sql: str, *args: Any, **kwargs: Any) -> Any:
            if (match := _DATABASE.match(sql)) and not re.search(r"\bmemory\.|\(read_only\)", sql.split("\n")[0]):
                steps.named(f"database: {' '.join(match[1].lower().split())}")
            return self._real.execute(sql, *args, **kwargs)

    connect = duckdb.connect
    duckdb.connect = lambda *args, **kwargs: Connection(connect(*args, **kwargs))  # type: ignore[assignment,return-value]


def _watch_polars(steps: Steps) -> None:
    import polars as pl

    def announced(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(frame: Any, file: Any, *args: Any, **kwargs: Any) -> Any:
            steps.at("write", file)
            return real(frame, file, *args, **kwargs)

        return call

    for kind in (pl.DataFrame, pl.LazyFrame):
        for method in [m for m in dir(kind) if m.startswith(("write_", "sink_"))]:
            setattr(kind, method, announced(getattr(kind, method)))
