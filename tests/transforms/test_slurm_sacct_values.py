"""sacct text to job attempts: what the values mean, and which records are the same."""

from __future__ import annotations

import pytest

from tests.transforms.sacct_reading import CTX, HEADER, LINE, read
from transforms.outcome import Context, MissingSettingError

# --- meaning


def test_steps_of_every_kind_are_ignored() -> None:
    ids = ["7.batch", "7.extern", "7.0", "7_3.12", "7+0.batch", "7.interactive", "7.0+1", "7.exte+"]
    assert read(HEADER + "".join(i + LINE[1:] for i in ids)).ignored == {"header": 1, "job_step": 8}


def test_requests() -> None:
    """Start there and empty, or no nodes assigned: never ran. No column Start: unknown, and said so."""
    head = "JobID|State|Start|NodeList\n"
    text = (
        head
        + "1|PENDING|Unknown|\n2|CANCELLED|None|None assigned\n3|FAILED|2025-05-04T08:00:00|None assigned\n4|FAILED|x|n1\n"
    )
    result = read(text)
    assert result.column("is_request") == [True, True, True, False]
    assert result.column("node_list") == [None, None, None, "n1"]
    assert result.column("flags")[3] == ["submit_absent", "time_missing", "value_unreadable"]
    bare = read("JobID|State\n1|PENDING\n")
    assert (bare.column("is_request"), bare.column("flags")) == (
        [False],
        [["submit_absent", "start_absent", "time_missing"]],
    )


def test_host_lists_are_expanded_once() -> None:
    head = "JobID|State|NodeList\n"
    result = read(head + "1|FAILED|gn[09-11],b\n" * 50 + "2|FAILED|gn[1-\n")
    assert result.hosts == {"gn[09-11],b": ["gn09", "gn10", "gn11", "b"]}
    assert result.column("flags")[-1][-1] == "value_unreadable"
    assert result.column("node_list")[-1] == "gn[1-", "kept as printed"


def test_heterogeneous_and_array_ids() -> None:
    result = read("JobID|JobIDRaw|State\n100+0|100|FAILED\n100+1|101|FAILED\n5000_3|5003|FAILED\n")
    assert result.column("het_job_id") == ["100", "100", None]
    assert result.column("array_job_id") == [None, None, "5000"]


def test_the_job_id_stands_in_for_an_absent_raw_id() -> None:
    assert read("JobID|State\n5_3|FAILED\n").column("job_id_raw") == ["5_3"]
    assert read("JobIDRaw|State\n5|FAILED\n").column("job_id") == ["5"]


def test_clusters_and_their_zones() -> None:
    """One file, two clusters, two zones: `2 h` apart, in the order of the file."""
    text = "JobID|Cluster|State|Start|Elapsed\n"
    text += "1|a|FAILED|2025-05-04T08:00:00|00:01:00\n2|b|FAILED|2025-05-04T08:00:00|00:01:00\n"
    ctx = Context(CTX.collected_at, zones={"a": "UTC", "b": "Europe/Berlin"})
    result = read(text, ctx)
    assert result.column("cluster") == ["a", "b"]
    assert [t.hour for t in result.column("started_at")] == [8, 6]


def test_a_configured_cluster_keeps_its_name_and_any_other_is_renamed() -> None:
    """An export of several configured clusters is never merged; Slurm's own name gives way to the configured one."""
    text = "JobID|Cluster|State|Start|Elapsed\n"
    text += "".join(f"{i}|{c}|FAILED|2025-05-04T08:00:00|00:01:00\n" for i, c in enumerate(["a", "b", "slurm", ""], 1))
    zones = {"a": "UTC", "b": "Europe/Berlin"}
    result = read(text, Context(CTX.collected_at, cluster="a", zones=zones))
    assert dict(zip(result.column("job_id"), result.column("cluster"), strict=True)) == {
        "1": "a",
        "2": "b",
        "3": "a",
        "4": "a",
    }
    hours = dict(zip(result.column("job_id"), [t.hour for t in result.column("started_at")], strict=True))
    assert hours == {"1": 8, "2": 6, "3": 8, "4": 8}, "the zone is that of the row's cluster"
    without_zones = Context(CTX.collected_at, cluster="a", zone="UTC", clusters=frozenset({"a", "b"}))
    assert sorted(read(text, without_zones).column("cluster")) == ["a", "a", "a", "b"]
    assert read(text).column("cluster") == ["c1"] * 4, "no name of the export is configured"


def test_a_name_that_is_not_configured_stays_where_the_source_has_none() -> None:
    text = "JobID|Cluster|State\n1|elsewhere|FAILED\n"
    with pytest.raises(MissingSettingError, match=r"clusters\.elsewhere"):
        read(text, Context(CTX.collected_at, zones={"a": "UTC", "b": "UTC"}))
    assert read(text, Context(CTX.collected_at, zone="UTC")).column("cluster") == ["elsewhere"]


