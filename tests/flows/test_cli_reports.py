"""What the reports say of one interruption, of a list of them, and of a node."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.cli import demo, interruption_report, node
from flows.cli.interruptions import brief, summary
from flows.cli.node_faults import grouped

Goodput = Callable[..., Any]

T0 = datetime(2026, 5, 4, 17, 0, tzinfo=UTC)


def config_of(folder: Path) -> list[str]:
    return ["--config", str(folder / "goodput.toml")]


def interruption(**kwargs: Any) -> dict[str, Any]:
    parts = {
        "stalled_gpu_seconds": None,
        "lost_work_gpu_seconds": 7200,
        "starting_gpu_seconds": 3600,
        "down_gpu_seconds": 36000,
    }
    row = {
        "interruption_id": "0123456789abcdef", "cluster": "c", "run": "llama", "run_id": "r", "job_id": "7", "attempt": 2,
        "run_attempt": 11, "started_at": T0 - timedelta(days=1), "interrupted_at": T0, "resumed_at": None, "recovery": None,
        "gpus": 8, "nodes": 1, "class": "unexpected", "is_planned": False, "cause": "nic", "label": "NIC", "category": "Host",
        "hardware": "suspected", "confidence": 1.0, "runner_up_cause": "cpu", "runner_up_confidence": 0.0,
        "unknown_reason": None, "rule": "nic", "culprit_node": "n1", "culprit_gpu": None, "scheduler_state": "FAILED",
        "exit_code": 1, "signal": 0, "last_progress_at": None, "down_seconds": 600, "lost_work_assumed_seconds": 900,
        "lost_gpu_seconds": 46800, "evidence": [],
    }  # fmt: skip
    return {**row, **parts, **kwargs}


def evidence(**kwargs: Any) -> dict[str, Any]:
    row = {"role": "initiating", "kind": "hardware event", "class": "link_down", "node": "n1", "gpu": None, "text": "mlx5: Link down",
           "occurred_at": T0, "last_at": T0, "events": 1, "seconds_before_end": 60, "places": ["kern.log:1"]}  # fmt: skip
    return {**row, **kwargs}


def printed(capsys: pytest.CaptureFixture[str], row: dict[str, Any]) -> str:
    interruption_report.say_report(row)
    return capsys.readouterr().out


def test_a_confidence_is_never_printed_as_certain(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, interruption())
    assert ">99% sure" in out
    assert "cpu, <1%" in out
    assert "100%" not in out
    assert " 0%" not in out


def test_hardware_and_roles_are_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, interruption(evidence=[evidence()]))
    assert "hardware  suspected: likely, but no fatal device event" in out
    legend = next(line for line in out.splitlines() if "initiating = " in line)
    assert all(f"{role} = " in legend for role in ("initiating", "cascade", "clean-up", "bystander", "noise"))
    assert "hardware  confirmed: a fatal device event" in printed(capsys, interruption(hardware="confirmed"))


def test_an_attempt_is_the_jobs_and_the_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert "job 7, its attempt 2 (attempt 11 of the run), 8 GPUs on 1 node" in printed(capsys, interruption())


def test_several_events_are_counted_with_their_end(capsys: pytest.CaptureFixture[str]) -> None:
    same_day = evidence(events=120, last_at=T0 + timedelta(minutes=31, seconds=56))
    next_day = evidence(events=2, last_at=T0 + timedelta(days=1))
    out = printed(capsys, interruption(evidence=[same_day, next_day, evidence()]))
    assert "link_down, 120 events, until 17:31:56\n" in out
    assert "link_down, 2 events, until 2026-05-05 17:00:00\n" in out
    assert re.search(r"link_down$", out, re.MULTILINE)


@pytest.mark.parametrize(("number", "last"), [(5, "kern.log:5"), (6, "and 1 more place"), (8, "and 3 more places")])
def test_five_places_are_listed_and_the_rest_counted(
    capsys: pytest.CaptureFixture[str], number: int, last: str
) -> None:
    places = [f"kern.log:{n}" for n in range(1, number + 1)]
    lines = printed(capsys, interruption(evidence=[evidence(places=places)])).splitlines()
    first = lines.index(f"{' ' * 13}kern.log:1")
    assert lines[first : first + 6][: min(number, 6)] == [
        f"{' ' * 13}{text}" for text in [*places[:5], last][: min(number, 6)]
    ]


def test_an_unknown_cause_is_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, interruption(cause="unknown", confidence=0.68, unknown_reason="no kernel log"))
    assert "verdict   unknown: no kernel log" in out
    assert "68%" not in out
    assert "sure" not in out.partition("Surer")[0]


def test_a_weak_verdict_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    weak = interruption(confidence=0.29)
    assert "29% sure, weak: below 50%, so that another cause is likelier than this one" in printed(capsys, weak)
    assert brief(weak)["sure"] == "29%?"
    assert any(line.startswith("? = weak") for line in summary([weak]))
    assert not any(line.startswith("?") for line in summary([interruption()]))


def test_a_rival_of_the_same_class_leaves_the_class_sure(capsys: pytest.CaptureFixture[str]) -> None:
    row = interruption(cause="operator_change", confidence=0.49, runner_up_cause="planned_maintenance",
                       runner_up_confidence=0.5, is_planned=True, class_confidence=0.993, **{"class": "planned"})  # fmt: skip
    out = printed(capsys, row)
    assert "49% sure, weak: below 50%" in out
    assert "class planned (99% sure)" in out
    assert (brief(row)["sure"], brief(row)["class"]) == ("49%?", "planned")
    assert "1 of 1 planned all the same, whichever cause it was" in summary([row])[-1]
    other = interruption(confidence=0.49, class_confidence=0.45)
    assert "class unexpected (45% sure, weak: below 50%, so that another class is likelier)" in printed(capsys, other)
    assert brief(other)["class"] == "unexpected?"
    assert summary([other])[-1].startswith("? after a class")


def crowd() -> list[dict[str, Any]]:
    own = [evidence(weight=9.0), *(evidence(role="cascade", weight=float(n), text=f"own {n}") for n in range(1, 14))]
    loose = evidence(role="cascade", node=None, weight=2.5, text="of no node", **{"class": "state_failed"})
    elsewhere = evidence(role="cascade", node="n7", weight=99.0, text="elsewhere")
    noise = [evidence(role="noise", node=f"n{n}", weight=None, **{"class": "oom_kill"}) for n in range(2, 39)]
    return [*noise, elsewhere, *own, loose]


def test_the_verdicts_own_evidence_is_shown_and_the_rest_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The blamed node's and those of no node, heaviest first, before what other nodes show."""
    out = printed(capsys, interruption(evidence=crowd()))
    assert re.findall(r"^ +(own \d+|of no node|elsewhere)$", out, re.MULTILINE) == [
        f"own {n}" for n in range(13, 4, -1)
    ]
    assert "37 more of noise on other nodes: 37 oom_kill" in out
    assert "1 more of cascade on other nodes: 1 link_down" in out
    assert re.search(r"explain 0123456789 --all.* shows them", out)
    assert len(out.splitlines()) < 60


