"""A build made out of the one before holds exactly what a build of everything holds, and does no work where nothing is new."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.increment import cut
from flows import config, pipeline
from flows.replay import generate
from warehouse import publish, query, remake
from warehouse.build import BuildReport
from warehouse.digest import digest
from warehouse.runner import Model

BEGAN = datetime(2024, 6, 3, 8, tzinfo=UTC)


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    generate(folder, seed=302, nodes=48, days=6, mix="llama3")
    return folder


class Site:
    """Exports that arrive piece by piece, and the warehouse built from them."""

    def __init__(self, replay: Path, home: Path) -> None:
        self.replay, self.home, self.at = replay, home, None
        home.mkdir()
        shutil.copy(replay / "goodput.toml", home)
        self.config = config.load(home / "goodput.toml")
        self.steps: dict[str, float] = {}

    def collect(self, until: datetime) -> None:
        """Add what is new in the exports until an instant."""
        cut(self.replay, self.home, self.at, until)
        self.at = until

    def build(self, *, force: bool = False) -> BuildReport:
        pipeline.ingest(self.config)
        self.steps = {}
        return pipeline.build(self.config, force=force, progress=self.steps.__setitem__)

    def digest(self) -> dict[str, str]:
        return digest(publish.link_of(self.config.data))


@pytest.fixture
def site(replay: Path, tmp_path: Path) -> Site:
    return Site(replay, tmp_path / "site")


def assert_as_whole(site: Site, *, is_partial: bool = True) -> None:
    """Build what is new, then everything, and compare."""
    report = site.build()
    assert report.published
    assert not report.is_current
    assert (report.made_from is not None) is is_partial
    made = site.digest()
    assert site.build(force=True).made_from is None
    assert made == site.digest()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_an_hour_more_gives_what_everything_gives(site: Site) -> None:
    at = BEGAN + timedelta(days=3, hours=5)
    site.collect(at)
    site.build()
    for hours in (1, 2, 19):  # the last one turns the day, and with it every rate
        site.collect(at + timedelta(hours=hours))
        assert_as_whole(site)


def test_nothing_new_does_nothing(site: Site) -> None:
    site.collect(BEGAN + timedelta(days=2))
    first = site.build()
    before = {p: p.stat().st_mtime_ns for p in site.config.data.rglob("*") if p.name != "writer.lock"}
    second = site.build()
    assert second.is_current
    assert second.build_id == first.build_id
    assert site.steps == {}
    changed = {p for p in before if p.stat().st_mtime_ns != before[p] and p.is_file()}
    assert {p.name for p in changed} <= {".lock"}
    assert not pipeline.needs_build(site.config)


def test_lines_that_arrive_in_two_halves(site: Site) -> None:
    """The last line is cut: its row leaves the lake when the rest arrives."""
    at = BEGAN + timedelta(days=3)
    site.collect(at)
    log = max((site.home / "exports" / "train").iterdir())
    kern = max((site.home / "exports" / "kern").iterdir())
    ends = {path: path.read_bytes() for path in (log, kern)}
    for path, data in ends.items():
        path.write_bytes(data[:-40])
    site.build()
    for path, data in ends.items():
        append(path, data[-40:])
    assert_as_whole(site)


def test_what_comes_late_and_what_comes_twice(site: Site) -> None:
    """A day's kernel log that was away is read after later ones; a dump is read again under another name."""
    site.collect(BEGAN + timedelta(days=4))
    late = sorted((site.home / "exports" / "kern").iterdir())[1]
    kept = late.rename(site.home / "away.log")
    site.build()
    kept.rename(late)
    dump = max((site.home / "exports" / "sacct").iterdir())
    shutil.copy(dump, dump.with_name("sacct_20240608T120000Z.txt"))
    assert_as_whole(site)


def test_merged_parts_are_nothing_new(site: Site) -> None:
    """Maintenance writes old rows anew, beside new ones: only those that came are taken for new."""
    at = BEGAN + timedelta(days=3)
    site.collect(at)
    site.build()
    site.collect(at + timedelta(hours=1))
    pipeline.ingest(site.config)
    pipeline.maintain(site.config)
    assert_as_whole(site)


