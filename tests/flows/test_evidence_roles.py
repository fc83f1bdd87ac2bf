"""What part each piece of evidence plays, and what counts as a fault."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Site
from tests.flows.test_verdicts import SETTINGS, Situation, at, resumed

GPU_LOST = "GPU has fallen off the bus."
OUT_OF_MEMORY = (
    "Memory cgroup out of memory: Killed process 7 (telegraf) total-vm:9kB, anon-rss:9kB, file-rss:9kB, shmem-rss:9kB"
)
NFS = "nfs: server nfs01 not responding, timed out"


def diagnostic(node: str, gpu: int, when: str, status: str = "Pass") -> str:
    """What `dcgmi diag -j` prints of one test of one GPU."""
    results = [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": status}]
    test = {"name": "memory", "results": results}
    tests = {"test_categories": [{"category": "Hardware", "tests": [test]}]}
    return json.dumps({"DCGM Diagnostic": tests, "hostname": node, "timestamp": when})


def lost() -> Situation:
    """A GPU is lost a minute before the end; the node drains and boots later, and the next attempt does without it."""
    made = resumed("lost", "FAILED")
    made.jobs[1] = made.jobs[1].replace("lost[01-08]", "lost[01-04,06-09]")
    made.log(at(9.9), 2, NFS).log(at(10, -90), 3, OUT_OF_MEMORY)
    made.log(at(10, -80), 5, "mlx5_core 0000:1a:00.0 ibp26s0: Link up")
    made.xid(at(10, -60), 5, 79, GPU_LOST).xid(at(10, -20), 5, 45)
    made.xid(at(10, -50), 6, 119, "Timeout after 6s of waiting for RPC response from GPU1 GSP!")
    made.out(at(10.1), at(15), 5, "DRAIN", "GPU 3 fell off the bus (Xid 79)")
    return made.log(at(10.2), 5, "Linux version 5.15.0")


def gone() -> Situation:
    """A node stops responding; that its GPU was lost shows after it has booted, ten minutes after the end."""
    made = resumed("gone", "NODE_FAIL", after=0.05)
    made.jobs[1] = made.jobs[1].replace("gone[01-08]", "gone[01-04,06-09]")
    made.out(at(10), at(10.15), 5, "DOWN*", "Not responding", "slurm(0)")
    return made.log(at(10.16), 5, "Linux version 5.15.0").xid(at(10.17), 5, 79, GPU_LOST)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = Site(tmp_path_factory.mktemp("roles"), SETTINGS, "2025-06-01T00:00:00Z")
    situations = [lost(), gone()]
    header = "JobID|JobName|User|State|ExitCode|Submit|Eligible|Start|End|Elapsed|Timelimit|NNodes|NodeList"
    site.add("sacct.txt", "\n".join([header, *(j for s in situations for j in s.jobs)]) + "\n", cluster="c1")
    site.add("kern.log", "\n".join(k for s in situations for k in s.kernel) + "\n", cluster="c1")
    head = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"
    site.add("events.txt", "\n".join([head, *(e for s in situations for e in s.events)]) + "\n", cluster="c1")
    listing = "node,gpu_index,pci_bus_id,uuid\nlost05,3,0000:3b:00.0,GPU-3\nlost06,4,0000:3b:00.0,GPU-4\n"
    site.add("gpus.csv", listing, cluster="c1", collected_at="2025-05-01T00:00:00Z")
    passed = diagnostic("lost06", 4, "2025-05-04T10:05:00Z") + "\n" + diagnostic("lost05", 0, "2025-05-04T10:05:00Z")
    site.add("diag.json", passed, cluster="c1")
    site.run()
    return site


def roles(made: Site, run: str) -> dict[tuple[str, str | None], dict[str, Any]]:
    found = made.rows(
        "select e.* from marts.interruption_evidence as e inner join marts.interruptions as i "
        f"on e.interruption_id = i.interruption_id where i.run = 'r-{run}'"
    )
    return {(row["class"], row["node"]): row for row in found}


def test_what_began_it_and_what_followed(made: Site) -> None:
    found = roles(made, "lost")
    told = {key: row["role"] for key, row in found.items()}
    assert told["xid_79", "lost05"] == "initiating"
    assert told["xid_45", "lost05"] == "clean-up"
    for later in (("reason_gpu_lost", "lost05"), ("node_left_out", "lost05"), ("state_failed", None)):
        assert told[later] == "cascade", later


def test_trouble_of_other_nodes_did_not_follow(made: Site) -> None:
    """But for a time-out in the same minute."""
    told = {key: row["role"] for key, row in roles(made, "lost").items()}
    assert told["filesystem_error", "lost02"] in {"bystander", "noise"}
    assert told["oom_kill", "lost03"] in {"bystander", "noise"}
    assert told["xid_119", "lost06"] == "cascade"


def test_an_all_clear_is_noise_and_says_what_passed(made: Site) -> None:
    found = roles(made, "lost")
    for key in (("diagnostic_passed", "lost05"), ("diagnostic_passed", "lost06"), ("link_up", "lost05")):
        assert found[key]["role"] == "noise"
    assert found["diagnostic_passed", "lost06"]["text"] == "diagnostic passed: memory"


def test_what_came_after_the_end_does_not_begin_it(made: Site) -> None:
    """The verdict rests on what the node said after its boot; yet it began when the node stopped responding."""
    found = roles(made, "gone")
    assert made.column("select cause from marts.interruptions where run = 'r-gone'") == ["gpu_faulty"]
    assert made.column("select rule from marts.interruptions where run = 'r-gone'") == ["gpu_lost"]
    assert found["xid_79", "gone05"]["weight"] > found["reason_not_responding", "gone05"]["weight"]
    assert [key for key, row in found.items() if row["role"] == "initiating"] == [("reason_not_responding", "gone05")]
    assert {found[key, "gone05"]["role"] for key in ("xid_79", "node_left_out")} == {"cascade"}


def test_no_weight_for_the_verdict_on_a_node_that_is_not_blamed(made: Site) -> None:
    for run in ("lost", "gone"):
        for (_, node), row in roles(made, run).items():
            assert node in {None, f"{run}05"} or row["weight"] is None


def test_what_says_that_all_is_well_is_no_fault(made: Site) -> None:
    """Boots, links that came up and passed diagnostics are events, and not counted among faults."""
    classes = set(made.column("select distinct class from marts.faults"))
    assert classes == {"xid", "filesystem_error", "oom_kill"}
    events = "select class from marts.hardware_events where not is_fault"
    assert {"link_up", "boot", "diagnostic_passed"} == set(made.column(events))
    assert made.column("select faults from marts.nodes where node = 'lost05'") == [2]


def test_a_passed_diagnostic_clears_what_stood_on_its_gpu(made: Site) -> None:
    """GPU 4 of lost06 passed, and so the time-out on it is cleared; of lost05 another GPU passed than the lost one."""
    found = made.rows("select node, code, gpu_index, cleared_by from marts.faults where class = 'xid' and code <> 45")
    told = {(row["node"], row["code"]): (row["gpu_index"], row["cleared_by"]) for row in found}
    assert told["lost06", 119] == (4, "passed diagnostic")
    assert told["lost05", 79] == (3, "boot")


def test_the_class_is_at_least_as_sure_as_the_cause(made: Site) -> None:
    rows = made.rows("select confidence, class_confidence from marts.interruptions")
    assert rows
    assert all(row["confidence"] <= row["class_confidence"] <= 1 for row in rows)
