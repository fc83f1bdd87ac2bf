"""Cases of several writers, readers beside them, and damaged files; tests/fixtures/cases/README.md says where each comes from."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from flows import demo, pipeline
from flows.config import load
from flows.manifest import opened
from tests.flows.command_help import ROOT, Command, stopped, until
from tests.flows.conftest import Goodput
from tests.flows.ingest_help import TOML, check_balance, config, ids, labels, write
from transforms import lake
from transforms.tables import TABLES
from warehouse import query
from warehouse.digest import digest

CASES = ROOT / "tests/fixtures/cases"
COLUMNS = "JobID|JobName|User|State|Submit|Start|End|Elapsed|NNodes|NodeList\n"
DAILY = """
[clusters.c1]
zone = "UTC"
gpus_per_node = 8

[[sources]]
name = "sacct"
path = "exports/sacct_day={collected_at}.txt"
"""


def thousand_attempts() -> str:
    """What a day's export of 1,000 attempts holds."""
    rows = []
    for job in range(1000):
        hour, minute = job // 50, job % 50
        start, end = f"2025-05-04T{hour:02d}:{minute:02d}:00", f"2025-05-04T{hour:02d}:{minute + 9:02d}:00"
        state = "FAILED" if job % 10 == 0 else "COMPLETED"
        rows.append(f"{7000 + job}|j{job % 7}|ann|{state}|{start}|{start}|{end}|00:09:00|1|gn{job % 64:03d}\n")
    return COLUMNS + "".join(rows)


def daily(home: Path) -> Path:
    (home / "exports").mkdir(parents=True)
    (home / "exports/sacct_day=2025-05-04.txt").write_text(thousand_attempts())
    (home / "goodput.toml").write_text(DAILY)
    return home


@pytest.mark.slow
def test_pf5_two_runs_and_a_backfill_of_one_file_at_once(tmp_path: Path) -> None:
    """1,000 attempts and the marts of a single load; each of the three succeeds, and none prints a trace."""
    assert "1,000 attempts" in (CASES / "PF5/timeline.txt").read_text(), "the premise"
    pipeline.run(load(daily(tmp_path / "calm") / "goodput.toml"))
    home = daily(tmp_path / "three")
    days = ("--start", "2025-05-01", "--end", "2025-05-04")
    callers = [Command(home, "run"), Command(home, "backfill", *days, "--here"), Command(home, "run")]
    for caller in callers:
        assert caller.ended() == 0, caller.output
        assert "Traceback" not in caller.output
    warehouse = home / "data/warehouse.duckdb"
    assert query.rows(warehouse, "select count(*) as n from marts.attempts") == [{"n": 1000}]
    assert digest(warehouse) == digest(tmp_path / "calm/data/warehouse.duckdb")
    with opened(home / "data") as manifest:
        assert [p["lines_used"] for p in manifest.exports()] == [1000], "read once, by whichever came first"
    again = Command(home, "backfill", *days, "--here")
    assert again.ended() == 0
    assert "nothing to do" in again.output


READER = """
import duckdb, sys
con = duckdb.connect(sys.argv[1], read_only=True)
for _ in sys.stdin:
    print(con.execute("select count(*) from marts.attempts").fetchone()[0], flush=True)
"""