def test_an_operators_word_and_a_node_nobody_knew(site: Site) -> None:
    site.collect(BEGAN + timedelta(days=4))
    site.build()
    link = publish.link_of(site.config.data)
    stop = query.rows(link, "from marts.interruptions order by interrupted_at limit 1")[0]
    label = {
        "interruption_id": stop["interruption_id"], "cluster": stop["cluster"], "cause": "gpu_hbm", "node": None,
        "author": "kim", "why": "replaced", "made_at": "2024-06-07T12:00:00+00:00", "scope": "interruption",
    }  # fmt: skip
    (site.config.data / "annotations.jsonl").write_text(json.dumps(label) + "\n")
    kern = max((site.home / "exports" / "kern").iterdir())
    line = b"2024-06-07T07:59:58.000001+00:00 newnode01 kernel: [12.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    append(kern, line)
    assert_as_whole(site)


def test_other_settings_build_everything(site: Site) -> None:
    site.collect(BEGAN + timedelta(days=2))
    site.build()
    toml = site.home / "goodput.toml"
    toml.write_text(toml.read_text().replace('resume_window = "1h"', 'resume_window = "2h"'))
    site.config = config.load(toml)
    assert_as_whole(site, is_partial=False)


def test_a_build_that_is_cut_short_leaves_the_work_as_it_was(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C must not cost a build of everything next time, nor may what was begun be taken for the former build's."""
    at = BEGAN + timedelta(days=3)
    site.collect(at)
    site.build()
    site.collect(at + timedelta(hours=1))
    real = remake.Worker.run
    done = []

    def fail(self: remake.Worker, model: Model) -> None:
        done.append(model)
        if len(done) > 60:
            raise KeyboardInterrupt
        real(self, model)

    monkeypatch.setattr(remake.Worker, "run", fail)
    with pytest.raises(KeyboardInterrupt):
        site.build()
    monkeypatch.undo()
    assert_as_whole(site)
    site.collect(at + timedelta(hours=2))
    assert_as_whole(site)


def test_a_file_that_fails_again_is_no_news(site: Site) -> None:
    """Else every hour makes another build of the same, and the ones to roll back to are pruned away."""
    site.collect(BEGAN + timedelta(days=2))
    broken = site.home / "exports" / "sacct" / "sacct_20240605T010000Z.txt"
    broken.write_bytes(b"\x00\x01")
    first = site.build()
    assert [e.path for e in pipeline.ingest(site.config).failed or pipeline.ingest(site.config).unknown]
    assert not pipeline.needs_build(site.config)
    again = site.build()
    assert again.is_current
    assert again.build_id == first.build_id
    broken.write_bytes(b"\x00\x02 something else")
    assert not site.build().is_current


XID = "{at}+00:00 {node} kernel: [8914553.056622] NVRM: Xid (PCI:0000:3b:00): 79, pid=77, GPU has fallen off the bus.\n"


def test_a_line_that_is_told_again_a_day_later(site: Site) -> None:
    """A logger that restarts prints the kernel's ring buffer again: the earliest telling holds, in whatever folder it lies."""
    site.collect(BEGAN + timedelta(days=3))
    kern = sorted((site.home / "exports" / "kern").iterdir())
    append(kern[0], XID.format(at="2024-06-03T20:00:00.000001", node="gpu0001").encode())
    site.build()
    append(kern[-1], XID.format(at="2024-06-06T07:59:59.000001", node="gpu0001").encode())
    assert_as_whole(site)


SACCT = "JobID|JobIDRaw|Cluster|JobName|User|Partition|State|ExitCode|Submit|Start|End|Elapsed|NNodes|NodeList\n"
RAW = "JobIDRaw|Cluster|JobName|User|Partition|State|ExitCode"
JOB = "98|atlas|tr|u|p|FAILED|1:0"


@pytest.mark.parametrize(
    "later",
    [
        f"{RAW}|Start|End|Elapsed|NNodes|NodeList\n{JOB}|2024-06-04T01:00:00|2024-06-04T05:00:00|04:00:00|2|n[1-2]\n",
        f"{RAW}|Submit|Start|End|NNodes|NodeList\n{JOB}|2024-06-04T05:01:00|2024-06-04T05:10:00|2024-06-04T05:30:00|2|n[1-2]\n",
    ],
    ids=["the same attempt", "a requeue"],
)
def test_an_array_task_that_is_later_told_by_its_raw_id_alone(tmp_path: Path, later: str) -> None:
    """JobID 97_1 and JobIDRaw 98 are one job: what the second tells changes what the first one made."""
    toml = tmp_path / "goodput.toml"
    toml.write_text(
        '[clusters.atlas]\nzone = "UTC"\ngpus_per_node = 8\n[[sources]]\npath = "sacct_{collected_at}.txt"\n'
        '[[runs]]\nmatch = { user = "u" }\n'
    )
    task = "|atlas|tr|u|p|FAILED|1:0|2024-06-04T00:00:00|2024-06-04T01:00:00|2024-06-04T05:00:00|04:00:00|2|n[1-2]\n"
    (tmp_path / "sacct_20240605T000000Z.txt").write_text(f"{SACCT}97_1|98{task}97_2|99{task}")
    settings = config.load(toml)
    pipeline.run(settings)
    (tmp_path / "sacct_20240606T000000Z.txt").write_text(later)
    _, report = pipeline.run(settings)
    assert report.made_from
    made = digest(publish.link_of(settings.data))
    pipeline.build(settings, force=True)
    assert made == digest(publish.link_of(settings.data))


def test_lines_without_a_time_are_counted_when_they_come(tmp_path: Path) -> None:
    """A log that tells no times comes to a warehouse that is built: its lines are unmatched, and counted as such."""
    toml = tmp_path / "goodput.toml"
    toml.write_text(
        '[clusters.atlas]\nzone = "UTC"\ngpus_per_node = 8\n[[sources]]\npath = "sacct_{collected_at}.txt"\n'
        '[[sources]]\npath = "train-{job_id}.log"\ncollected_at = 2024-06-14T08:00:00Z\n[[runs]]\nmatch = { user = "u" }\n'
    )
    job = (
        "98|98|atlas|tr|u|p|FAILED|1:0|2024-06-04T00:00:00|2024-06-04T01:00:00|2024-06-04T05:00:00|04:00:00|2|n[1-2]\n"
    )
    (tmp_path / "sacct_20240605T000000Z.txt").write_text(SACCT + job)
    step = (
        " iteration {n}/ 1000 | consumed samples: {n} | elapsed time per iteration (ms): 6281.6 | lm loss: 2.0E+00 |\n"
    )
    stamped = "".join(f"[2024-06-04 01:{n:02}:00]" + step.format(n=n * 10) for n in range(5, 30))
    (tmp_path / "train-98.log").write_text(stamped)
    settings = config.load(toml)
    pipeline.run(settings)
    (tmp_path / "train-97.log").write_text("".join(step.format(n=n) for n in range(300, 310)))
    _, report = pipeline.run(settings)
    assert report.made_from
    told = query.rows(publish.link_of(settings.data), "select job_id, reason, steps from ops.unmatched_log_events")
    assert told == [{"job_id": "97", "reason": "the line has no time", "steps": 10}]


def test_a_log_beside_the_work_is_nothing_to_go_on_from(site: Site) -> None:
    """A checkpoint that was killed, or somebody's client, left it: it may not be replayed, nor stop later increments."""
    at = BEGAN + timedelta(days=3)
    site.collect(at)
    site.build()
    log = publish.work_of(site.config.data).with_name("newest.work.wal")
    log.write_bytes(b"\x00garbage" * 600)
    site.collect(at + timedelta(hours=1))
    assert_as_whole(site, is_partial=False)
    assert not log.exists()
    site.collect(at + timedelta(hours=2))
    assert_as_whole(site)


def test_why_all_was_made_anew_is_told(site: Site) -> None:
    """Else a fault in the increments would show as slowness alone."""
    at = BEGAN + timedelta(days=3)
    site.collect(at)
    site.build()
    publish.work_of(site.config.data).write_bytes(b"no database")
    site.collect(at + timedelta(hours=1))
    report = site.build()
    assert report.published
    assert report.made_from is None
    assert report.fell_back is not None
    assert "newest.work" in report.fell_back
