"""Measure hours of new exports on top of a replay, beside a rebuild of everything, and compare the two warehouses.

Run: python benchmarks/increment.py [--replay DIR] [--at 2024-07-26T22:00] [--hours 1] [--times 3]

`DIR` is what `goodput demo DIR` leaves. Its exports are cut at an instant, as if collected then: logs at a line, dumps of
Slurm with what still ran shown as running. That is ingested and built; then one hour after the other is added, as logs that
grew and as new dumps, and `goodput run` is timed; then nothing is added and it is timed again; then all is built in an empty
folder. An hour in which a run stops costs more than a quiet one, and one that closes a UTC day most: the median of the hours counts.
Like is held against like: what begins with exports against all that begins with exports, a build against a build.
"""

from __future__ import annotations

import argparse
import json
import mmap
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_RATIO = 0.1
_STAMPED = re.compile(r"\d{8}(?:T\d{6}Z)?")
_LINE = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


def cut(replay: Path, target: Path, since: datetime | None, until: datetime) -> None:
    """Write to `target` what was new in the exports of `replay` between two instants, as it would have been collected at `until`.

    Logs of lines are appended to, whatever their name; dumps get a name of their own; files that bear a later date are left out.
    """
    for path in sorted((replay / "exports").rglob("*")):
        relative = path.relative_to(replay)
        stamp = _collected(path.name)
        if path.is_dir() or (stamp and stamp > until + timedelta(days=9)):
            continue
        if relative.parts[1] == "kern" and stamp and since and stamp < since - timedelta(days=2):
            continue
        if relative.parts[1] in ("kern", "train", "health"):
            _append(path, target / relative, since, until)
        elif stamp is None:
            if since is None:
                _copy(path, target / relative)
        elif (since is None or stamp > since) and stamp <= until:
            _copy(path, target / relative)
    for folder, prefix in (("sacct", "sacct"), ("slurm", "sacctmgr_events")):
        _dump(sorted((replay / "exports" / folder).glob(f"{prefix}_*.txt")), target, since, until)


def _collected(name: str) -> datetime | None:
    match = _STAMPED.search(name)
    if match is None:
        return None
    text = match[0]
    if len(text) == 8:
        return datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC)
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _append(source: Path, target: Path, since: datetime | None, until: datetime) -> None:
    """Append the lines of a log in [since, until); lines without a time go with the one before."""
    begin = since.strftime("%Y-%m-%dT%H:%M:%S").encode() if since else b""
    end = until.strftime("%Y-%m-%dT%H:%M:%S").encode()
    kept = list[bytes]()
    stamp = b""
    with source.open("rb") as lines:
        lines.seek(_near(source, begin))
        for line in lines:
            if match := _LINE.match(line):
                stamp = match[1]
            if begin <= stamp < end:
                kept.append(line)
    if kept:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab") as out:
            out.writelines(kept)


def _near(source: Path, begin: bytes) -> int:
    """Return an offset before the first line of the hour of `begin`; 0 where no line is of that hour."""
    if not begin:
        return 0
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(b"\n" + begin[:13]) + 1


def _dump(sources: list[Path], target: Path, since: datetime | None, until: datetime) -> None:
    """Write a dump of Slurm as of `until` from those that were made after it: what changed after `since`."""
    after = [p for p in sources if (stamp := _collected(p.name)) and stamp > until]
    if not after:
        return
    header, *rows = after[0].read_text().splitlines()
    columns = header.split("|")
    start, end = (columns.index(c) for c in (("Start", "End") if "JobID" in columns else ("TimeStart", "TimeEnd")))
    begun, stop = (m.strftime("%Y-%m-%dT%H:%M:%S") if m else "" for m in (since, until))
    kept = list(_as_of(rows, columns, start, end, begun, stop))
    name = f"{after[0].name.rpartition('_')[0]}_{until:%Y%m%dT%H%M%SZ}.txt"
    path = target / "exports" / after[0].parent.name / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *kept]) + "\n")


