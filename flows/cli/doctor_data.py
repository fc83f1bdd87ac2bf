"""What `goodput doctor` sees of the data folder: room, filesystem, who writes, the clock, and the exports that were read."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from flows.cli import facts, landed
from flows.cli.findings import OK, PROBLEM, WARNING, Finding
from flows.cli.terminal import here
from flows.cli.words import counted, spoken

LEAST_FREE, ENOUGH_FREE = 200_000_000, 2_000_000_000
"""Free bytes below which a build is likely to fail, and below which it is time to make room."""
CLOCK_SECONDS = 120.0
"""How far clocks of machines that share files may differ before it is worth a word."""
DAY_SECONDS = 25 * 3600.0
"""How long a day may be, where clocks are set back in it."""
LONG_SECONDS = 86_400.0
"""How long one command may write before it is worth a word."""
SHOWN = 5

_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse", "lustre", "gpfs", "beegfs", "ceph", "afs")
_MEMORY = ("tmpfs", "ramfs")
_DAY = re.compile(r"\d{4}-?\d\d-?\d\d")
"""A stamp in a name that is a date alone."""


def folder(settings: facts.Config) -> Iterator[Finding]:
    """Look whether the data folder is there and can be written, what it lies on, and how much room there is."""
    data = settings.data
    if not data.exists():
        if data.is_symlink():
            text = f"{data} is a link to {data.readlink()}, which is not there"
            yield Finding("data folder", PROBLEM, text, "mount or make its target, or remove the link")
            return
        base = next(p for p in data.parents if p.exists())
        yield Finding("data folder", WARNING, f"{data} is not there yet", "`goodput run` makes it")
    elif not data.is_dir():
        step = "move it away, or set another `data` under [warehouse]"
        yield Finding("data folder", PROBLEM, f"{data} is no folder", step)
        return
    else:
        base = data
    yield _writable(base, data)
    yield _filesystem(base)
    yield _room(base, data)


def _writable(base: Path, data: Path) -> Finding:
    is_read_only = bool(os.statvfs(base).f_flag & os.ST_RDONLY)
    # the folders below belong to whoever made them, which is how a run as root shuts out the others
    inner = [p for p in (data / "builds", data / "lake") if p.is_dir()] if base == data else []
    shut = next((p for p in (base, *inner) if is_read_only or not os.access(p, os.W_OK | os.X_OK)), None)
    if shut is None:
        return Finding("data folder", OK, f"{base} can be written")
    why = "is on a read-only filesystem" if is_read_only else "cannot be written by this user"
    return Finding("data folder", PROBLEM, f"{shut} {why}", "run as its owner, or set another `data` under [warehouse]")


def _filesystem(base: Path) -> Finding:
    kind = filesystem_of(base)
    if kind.startswith(_NETWORK):
        text = f"is a network filesystem ({kind}): its locks may not keep a second writer on another host out"
        return Finding(
            "filesystem", WARNING, text, "run `goodput run` on one host only, or move `data` to a local disk"
        )
    if kind in _MEMORY:
        text = f"is memory ({kind}): a restart of the machine empties it"
        return Finding("filesystem", WARNING, text, "set another `data` under [warehouse]")
    return Finding("filesystem", OK, kind)


def filesystem_of(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the kind of filesystem a folder lies on: ext4, nfs4; "unknown" where the system does not tell."""
    real, best, kind = os.path.realpath(path), "", "unknown"
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return kind
    for line in lines:
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), before.split()[4])
        if len(point) >= len(best) and (real == point or real.startswith(point.rstrip("/") + "/")):
            best, kind = point, after.split()[0]  # of two mounts on one point the later hides the earlier
    return kind


def _room(base: Path, data: Path) -> Finding:
    usage, state = shutil.disk_usage(base), os.statvfs(base)
    size = max((p.stat().st_size for p in (data / "builds").glob("*.duckdb")), default=0)
    text = f"{usage.free / 1e9:,.1f} GB free of {usage.total / 1e9:,.1f} GB"
    step = "make room, or keep fewer builds (`keep_builds` under [warehouse])"
    if state.f_files and not state.f_favail:
        return Finding("disk", PROBLEM, "no inode is free", "remove files there")
    if usage.free < max(LEAST_FREE, size):
        return Finding("disk", PROBLEM, f"{text}: too little for the next build", step)
    if usage.free < max(ENOUGH_FREE, 3 * size):
        return Finding("disk", WARNING, f"{text}: enough for few more builds", step)
    return Finding("disk", OK, text)


def writer(settings: facts.Config) -> Iterator[Finding]:
    """Look who writes to the data folder now, and what a killed writer left."""
    from flows import lease
    from warehouse import publish

    data = settings.data
    held, who = is_held(data / lease.FILE_NAME), lease.holder(data)
    if held is None:
        step = "move `data` to a filesystem that has locks"
        yield Finding("writer", PROBLEM, f"{data / lease.FILE_NAME} cannot be locked", step)
    elif held:
        yield _busy(str(who) if who else "another process", who.since if who else None)
    elif who is not None:
        last = f"process {who.pid} on {who.host} with `{who.command}`, begun {who.since} and over"
        yield Finding("writer", OK, f"nobody writes now; the last was {last}")
    else:
        yield Finding("writer", OK, "nobody writes now")
    if held is False and not is_held(publish.folder_of(data) / ".lock"):
        rests = list(publish.folder_of(data).glob(f"*{publish.UNFINISHED}"))
        if rests:
            text = f"{counted(len(rests), 'unfinished build')} left by a killed process"
            yield Finding("writer", WARNING, text, "the next `goodput build` removes what is left")


