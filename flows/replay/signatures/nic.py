"""Network adapters: firmware that stops, errors on their own PCI Express link, adapters that are gone."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures import pci
from flows.replay.signatures.effects import clean_up, lost_peers
from flows.replay.signatures.lines import health, kernel
from flows.replay.signatures.network import adapter, async_event, link, no_port

CAUSE = "nic"
SYNDROMES = (
    (0x1, "firmware internal error"),
    (0x8, "unrecoverable hardware error"),
    (0xA, "ICM fetch PCI error"),
    (0x7, "irisc not responding"),
)


def _mlx5(address: str, function: str, line: int, text: str) -> str:
    return f"mlx5_core {address}: {function}:{line}:(pid 0): {text}"


def _health(scene: Scene) -> list[str]:
    """The health buffer as mlx5 prints it when the firmware reports a fatal error or its counter stands still."""
    rng = scene.rng
    _, address, _ = adapter(scene, scene.gpu)
    number, syndrome = rng.choice(SYNDROMES)
    head = (
        "device's health compromised - reached miss count"
        if rng.random() < 0.5
        else f"Fatal error {rng.randint(1, 5)} detected"
    )
    lines = [_mlx5(address, "poll_health", 813 if head.startswith("d") else 801, head)]
    info = [f"Health issue observed, {syndrome}, severity(3) ERROR:"]
    info += [f"assert_var[{n}] 0x{rng.randrange(1 << 32):08x}" for n in range(6)]
    info += [
        f"assert_exit_ptr 0x{rng.randrange(1 << 32):08x}",
        f"assert_callra 0x{rng.randrange(1 << 32):08x}",
        "fw_ver 28.39.2048",
    ]
    info += [
        f"time {int(scene.fault_at)}",
        "hw_id 0x00000218",
        "rfr 1",
        "severity 3 (ERROR)",
        "irisc_index 4",
        f"synd 0x{number:x}: {syndrome}",
    ]
    info += [f"ext_synd 0x{rng.randrange(1 << 16):04x}", "raw fw_ver 0x1c270800"]
    return lines + [_mlx5(address, "print_health_info", 431 + n, text) for n, text in enumerate(info)]


def firmware_fatal(scene: Scene) -> Iterator[Line]:
    """The firmware dies: health buffer, recovery that fails, link down."""
    _, address, _ = adapter(scene, scene.gpu)
    yield from kernel(scene.node, scene.fault_at, *_health(scene))
    yield from kernel(
        scene.node,
        scene.fault_at + 0.2,
        _mlx5(address, "mlx5_health_try_recover", 341, "handling bad device here"),
        link(scene, scene.gpu, "down"),
        _mlx5(address, "mlx5_error_sw_reset", 237, "start"),
    )
    yield from kernel(
        scene.node,
        scene.fault_at + 61,
        _mlx5(address, "mlx5_health_try_recover", 348, "health recovery flow aborted, PCI reads still not working"),
    )
    yield from async_event(scene, scene.node, scene.gpu, scene.fault_at + 1, "local catastrophic error")


def firmware_fatal_dies(scene: Scene) -> Iterator[Line]:
    """The same, and the ranks die of it."""
    yield from firmware_fatal(scene)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)
    yield from clean_up(scene)


def link_errors(scene: Scene) -> Iterator[Line]:
    """AER uncorrected errors of the adapter itself; mlx5 sees the slot offline."""
    _, address, _ = adapter(scene, scene.gpu)
    port = pci.port_above(address, below=3)
    lines = pci.uncorrected(port, address, pci.ADAPTER, scene.rng.choice(("DLP", "MalfTLP", "CmpltTO")), "mlx5_core")
    lines += [
        f"mlx5_core {address}: mlx5_pci_err_detected Device state = 1 health sensors: 1 pci_status: 1. Enter, pci channel state = 2"
    ]
    yield from kernel(
        scene.node,
        scene.fault_at,
        *lines,
        link(scene, scene.gpu, "down"),
        f"pcieport {port}: AER: device recovery failed",
    )
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)
    yield from clean_up(scene)


def commands_time_out(scene: Scene) -> Iterator[Line]:
    """Commands to the firmware time out, the node hangs in the driver and stops answering."""
    _, address, _ = adapter(scene, scene.gpu)
    # Each waits a minute; the node has been deaf for as long when the scheduler gives up on it.
    most = 1 + int((scene.ended_at - 30 - scene.fault_at) / 61)
    for n in range(max(1, min(most, scene.rng.randint(2, 6)))):
        text = "QUERY_VPORT_COUNTER(0x770) timeout. Will cause a leak of a command resource"
        yield from kernel(
            scene.node,
            scene.fault_at + 61 * n,
            f"mlx5_core {address}: wait_func:1151:(pid {scene.pids[0] + n}): {text}",
        )
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)


def missing(scene: Scene) -> Iterator[Line]:
    """The adapter is gone, and only the check after the end knows."""
    _, _, interface = adapter(scene, scene.gpu)
    at = scene.ended_at + 90 + scene.rng.random() * 400
    yield health(scene.node, at, f"check_hw_eth:  Ethernet device {interface} not detected.")
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)
    yield from clean_up(scene)


def link_down(scene: Scene) -> Iterator[Line]:
    """One port goes down and stays down: adapter or cable, the logs cannot tell."""
    yield from kernel(scene.node, scene.fault_at, link(scene, scene.gpu, "down"))
    yield from async_event(scene, scene.node, scene.gpu, scene.fault_at + 0.3)
    yield no_port(scene, scene.node, scene.gpu, scene.ended_at + 60 + scene.rng.random() * 500)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)
    yield from clean_up(scene)


SIGNATURES = (
    Signature("firmware_fatal", CAUSE, 22, "watchdog", firmware_fatal, "node health check failed"),
    Signature("firmware_fatal_dies", CAUSE, 18, "exit", firmware_fatal_dies, "HCA firmware"),
    Signature("adapter_link_errors", CAUSE, 18, "exit", link_errors, "node health check failed"),
    Signature(
        "commands_time_out", CAUSE, 14, "node_fail", commands_time_out, "hw check after node failure", (600.0, 1800.0)
    ),
    Signature(
        "adapter_missing",
        CAUSE,
        14,
        "exit",
        missing,
        "NHC: check_hw_eth:  Ethernet device not detected.",
        (100.0, 600.0),
    ),
    Signature(
        "link_down",
        CAUSE,
        14,
        "exit",
        link_down,
        "NHC: check_hw_ib:  No IB port is ACTIVE (LinkUp 400 Gb/sec).",
        (60.0, 600.0),
        accepted=("network_switch_cable",),
    ),
)
