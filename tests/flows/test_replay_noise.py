"""The chatter of a healthy fleet: as much as was asked for, nearly all of it irrelevant, none of it a fault of the run's nodes."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

from flows.replay.fleet import build_fleet
from flows.replay.noise import check_noise, kernel_noise, sel_noise

FLEET = build_fleet(128, 1)
RUN = frozenset(FLEET.nodes[:128])
START, DAY = 1_717_459_200.0, 86_400.0
RELEVANT = re.compile(
    r"NVRM: Xid|SXid|AER:|PCIe Bus Error|EDAC|Hardware Error|: Link (up|down)|throttled|nvme\d: (I/O|Abort)|High temperature"
)
XID = re.compile(r"NVRM: Xid \(PCI:[^)]+\): (\d+)")


def held(node: str, _: float) -> bool:
    return node in RUN


def day(seed: int, per_node_day: float = 28.0) -> list[tuple[float, str, str]]:
    return kernel_noise(FLEET, START, DAY, held, random.Random(seed), per_node_day)


def test_it_gives_about_as_many_lines_as_asked_for() -> None:
    assert abs(len(day(1)) - 28 * len(FLEET.nodes)) < 60
    assert abs(len(day(1, 4.0)) - 4 * len(FLEET.nodes)) < 600  # a storm may take the place of chatter


def test_the_same_chance_gives_the_same_lines() -> None:
    assert day(5) == day(5)
    assert day(5) != day(6)


def test_lines_lie_in_the_day_and_on_known_nodes() -> None:
    lines = day(2)
    assert {node for _, node, _ in lines} <= set(FLEET.nodes)
    assert min(at for at, _, _ in lines) >= START
    assert max(at for at, _, _ in lines) < START + DAY + 3_600
    assert all(text and "\n" not in text for _, _, text in lines)


def test_about_one_line_in_a_hundred_looks_like_trouble() -> None:
    lines = [line for seed in range(10) for line in day(seed) if line[1] in RUN]
    share = sum(bool(RELEVANT.search(text)) for _, _, text in lines) / len(lines)
    assert 0.003 < share < 0.02


def test_on_the_run_s_nodes_no_xid_kills_a_rank() -> None:
    """74 and 149 may stand there, as half of NVLink's errors end no job; 45 only of the checks' own programs."""
    seen = Counter[int]()
    for seed in range(60):
        for _, node, text in day(seed):
            if node in RUN and (code := XID.search(text)):
                seen[int(code.group(1))] += 1
                assert "pt_main_thread" not in text
    assert set(seen) <= {45, 63, 74, 92, 149}
    assert seen[63] > seen[74]


def test_other_people_s_jobs_crash_on_the_other_nodes() -> None:
    codes = {int(c.group(1)) for seed in range(30) for _, n, t in day(seed) if n not in RUN and (c := XID.search(t))}
    assert {13, 31, 43, 45} <= codes
    assert not codes & {48, 62, 64, 79, 95, 119, 120}


def test_inputs_of_power_supplies_come_back_within_seconds() -> None:
    lines = sel_noise(FLEET, START, 54 * DAY, random.Random(3))
    lost = [line for line in lines if line.text.endswith("AC lost | Asserted")]
    back = [line for line in lines if line.text.endswith("AC lost | Deasserted")]
    assert lost
    for line in lost:
        mine = (b.at for b in back if b.node == line.node and b.text.startswith(line.text.split(" |")[0]))
        assert any(0 < at - line.at < 60 for at in mine), line


def test_diagnostics_pass_and_only_on_nodes_that_the_run_does_not_hold() -> None:
    lines = check_noise(FLEET, START, 200 * DAY, held, random.Random(4))
    documents = [line for line in lines if line.stream == "diagnostic"]
    assert documents
    assert all(line.node not in RUN and '"Fail"' not in line.text and json.loads(line.text) for line in documents)