def test_all_evidence_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    interruption_report.say_report(interruption(evidence=crowd()), is_all=True)
    out = capsys.readouterr().out
    assert out.count("kern.log:1") == len(crowd())
    assert "more of" not in out


def test_an_unknown_cause_shows_the_trouble_near_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    near = evidence(role="bystander", node="n4", text="near", weight=None, seconds_before_end=-3)
    far = evidence(role="bystander", node="n5", text="far", weight=None, seconds_before_end=900)
    out = printed(capsys, interruption(cause="unknown", culprit_node=None, evidence=[far, near]))
    assert out.index("near\n") < out.index("far\n")


def test_a_label_is_an_operators_word_not_a_probability(capsys: pytest.CaptureFixture[str]) -> None:
    row = interruption(rule="operator_label", runner_up_cause="gpu_sram", runner_up_confidence=0.77)
    out = printed(capsys, row)
    assert "NIC (nic), operator's label; class unexpected" in out
    assert "the program says: gpu_sram, 77%" in out
    assert "sure" not in out.partition("Surer")[0]
    assert brief(row)["sure"] == "label"
    alone = printed(capsys, interruption(rule="operator_label", runner_up_cause="unknown", runner_up_confidence=0.4))
    assert re.search(r"the program says: unknown$", alone, re.MULTILINE)


