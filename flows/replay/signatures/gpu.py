"""Faulty GPUs that leave the bus, and the PCI Express and BMC errors that come with it in about half and a third of cases."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures import nvidia, pci
from flows.replay.signatures.effects import aftermath, cuda_error, lost_peers, rebooted, vanished
from flows.replay.signatures.lines import between, kernel, sel

CAUSE = "gpu_faulty"


def link_errors(scene: Scene, gpu: int, at: float) -> Iterator[Line]:
    """AER uncorrected errors of a GPU's link and of its root port."""
    address = f"{nvidia.pci(scene, gpu)}.0"
    port = pci.port_above(address)
    victim = f"nvidia {address}"
    if scene.rng.random() < 0.6:
        lines = pci.uncorrected(port, port, pci.ROOT_PORT, "SDES", "pcieport")
    else:
        lines = pci.uncorrected(port, port, pci.ROOT_PORT, "CmpltTO", "pcieport", fatal=scene.rng.random() < 0.5)
    yield from kernel(scene.node, at, *lines, *pci.unrecovered(port, victim))


def critical_interrupt(scene: Scene, at: float) -> Line:
    """The BMC's view of a fatal PCI Express error."""
    sensor, event = scene.rng.choice(
        (
            ("Critical Interrupt PCIE Error", "Bus Fatal Error"),
            ("Critical Interrupt #0xa0", "PCI SERR"),
            ("Critical Interrupt PCIE Error", "Bus Uncorrectable error"),
        )
    )
    return sel(scene.node, at + scene.rng.randint(0, 4), sensor, event)


def lost(scene: Scene, numbered: bool, aer: float, interrupt: float) -> Iterator[Line]:
    """A GPU falls off the bus; `aer` and `interrupt` are how often the link and the BMC say so as well."""
    rng, at, address = scene.rng, scene.fault_at, nvidia.pci(scene)
    if rng.random() < aer:
        yield from link_errors(scene, scene.gpu, at)
        at += 0.02 + rng.random() * 2
    if rng.random() < interrupt:
        yield critical_interrupt(scene, scene.fault_at)
    yield from kernel(scene.node, at, *nvidia.off_the_bus(address, numbered))
    if rng.random() < 0.5:
        yield from kernel(scene.node, at + 0.4, *nvidia.CRASH_DUMP)
    if rng.random() < 0.45:  # NVSwitches notice the dead end some seconds later
        for switch in rng.sample(range(4), rng.randint(1, 4)):
            lines = nvidia.switch_error(switch, 20034, "Fatal", rng.randrange(64), "LTSSM Fault Up")
            yield from kernel(scene.node, at + 11 + rng.random() * 2, *lines, step=0.002)
    if numbered and rng.random() < 0.3:
        yield from kernel(scene.node, at + 0.05, nvidia.recovery(address, "0x0 (None)", "0x2 (Node Reboot Required)"))


def _dies(scene: Scene, numbered: bool, aer: float, interrupt: float) -> Iterator[Line]:
    yield from lost(scene, numbered, aer, interrupt)
    if scene.rng.random() < 0.6:
        yield from cuda_error(scene, scene.rng.choice(("unspecified launch failure", "unknown error")))
    yield from aftermath(scene)


def bus_lost_aer(scene: Scene) -> Iterator[Line]:
    """Xid 79 with the link's own errors, often with the BMC's."""
    yield from _dies(scene, True, 1.0, 0.6)


def bus_lost(scene: Scene) -> Iterator[Line]:
    """Xid 79 alone."""
    yield from _dies(scene, True, 0.0, 0.08)


def bus_lost_wordless(scene: Scene) -> Iterator[Line]:
    """Off the bus without an Xid number."""
    yield from _dies(scene, False, 0.35, 0.2)


def bus_lost_hang(scene: Scene) -> Iterator[Line]:
    """Xid 79, and the rank sleeps in the driver: the others wait until their watchdogs bite."""
    yield from lost(scene, True, 0.4, 0.3)
    yield from kernel(scene.node, scene.fault_at + 245, *_hung_task(scene))


