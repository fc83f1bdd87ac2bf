"""Unplanned maintenance of single hosts: a person takes a node out for inspection or repair, or reboots it, with no fault before."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures.effects import clean_up, rebooted
from flows.replay.signatures.lines import kernel, sel

CAUSE = "host_maintenance"
BEFORE, AFTER, SOON = (-240.0, -8.0), (30.0, 800.0), (60.0, 800.0)


def moved(scene: Scene) -> Iterator[Line]:
    """The job is requeued elsewhere; the node says nothing."""
    yield from clean_up(scene, share=0.6)


def opened(scene: Scene) -> Iterator[Line]:
    """The job is requeued; soon after somebody opens the chassis and turns the node off."""
    yield from clean_up(scene, share=0.6)
    at = scene.ended_at + 900 + scene.rng.random() * 5000
    yield sel(scene.node, at, "Button Power Button", "Power Button pressed")
    yield sel(scene.node, at + 240, "Physical Security Chassis Intru", "General Chassis intrusion")
    yield sel(scene.node, at + 2900, "Physical Security Chassis Intru", "General Chassis intrusion", "Deasserted")


def restarted(scene: Scene) -> Iterator[Line]:
    """Somebody reboots the node under the job."""
    yield from kernel(scene.node, scene.stalled_at + 2 + scene.rng.random() * 4, "reboot: Restarting system")
    _, lines = rebooted(scene, (150.0, 420.0))
    yield from lines


def switched_off(scene: Scene) -> Iterator[Line]:
    """Somebody turns the node off by its button to reseat a part."""
    at = scene.stalled_at + scene.rng.random() * 4
    yield sel(scene.node, at, "Button Power Button", "Power Button pressed")
    yield from kernel(scene.node, at + 8, "reboot: Power down")
    yield sel(scene.node, at + 300, "Physical Security Chassis Intru", "General Chassis intrusion")


SIGNATURES = (
    Signature("inspect", CAUSE, 12, "requeue", moved, "manual inspection", BEFORE, gap=(0.0, 1.0)),
    Signature("reseat", CAUSE, 14, "requeue", opened, "reseat riser", BEFORE, gap=(0.0, 1.0)),
    Signature("repair_ticket", CAUSE, 12, "requeue", opened, "HW-20817 repair", AFTER, gap=(0.0, 1.0)),
    Signature("vendor_visit", CAUSE, 8, "requeue", opened, "vendor on site, replace part", BEFORE, gap=(0.0, 1.0)),
    Signature("checks", CAUSE, 10, "requeue", moved, "take out for checks", BEFORE, gap=(0.0, 1.0)),
    Signature("recable", CAUSE, 6, "requeue", moved, "inspect cabling", AFTER, gap=(0.0, 1.0)),
    Signature("restarted", CAUSE, 22, "node_fail", restarted, "rebooted by ops for inspection", SOON, gap=(0.0, 1.0)),
    Signature("switched_off", CAUSE, 16, "node_fail", switched_off, "powered off for reseat", SOON, gap=(0.0, 1.0)),
)
