"""Cases from public bug reports, from export to mart; tests/fixtures/cases/README.md says where each comes from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

from tests.conftest import Site

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "cases"
SETTINGS = """
[clusters.c1]
zone = "UTC"
gpus_per_node = 8
"""


def read(case: str, name: str) -> bytes:
    return (CASES / case / name).read_bytes()


def make(site: Callable[..., Site], case: str, *names: str, settings: str = SETTINGS, **source: object) -> Site:
    made = site(settings, name=case)
    for name in names:
        made.add(name, read(case, name), cluster="c1", **source)
    made.run()
    return made


def test_id1_requeued_job_keeps_its_three_attempts(site: Callable[..., Site]) -> None:
    """One job, three attempts, two interruptions, 208 GPU-hours; steps add nothing, loading twice changes nothing."""
    made = make(site, "ID1", "sacct_D.txt")
    attempts = made.rows("select attempt, state, gpus, run_id, submitted_at from marts.attempts order by submitted_at")
    assert [(a["attempt"], a["state"], a["gpus"]) for a in attempts] == [
        (1, "NODE_FAIL", 16),
        (2, "PREEMPTED", 16),
        (3, "COMPLETED", 16),
    ]
    assert len({a["run_id"] for a in attempts}) == 1
    assert made.column("select sum(gpu_hours) from marts.job_usage_daily") == [208.0]
    stops = made.rows(
        "select scheduler_state, class, wait_seconds, cause from marts.interruptions order by interrupted_at"
    )
    assert [(s["scheduler_state"], s["class"], s["wait_seconds"]) for s in stops] == [
        ("NODE_FAIL", "unexpected", 15 * 60),
        ("PREEMPTED", "scheduler", 10 * 60),
    ]
    assert [s["cause"] for s in stops] == ["node_unresponsive", "preempted"]
    before = made.digest()
    made.add("again.txt", read("ID1", "sacct_D.txt"), cluster="c1")
    made.run()
    assert made.digest() == before


def test_id3_pending_array_rows_are_requests_and_superseded(site: Callable[..., Site]) -> None:
    """Three completed tasks, 32 GPU-hours, whichever export comes first; pending rows are no attempts."""
    digests = []
    for names in (("export_t1.txt", "export_t2.txt"), ("export_t2.txt", "export_t1.txt")):
        made = site(SETTINGS, name=names[0])
        for name in names:
            collected = "2025-05-04T09:31:00Z" if name == "export_t1.txt" else "2025-05-04T10:05:00Z"
            made.add(name, read("ID3", name), cluster="c1", collected_at=collected)
        made.run()
        digests.append(made.digest())
        assert made.rows("select job_id, job_id_raw, state from marts.attempts order by job_id") == [
            {"job_id": "5000_1", "job_id_raw": "5001", "state": "COMPLETED"},
            {"job_id": "5000_2", "job_id_raw": "5002", "state": "COMPLETED"},
            {"job_id": "5000_3", "job_id_raw": "5003", "state": "COMPLETED"},
        ]
        assert made.column("select sum(gpu_hours) from marts.job_usage_daily") == [32.0]
        assert made.column("select sum(jobs_running) from marts.job_usage_daily") == [3]
    assert digests[0] == digests[1]


def test_wn1_job_over_midnight_in_two_exports_loaded_in_either_order(site: Callable[..., Site]) -> None:
    """One attempt of five hours: 16 GPU-hours before midnight, 24 after, also if the later export is read first."""
    digests = []
    names = ("sacct_S0504_E0505.txt", "sacct_S0505_E0506.txt")
    for order in (names, names[::-1]):
        made = site(SETTINGS, name=order[0])
        for name in order:
            made.add(name, read("WN1", name), cluster="c1")
            made.run()
        assert made.rows("select day, gpu_hours from marts.job_usage_daily order by day") == [
            {"day": date(2025, 5, 4), "gpu_hours": 16.0},
            {"day": date(2025, 5, 5), "gpu_hours": 24.0},
        ]
        assert made.column("select state from marts.attempts") == ["COMPLETED"]
        digests.append(made.digest())
    assert digests[0] == digests[1]


def test_wn4_suspended_time_is_its_own_state(site: Callable[..., Site]) -> None:
    """Seven hours run, three suspended, ten in all: productive is at most 56 GPU-hours, suspended exactly 24."""
    made = make(site, "WN4", "sacct.txt")
    states = made.rows("select state, sum(gpu_seconds) / 3600 as hours from marts.ledger group by state")
    hours = {s["state"]: s["hours"] for s in states}
    assert hours["suspended"] == 24
    assert sum(hours.values()) == 80
    assert hours["productive"] + hours["starting"] == 56
    assert made.column("select sum(gpu_hours) from marts.job_usage_daily") == [56.0]


def test_wn5_overlapping_outages_count_once(site: Callable[..., Site]) -> None:
    """gn01 is out four hours, not five; open outages last until the export was taken; the cluster row is none."""
    made = make(site, "WN5", "sacctmgr_show_event_P.txt", collected_at="2025-05-05T00:00:00Z")
    hours = made.rows("select node, days_out * 24 as hours from marts.nodes order by node")
    assert [(h["node"], round(h["hours"], 3)) for h in hours] == [("gn01", 4), ("gn02", 2), ("gn03", 2), ("gn04", 2)]
    assert made.rows("select node, ended_at, is_open, flags from marts.node_states where node = 'gn02'") == [
        {"node": "gn02", "ended_at": None, "is_open": True, "flags": ["open_end"]}
    ]


def test_ca1_clean_up_xids_are_no_cause(site: Callable[..., Site]) -> None:
    """Xid 149 on gb01 is the one hardware incident; the 45s on gb02, gb03 and after the user's cancel blame nobody."""
    made = make(site, "CA1", "kern.log", "sacct.txt")
    stops = made.rows("select job_id, cause, culprit_node, culprit_gpu, hardware from marts.interruptions")
    assert stops == [
        {
            "job_id": "800",
            "cause": "gpu_faulty",
            "culprit_node": "gb01",
            "culprit_gpu": "0008:01:00.0",
            "hardware": "confirmed",
        }
    ]
    roles = made.rows("select node, class, role from marts.interruption_evidence where class like 'xid%' order by all")
    assert {r["role"] for r in roles if r["class"] == "xid_45"} == {"clean-up"}
    assert [r["node"] for r in roles if r["role"] == "initiating"] == ["gb01"]
    assert made.column("select cancelled_by_uid from marts.attempts where job_id = '801'") == [4102]