def _hung_task(scene: Scene) -> list[str]:
    return [
        f"INFO: task {nvidia.TRAINER}:{scene.pids[scene.gpu]} blocked for more than 122 seconds.",
        "      Tainted: P           OE     5.15.0-1052 #57",
        '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.',
    ]


def bus_lost_then_silent(scene: Scene) -> Iterator[Line]:
    """Xid 79 takes the node with it: it stops answering within the minute."""
    yield from lost(scene, True, 0.75, 0.6)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)
    if scene.rng.random() < 0.7:
        at, lines = rebooted(scene)
        yield from lines
        if scene.rng.random() < 0.5:
            yield from kernel(scene.node, at + 24, *nvidia.probe_failed(nvidia.pci(scene)))


def missing_after_boot(scene: Scene) -> Iterator[Line]:
    """The node locks up without a word; at the next boot the driver cannot find one GPU."""
    yield from vanished(scene)
    at, lines = rebooted(scene)
    yield from lines
    yield from kernel(scene.node, at + 24, *nvidia.probe_failed(nvidia.pci(scene)))


def halted(scene: Scene) -> Iterator[Line]:
    """Xid 62: the power management unit halts; 154 asks for a reset."""
    rng, address = scene.rng, nvidia.pci(scene)
    words = f"{rng.randrange(1 << 16):04x}({rng.randrange(1 << 16):04x}) {rng.randrange(1 << 32):08x} {rng.randrange(1 << 32):08x}"
    lines = [nvidia.xid(address, 62, words)] * rng.randint(1, 3)
    if rng.random() < 0.6:
        lines.append(nvidia.recovery(address, "0x0 (None)", "0x1 (GPU Reset Required)"))
    yield from kernel(scene.node, scene.fault_at, *lines, step=0.4)
    yield from cuda_error(scene, "unspecified launch failure")
    yield from aftermath(scene)


def asks_for_reset(scene: Scene) -> Iterator[Line]:
    """Xid 109 on a context switch that never ends, then 154."""
    rng, address, at = scene.rng, nvidia.pci(scene), scene.fault_at
    detail = f"{nvidia.channel(rng)}, errorString CTX SWITCH TIMEOUT, Info 0x{rng.randrange(1 << 20):x}"
    yield from kernel(scene.node, at, nvidia.xid(address, 109, detail, nvidia.process(scene)))
    wanted = rng.choice(("0x1 (GPU Reset Required)", "0x2 (Node Reboot Required)"))
    yield from kernel(scene.node, between(scene, at + 0.1, at + 9), nvidia.recovery(address, "0x0 (None)", wanted))
    yield from aftermath(scene)


SIGNATURES = (
    Signature("bus_lost_aer", CAUSE, 13, "exit", bus_lost_aer, "auto-drain: GPU lost", (60.0, 600.0)),
    Signature("bus_lost", CAUSE, 12, "exit", bus_lost, "node health check failed", (120.0, 900.0)),
    Signature("bus_lost_wordless", CAUSE, 6, "exit", bus_lost_wordless, "auto-drain: gpu", (120.0, 700.0)),
    Signature("bus_lost_hang", CAUSE, 4, "watchdog", bus_lost_hang, "GPU fell off the bus"),
    Signature(
        "bus_lost_then_silent",
        CAUSE,
        13,
        "node_fail",
        bus_lost_then_silent,
        "hw check after node failure",
        (600.0, 2400.0),
    ),
    Signature(
        "missing_after_boot", CAUSE, 6, "node_fail", missing_after_boot, "7 of 8 GPUs after reboot", (1600.0, 2800.0)
    ),
    Signature("halted", CAUSE, 4, "exit", halted, "node health check failed"),
    Signature("asks_for_reset", CAUSE, 4, "exit", asks_for_reset, "GPU needs reset", (60.0, 500.0)),
)
