"""Switches and cables: ports of one rack go down within a second, a port flaps, a module reports an error."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures.effects import clean_up, lost_peers
from flows.replay.signatures.lines import between, health, kernel, said

CAUSE = "network_switch_cable"
MODULE_ERRORS = (
    "Bad or shorted cable/module",
    "High Temperature",
    "No EEPROM/retry timeout",
    "Bus stuck (I2C or data shorted)",
)


def adapter(scene: Scene, index: int) -> tuple[str, str, str]:
    """RDMA device, PCI function and network interface of an adapter."""
    device, address = scene.fleet.nics[index]
    address = address if "." in address else f"{address}.0"
    _, bus, slot = address.split(":")
    return device, address, f"ibp{int(bus, 16)}s{int(slot.split('.')[0], 16)}"


def link(scene: Scene, index: int, state: str) -> str:
    """mlx5's line for a port that goes down or comes up."""
    _, address, interface = adapter(scene, index)
    return f"mlx5_core {address} {interface}: Link {state}"


def async_event(scene: Scene, node: str, index: int, at: float, event: str = "port error") -> Iterator[Line]:
    """NCCL's view of a port event, on the rank that drives the adapter."""
    device, _, _ = adapter(scene, index)
    pid = scene.rng.randrange(20_000, 4_000_000)
    text = f"{node}:{pid}:{pid + 412} [{index}] transport/net_ib.cc:{scene.rng.choice((92, 128, 168))} NCCL WARN NET/IB : {device}:1 Got async event : {event}"
    yield Line(at, node, "training", text)


def completion_error(scene: Scene, node: str, index: int, at: float) -> Iterator[Line]:
    """NCCL's retries over a dead path run out."""
    rng = scene.rng
    pid = rng.randrange(20_000, 4_000_000)
    peer = f"10.{rng.randrange(16, 24)}.{rng.randrange(256)}.{rng.randrange(1, 255)}<{rng.randrange(32768, 60999)}>"
    text = f"transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer {peer} with error 12, opcode 0, len 0, vendor err 129 (Recv)"
    yield Line(at, node, "training", f"{node}:{pid}:{pid + 412} [{index}] {text}")


def no_port(scene: Scene, node: str, index: int, at: float) -> Line:
    """NHC's check of one port."""
    device, _, _ = adapter(scene, index)
    return health(node, at, f"check_hw_ib:  No IB port {device}:1 is ACTIVE (LinkUp 400 Gb/sec).")


def _ranks_complain(scene: Scene, nodes: list[str], index: int) -> Iterator[Line]:
    for node in nodes:
        if scene.rng.random() < 0.7:
            yield from async_event(scene, node, index, scene.fault_at + 0.2 + scene.rng.random())
    for node in (*nodes[:3], *scene.bystanders[:4]):
        yield from completion_error(scene, node, index, between(scene, scene.stalled_at + 8, scene.ended_at))
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)


def _switch_down(scene: Scene, ports: list[int], back: float) -> Iterator[Line]:
    """Every node of the rack or switch loses the same ports within a second; they come back minutes later, if ever."""
    rng = scene.rng
    for node in (scene.node, *scene.neighbours):
        at = scene.fault_at + rng.random() * 0.9
        yield from kernel(node, at, *(link(scene, port, "down") for port in ports), step=0.0007)
        if back:
            up = scene.fault_at + back + rng.random() * 12
            yield from kernel(node, up, *(link(scene, port, "up") for port in ports), step=0.0009)


def switch_lost(scene: Scene) -> Iterator[Line]:
    """One rail of a rack goes with its switch; ranks die of completion errors."""
    ports = [scene.gpu]
    yield from _switch_down(scene, ports, 240 + scene.rng.random() * 900)
    yield from _ranks_complain(scene, [scene.node, *scene.neighbours][:8], ports[0])
    yield from clean_up(scene)


def switch_lost_hang(scene: Scene) -> Iterator[Line]:
    """The same, but NCCL retries until the watchdogs bite."""
    ports = sorted(scene.rng.sample(range(len(scene.fleet.nics)), scene.rng.choice((1, 1, 2, len(scene.fleet.nics)))))
    yield from _switch_down(scene, ports, scene.rng.choice((0.0, 600 + scene.rng.random() * 1500)))
    for node in [scene.node, *scene.neighbours][:10]:
        yield from async_event(scene, node, ports[0], scene.fault_at + 0.2 + scene.rng.random())


