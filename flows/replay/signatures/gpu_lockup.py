"""Faulty GPUs that say nothing: the node locks up or a rank hangs, and only a later look, if any, tells why."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures.dcgm import diagnosed
from flows.replay.signatures.effects import clean_up, vanished
from flows.replay.signatures.lines import health

CAUSE = "gpu_faulty"
CHECKS = (
    "check_gpu_count: Expected to see 8 but found 7. FaultCode: NHC2009",
    "check_nvsmi_healthmon:  nvidia-smi:  The GPU has fallen off the bus or has otherwise become inaccessible. FaultCode: NHC2010",
    "check_nvsmi_healthmon:  nvidia-smi:  Caught fatal signal 9. FaultCode: NHC2015",
    "check_nvsmi_healthmon:  nvidia-smi:  Interrupt issue with a GPU. FaultCode: NHC2001",
)
"""What AzNHC's checks say of a GPU that is gone or hangs its callers."""


def lockup_checked(scene: Scene) -> Iterator[Line]:
    """Lock-up; the health check after the boot counts one GPU too few, or nvidia-smi hangs on it."""
    yield from vanished(scene)
    at = scene.ended_at + 60 + scene.rng.random() * 500
    yield health(scene.node, at, scene.rng.choice(CHECKS))


def lockup_silent(scene: Scene) -> Iterator[Line]:
    """Lock-up; whoever looks later finds nothing wrong any more, or writes nothing down."""
    yield from vanished(scene)


def hang_diagnosed(scene: Scene) -> Iterator[Line]:
    """A rank hangs without an error; an hour later the diagnostic fails on its GPU."""
    rng = scene.rng
    yield from clean_up(scene)
    test, warning, values = rng.choice(
        (
            ("targeted_stress", "stress", (rng.uniform(9000, 14000), 15099.0)),
            ("diagnostic", "context", ()),
            ("software", "context", ()),
            ("targeted_power", "context", ()),
        )
    )
    yield diagnosed(scene, scene.ended_at + 1800 + rng.random() * 5400, test, warning, *values)


SIGNATURES = (
    Signature(
        "lockup_checked",
        CAUSE,
        7,
        "node_fail",
        lockup_checked,
        "NHC: check_nvsmi_healthmon:  nvidia-smi",
        (600.0, 1500.0),
    ),
    Signature("lockup_drained", CAUSE, 5, "node_fail", lockup_silent, "GPU missing, RMA", (600.0, 5400.0)),
    Signature(
        "lockup_silent", CAUSE, 8, "node_fail", lockup_silent, is_identifiable=False, accepted=("node_unresponsive",)
    ),
    Signature("hang_diagnosed", CAUSE, 3, "cancel", hang_diagnosed, "suspected bad GPU", (300.0, 1500.0)),
    Signature("hang_diagnosed_late", CAUSE, 2, "watchdog", hang_diagnosed, sets_aside=2),
)