def test_ck1_clock_change_is_resolved_by_elapsed(site: Callable[..., Site]) -> None:
    """Local times of Berlin through both clock changes of 2025, in UTC."""
    settings = '[clusters.c1]\nzone = "Europe/Berlin"\n'
    made = make(site, "CK1", "sacct_berlin.txt", settings=settings)
    times = made.rows("select job_id, started_at, ended_at, flags from marts.attempts order by job_id")

    def utc(day: int, hour: int, minute: int, month: int = 10) -> datetime:
        return datetime(2025, month, day, hour, minute, tzinfo=UTC)

    assert [(t["started_at"], t["ended_at"]) for t in times] == [
        (utc(26, 0, 30), utc(26, 1, 10)),
        (utc(25, 23, 50), utc(26, 2, 10)),
        (utc(26, 0, 15), utc(26, 0, 45)),
        (utc(30, 0, 50, 3), utc(30, 1, 10, 3)),
        (utc(30, 1, 0, 3), utc(30, 1, 30, 3)),
    ]
    assert "time_ambiguous" in times[2]["flags"]
    assert "time_derived" in times[4]["flags"]


def test_vg2_a_job_that_never_ran_costs_nothing(site: Callable[..., Site]) -> None:
    """Job 1 was cancelled before it started, job 2 is pending: no GPU time, no interruption of either."""
    made = make(site, "VG2", "sacct_values.txt")
    ran = set(made.column("select job_id from marts.attempts where run_id is not null"))
    assert ran.isdisjoint({"1", "2"})
    assert made.column("select job_id from marts.interruptions") == ["6"]


def test_qs3_days_are_utc_whatever_the_session_says(site: Callable[..., Site]) -> None:
    """Three ends around midnight: one on the 1st and two on the 2nd of June, in UTC and in Los Angeles alike."""
    made = site(SETTINGS)
    made.add(
        "sacct.txt",
        "JobID|State|Submit|Start|End|Elapsed|NNodes\n"
        "1|COMPLETED|2025-06-01T23:00:00|2025-06-01T23:00:00|2025-06-01T23:30:00|00:30:00|1\n"
        "2|COMPLETED|2025-06-02T02:30:00|2025-06-02T02:30:00|2025-06-02T03:00:00|00:30:00|1\n"
        "3|COMPLETED|2025-06-02T06:00:00|2025-06-02T06:00:00|2025-06-02T06:30:00|00:30:00|1\n",
        cluster="c1",
    )
    made.run()
    sql = "select day, jobs_ended from marts.job_usage_daily order by day"
    expected = [{"day": date(2025, 6, 1), "jobs_ended": 1}, {"day": date(2025, 6, 2), "jobs_ended": 2}]
    assert made.rows(sql) == expected
    import duckdb

    with duckdb.connect(str(made.warehouse), read_only=True) as con:
        con.execute("set TimeZone = 'America/Los_Angeles'")
        assert con.execute(sql).fetchall() == [(date(2025, 6, 1), 1), (date(2025, 6, 2), 2)]