def _as_of(rows: list[str], columns: list[str], start: int, end: int, begun: str, stop: str) -> Iterator[str]:
    """Yield rows as they would have been printed at `stop`; not those that ended before `begun`."""
    for row in rows:
        values = row.split("|")
        if values[start] >= stop or values[end] < begun:
            continue
        if values[end] >= stop:
            values[end] = "Unknown"
            for name, value in (
                ("State", "RUNNING"),
                ("ExitCode", "0:0"),
                ("DerivedExitCode", "0:0"),
                ("Reason", "None"),
            ):
                if name in columns and "JobID" in columns:
                    values[columns.index(name)] = value
            if "Elapsed" in columns:
                values[columns.index("Elapsed")] = _elapsed(values[start], stop)
        yield "|".join(values)


def _elapsed(start: str, stop: str) -> str:
    seconds = int((datetime.fromisoformat(stop) - datetime.fromisoformat(start)).total_seconds())
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def goodput(home: Path, *command: str) -> tuple[float, float, dict[str, object]]:
    """Run the command line; return seconds of wall and of CPU, and what it printed as JSON."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "flows.cli", *command, "--json", "--config", str(home / "goodput.toml")],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, json.loads(ran.stdout)


def digests(home: Path) -> dict[str, str]:
    """Return the SHA-256 of each mart."""
    return {name: str(value) for name, value in goodput(home, "check", "--digest")[2]["marts"].items()}  # type: ignore[attr-defined]


def written(home: Path) -> int:
    """Return the bytes of the files in the data folder."""
    return sum(p.stat().st_size for p in (home / "data").rglob("*") if p.is_file() and not p.is_symlink())


def main() -> None:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--at", type=datetime.fromisoformat, default=datetime(2024, 7, 26, 22, tzinfo=UTC))
    parser.add_argument("--hours", type=float, default=1)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    at = options.at.replace(tzinfo=UTC)
    with tempfile.TemporaryDirectory() as folder:
        home, clean = Path(folder) / "hourly", Path(folder) / "clean"
        replay = options.replay or Path(folder) / "replay"
        if not options.replay:
            subprocess.run(
                [sys.executable, "-m", "flows.cli", "demo", str(replay)],
                cwd=ROOT,
                check=True,
                stdout=subprocess.DEVNULL,
            )
        for place in (home, clean):
            place.mkdir()
            shutil.copy(replay / "goodput.toml", place)
        cut(replay, home, None, at)
        goodput(home, "run")
        hours = []
        for _ in range(options.times):
            cut(replay, home, at, at + timedelta(hours=options.hours))
            at += timedelta(hours=options.hours)
            hours.append(goodput(home, "run"))
        before = written(home)
        nothing = goodput(home, "run")
        added = written(home) - before
        shutil.copytree(home / "exports", clean / "exports")
        whole = goodput(clean, "run")
        forced = goodput(clean, "build", "--force")
        same = digests(home) == digests(clean)
    print(f"everything, from an empty folder   {whole[0]:6.2f} s wall, {whole[1]:6.2f} s CPU")
    print(f"a rebuild of the marts alone       {forced[0]:6.2f} s wall, {forced[1]:6.2f} s CPU")
    for wall, cpu, told in hours:
        build = float(told["build"]["seconds"])  # type: ignore[index, call-overload]
        print(f"an hour of new exports             {wall:6.2f} s wall, {cpu:6.2f} s CPU, of it the build {build:.2f} s")
    print(
        f"nothing new                        {nothing[0]:6.2f} s wall, {nothing[1]:6.2f} s CPU, {added} bytes more on disk"
    )
    hour = statistics.median(wall for wall, _, _ in hours)
    build = statistics.median(float(told["build"]["seconds"]) for _, _, told in hours)  # type: ignore[index]
    print(f"from exports to marts: hour / everything {hour / whole[0]:.3f} (limit {MAX_RATIO})")
    print(f"from the lake to marts: the hour's build / a rebuild of the marts {build / forced[0]:.3f}")
    print(f"digests of all marts equal those of everything built at once: {same}")


if __name__ == "__main__":
    main()