class Notebook:
    """Another process that holds a session of plain DuckDB open on the published warehouse."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-c", READER, str(home / "data/warehouse.duckdb")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def attempts(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def closed(self) -> None:
        self.process.communicate(timeout=30)


@pytest.mark.slow
def test_st1_reader_and_loader_in_different_processes(tmp_path: Path) -> None:
    """A reader that comes while a build is under way sees the last published state; one that stays open holds up no loader,
    and keeps what it saw.
    """
    home = tmp_path / "site"
    settings = demo.prepare(home)
    later = home / "exports/export_final"
    later.rename(home / "later")
    pipeline.ingest(load(settings))
    pipeline.build(load(settings))
    first = digest(home / "data/warehouse.duckdb")
    early = Notebook(home)
    seen = early.attempts()
    (home / "later").rename(later)
    pipeline.ingest(load(settings))

    with stopped(home, "build") as loader:
        loader.process.send_signal(signal.SIGCONT)
        until(lambda: any((home / "data/builds").glob("*.part")))
        loader.process.send_signal(signal.SIGSTOP)
        asked = Command(home, "sql", "select count(*) as n from marts.attempts", "--format", "csv")
        assert asked.ended() == 0, asked.output
        assert asked.output.split() == ["n", str(seen)], "the last published state, while the loader writes"
        during = Notebook(home)
        assert during.attempts() == seen
        assert loader.process.poll() is None
        loader.process.send_signal(signal.SIGCONT)
        assert loader.ended() == 0, loader.output

    assert digest(home / "data/warehouse.duckdb") != first
    late = Notebook(home)
    assert late.attempts() > seen, "a new session sees the new build"
    assert early.attempts() == during.attempts() == seen, "open ones keep what they saw"
    for notebook in (early, during, late):
        notebook.closed()


def test_st3_the_fixture_is_one_good_part_one_cut_and_one_empty() -> None:
    folder = CASES / "ST3/events"
    assert pl.read_parquet(folder / "part-0001.parquet").height == 1000
    assert {d.path: d.reason for d in lake.verify(folder)} == {
        "part-0002.parquet": "is cut short",
        "part-0003.parquet": "is empty",
    }


@pytest.mark.parametrize("has_exports", [True, False])
def test_st3_cut_and_empty_parts_cost_nothing_but_themselves(
    tmp_path: Path, goodput: Goodput, has_exports: bool
) -> None:
    """Three parts of 1,000 rows; the second is cut, the third empty. One message names both, they are set aside, and read again
    from their exports; where those are gone, the 1,000 rows of the good part stay, and the loss is said.
    """
    (tmp_path / "exports").mkdir()
    data = tmp_path / "data"
    for number in range(3):
        write(tmp_path, f"{number}.jsonl", labels(*range(1000 * number, 1000 * (number + 1))))
    settings = config(tmp_path)
    (tmp_path / "goodput.toml").write_text(TOML)
    pipeline.ingest(settings, batch_bytes=1)
    pipeline.build(settings)
    before = digest(data / "warehouse.duckdb")
    with opened(data) as manifest:
        pieces = {p["path"][-7:]: p["export_id"] for p in manifest.exports()}
    of = {
        name: [p for p in lake.parts_on_disk(data / "lake") if lake.export_ids(data / "lake", p) == {piece}]
        for name, piece in pieces.items()
    }
    for path in of["1.jsonl"]:
        (data / "lake" / path).write_bytes((CASES / "ST3/events/part-0002.parquet").read_bytes())
    for path in of["2.jsonl"]:
        (data / "lake" / path).write_bytes((CASES / "ST3/events/part-0003.parquet").read_bytes())
    if not has_exports:
        for name in ("1.jsonl", "2.jsonl"):
            (tmp_path / "exports" / name).unlink()

    ran = goodput("run", "--config", tmp_path / "goodput.toml")
    assert ran.code == 0, ran.err
    [named] = [line for line in ran.err.splitlines() if "damaged parts of the lake were moved" in line]
    assert named.count("is cut short") == len(of["1.jsonl"]) > 0
    assert named.count("is empty") == len(of["2.jsonl"]) > 0
    kept = len(ids(tmp_path))
    assert kept == (3000 if has_exports else 1000)
    assert ("may be lost" in ran.err) == (not has_exports)
    assert lake.verify(data / "lake") == []
    assert (digest(data / "warehouse.duckdb") == before) or not has_exports
    if has_exports:
        check_balance(tmp_path)
    assert "damaged" not in goodput("run", "--config", tmp_path / "goodput.toml").err, "said once"


FULL = """
import resource, signal, sys
from pathlib import Path
import polars as pl
from transforms import lake
from transforms.tables import TABLES

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
table = TABLES["annotations"]
frame = lake.read(Path(sys.argv[1]), table, [sys.argv[2]])
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
try:
    lake.write(Path(sys.argv[1]), sys.argv[2], table, frame.with_columns(cause=pl.lit("nic")))
except OSError as error:
    print("failed:", error.strerror)
"""


def test_st3_a_write_that_fails_leaves_the_good_file(tmp_path: Path) -> None:
    """The disk takes no more in the middle of a write under the name of a part that is there."""
    (tmp_path / "exports").mkdir()
    write(tmp_path, "a.jsonl", labels(*range(28, 28 + 28 * 40, 28)))  # all of one day
    pipeline.ingest(config(tmp_path))
    folder = tmp_path / "data/lake"
    [part] = lake.parts_on_disk(folder)
    before = (folder / part).read_bytes()
    assert len(before) > 2_000, "the premise: as much does not fit"
    failed = subprocess.run(
        [sys.executable, "-c", FULL, str(folder), part], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert failed.stdout == "failed: File too large\n", failed.stdout + failed.stderr
    assert (folder / part).read_bytes() == before
    assert lake.read(folder, TABLES["annotations"], [part]).height == 40
    pipeline.ingest(config(tmp_path))
    assert [p.name for p in folder.rglob("*") if p.is_file()] == [Path(part).name], "what was begun is gone"


LITTLE_ROOM = """
import resource, signal, sys
from flows.cli import execute

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(execute(["run", "--config", sys.argv[2]]))
"""


@pytest.mark.parametrize(("room", "what"), [(2_000, "parquet.unfinished: File too large"), (6_000, "manifest.sqlite")])
def test_a_disk_that_is_full_is_said_and_nothing_is_lost(tmp_path: Path, room: int, what: str) -> None:
    """No file may grow beyond `room`: first no part can be written, then the manifest cannot. A message, no trace; with room
    again the next ingest reads all.
    """
    (tmp_path / "exports").mkdir()
    (tmp_path / "goodput.toml").write_text(TOML)
    write(tmp_path, "a.jsonl", labels(*range(200)))
    pipeline.ingest(config(tmp_path))
    write(tmp_path, "b.jsonl", labels(*range(200, 1400)))
    arguments = [sys.executable, "-c", LITTLE_ROOM, str(room), str(tmp_path / "goodput.toml")]
    ran = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    [error] = [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
    assert what in error
    assert "is there room" in error
    assert "Traceback" not in ran.stderr
    with opened(tmp_path / "data") as manifest:
        assert sum(part.rows for part in manifest.parts().values()) == 200, "parts that no commit names do not count"
    pipeline.ingest(config(tmp_path))
    assert len(ids(tmp_path)) == 1400
    check_balance(tmp_path)
