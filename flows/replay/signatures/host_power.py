"""Power supplies and chassis: what the BMC says, and nodes that go dark."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures.effects import rebooted, vanished
from flows.replay.signatures.lines import kernel, sel

POWER = "power_supply"
CHASSIS = "server_chassis"


def _supply_fails(scene: Scene, at: float) -> Iterator[Line]:
    number = scene.rng.randint(1, 6)
    yield sel(
        scene.node,
        at,
        f"Power Supply PSU{number} Status",
        scene.rng.choice(("Failure detected", "Power Supply AC lost")),
    )
    yield sel(scene.node, at + 1, "Power Unit PSU Redundancy", "Redundancy Lost")


def supply_dark(scene: Scene) -> Iterator[Line]:
    """A supply fails for good, the rest cannot carry the load: the node goes dark and boots again."""
    yield from _supply_fails(scene, scene.fault_at)
    yield sel(scene.node, scene.fault_at + 2, "Power Unit Pwr Unit Status", "Power off/down")
    yield from vanished(scene)
    at, lines = rebooted(scene)
    yield sel(scene.node, at - 150, "System Boot Initiated", "Initiated by power up")
    yield from lines


def supplies_fail(scene: Scene) -> Iterator[Line]:
    """Two supplies fail within minutes; the node never comes back by itself."""
    yield from _supply_fails(scene, scene.fault_at - 200 - scene.rng.random() * 200)
    yield sel(scene.node, scene.fault_at, "Power Supply PSU5 Status", "Failure detected")
    yield sel(scene.node, scene.fault_at + 1, "Power Unit PSU Redundancy", "Non-Redundant: Insufficient Resources")
    yield from vanished(scene)


def unit_lost(scene: Scene) -> Iterator[Line]:
    """One record: the power unit lost its input."""
    yield sel(
        scene.node,
        scene.fault_at,
        "Power Unit Pwr Unit Status",
        scene.rng.choice(("AC lost", "240VA power down", "Failure detected")),
    )
    yield from vanished(scene)


def _fan(scene: Scene, at: float, number: int) -> Iterator[Line]:
    event = ("Lower Critical going low ", "Lower Non-recoverable going low ")
    yield sel(scene.node, at, f"Fan FAN{number}", event[0], "Asserted | Reading 980 < Threshold 1260 RPM")
    yield sel(scene.node, at + 20, f"Fan FAN{number}", event[1], "Asserted | Reading 0 < Threshold 700 RPM")


def fans_fail(scene: Scene) -> Iterator[Line]:
    """Fans stop, cooling redundancy is lost, the CPUs throttle, the BMC turns the node off."""
    rng = scene.rng
    for number in rng.sample(range(1, 13), 2):
        yield from _fan(scene, scene.fault_at - 60 * rng.random(), number)
    yield sel(scene.node, scene.fault_at + 3, "Fan Fan Redundancy", "Redundancy Lost")
    lines = [
        f"CPU{n}: Package temperature is above threshold, cpu clock is throttled (total events = {rng.randint(1, 90)})"
        for n in (24, 25, 120)
    ]
    yield from kernel(scene.node, scene.fault_at + 15, *lines)
    yield from vanished(scene)


def redundancy_lost(scene: Scene) -> Iterator[Line]:
    """Cooling redundancy goes: one record, and a job that automation moves away."""
    yield from _fan(scene, scene.fault_at, scene.rng.randint(1, 12))
    yield sel(scene.node, scene.fault_at + 5, "Fan Fan Redundancy", "Non-Redundant: Insufficient Resources")


def backplane(scene: Scene) -> Iterator[Line]:
    """The backplane reports a fault and the node hangs."""
    yield sel(scene.node, scene.fault_at, "Slot / Connector Backplane 1", "Fault Status")
    yield sel(scene.node, scene.fault_at + 2, "System Event Sys Health", "Undetermined system hardware failure")
    yield from vanished(scene)


SIGNATURES = (
    Signature("supply_dark", POWER, 40, "node_fail", supply_dark, "psu", (1600.0, 4000.0), gap=(0.0, 3.0)),
    Signature(
        "supplies_fail", POWER, 35, "node_fail", supplies_fail, "power supply failure", (600.0, 3000.0), gap=(0.0, 3.0)
    ),
    Signature(
        "unit_lost", POWER, 25, "node_fail", unit_lost, "hw check after node failure", (600.0, 3000.0), gap=(0.0, 3.0)
    ),
    Signature("fans_fail", CHASSIS, 45, "node_fail", fans_fail, "cooling", (600.0, 3000.0), gap=(5.0, 60.0)),
    Signature(
        "redundancy_lost", CHASSIS, 30, "cancel", redundancy_lost, "fan failure", (10.0, 300.0), gap=(60.0, 240.0)
    ),
    Signature(
        "backplane", CHASSIS, 25, "node_fail", backplane, "hw check after node failure", (600.0, 3000.0), gap=(0.0, 3.0)
    ),
)
