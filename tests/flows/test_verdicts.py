"""Verdicts on small situations, each a run of its own on nodes of its own, all in one warehouse."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zlib import crc32

import pytest

from tests.conftest import Site

SETTINGS = """
[clusters.c1]
zone = "UTC"
gpus_per_node = 8

[[runs]]
match = { job_name = "r-*" }
key = ["job_name"]
"""
DAY = datetime(2025, 5, 4)  # noqa: DTZ001 - exports print local times


def at(hours: float, seconds: int = 0) -> datetime:
    return DAY + timedelta(hours=hours, seconds=seconds)


@dataclass
class Situation:
    """Exports of one run: its attempts, kernel lines, node events, reservations."""

    name: str
    jobs: list[str] = field(default_factory=list)
    kernel: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    reservations: list[str] = field(default_factory=list)

    def node(self, number: int) -> str:
        return f"{self.name}{number:02}"

    def job(self, number: int, state: str, start: datetime, end: datetime, *, limit: str = "10-00:00:00") -> Situation:
        """Add an attempt on nodes 1 to 8; equal numbers are requeues."""
        elapsed = int((end - start).total_seconds())
        days, rest = divmod(elapsed, 86400)
        shown = f"{days}-{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
        ident = f"{crc32(self.name.encode()) % 10**6}{number}"
        row = (
            f"{ident}|r-{self.name}|ann|{state}|0:0|{start.isoformat()}|{start.isoformat()}|{start.isoformat()}|"
            f"{end.isoformat()}|{shown}|{limit}|8|{self.name}[01-08]"
        )
        self.jobs.append(row)
        return self

    def log(self, when: datetime, node: int, text: str) -> Situation:
        self.kernel.append(f"{when.isoformat()}.000+00:00 {self.node(node)} kernel: {text}")
        return self

    def xid(self, when: datetime, node: int, code: int, text: str = "x", *, bus: str = "3b") -> Situation:
        return self.log(when, node, f"NVRM: Xid (PCI:0000:{bus}:00): {code}, pid=7, name=fit, {text}")

    def out(self, start: datetime, end: datetime, node: int, state: str, reason: str, by: str = "root(0)") -> Situation:
        self.events.append(f"c1|{self.node(node)}|{start.isoformat()}|{end.isoformat()}|{state}|{reason}|{by}")
        return self

    def reserve(self, start: datetime, end: datetime, nodes: str, flags: str = "MAINT,SPEC_NODES") -> Situation:
        self.reservations.append(
            f"ReservationName={self.name}-w StartTime={start.isoformat()} EndTime={end.isoformat()} "
            f"Duration=01:00:00 Nodes={nodes} NodeCnt=8 CoreCnt=64 Features=(null) PartitionName=(null) Flags={flags} "
            "TRES=cpu=64 Users=root Accounts=(null) Licenses=(null) State=ACTIVE"
        )
        return self


def resumed(name: str, state: str, *, after: float = 0.1, **kwargs: str) -> Situation:
    """A run stopped at 10:00 and resumed `after` hours later by a new job, which completes."""
    situation = Situation(name).job(1, state, at(0), at(10), **kwargs)
    return situation.job(2, "COMPLETED", at(10 + after), at(20 + after))


SITUATIONS: dict[str, tuple[Situation, tuple[str, str | None]]] = {}


def expect(situation: Situation, cause: str, culprit: int | None = None) -> None:
    node = None if culprit is None else situation.node(culprit)
    SITUATIONS[situation.name] = (situation, (cause, node))


# --- planned, or not
expect(
    resumed("drained", "CANCELLED by 0").out(at(8), at(15), 3, "DRAIN", "kernel upgrade"),
    "planned_maintenance",  # the drain was set two hours ahead and is in force at the end
)
expect(
    resumed("mixeddrain", "REQUEUED").out(at(9.9), at(15), 3, "MIXED+DRAIN", "firmware rollout"),
    "planned_maintenance",
)
expect(
    resumed("sickdrain", "CANCELLED by 0")
    .xid(at(7), 3, 79, "GPU has fallen off the bus.")
    .out(at(9.99), at(15), 3, "DRAIN", "firmware upgrade"),
    "gpu_faulty",  # lost three hours before and never cleared: neither a rollout nor the operator explains the stop
    3,
)
expect(resumed("window", "CANCELLED by 0").reserve(at(9.5), at(12), "window[01-08]"), "planned_maintenance")
expect(resumed("elsewhere", "FAILED").reserve(at(9.5), at(12), "spare[01-08]"), "unknown")
expect(resumed("owner", "CANCELLED by 1000", after=0.5), "operator_change")
expect(resumed("owner3h", "CANCELLED by 1000", after=3), "job_cancelled")
expect(resumed("limit", "TIMEOUT", limit="10:00:00"), "time_limit")
expect(resumed("preempted", "PREEMPTED"), "preempted")
expect(resumed("completed", "COMPLETED"), "operator_change")
expect(resumed("atlimit", "COMPLETED", limit="10:01:00"), "time_limit")
expect(
    resumed("faultcancel", "CANCELLED by 1000").xid(at(9.99), 5, 79, "GPU has fallen off the bus."),
    "gpu_faulty",  # the owner cancelled a run that a lost GPU had stopped
    5,
)
expect(
    resumed("laterdrain", "CANCELLED by 1000").out(at(10.23), at(15), 3, "DRAIN", "kernel upgrade"),
    "operator_change",  # the drain came a quarter of an hour after the cancel
)
expect(
    resumed("lived", "FAILED").reserve(at(7), at(12), "lived[01-08]"),
    "unknown",  # the attempt had lived in the window for three hours
)
expect(
    resumed("inwindow", "CANCELLED by 0").reserve(at(-48), at(48), "inwindow[01-08]"),
    "operator_change",  # it began in the window, which cannot have ended it
)
expect(resumed("xidcancel", "CANCELLED by 1000").xid(at(9.99), 1, 13, "Graphics Exception"), "operator_change")
# --- faults that were cleared, or stand
expect(
    resumed("hours", "TIMEOUT", limit="10:00:00").xid(at(5), 4, 79, "GPU has fallen off the bus."),
    "gpu_faulty",  # five hours before the limit, and never cleared
    4,
)
expect(
    Situation("rebooted")
    .job(1, "FAILED", at(0), at(4))
    .xid(at(4, -5), 2, 79, "GPU has fallen off the bus.")
    .log(at(4.05), 2, "reboot: Restarting system")
    .log(at(4.1), 2, "Linux version 5.15.0")
    .job(2, "CANCELLED by 1000", at(4.2), at(10))
    .job(3, "COMPLETED", at(10.1), at(20)),
    "operator_change",
)
expect(
    Situation("provenwell")
    .job(1, "FAILED", at(0), at(4))
    .xid(at(4, -5), 2, 119, "Timeout after 6s of waiting for RPC response from GPU2 GSP!")
    .job(2, "TIMEOUT", at(4.2), at(76.2), limit="3-00:00:00")
    .job(3, "COMPLETED", at(76.3), at(90)),
    "time_limit",  # the node carried the job for days: what stood there is over
)
# --- evidence and chance
expect(
    resumed("cleanup", "FAILED")
    .xid(at(9.8), 3, 63, "Row Remapper: New row marked for remapping, reset gpu to activate.")
    .xid(at(10, 3), 4, 45, "Ch 00000008")
    .xid(at(9.9), 5, 43),
    "unknown",
)
expect(
    resumed("program", "FAILED").xid(at(9.99), 1, 31, "MMU Fault").xid(at(9.99), 2, 31, "MMU Fault"),
    "user_error",  # programs raise 31: half a minute before the end it speaks for the program, not for the machine
)
COMMON = resumed("common", "FAILED")
WAVE = resumed("wave", "FAILED")
for n in range(1, 9):
    COMMON.xid(at(10, -n), n, 13, "Graphics Exception")
    if n <= 6:
        WAVE.xid(at(10, -20 + n), n, 79, "GPU has fallen off the bus.")
expect(COMMON, "user_error")  # what every node shows follows the program, and blames no node
expect(WAVE, "facility_power_cooling")
expect(
    resumed("panicnote", "NODE_FAIL").out(at(10), at(11), 2, "DOWN", "kernel panic - not syncing", "joe(500)"),
    "kernel_fault",
    2,
)
expect(
    resumed("storm", "FAILED")
    .xid(at(10, -20), 7, 79, "GPU has fallen off the bus.")
    .xid(at(10, -19), 2, 45, "Ch 1")
    .xid(at(10, -18), 2, 45, "Ch 2")
    .xid(at(10, -17), 3, 45, "Ch 3"),
    "gpu_faulty",
    7,
)
expect(
    resumed("gspdrain", "FAILED")
    .xid(at(9.8), 6, 119, "Timeout after 6s of waiting for RPC response from GPU2 GSP!")
    .xid(at(10, 40), 6, 119, "Timeout after 6s of waiting for RPC response from GPU2 GSP!")
    .out(at(10, 70), at(15), 6, "DRAIN", "nvidia-smi hangs, looking at it", "joe(500)"),
    "gpu_system_processor",  # the note after the stop must not outweigh the fault it follows
    6,
)
expect(
    resumed("sram", "FAILED").xid(
        at(10, -3), 4, 48, "An uncorrectable double bit error (DBE) has been detected in SRAM"
    ),
    "gpu_sram",
    4,
)
expect(
    resumed("remapped", "FAILED")
    .xid(at(10, -4), 4, 63, "Row Remapper: New row (0x31c8a4f) marked for remapping, reset gpu to activate.")
    .xid(at(10, -3), 4, 94, "Contained: SM (0x1). RST: No, D-RST: No"),
    "gpu_hbm",  # rows are remapped in HBM; the SM only met the error
    4,
)
expect(
    resumed("recovery", "FAILED")
    .xid(at(10, -9), 6, 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")
    .xid(at(10, -9), 6, 79, "GPU has fallen off the bus."),
    "gpu_faulty",
    6,
)
LUSTRE = resumed("lustre", "FAILED")
for n in range(1, 7):
    LUSTRE.log(at(9.95, n), n, "LustreError: 11-0: scratch-OST0011-osc: Connection to scratch-OST0011 was lost")
    LUSTRE.log(at(9.96, n), n, "LustreError: 167-0: scratch-OST0011-osc: This client was evicted by scratch-OST0011")
expect(LUSTRE, "filesystem_mount")
expect(resumed("manylinks", "FAILED"), "network_switch_cable")
for n in (2, 3, 4, 5):
    SITUATIONS["manylinks"][0].log(at(10, -30 + n), n, "mlx5_core 0000:1a:00.0 ibp26s0: Link down")
expect(
    resumed("bounce", "FAILED")
    .log(at(9.9), 2, "mlx5_core 0000:1a:00.0 ibp26s0: Link down")
    .log(at(9.9, 4), 2, "mlx5_core 0000:1a:00.0 ibp26s0: Link up"),
    "unknown",
)
FLAPS = resumed("flaps", "FAILED")
for n in range(6):
    FLAPS.log(at(9.95, 9 * n), 2, f"mlx5_core 0000:1a:00.0 ibp26s0: Link {'up' if n % 2 else 'down'}")
expect(FLAPS, "network_switch_cable", 2)
expect(
    resumed("repair", "CANCELLED by 0").out(at(9.98), at(15), 8, "DRAIN", "replace riser", "joe(500)"),
    "host_maintenance",
    8,
)
expect(
    resumed("silent", "NODE_FAIL").out(at(10), at(11), 2, "DOWN*", "Not responding", "slurm(64030)"),
    "node_unresponsive",
    2,
)
expect(
    resumed("powerlater", "NODE_FAIL")
    .out(at(10), at(14), 2, "DOWN*", "Not responding", "slurm(64030)")
    .out(at(14), at(30), 2, "DOWN", "PSU2 failed, waiting for vendor", "joe(500)"),
    "power_supply",  # a later word on the same outage
    2,
)
# the resumed attempt does not hold the node that is still out
SITUATIONS["powerlater"][0].jobs[1] = (
    SITUATIONS["powerlater"][0].jobs[1].replace("powerlater[01-08]", "powerlater[01,03-09]")
)
expect(resumed("oom", "OUT_OF_MEMORY"), "out_of_memory_host")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("verdicts"), SETTINGS, "2025-06-01T00:00:00Z")
    situations = [s for s, _ in SITUATIONS.values()]
    header = "JobID|JobName|User|State|ExitCode|Submit|Eligible|Start|End|Elapsed|Timelimit|NNodes|NodeList"
    made.add("sacct.txt", "\n".join([header, *(j for s in situations for j in s.jobs)]) + "\n", cluster="c1")
    made.add("kern.log", "\n".join(k for s in situations for k in s.kernel) + "\n", cluster="c1")
    head = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"
    made.add("events.txt", "\n".join([head, *(e for s in situations for e in s.events)]) + "\n", cluster="c1")
    made.add("reservations.txt", "\n".join(r for s in situations for r in s.reservations) + "\n", cluster="c1")
    made.run()
    return made


@pytest.mark.parametrize("name", SITUATIONS)
def test_verdict(name: str, verdicts: Site) -> None:
    """The last interruption of the situation has the cause that its evidence shows, and blames the right node."""
    cause, node = SITUATIONS[name][1]
    *_, last = verdicts.rows(f"select * from marts.interruptions where run = 'r-{name}' order by interrupted_at")
    assert last["cause"] == cause, verdicts.rows(
        "select class, node, role, weight, text from marts.interruption_evidence "
        f"where interruption_id = '{last['interruption_id']}'"
    )
    if node is not None:
        assert last["culprit_node"] == node


@pytest.mark.parametrize("name", ["common", "wave", "manylinks", "owner", "limit", "program"])
def test_what_sits_in_no_node_blames_none(name: str, verdicts: Site) -> None:
    assert verdicts.column(f"select culprit_node from marts.interruptions where run = 'r-{name}'") == [None]


def test_the_xid_that_reports_another_one_does_not_lead(verdicts: Site) -> None:
    """154 says what the driver recommends because of the 79 of the same second."""
    assert verdicts.column(
        "select e.class from marts.interruption_evidence as e inner join marts.interruptions as i "
        "on e.interruption_id = i.interruption_id where i.run = 'r-recovery' and e.role = 'initiating'"
    ) == ["xid_79"]


def test_nothing_beyond_the_situations_is_an_interruption(verdicts: Site) -> None:
    """Each situation ends once, or twice where an earlier attempt failed."""
    assert verdicts.column("select count(*) from marts.interruptions") == [len(SITUATIONS) + 2]
