"""GPU System Processor: RPCs time out (119), its tasks fault (120), and the lines repeat for as long as anybody asks."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures import nvidia
from flows.replay.signatures.effects import aftermath, lost_peers, vanished
from flows.replay.signatures.lines import between, kernel

CAUSE = "gpu_system_processor"
ASKERS = ("nvidia-smi", "nv-hostengine", "dcgm-exporter", "cache_mgr_main", "gpud", "nvc:[driver]")
HISTORY = (
    "NVRM: GPU{gpu} RPC history (CPU -> GSP):",
    "NVRM:     entry function                   data0              data1              ts_start           ts_end             duration actively_polling",
    "NVRM:      0    76   GSP_RM_CONTROL        0x0000000020801702 0x0000000000000008 0x{start:016x} 0x0000000000000000          y",
    "NVRM:     -1    76   GSP_RM_CONTROL        0x0000000020802a02 0x0000000000000008 0x{before:016x} 0x{after:016x}    372us",
    "NVRM: GPU{gpu} RPC event history (CPU <- GSP):",
    "NVRM:     entry function                   data0              data1              ts_start           ts_end             duration during_incomplete_rpc",
    "NVRM:      0    4108 UCODE_LIBOS_PRINT     0x0000000000000000 0x0000000000000000 0x{before:016x} 0x{before:016x}",
)


def _first(scene: Scene, seconds: int) -> Iterator[Line]:
    """The first time-out, with the history of calls that newer drivers print."""
    gpu, address = scene.gpu, nvidia.pci(scene)
    lines = [nvidia.gsp_timeout(address, gpu, seconds, nvidia.process(scene), scene.rng)]
    if scene.rng.random() < 0.6:
        start = int(scene.fault_at * 1e6)
        lines += [form.format(gpu=gpu, start=start, before=start - 69_000, after=start - 68_628) for form in HISTORY]
    yield from kernel(scene.node, scene.fault_at, *lines)


def _storm(scene: Scene, seconds: int, until: float) -> Iterator[Line]:
    """Everybody who asks waits as long and is told the same, seconds later and again, under other pids."""
    rng, address, at = scene.rng, nvidia.pci(scene), scene.fault_at
    limited = rng.random() < 0.3
    told = 0
    while (at := at + seconds * (1 + rng.random())) < until and told < 600:
        who = (
            f"pid={rng.randrange(2_000, 4_000_000)}, name={rng.choice(ASKERS)}"
            if rng.random() < 0.8
            else nvidia.process(scene)
        )
        yield from kernel(scene.node, at, nvidia.gsp_timeout(address, scene.gpu, seconds, who, rng))
        told += 1
        if limited and told == 3:
            text = f"NVRM: Rate limiting GSP RPC error prints for GPU at PCI:{address} (printing 1 of every 30).  The GPU likely needs to be reset."
            yield from kernel(scene.node, at + seconds, text)
            seconds *= 30


def storm(scene: Scene) -> Iterator[Line]:
    """119, again and again until somebody resets the GPU."""
    yield from _first(scene, 6)
    yield from _storm(scene, 6, scene.ended_at + 120 + scene.rng.random() * 1500)
    yield from aftermath(scene)


def storm_hang(scene: Scene) -> Iterator[Line]:
    """119 while the ranks wait for the one that is stuck in the driver."""
    yield from _first(scene, 6)
    yield from _storm(scene, 6, scene.ended_at + scene.rng.random() * 600)


def slow_timeouts(scene: Scene) -> Iterator[Line]:
    """119 with the long time-out of newer drivers, few lines."""
    yield from _first(scene, 45)
    yield from _storm(scene, 45, scene.ended_at + 60)
    yield from aftermath(scene)


def task_faults(scene: Scene) -> Iterator[Line]:
    """120: a task of the GSP faults; 119 and 154 follow."""
    rng, address = scene.rng, nvidia.pci(scene)
    why = rng.choice(
        ("load access fault", "supervisor timer interrupt (cause:0x8000000000000005)", "instruction page fault")
    )
    yield from kernel(
        scene.node, scene.fault_at, nvidia.xid(address, 120, f"GSP task exception: {why}", nvidia.process(scene))
    )
    yield from _storm(scene, 6, between(scene, scene.fault_at + 20, scene.ended_at))
    wanted = nvidia.recovery(address, "0x0 (None)", "0x1 (GPU Reset Required)")
    yield from kernel(scene.node, scene.fault_at + 0.02, wanted)
    yield from aftermath(scene)


def then_silent(scene: Scene) -> Iterator[Line]:
    """119, then slurmd hangs in the driver as well: the node stops answering."""
    yield from _first(scene, 6)
    yield from _storm(scene, 6, scene.stalled_at + 40)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)


def drained(scene: Scene) -> Iterator[Line]:
    """The node falls silent first; the reason of the drain is all there is."""
    yield from vanished(scene)


SIGNATURES = (
    Signature("storm", CAUSE, 28, "exit", storm, "GSP RPC timeout", (60.0, 900.0)),
    Signature("storm_hang", CAUSE, 30, "watchdog", storm_hang, "node health check failed"),
    Signature("slow_timeouts", CAUSE, 12, "cancel", slow_timeouts, "GPU needs reset", (30.0, 300.0)),
    Signature("task_faults", CAUSE, 14, "exit", task_faults, "auto-drain: gpu"),
    Signature("then_silent", CAUSE, 12, "node_fail", then_silent, "hw check after node failure", (600.0, 1800.0)),
    Signature("drained", CAUSE, 4, "node_fail", drained, "GSP timeouts on GPU, reset", (600.0, 1800.0)),
)
