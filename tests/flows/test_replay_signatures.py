"""What incidents leave behind: every cause shows itself in several ways, honestly and repeatably."""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict

import pytest

from flows.replay.fleet import build_fleet
from flows.replay.mixes import PLANNED, TABLE_5
from flows.replay.model import Fleet, Line, Scene, Signature
from flows.replay.signatures import SIGNATURES

FLEET = build_fleet(64, 1)
DAY = 86_400.0
WAITS = {"exit": 30.0, "node_fail": 180.0, "watchdog": 640.0, "cancel": 400.0, "requeue": 1.0}


def scene(signature: Signature, seed: int = 7, fleet: Fleet = FLEET) -> Scene:
    """A scene as the timeline makes them: the fault before the stall, the end as late as the ending wants."""
    rng = random.Random(f"{signature.name}:{seed}")
    stopped = 1_717_500_000.25 + rng.random() * DAY
    near = fleet.nodes[17:32]
    return Scene(
        cause=signature.cause,
        fault_at=stopped - rng.uniform(*signature.gap),
        stalled_at=stopped - 3.0,
        ended_at=float(int(stopped + WAITS[signature.ending])),
        node=fleet.nodes[16],
        gpu=rng.randrange(fleet.gpus),
        neighbours=near,
        bystanders=fleet.nodes[40:52],
        pids=tuple(range(40_000, 40_008)),
        fleet=fleet,
        rng=rng,
        ranks={node: place * 8 for place, node in enumerate(fleet.nodes)},
    )


def emitted(signature: Signature, seed: int = 7) -> list[Line]:
    return list(signature.emit(scene(signature, seed)))


def shares(of: str) -> dict[str, float]:
    """Expected stops of Table 5 by an attribute of the signature."""
    expected: dict[str, float] = defaultdict(float)
    for cause, count in TABLE_5.items():
        mine = [s for s in SIGNATURES if s.cause == cause]
        whole = sum(s.weight for s in mine)
        for s in mine:
            expected[str(getattr(s, of))] += count * s.weight / whole
    return expected


by_signature = pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: f"{s.cause}-{s.name}")


def test_every_cause_of_table_5_shows_itself_in_two_ways_at_least() -> None:
    ways = Counter(s.cause for s in SIGNATURES)
    assert set(ways) == set(TABLE_5)
    assert min(ways.values()) >= 2
    common = [cause for cause, count in TABLE_5.items() if count >= 15]
    assert all(ways[cause] >= 5 for cause in common), ways


def test_weights_are_positive_and_names_unique_within_a_cause() -> None:
    assert all(s.weight > 0 for s in SIGNATURES)
    assert max(Counter((s.cause, s.name) for s in SIGNATURES).values()) == 1


def test_watchdogs_end_a_fifth_at_most_and_nodes_fail_about_a_quarter() -> None:
    expected = shares("ending")
    assert expected["watchdog"] <= (sum(TABLE_5.values()) + PLANNED) / 5
    assert 0.18 < expected["node_fail"] / sum(TABLE_5.values()) < 0.30


def test_between_three_and_six_in_a_hundred_cannot_be_told() -> None:
    assert 0.03 <= shares("is_identifiable")["False"] / sum(TABLE_5.values()) <= 0.06


@by_signature
def test_the_same_chance_gives_the_same_lines(signature: Signature) -> None:
    assert emitted(signature, 3) == emitted(signature, 3)


@by_signature
def test_lines_lie_near_the_incident_and_name_known_machines(signature: Signature) -> None:
    for seed in range(12):
        told = scene(signature, seed)
        for line in signature.emit(told):
            assert told.fault_at - 900 <= line.at <= told.ended_at + 2 * DAY + 3_600, (line, told)
            late = line.stream in ("diagnostic", "sel") or line.at <= told.ended_at + 3_600
            assert late, f"{line.at - told.ended_at:.0f} s after the end: {line}"
            assert line.node in FLEET.nodes
            assert line.text
            assert "\n" not in line.text


