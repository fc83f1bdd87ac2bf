"""The builds that are kept, with what each says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from warehouse import publish
from warehouse.session import DamagedBuildError, reading


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """A finished build and what its own diary tells.

    Attributes:
        build_id: its id.
        path: its file.
        started_at: UTC time it began.
        size_bytes: size of the file.
        is_published: whether readers see it.
        is_rolled_back: readers saw it until `goodput rollback` went back to an older one.
        code_version: version of this project that made it; None = unknown.
        interruptions: how many it found; None = unknown.
        problem: why it cannot be read; None = it can.
    """

    build_id: str
    path: Path
    started_at: datetime
    size_bytes: int
    is_published: bool
    is_rolled_back: bool = False
    code_version: str | None = None
    interruptions: int | None = None
    problem: str | None = None


def kept(data: Path, last: int | None = None) -> list[BuildFacts]:
    """Return the builds that are kept, oldest first; one that cannot be read says why.

    Args:
        data: data folder.
        last: only so many of the newest, and the published one; None = all.
    """
    found = publish.builds(data)
    shown = found if last is None else [b for i, b in enumerate(found) if b.is_published or i >= len(found) - last]
    held_back = publish.held_back(data)
    return [_facts(build, is_rolled_back=held_back is not None and build.build_id == held_back) for build in shown]


def _facts(build: publish.Build, *, is_rolled_back: bool) -> BuildFacts:
    version, interruptions, problem = None, None, None
    try:
        with reading(build.path, is_small=True) as con:
            version, interruptions = con.execute(
                "select code_version, mart_rows['interruptions'] from ops.builds order by started_at desc limit 1"
            ).fetchone() or (None, None)
    except DamagedBuildError:
        problem = "cannot be opened: it is damaged"
    except duckdb.Error as error:
        problem = f"does not say how it was made ({str(error).splitlines()[0]})"
    return BuildFacts(
        build.build_id,
        build.path,
        _started_at(build),
        build.size_bytes,
        build.is_published,
        is_rolled_back,
        version,
        interruptions,
        problem,
    )


def _started_at(build: publish.Build) -> datetime:
    """Return the time in a build's id; of a file that somebody named otherwise, its modification time."""
    try:
        return datetime.strptime(build.build_id, publish.STAMP).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(build.path.stat().st_mtime, UTC)