def test_held_hours_that_are_assumed_say_so() -> None:
    assumed, measured = interruption(flags=["cost_assumed"]), interruption(flags=[])
    assert "stalled; assumed: no training log), 10.00 waiting" in summary([assumed])[1]
    assert "stalled; assumed for 1 of 2: no training log)" in summary([assumed, measured])[1]
    assert "assumed" not in "".join(summary([measured]))


def test_what_was_held_and_what_waited_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    row = interruption()
    assert (brief(row)["held_gpuh"], brief(row)["waiting_gpuh"]) == ("3.00", "10.00")
    assert "GPU-hours lost: 6.00 held (done again, starting up, stalled), 20.00 waiting" in summary([row, row])[1]
    out = printed(capsys, row)
    assert re.search(r"13\.00 GPU-hours lost\n +3\.00  on GPUs that were held\n", out)
    assert re.search(r"10\.00  waiting for the next start, not held", out)


def test_unknown_numbers_of_gpus_name_the_key_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    row = interruption(gpus=None, lost_gpu_seconds=None, lost_work_gpu_seconds=None, down_gpu_seconds=None)
    assert (brief(row)["held_gpuh"], brief(row)["waiting_gpuh"]) == ("-", "-")
    text = "\n".join(summary([row]))
    assert "1 interruption: 0 planned, 1 unexpected" in text
    assert "GPU-hours unknown for 1 interruption" in text
    assert "set gpus_per_node in [clusters.c]" in text
    assert "GPU-hours lost" not in text
    assert "set gpus_per_node in [clusters.c]" in printed(capsys, row)
    assert "0 GPUs counted for 1 interruption" in "\n".join(summary([interruption(gpus=0)]))


def test_because_is_the_initiating_evidence() -> None:
    late = evidence(role="cascade", text="DRAIN mlx5_0 (by root)")
    first = evidence(role="initiating", text="mlx5_0: Link down")
    assert demo.because(interruption(evidence=[late, first])) == "mlx5_0: Link down"
    assert demo.because(interruption(evidence=[late])) is None
    unknown = interruption(cause="unknown", unknown_reason="no kernel log", evidence=[late])
    assert demo.because(unknown) == "no kernel log"


def test_the_demos_reasons_are_initiating_evidence(goodput: Goodput, demo_folder: Path) -> None:
    rows = json.loads(goodput("interruptions", "--json", *config_of(demo_folder)).out)
    for row in rows:
        told = json.loads(goodput("explain", row["interruption_id"], "--json", *config_of(demo_folder)).out)
        roles = [e["role"] for e in told["evidence"]]
        assert roles.count("initiating") == (row["cause"] != "unknown")


def fault(minute: int, **kwargs: Any) -> dict[str, Any]:
    at = T0 + timedelta(minutes=minute)
    row = {"class": "xid", "code": 79, "device": "0000:5d:00.0", "first_at": at, "last_at": at, "events": 1, "cleared_at": None,
           "cleared_by": None, "text": f"at {minute}", "is_fatal": True, "evidence_class": "xid_79"}  # fmt: skip
    return {**row, **kwargs}