def flapping(scene: Scene) -> Iterator[Line]:
    """One port goes down and up for minutes; its module complains now and then."""
    rng, at = scene.rng, scene.fault_at
    _, address, _ = adapter(scene, scene.gpu)
    while at < scene.ended_at and at < scene.fault_at + 1200:
        yield from kernel(scene.node, at, link(scene, scene.gpu, "down"))
        if rng.random() < 0.5:
            error = (
                f"mlx5_core {address}: Port module event[error]: module 0, Cable error, {rng.choice(MODULE_ERRORS[:3])}"
            )
            yield from kernel(scene.node, at + 0.3, error)
        at += 2 + rng.random() * 9
        yield from kernel(scene.node, at, link(scene, scene.gpu, "up"))
        at += 3 + rng.random() * 40


def flapping_dies(scene: Scene) -> Iterator[Line]:
    """Flapping, and ranks die of it."""
    yield from flapping(scene)
    if scene.rng.random() < 0.5:
        text = "check_ib_link_flapping: IB link flapping detected, multiple IB link flapping events within 6 hours. FaultCode: NHC2005"
        yield health(scene.node, scene.ended_at + 60 + scene.rng.random() * 240, text)
    yield from _ranks_complain(scene, [scene.node], scene.gpu)
    yield from clean_up(scene)


def cable_error(scene: Scene) -> Iterator[Line]:
    """The module reports a bad cable and the port stays down; the check says so minutes later."""
    _, address, _ = adapter(scene, scene.gpu)
    error = scene.rng.choice(MODULE_ERRORS)
    lines = [
        f"mlx5_core {address}: Port module event[error]: module 0, Cable error, {error}",
        link(scene, scene.gpu, "down"),
    ]
    if scene.rng.random() < 0.3:
        lines = [f"mlx5_core {address}: Port module event: module 0, Cable unplugged", link(scene, scene.gpu, "down")]
    yield from kernel(scene.node, scene.fault_at, *lines, step=0.002)
    yield from _ranks_complain(scene, [scene.node], scene.gpu)
    yield no_port(scene, scene.node, scene.gpu, scene.ended_at + 60 + scene.rng.random() * 500)
    yield from clean_up(scene)


def ports_inactive(scene: Scene) -> Iterator[Line]:
    """No kernel line is left; the checks of a few nodes of the rack find the same port down."""
    for node in (scene.node, *scene.neighbours[:4]):
        yield no_port(scene, node, scene.gpu, scene.ended_at + 30 + scene.rng.random() * 400)
    yield from _ranks_complain(scene, [scene.node], scene.gpu)


def congested(scene: Scene) -> Iterator[Line]:
    """A switch drops packets and no host sees a port change: completion errors from everywhere, then nothing."""
    for node in (*scene.neighbours[:2], *scene.bystanders):
        yield from completion_error(
            scene, node, scene.rng.randrange(len(scene.fleet.nics)), between(scene, scene.stalled_at, scene.ended_at)
        )
    told = "RuntimeError: NCCL communicator was aborted on this rank."
    yield from said(scene, scene.node, scene.gpu, scene.ended_at - 1, [told])


SIGNATURES = (
    Signature("switch_lost", CAUSE, 24, "exit", switch_lost, gap=(0.0, 12.0)),
    Signature("switch_lost_hang", CAUSE, 26, "watchdog", switch_lost_hang, gap=(0.0, 12.0)),
    Signature("flapping", CAUSE, 12, "watchdog", flapping, "ib port flapping", (60.0, 900.0)),
    Signature("flapping_dies", CAUSE, 10, "exit", flapping_dies, "node health check failed"),
    Signature(
        "cable_error",
        CAUSE,
        16,
        "exit",
        cable_error,
        "NHC: check_hw_ib:  No IB port is ACTIVE (LinkUp 400 Gb/sec).",
        (60.0, 600.0),
    ),
    Signature(
        "ports_inactive",
        CAUSE,
        6,
        "exit",
        ports_inactive,
        "NHC: check_hw_ib:  No IB port is ACTIVE (LinkUp 400 Gb/sec).",
        (60.0, 600.0),
    ),
    Signature("congested", CAUSE, 8, "watchdog", congested, is_identifiable=False, accepted=("nccl_watchdog",)),
)
