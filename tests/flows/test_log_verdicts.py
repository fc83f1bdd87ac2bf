"""Verdicts where a training log tells of steps: each situation is a run of its own on nodes of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zlib import crc32

import pytest

from tests.conftest import Site

SETTINGS = """
[clusters.c1]
zone = "UTC"
gpus_per_node = 8

[[runs]]
match = { job_name = "fit-*" }
key = ["job_name"]
"""
BEGAN = datetime(2025, 5, 4, 10, 0, 0, tzinfo=UTC)
STOP = 3600  # the first attempt's last step, seconds after ten o'clock
HEADER = "JobID|JobName|User|State|ExitCode|Submit|Start|End|NNodes|NodeList|AllocTRES"


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


class Case:
    """A job on eight nodes that steps every ten seconds, stops at STOP, and steps again some minutes later."""

    def __init__(self, name: str, state: str = "FAILED", exit_code: str = "1:0", held: int = 20, swap: int = 0) -> None:
        self.name = name
        self.job_id = str(crc32(name.encode()) % 10**6 + 1000)
        self.kernel: list[str] = []
        self.sel: list[str] = []
        self.lines: list[str] = []
        end, resumed = STOP + held, STOP + held + 280
        nodes = [f"{name}{n:02}" for n in range(1, 9)]
        again = [f"{name}{n:02}" for n in range(1, 10) if n != swap][:8]
        self.jobs = [
            self._row(state, exit_code, 0, end, nodes),
            self._row("COMPLETED", "0:0", resumed, resumed + 7200, again),
        ]
        for first, last in ((60, STOP), (resumed + 60, resumed + 7190)):
            for number, when in enumerate(range(first, last + 1, 10), 1 if first == 60 else 1 + (STOP - 50) // 10):
                self.say(
                    when,
                    f" iteration {number:8d}/ 100000 | consumed samples: {number * 256:12d} | elapsed time per iteration "
                    "(ms): 10000.0 | learning rate: 1.5E-04 | global batch size:   256 | lm loss: 2.9E+00 | "
                    "number of skipped iterations:   0 | number of nan iterations:   0 |",
                )

    def _row(self, state: str, code: str, start: int, end: int, nodes: list[str]) -> str:
        begun, over = (f"{at(s):%Y-%m-%dT%H:%M:%S}" for s in (start, end))
        hosts = ",".join(nodes)
        return f"{self.job_id}|fit-{self.name}|ana|{state}|{code}|{begun}|{begun}|{over}|8|{hosts}|gres/gpu=64,node=8"

    def say(self, when: float, text: str, node: int = 1, rank: int = 0) -> Case:
        self.lines.append(f"{at(when):%Y-%m-%dT%H:%M:%S.%f}Z {self.name}{node:02} [rank{rank}]:{text}")
        return self

    def xid(self, when: float, node: int, code: int, text: str = "x") -> Case:
        return self.log(when, node, f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=7, name=fit, {text}")

    def log(self, when: float, node: int, text: str) -> Case:
        self.kernel.append(f"{at(when):%Y-%m-%dT%H:%M:%S.%f}+00:00 {self.name}{node:02} kernel: {text}")
        return self

    def bmc(self, when: float, node: int, sensor: str, event: str, how: str = "Asserted") -> Case:
        stamp = f"{at(when):%m/%d/%Y | %H:%M:%S}"
        self.sel.append(f"{self.name}{node:02}:   {len(self.sel) + 1:x} | {stamp} | {sensor} | {event} | {how}")
        return self


def everywhere(case: Case, text: str) -> Case:
    for node in range(1, 9):
        case.say(STOP + 1, text, node, (node - 1) * 8)
    return case


def hang(name: str, silent: int) -> Case:
    case = Case(name, exit_code="134:0", held=620)
    for rank in range(64):
        if rank // 8 + 1 != silent:
            case.say(
                STOP + 600,
                f"[E504 11:10:00.000000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
                "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600010 "
                "milliseconds before timing out.",
                rank // 8 + 1,
                rank,
            )
    return case


KEY_ERROR = "KeyError: 'layers.7'"
SITUATIONS: dict[str, tuple[Case, tuple[str, str | None, bool]]] = {
    case.name: (case, expected)
    for case, expected in (
        # steps went on until the requeue; a program's Xid on one node stopped nothing
        (Case("plan", "REQUEUED", "0:0", held=5).xid(STOP - 200, 3, 31), ("operator_change", None, True)),
        # the same requeue, but the log tells of an exception: automation requeued what had failed
        (everywhere(Case("again", "REQUEUED", "1:0", held=5), KEY_ERROR), ("software_bug", None, False)),
        # a program's exception on every rank beside a corrected memory error
        (
            everywhere(Case("code"), KEY_ERROR).log(
                STOP - 5, 2, "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_DIMM#0"
            ),
            ("software_bug", None, False),
        ),
        # a GPU that hangs, told by the one node that keeps silent
        (
            hang("hang", silent=5).xid(
                STOP + 2, 5, 119, "Timeout after 45s of waiting for RPC response from GPU1 GSP!"
            ),
            ("gpu_system_processor", "hang05", False),
        ),
        # watchdogs and nothing else
        (hang("dog", silent=0), ("nccl_watchdog", None, False)),
        # a fatal Xid that the run outlived by forty minutes is no cause of a program's exception
        (
            everywhere(Case("old"), KEY_ERROR).xid(STOP - 2400, 4, 74, "NVLink: fatal error detected"),
            ("software_bug", None, False),
        ),
        # every rank loses the storage
        (
            everywhere(Case("store"), "OSError: [Errno 5] Input/output error: '/ck/x.distcp'"),
            ("dependency", None, False),
        ),
        # power that is back after five seconds stopped nothing
        (
            everywhere(Case("power"), KEY_ERROR)
            .bmc(STOP - 20, 6, "Power Supply PS1 Status", "Power Supply AC lost")
            .bmc(STOP - 15, 6, "Power Supply PS1 Status", "Power Supply AC lost", "Deasserted"),
            ("software_bug", None, False),
        ),
        # NaN in one rank's own loss, and its node is left out
        (
            Case("nan", swap=7).say(
                STOP + 1,
                "AssertionError: Rank 49: found NaN in local forward loss calculation. Device: 1, node: nan07",
                7,
                49,
            ),
            ("silent_data_corruption", "nan07", False),
        ),
        # steps had stopped half an hour before somebody gave up: no orderly stop, and no cause is told
        (Case("stuck", "CANCELLED", "0:0", held=1800), ("unknown", None, False)),
        # a node that is left out, and nothing else: the node is suspected, the part unknown
        (Case("gone", "NODE_FAIL", "0:0", held=120, swap=3), ("node_unresponsive", "gone03", False)),
    )
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("verdicts"), SETTINGS, "2025-05-06T00:00:00Z")
    cases = [case for case, _ in SITUATIONS.values()]

    def joined(lines: Callable[[Case], list[str]]) -> str:
        return "\n".join(line for case in cases for line in lines(case)) + "\n"

    made.add("sacct.txt", f"{HEADER}\n" + joined(lambda c: c.jobs), cluster="c1")
    made.add("kern.log", joined(lambda c: c.kernel), cluster="c1")
    made.add("sel.txt", joined(lambda c: c.sel), cluster="c1")
    for case in cases:
        made.add(f"{case.name}.log", "\n".join(case.lines) + "\n", cluster="c1", job_id=case.job_id)
    made.run()
    return made


@pytest.mark.parametrize("name", SITUATIONS)
def test_verdict(name: str, verdicts: Site) -> None:
    """The cause, the node and whether it was planned are what the exports show."""
    rows = verdicts.rows(f"select * from marts.interruptions where run = 'fit-{name}'")
    assert [(r["cause"], r["culprit_node"], r["is_planned"]) for r in rows] == [SITUATIONS[name][1]], verdicts.rows(
        "select class, node, role, weight, text from marts.interruption_evidence "
        f"where interruption_id = '{rows[0]['interruption_id']}'"
    )


def test_an_unexplained_hang_is_named(verdicts: Site) -> None:
    """Where nothing speaks for a cause, the verdict says that steps had stopped long before the end."""
    [reason] = verdicts.column("select unknown_reason from marts.interruptions where run = 'fit-stuck'")
    assert reason.startswith("steps had stopped 1800 s before the end")
