"""Faulty GPUs whose NVLinks fail: Xid 74 of Hopper, NVSwitch SXids, and Xids 144 to 150 of NVLink 5 drivers."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures import nvidia
from flows.replay.signatures.effects import aftermath, cuda_error
from flows.replay.signatures.lines import kernel, said

CAUSE = "gpu_faulty"
LINKS = 18
REGISTERS = (
    "0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0",
    "0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0",
    "0x0, 0x0, 0x0, 0x0, 0x80000000, 0x0, 0x0",
)
NVLINK5_UNITS = (
    (145, "RLW_SRC_TRACK", 0x0040_0001),
    (146, "TLW_RX_PIPE1", 0x0001_0010),
    (149, "NETIR_LINK_EVT", 0x0214_25C6),
    (150, "MSE", 0x0000_0021),
)


def _links_fail(scene: Scene) -> Iterator[Line]:
    """Several links of the culprit, then those of two in five neighbours on the board."""
    rng, at = scene.rng, scene.fault_at
    registers = rng.choice(REGISTERS)
    links = rng.sample(range(LINKS), rng.randint(1, 5))
    lines = [nvidia.nvlink_fatal(nvidia.pci(scene), link, registers) for link in links]
    yield from kernel(scene.node, at, *lines, step=0.004)
    for gpu in range(scene.fleet.gpus):
        if gpu != scene.gpu and rng.random() < 0.4:
            line = nvidia.nvlink_fatal(nvidia.pci(scene, gpu), rng.randrange(LINKS), registers)
            yield from kernel(scene.node, at + 0.3 + rng.random() * 3, line)


def _switches_fail(scene: Scene, code: int, text: str) -> Iterator[Line]:
    for switch in scene.rng.sample(range(4), scene.rng.randint(1, 2)):
        lines = nvidia.switch_error(switch, code, "Fatal", scene.rng.randrange(64), text)
        yield from kernel(scene.node, scene.fault_at + scene.rng.random(), *lines, step=0.002)


def nvlink_fatal(scene: Scene) -> Iterator[Line]:
    """Xid 74, often with the switch's view."""
    yield from _links_fail(scene)
    if scene.rng.random() < 0.5:
        yield from _switches_fail(scene, 20034, "LTSSM Fault Up")
    if scene.rng.random() < 0.5:
        yield from cuda_error(scene, "an illegal instruction was encountered")
    yield from aftermath(scene)


def nvlink_hang(scene: Scene) -> Iterator[Line]:
    """Xid 74, and loads and stores over the link never return: a hang without an error code."""
    yield from _links_fail(scene)


def nvswitch_fatal(scene: Scene) -> Iterator[Line]:
    """Only the switch speaks."""
    code, text = scene.rng.choice(
        (
            (20034, "LTSSM Fault Up"),
            (12023, "ingress invalid command (First)"),
            (23001, "egress DST-VC credit overflow (First)"),
        )
    )
    yield from _switches_fail(scene, code, text)
    told = [
        "RuntimeError: CUDA error: system not yet initialized",
        "CUDA error: uncorrectable NVLink error detected during the execution",
    ]
    yield from said(scene, scene.node, scene.gpu, scene.stalled_at + scene.rng.random() * 4, [scene.rng.choice(told)])
    yield from aftermath(scene)


def nvlink5_fatal(scene: Scene) -> Iterator[Line]:
    """The words of newer drivers: unit, severity, link, registers; then 154."""
    rng = scene.rng
    code, unit, word = rng.choice(NVLINK5_UNITS)
    address = nvidia.pci(scene)
    links = rng.sample(range(LINKS), rng.randint(1, 4))
    lines = [nvidia.nvlink5(address, code, unit, "Fatal", link, word) for link in links]
    lines.append(nvidia.recovery(address, "0x0 (None)", "0x4 (Drain and Reset)"))
    yield from kernel(scene.node, scene.fault_at, *lines, step=0.06)
    yield from aftermath(scene)


SIGNATURES = (
    Signature("nvlink_fatal", CAUSE, 12, "exit", nvlink_fatal, "node health check failed"),
    Signature("nvlink_hang", CAUSE, 7, "watchdog", nvlink_hang, "nvlink errors", (60.0, 800.0)),
    Signature("nvswitch_fatal", CAUSE, 4, "exit", nvswitch_fatal, "auto-drain: fabric", (60.0, 800.0)),
    Signature("nvlink5_fatal", CAUSE, 3, "exit", nvlink5_fatal, "GPU needs reset"),
)