def test_fd5_a_gpu_told_lost_twice_is_one_incident(site: Callable[..., Site]) -> None:
    """Xid 79 and the line without an Xid are one fault; a report over three lines, with others between, is one too."""
    made = site(SETTINGS)
    made.add("with_xid.txt", read("FD5", "with_xid.txt"), cluster="c1", collected_at="2025-05-05T00:00:00Z")
    made.add(
        "interleaved.txt", read("FD5", "syslog_interleaved.txt"), cluster="c1", collected_at="2025-05-05T00:00:00Z"
    )
    made.run()
    assert made.rows("select node, device, evidence_class, events from marts.faults order by node") == [
        {"node": "gn041", "device": "0000:b3:00.0", "evidence_class": "xid_79", "events": 1},
        {"node": "gn042", "device": "0000:b3:00.0", "evidence_class": "xid_79", "events": 2},
    ]


def test_a_log_with_long_host_names_meets_the_scheduler_s_short_ones(site: Callable[..., Site]) -> None:
    """rsyslog often writes the full host name; Slurm knows the node by its first part."""
    made = site(SETTINGS)
    log = read("CA1", "kern.log").replace(b" gb01 ", b" gb01.hpc.example.org ").replace(b" gb02 ", b" GB02.example ")
    made.add("kern.log", log, cluster="c1")
    made.add("sacct.txt", read("CA1", "sacct.txt"), cluster="c1")
    made.run()
    assert made.column("select culprit_node from marts.interruptions") == ["gb01"]
    assert made.column("select distinct node from marts.hardware_events order by node") == [
        "gb01",
        "gb02",
        "gb03",
        "gb05",
    ]


def test_a_log_that_grows_within_a_report_tells_it_once(site: Callable[..., Site]) -> None:
    """The file ended in the middle of the three lines when it was first read."""
    whole = read("FD5", "syslog_interleaved.txt")
    lines = whole.splitlines(keepends=True)
    made = site(SETTINGS)
    path = made.add("kern.log", b"".join(lines[:2]), cluster="c1", collected_at="2025-05-05T00:00:00Z")
    made.run()
    path.write_bytes(whole)
    made.run()
    assert made.rows("select class, device, flags from marts.hardware_events") == [
        {"class": "gpu_lost", "device": "0000:b3:00.0", "flags": ["merged_lines", "year_inferred"]}
    ]


def test_a_row_that_ends_before_it_starts_stops_nothing(site: Callable[..., Site]) -> None:
    """Swapped columns, or a broken clock: the row is kept and flagged, enters no run, and the rest is published."""
    made = site(SETTINGS)
    made.add(
        "sacct.txt",
        "JobID|JobName|User|State|Submit|Start|End|NNodes|NodeList\n"
        "1|r|ann|FAILED|2025-05-04T07:00:00|2025-05-04T09:00:00|2025-05-04T08:00:00|1|gn001\n"
        "2|r|ann|FAILED|2025-05-04T10:00:00|2025-05-04T10:00:00|2025-05-04T11:00:00|1|gn001\n",
        cluster="c1",
    )
    made.run()
    assert made.column("select job_id from marts.interruptions") == ["2"]
    assert made.rows(
        "select job_id, run_id is null as out from marts.attempts where list_contains(flags, 'end_before_start')"
    ) == [{"job_id": "1", "out": True}]


def test_a_running_attempt_without_elapsed_ran_until_it_was_seen(site: Callable[..., Site]) -> None:
    """Start and no End: it held its GPUs at least until the export was taken."""
    made = site(SETTINGS, collected_at="2025-05-04T12:00:00Z")
    made.add(
        "sacct.txt",
        "JobID|State|Submit|Start|End|NNodes|NodeList\n"
        "1|RUNNING|2025-05-04T07:00:00|2025-05-04T09:00:00|Unknown|1|gn001\n",
        cluster="c1",
    )
    made.run()
    assert made.column("select sum(gpu_hours) from marts.job_usage_daily") == [24.0]
    assert made.column("select sum(seconds) from marts.ledger") == [3 * 3600]
