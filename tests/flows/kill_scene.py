"""A small cluster's exports in which every kind of work of ingest and build comes up, and the states to kill from."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flows import demo, pipeline
from flows.manifest import opened
from tests.flows.kill_help import Site
from transforms import lake
from warehouse import publish

WINDOW = timedelta(days=7)
SOURCES = """
[[sources]]
path = "exports/labels/*.jsonl"
collected_at = 2026-11-30T03:05:00Z

[[sources]]
name = "weekly"
command = ["sh", "weekly.sh", "{{start}}"]
window = "7d"
since = {since}
cluster = "llm"
"""
WEEKLY = """
echo 'JobID|JobName|User|State|Submit|Start|End|Elapsed|NNodes|NodeList'
for n in 1 2 3; do
  echo "${1%T*}-$n|other|bob|COMPLETED|$1|$1|${1%T*}T01:00:00|01:00:00|1|n0$n" | sed 's/-//; s/-//; s/-//'
done
"""


def label(number: int, cause: str = "gpu_faulty") -> str:
    """One label of an interruption that is none of ours: it is kept, and moves no verdict."""
    return json.dumps({"interruption_id": f"i{number}", "cause": cause, "made_at": "2026-11-30T03:00:00Z"}) + "\n"


def weeks() -> tuple[datetime, datetime]:
    """Return the beginnings of the last week that is over and of the one two weeks before it."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    this = epoch + (datetime.now(UTC) - timedelta(minutes=15) - epoch) // WINDOW * WINDOW
    return this - 3 * WINDOW, this - WINDOW


def scene(home: Path) -> Site:
    """Make a site and keep four states of its data folder, over exports that are as they will be.

    `empty`: nothing yet. `published`: two builds, and exports that grew, changed and came since, and two weeks that a command was
    not asked for, so that the next ingest pulls, adds, takes out, writes anew, merges and sets aside. `ingested`: that was done, and there is what killed builds may leave.
    `built`: after the next build, which had one to remove.
    """
    config = demo.prepare(home)
    start = config.read_text().replace('data = "data"\n', 'data = "data"\nkeep_builds = 2\n')
    first, last = weeks()
    config.write_text(start + SOURCES.format(since=f"{last:%Y-%m-%dT%H:%M:%SZ}"))
    (home / "weekly.sh").write_text(WEEKLY)
    site = Site(home)
    site.data.mkdir()
    site.keep("empty")
    later = _first_exports(home)
    pipeline.ingest(site.config, batch_bytes=1)  # a part for each file, so that there are many to merge
    pipeline.build(site.config)
    (home / "exports/labels/second.jsonl").write_text(label(100))
    pipeline.run(site.config)
    config.write_text(start + SOURCES.format(since=f"{first:%Y-%m-%dT%H:%M:%SZ}"))
    _last_exports(home, later)
    _damage(site)
    site.keep("published")
    pipeline.ingest(site.config)
    _litter(site)
    site.keep("ingested")
    pipeline.build(site.config)
    site.keep("built")
    return site


def _first_exports(home: Path) -> dict[Path, bytes]:
    """Put the exports as they were at first; return what of them is to come."""
    later = {}
    for name in ("export_final/sacct_all.txt", "kern.log"):
        path = home / "exports" / name
        later[path] = path.read_bytes()
        path.write_bytes(later[path][: later[path].index(b"\n", len(later[path]) // 2) - 5])  # ends within a line
    labels = home / "exports/labels"
    labels.mkdir()
    for number in range(12):
        (labels / f"n{number:02d}.jsonl").write_text(label(number))
    (labels / "changes.jsonl").write_text(label(50) + label(51))
    (labels / "grows.jsonl").write_text(label(60) + label(61)[:20])
    return later


def _last_exports(home: Path, later: dict[Path, bytes]) -> None:
    for path, content in later.items():
        path.write_bytes(content)
    labels = home / "exports/labels"
    (labels / "changes.jsonl").write_text(label(50, "nic") + label(52))
    (labels / "grows.jsonl").write_text(label(60) + label(61) + label(62))
    (labels / "new.jsonl").write_text(label(70) + "broken\n")


def _damage(site: Site) -> None:
    """Cut a part that belongs to the lake, and put in some that do not: left by a killed ingest, and somebody's own."""
    folder = site.data / "lake"
    with opened(site.data) as manifest:
        path = next(p for p in manifest.parts() if p.startswith("node_states/"))
    content = (folder / path).read_bytes()
    (folder / path).write_bytes(content[:-20])
    (folder / path).with_name("b99999999-00001.parquet").write_bytes(content)
    (folder / path).with_name("b99999999-00002.parquet.unfinished").write_bytes(content[:100])
    (folder / path).with_name("theirs.parquet").write_bytes(content)


def _litter(site: Site) -> None:
    """Leave what builds leave that were killed at any moment."""
    folder = publish.folder_of(site.data)
    for name in ("20200101T000000000000Z.duckdb.part", "20200101T000000000000Z.duckdb.part.wal"):
        (folder / name).write_bytes(b"half")
    spill = folder / "20200101T000000000000Z.spill"
    spill.mkdir()
    (spill / "duckdb_temp_block-1.block").write_bytes(b"spilled")
    (site.data / ".warehouse.duckdb.99999").symlink_to("builds/none")
    orphan = next(p for p in lake.parts_on_disk(site.data / "lake") if p.startswith("annotations/"))
    left = site.data / "lake" / orphan
    shutil.copy(left, left.with_name("b99999999-00003.parquet"))
