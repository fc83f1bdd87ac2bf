"""What seldom comes after what it changes: an increment sees it all the same, and holds what a build of everything holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows import config, pipeline
from flows.config import Config
from warehouse import publish, query
from warehouse.build import BuildReport
from warehouse.digest import digest

TOML = """
[clusters.atlas]
zone = "UTC"
gpus_per_node = 8
[[sources]]
path = "sacct_{collected_at}.txt"
[[sources]]
path = "train_{job_id}.log"
collected_at = 2024-06-14T08:00:00Z
[[sources]]
path = "ranks*.csv"
collected_at = 2024-06-14T08:00:00Z
[[sources]]
path = "states*_{cluster}.txt"
collected_at = 2024-06-12T00:00:00Z
[[sources]]
path = "kern*_{cluster}.log"
collected_at = 2024-06-12T00:00:00Z
[[runs]]
match = { user = "u" }
"""
HEADER = "JobID|JobIDRaw|Cluster|JobName|User|Partition|State|ExitCode|Submit|Start|End|Elapsed|NNodes|NodeList\n"


def attempt(ident: str, raw: int, start: str, end: str) -> str:
    return f"{ident}|{raw}|atlas|tr|u|p|FAILED|1:0|2024-06-{start}:00|2024-06-{start}:00|2024-06-{end}:00|01:00:00|4|n[1-4]\n"


@pytest.fixture
def site(tmp_path: Path) -> Config:
    toml = tmp_path / "goodput.toml"
    toml.write_text(TOML)
    return config.load(toml)


def dump(site: Config, day: int, *rows: str) -> None:
    (site.base / f"sacct_202406{day:02}T000000Z.txt").write_text(HEADER + "".join(rows))


def assert_as_whole(site: Config, *, is_partial: bool = True) -> BuildReport:
    """Ingest and build what is new, then everything, and compare."""
    _, report = pipeline.run(site)
    made = digest(publish.link_of(site.data))
    assert (report.made_from is not None) is is_partial
    pipeline.build(site, force=True)
    assert made == digest(publish.link_of(site.data))
    return report


def test_a_raw_id_that_was_used_twice_leads_on_to_other_arrays(site: Config) -> None:
    """100_3 and 200_1 share the raw id 105. Another task of array 100 asks for its attempts anew, and they depend on both."""
    dump(site, 5, attempt("100_3", 105, "03T08:00", "04T09:30"), attempt("200_1", 105, "04T08:00", "04T09:00"))
    pipeline.run(site)
    dump(site, 6, attempt("100_5", 107, "03T08:30", "03T10:30"))
    assert_as_whole(site)
    ended = query.rows(publish.link_of(site.data), "select ended_at from marts.attempts where job_id = '100_3'")
    assert [str(row["ended_at"]) for row in ended] == ["2024-06-04 08:00:00+00:00"], "raw id 105 began again then"


NCCL = (
    "2024-06-03T11:59:31.100000Z [rank{n}]:[E604 ProcessGroupNCCL.cpp:616] [Rank {n}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=30, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds "
    "before timing out.\n"
)


def test_a_rank_map_that_comes_after_the_log_names_its_nodes(site: Config) -> None:
    """Lines of ranks name no node; the map does, and then the one whose GPU failed is known."""
    dump(site, 5, attempt("100", 100, "03T08:00", "03T12:00"), attempt("101", 101, "03T12:10", "03T18:00"))
    error = "2024-06-03T11:59:32.100000Z [rank17]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    (site.base / "train_100.log").write_text("".join(NCCL.format(n=n) for n in range(24)) + error)
    pipeline.run(site)
    (site.base / "ranks.csv").write_text("rank,node\n" + "".join(f"{n},n{n // 8 + 1}\n" for n in range(32)))
    assert_as_whole(site)
    nodes = query.rows(
        publish.link_of(site.data), "select distinct node from marts.interruption_evidence where node = 'n3'"
    )
    assert nodes, "rank 17 ran on n3"


def test_rows_that_were_lost_for_good_leave_the_marts(site: Config) -> None:
    """A part of the lake and the file that it was read from are gone: what is left of that export is not known by its id."""
    step = (
        " iteration {n}/ 1000 | consumed samples: {n} | elapsed time per iteration (ms): 6281.6 | lm loss: 2.0E+00 |\n"
    )
    dump(site, 6, attempt("100", 100, "03T08:00", "05T12:00"))
    pipeline.ingest(site)
    log = site.base / "train_100.log"
    log.write_text(
        "".join(
            f"[2024-06-{d:02} {h:02}:{m:02}:00]" + step.format(n=(d * 24 + h) * 60 + m)
            for d in (3, 4)
            for h in range(9, 12)
            for m in range(0, 60, 5)
        )
    )
    pipeline.run(site)
    parts = sorted((site.data / "lake/log_events").rglob("*.parquet"))
    assert len(parts) == 2
    parts[0].unlink()
    log.unlink()
    assert_as_whole(site, is_partial=False)


def states(site: Config, number: int, header: str, *rows: str) -> None:
    text = "\n".join((f"Cluster|NodeName|TimeStart|TimeEnd|State|Reason{header}", *rows))
    (site.base / f"states{number}_atlas.txt").write_text(f"{text}\n")


def test_who_took_a_node_out_is_known_where_one_of_two_equal_tellings_says_so(site: Config) -> None:
    """A record's id leaves out who set it: without an order of its own, which telling held hung on how many others there were."""
    dump(site, 5, attempt("100", 100, "03T08:00", "03T12:00"))
    state = "atlas|n2|2024-06-03T11:58:00|2024-06-05T09:00:00|DRAIN|check cable"
    states(site, 0, "|User", f"{state}|ops(2001)")
    pipeline.run(site)
    states(site, 1, "", state)
    assert_as_whole(site)
    for number in range(2, 14):
        rows = (
            f"atlas|n{20 + n}|2024-06-03T08:{n:02}:00|2024-06-05T09:00:00|DRAIN|cable {number}|ops(2001)"
            for n in range(30)
        )
        states(site, number, "|User", *rows)
        pipeline.ingest(site)
    assert_as_whole(site)
    found = query.rows(publish.link_of(site.data), "select set_by from marts.node_states where node = 'n2'")
    assert found == [{"set_by": "ops"}]


def test_an_event_that_two_logs_tell_alike_is_the_one_whose_year_was_printed(site: Config) -> None:
    """One log prints the year, another leaves it to be inferred: the record is the same, what was assumed is not."""
    dump(site, 5, attempt("100", 100, "03T08:00", "03T12:00"))
    line = "n2 kernel: [{n}.000000] NVRM: Xid (PCI:0000:1b:00): 79, pid=77, GPU has fallen off the bus.\n"
    lines = [(n, line.format(n=100000 + n)) for n in range(20)]
    (site.base / "kern0_atlas.log").write_text("".join(f"2024-06-03T11:{n:02}:00+00:00 {text}" for n, text in lines))
    pipeline.run(site)
    (site.base / "kern1_atlas.log").write_text("".join(f"Jun  3 11:{n:02}:00 {text}" for n, text in lines))
    assert_as_whole(site)
    other = [line.replace("n2", "n3").format(n=200000 + n) for n in range(400)]
    (site.base / "kern2_atlas.log").write_text(
        "".join(f"2024-06-03T11:{n % 60:02}:00+00:00 {t}" for n, t in enumerate(other))
    )
    assert_as_whole(site)
    found = query.rows(publish.link_of(site.data), "select distinct flags from marts.hardware_events where node = 'n2'")
    assert found == [{"flags": []}]