def test_a_missing_zone_or_cluster_is_refused_not_guessed() -> None:
    with pytest.raises(MissingSettingError, match=r"clusters\.c1"):
        read(HEADER + LINE, Context(CTX.collected_at, "c1"))
    with pytest.raises(MissingSettingError, match="set `cluster`"):
        read(HEADER + LINE, Context(CTX.collected_at, zone="UTC"))


def test_a_row_without_a_cluster_is_rejected() -> None:
    text = "JobID|Cluster|State\n1|a|FAILED\n2||FAILED\n"
    result = read(text, Context(CTX.collected_at, zone="UTC"))
    assert result.column("job_id") == ["1"]
    assert "cluster" in result.rejects[0].reason


def test_an_offset_beats_the_zone() -> None:
    ctx = Context(CTX.collected_at, "c1", zone="Asia/Tokyo")
    text = "JobID|State|Start|End\n1|FAILED|2025-05-04T08:00:00+02:00|2025-05-04T18:00:00\n"
    row = read(text, ctx).jobs.row(0, named=True)
    assert (row["started_at"].hour, row["ended_at"].hour) == (6, 9)


def test_suspended_time_counts_when_a_fold_is_settled() -> None:
    """Start 02:30 could be 00:30 or 01:30 UTC; 40 min of work and 60 of suspension end at 02:10 UTC: the first."""
    ctx = Context(CTX.collected_at, "c1", zone="Europe/Berlin")
    text = "JobID|Start|End|Elapsed|Suspended\n1|2025-10-26T02:30:00|2025-10-26T03:10:00|00:40:00|01:00:00\n"
    row = read(text, ctx).jobs.row(0, named=True)
    assert (row["started_at"].hour, row["started_at"].minute, row["flags"]) == (0, 30, ["submit_absent"])


# --- identity


def test_one_fact_has_one_record_id_whatever_the_columns() -> None:
    few = "JobID|JobIDRaw|State|ExitCode|Submit|Start|End|Elapsed\n"
    row = "9|9|FAILED|1:0|2025-05-04T07:00:00|2025-05-04T08:00:00|2025-05-04T09:00:00|01:00:00"
    small = read(few + row + "\n").jobs
    large = read(few.replace("\n", "|User|Comment\n") + row + "|ann|x\n").jobs
    assert small["record_id"][0] == large["record_id"][0]
    assert large["filled_columns"][0] == small["filled_columns"][0] + 2


def test_hashes_do_not_depend_on_the_neighbours() -> None:
    """A column that is empty in all other rows, or in none, changes nothing."""
    other = LINE.replace("7|", "8|").replace("note", "")
    alone, together = read(HEADER + other).jobs, read(HEADER + LINE + other).jobs
    for column in ("record_id", "filled_columns"):
        assert alone[column][0] == together[column][1]


def test_order_decides_in_a_fold_where_no_elapsed_tells() -> None:
    """Berlin, 26 October 2025, 02:00 to 03:00 comes twice: the end is after the start, the start after the submission."""
    text = (
        "JobID|State|Submit|Start|End\n"
        "1|COMPLETED|2025-10-26T02:30:00|2025-10-26T02:50:00|2025-10-26T02:10:30\n"
        "2|COMPLETED|2025-10-26T01:30:00|2025-10-26T02:50:00|2025-10-26T03:10:00\n"
        "3|COMPLETED|2025-10-26T02:50:00|2025-10-26T02:10:30|2025-10-26T02:20:00\n"
    )
    jobs = read(text, Context(CTX.collected_at, "c1", zone="Europe/Berlin")).jobs
    start, end = jobs["started_at"].to_list(), jobs["ended_at"].to_list()
    assert [(s.hour, s.minute) for s in start] == [(0, 50), (0, 50), (1, 10)]
    assert [(e.hour, e.minute) for e in end] == [(1, 10), (2, 10), (1, 20)]
    assert ["time_ambiguous" in f for f in jobs["flags"]] == [False, True, False]


def test_cpus_come_from_alloctres_where_no_column_gives_them() -> None:
    row = "1|COMPLETED|2025-05-04T08:00:00|2025-05-04T09:00:00|billing=96,cpu=96,gres/gpu=8,node=1"
    assert read(f"JobID|State|Start|End|AllocTRES\n{row}\n").jobs["cpus"].to_list() == [96]
    assert read(f"JobID|State|Start|End|AllocTRES|AllocCPUS\n{row}|48\n").jobs["cpus"].to_list() == [48]