@by_signature
def test_what_can_be_told_leaves_something_to_tell_it_by(signature: Signature) -> None:
    """A cause without a line, a reason or a diagnostic is told by its ending alone: only a bare watchdog may do that."""
    if not signature.is_identifiable or signature.cause == "nccl_watchdog":
        return
    for seed in range(12):
        lines = emitted(signature, seed)
        own = [line for line in lines if line.node == scene(signature, seed).node or line.stream == "training"]
        assert own or signature.node_reason, seed


@by_signature
def test_a_node_that_stopped_answering_says_nothing_until_it_boots(signature: Signature) -> None:
    if signature.ending != "node_fail":
        return
    for seed in range(12):
        told = scene(signature, seed)
        own = sorted((at, text) for at, text in _kernel_of(signature.emit(told), told.node) if at > told.ended_at)
        assert not own or own[0][1].startswith("Linux version"), own[0]


def _kernel_of(lines: object, node: str) -> list[tuple[float, str]]:
    return [(line.at, line.text) for line in lines if line.stream == "kernel" and line.node == node]  # type: ignore[attr-defined]


def test_half_of_the_lost_gpus_have_link_errors_and_a_third_a_bmc_record() -> None:
    """Meta's fleets: PCI Express errors beside Xid 79 in 43 to 63 %, a BMC critical interrupt as well in 21 to 49 %."""
    lost = [s for s in SIGNATURES if s.cause == "gpu_faulty"]
    rng, seen = random.Random(5), Counter[str]()
    for seed in range(4_000):
        signature = rng.choices(lost, [s.weight for s in lost])[0]
        lines = emitted(signature, seed)
        if any(re.search(r"NVRM: Xid \(PCI:[^)]+\): 79,", line.text) for line in lines):
            seen["79"] += 1
            seen["aer"] += any("severity=Uncorrected" in line.text for line in lines)
            seen["sel"] += any(line.stream == "sel" and line.text.startswith("Critical Interrupt") for line in lines)
    assert 0.43 <= seen["aer"] / seen["79"] <= 0.63
    assert 0.21 <= seen["sel"] / seen["79"] <= 0.49


def test_timeouts_of_the_system_processor_come_in_storms() -> None:
    storm = next(s for s in SIGNATURES if s.name == "storm")
    most = max(sum("): 119," in line.text for line in emitted(storm, seed)) for seed in range(20))
    assert most >= 100


def test_a_switch_takes_many_nodes_down_within_a_second() -> None:
    signature = next(s for s in SIGNATURES if s.name == "switch_lost")
    down = [line for line in emitted(signature) if line.text.endswith("Link down")]
    assert len({line.node for line in down}) >= 8
    assert max(line.at for line in down) - min(line.at for line in down) < 1.5


def test_unplanned_maintenance_has_no_fault_and_no_word_of_a_rollout() -> None:
    rollout = re.compile("planned|scheduled|firmware|kernel|upgrade", re.IGNORECASE)
    for signature in (s for s in SIGNATURES if s.cause == "host_maintenance"):
        assert signature.node_reason
        assert not rollout.search(signature.node_reason)
        told = scene(signature)
        before = [line for line in signature.emit(told) if line.stream == "kernel" and line.at < told.ended_at]
        assert all(line.text.startswith("reboot:") for line in before)


def test_diagnostics_fail_on_one_gpu_of_one_node() -> None:
    for signature in SIGNATURES:
        for seed in range(6):
            told = scene(signature, seed)
            for line in signature.emit(told):
                if line.stream == "diagnostic":
                    assert line.node == told.node
                    assert _failed(json.loads(line.text)) == {told.gpu}


def _failed(document: dict[str, object]) -> set[int]:
    """GPUs with a failed test, in either version's tree."""
    (tree,) = document.values()
    failed = set()
    for category in tree["test_categories"]:  # type: ignore[index]
        for test in category["tests"]:
            for result in test["results"]:
                if result["status"] == "Fail":
                    failed.add(int(result.get("entity_id", result.get("gpu_ids"))))
    return failed


def test_ranks_that_speak_are_those_of_their_node() -> None:
    place = {node: n * 8 for n, node in enumerate(FLEET.nodes)}
    for signature in SIGNATURES:
        for line in emitted(signature):
            if rank := re.match(r"\[rank(\d+)\]:", line.text):
                assert 0 <= int(rank.group(1)) - place[line.node] < 8, line