def test_faults_are_grouped_fatal_ones_first() -> None:
    nic = {"class": "link_down", "code": None, "device": "mlx5_0", "is_fatal": False, "evidence_class": "link_down"}
    faults = [
        fault(0, **nic),
        fault(1, cleared_at=T0, cleared_by="boot"),
        fault(2, events=4),
        fault(3, device="0000:bb:00.0", cleared_at=T0, cleared_by="boot"),
    ]
    told = [(f["fatal"], f["class"], f["device"], f["faults"], f["events"], f["cleared"]) for f in grouped(faults)]
    assert told == [
        ("fatal", "xid 79", "0000:5d:00.0", 2, 5, "1 of 2"),
        ("fatal", "xid 79", "0000:bb:00.0", 1, 1, "yes, boot"),
        (None, "link_down", "mlx5_0", 1, 1, "no"),
    ]
    first = grouped(faults)[0]
    assert (first["first_at"], first["last_at"]) == (T0 + timedelta(minutes=1), T0 + timedelta(minutes=2))


def test_a_gpu_is_called_by_its_index_where_it_is_known() -> None:
    """A diagnostic names the index, the kernel the PCI address: one GPU."""
    faults = [fault(0, gpu_index=3), fault(1, device="3", gpu_index=3), fault(2, device="0000:bb:00.0", gpu_index=None)]
    assert [(f["device"], f["faults"]) for f in grouped(faults)] == [("GPU 3", 2), ("0000:bb:00.0", 1)]


def test_what_harms_no_machine_is_one_line_each() -> None:
    segfault = {
        "class": "process_fault",
        "code": None,
        "device": None,
        "is_fatal": False,
        "evidence_class": "process_fault",
    }
    corrected = {"class": "edac", "code": None, "is_fatal": False, "evidence_class": "edac_corrected"}
    uncorrected = {
        "class": "edac",
        "code": None,
        "is_fatal": True,
        "evidence_class": "edac_uncorrected",
        "device": "dimm0",
    }
    hot = {"class": "thermal", "code": None, "is_fatal": False, "evidence_class": "thermal"}
    faults = [
        *(fault(n, **segfault) for n in range(30)),
        *(fault(n, **corrected, device=f"dimm{n}") for n in range(20)),
        *(fault(n, **hot, device=f"cpu{n}") for n in range(9)),
        fault(50, **uncorrected),
    ]
    told = {(f["class"], f["device"], f["faults"]) for f in grouped(faults)}
    assert told == {
        ("edac", "dimm0", 1),
        ("user processes", None, 30),
        ("corrected errors", None, 20),
        ("thermal", "9 devices", 9),
    }
    assert grouped(faults)[0]["class"] == "edac"


def test_the_rate_of_a_node_is_told_with_interval_and_exposure() -> None:
    row = {"cluster": "c", "blamed": 1, "exposure_days": 12.3, "blamed_per_1000_days": 81.3,
           "blamed_per_1000_days_lower": 2.06, "blamed_per_1000_days_upper": 452.9}  # fmt: skip
    assert node.exposure(row) == "c: 1 blamed in 12.3 node-days: 81 per 1,000 node-days (2.1 to 453, 95% interval)"
    assert "in 1 node-day:" in node.exposure(row | {"exposure_days": 1.0})
    assert node.exposure(row | {"exposure_days": 0.0}) == "c: 1 blamed; no tracked run held it, so it has no rate"
    assert "scheduler knows no such node" in node.exposure(row | {"is_known_to_scheduler": False})


def test_a_node_tells_its_rate_and_its_json_is_complete(goodput: Goodput, demo_folder: Path) -> None:
    ran = goodput("node", "gpu008", *config_of(demo_folder))
    assert re.search(
        r"^llm: \d blamed in \S+ node-days: .* per 1,000 node-days \(.* to .*, 95% interval\)$", ran.out, re.MULTILINE
    )
    found = json.loads(goodput("node", "gpu008", "--json", *config_of(demo_folder)).out)
    assert {"node", "nodes", "states", "faults", "interruptions", "attempts"} == set(found)
    assert {"class", "code", "device", "first_at", "last_at", "events", "cleared_at", "cleared_by", "text"} <= set(
        found["faults"][0]
    )