def _busy(who: str, since: str | None) -> Finding:
    text = f"{who} writes now"
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(since or "")).total_seconds()
    except (ValueError, TypeError):
        seconds = 0.0
    if seconds > LONG_SECONDS:
        return Finding("writer", WARNING, f"{text}, for {spoken(seconds)}", "does it still work? else stop it")
    return Finding("writer", OK, text)


def is_held(path: Path) -> bool | None:
    """Tell whether a process holds a lock; None = there are no locks here. Holds it itself for an instant, shared."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(handle)
    return False


def clock(settings: facts.Config) -> Iterator[Finding]:
    """Compare the time with that of the files and collections: one that lies ahead tells of a wrong clock or zone."""
    from flows.ingesting import jobs

    now = time.time()
    times = {job.found.path: _modified(job.found.path) for job in jobs(settings)[0]}
    times |= {path: _modified(path) for path in (settings.data / "builds").glob("*.duckdb")}
    ahead = {path: t - now for path, t in times.items() if t - now > CLOCK_SECONDS}
    step = "is the clock of this machine right, and of the one that wrote it?"
    if ahead:
        worst = max(ahead, key=lambda path: ahead[path])
        text = f"{here(str(worst))} was written {spoken(ahead[worst])} from now"
        more = f", and {counted(len(ahead) - 1, 'other')}" if len(ahead) > 1 else ""
        yield Finding("clock", WARNING, text + more, step)
        return
    told = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield Finding("clock", OK, f"{told}; no file is newer" if times else told)


def zones(settings: facts.Config) -> Iterator[Finding]:
    """Compare the offsets that logs print with the zones that times without one are read in."""
    from flows.offsets import clashes, told

    for clash in clashes(settings):
        text, step = told(clash)
        yield Finding("zone", WARNING, text, step)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # gone meanwhile, or a broken link
        return 0.0


def exports(settings: facts.Config) -> Iterator[Finding]:
    """Look for exports that failed, that no parser knows, or that were collected in the future."""
    from flows import manifest

    if not settings.data.is_dir():
        yield Finding("exports", WARNING, "nothing was read yet", "`goodput run` reads what the configuration names")
        return
    try:
        with manifest.opened_to_read(settings.data) as opened:
            pieces = landed.pieces_of(opened) if opened is not None else []
    except manifest.ManifestError as error:
        yield Finding("exports", PROBLEM, str(error))
        return
    if not pieces:
        yield Finding("exports", WARNING, "nothing was read yet", "`goodput run` reads what the configuration names")
        return
    present, past = landed.apart(settings, pieces)
    there = {f["path"] for f in present}
    yield from _fates(present, [f for f in past if f["path"] not in there])
    if future := _in_the_future(settings, present):
        first = future[0]
        text = f"{counted(len(future), 'export')} collected in the future, such as {here(first['path'])}"
        step = f"is {first['collected_at']:%Y-%m-%d %H:%M} UTC right? See `collected_at` of its source, and the zone"
        yield Finding("clock", WARNING, text, step)


def lake(settings: facts.Config) -> Iterator[Finding]:
    """Look whether the lake holds what was read into it."""
    from flows.manifest import ManifestError
    from flows.pipeline import lack

    try:
        missing = lack(settings)
    except ManifestError:  # `exports` says so
        return
    if missing:
        yield Finding("lake", PROBLEM, missing, "`goodput ingest` reads again what it can; until then nothing is built")


def _in_the_future(settings: facts.Config, files: list[landed.Row]) -> list[landed.Row]:
    """Return files that would have been collected later than now; one named for today stands for the end of today."""
    from flows.ingesting import jobs

    captured = {j.found.name: j.found.captures.get("collected_at", "") for j in jobs(settings)[0]}
    now = datetime.now(UTC)
    return [
        f
        for f in files
        if (f["collected_at"] - now).total_seconds()
        > CLOCK_SECONDS + (DAY_SECONDS if _DAY.fullmatch(captured.get(f["path"], "")) else 0.0)
    ]


def _fates(files: list[landed.Row], gone: list[landed.Row]) -> Iterator[Finding]:
    bad = [f for f in files if f["status"] != "loaded"]
    failed = sum(f["status"] != "loaded" for f in gone)
    more = f"; {failed:,} more that could not be read {'is' if failed == 1 else 'are'} gone since" if failed else ""
    read = len(files) + len(gone) - failed - len(bad)
    yield Finding("exports", OK, f"{read:,} of {counted(len(files) + len(gone) - failed, 'file')} read{more}")
    for unknown in (False, True):
        some = [f for f in bad if (f["status"] == "unknown_format") is unknown]
        step = (
            "set its `format`, or narrow the `path` of its source"
            if unknown
            else "once it is mended, `goodput run` reads it again"
        )
        for file in some[:SHOWN]:
            yield Finding("exports", PROBLEM, f"{here(file['path'])}: {landed.problem(file)}", step)
        if len(some) > SHOWN:
            what = "of no known format" if unknown else "that failed"
            yield Finding("exports", PROBLEM, f"{len(some) - SHOWN:,} more {what}", "`goodput check` lists them all")
