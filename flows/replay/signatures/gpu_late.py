"""GPUs whose fault shows late or outside the driver: silent data corruption and overheating."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures.dcgm import diagnosed
from flows.replay.signatures.effects import aftermath, clean_up
from flows.replay.signatures.lines import between, rank, said, sel

SDC = "silent_data_corruption"
THERMAL = "gpu_thermal"


def _fails_later(scene: Scene, first: float, last: float) -> Line:
    rng = scene.rng
    at = scene.ended_at + first + rng.random() * (last - first)
    if rng.random() < 0.4:
        return diagnosed(scene, at, "memory", "mismatch")
    if rng.random() < 0.5:
        return diagnosed(scene, at, "diagnostic", "l1")
    return diagnosed(scene, at, "memtest", "memory", rng.randint(1, 12))


def _nan(scene: Scene, at: float) -> Iterator[Line]:
    """Megatron's check of the local loss: it names rank, device and node."""
    number = rank(scene, scene.node, scene.gpu)
    texts = [
        "Traceback (most recent call last):",
        '  File "/opt/megatron/pretrain_gpt.py", line 142, in loss_func',
        "    assert not loss[0].isnan(), (",
        f"AssertionError: Rank {number}: found NaN in local forward loss calculation. Device: {scene.gpu}, node: {scene.node}",
    ]
    yield from said(scene, scene.node, scene.gpu, at, texts)


def nan_local(scene: Scene) -> Iterator[Line]:
    """A rank's own loss is NaN; its GPU fails the diagnostic hours later."""
    yield from _nan(scene, scene.stalled_at + scene.rng.random() * 3)
    yield from aftermath(scene, most=4)
    yield _fails_later(scene, 900, 6 * 3600)


def nan_gradients(scene: Scene) -> Iterator[Line]:
    """The gradient norm is NaN everywhere at once; which GPU it was comes out a day or two later."""
    yield from _gradients(
        scene, "RuntimeError: grad norm is nan at iteration, aborting to keep the optimizer state clean"
    )
    yield _fails_later(scene, 3 * 3600, 46 * 3600)


def loss_spike(scene: Scene) -> Iterator[Line]:
    """The loss leaps, the guard of the training script gives up; a diagnostic finds the GPU."""
    value = scene.rng.uniform(6, 11)
    yield from _gradients(
        scene, f"RuntimeError: lm loss {value:.4f} is above 3 x its running mean for 4 iterations, aborting"
    )
    yield _fails_later(scene, 1800, 30 * 3600)


def loss_spike_unsolved(scene: Scene) -> Iterator[Line]:
    """The loss leaps, and nobody finds out why."""
    yield from _gradients(scene, "RuntimeError: loss spike guard: 4 iterations above threshold, aborting")


def _gradients(scene: Scene, last: str) -> Iterator[Line]:
    texts = [
        "Traceback (most recent call last):",
        '  File "/opt/train/guards.py", line 57, in check_step',
        f"    raise {last.split(':')[0]}(message)",
        last,
    ]
    for node in (scene.node, *scene.bystanders[:2]):
        yield from said(scene, node, 0, scene.stalled_at + scene.rng.random(), texts)
    yield from clean_up(scene, share=0.3)


LIMITS = {"Non-critical": 85, "Critical": 89, "Non-recoverable": 93}
"""Upper limits of the GPUs' temperature sensors, degrees C."""


def _hot(scene: Scene, at: float, level: str = "Critical") -> Iterator[Line]:
    limit = LIMITS[level]
    reading = f"Reading {limit + scene.rng.randint(1, 3)} > Threshold {limit} degrees C"
    yield sel(scene.node, at, f"Temperature GPU{scene.gpu}", f"Upper {level} going high", f"Asserted | {reading}")


def _throttled(scene: Scene, at: float) -> Line:
    """What check_gpu_clock_throttling logs: NVML's reasons HW_SLOWDOWN and HW_THERMAL_SLOWDOWN."""
    return Line(at, scene.node, "health", f"Warning: GPU {scene.gpu} throttled, reason=0x0000000000000048")


def overheats(scene: Scene) -> Iterator[Line]:
    """The BMC sees one GPU above critical, the check sees its clocks cut in hardware; the rank falls behind."""
    yield from _hot(scene, scene.fault_at)
    at = between(scene, scene.fault_at + 60, scene.ended_at + 240)
    yield _throttled(scene, at)
    yield from clean_up(scene)


def shuts_down(scene: Scene) -> Iterator[Line]:
    """The GPU reaches its shutdown temperature: non-critical, critical, non-recoverable within minutes."""
    for minutes, level in enumerate(LIMITS):
        yield from _hot(scene, scene.fault_at - 240 + 110 * minutes, level)
    yield from aftermath(scene)


def sensor_lost(scene: Scene) -> Iterator[Line]:
    """The sensor itself fails: unreadable, so the BMC throttles the board."""
    yield sel(scene.node, scene.fault_at, f"Management Subsys Health GPU{scene.gpu} Temp", "Sensor failure")
    at = scene.ended_at + 100 + scene.rng.random() * 300
    yield _throttled(scene, at)
    yield from clean_up(scene)


def hot_in_diagnostic(scene: Scene) -> Iterator[Line]:
    """A straggler is cancelled; the diagnostic counts thermal violations on its GPU."""
    yield from clean_up(scene)
    at = scene.ended_at + 1500 + scene.rng.random() * 6000
    yield diagnosed(scene, at, "targeted_power", "thermal", scene.rng.uniform(12, 140))


SIGNATURES = (
    Signature("nan_local", SDC, 34, "exit", nan_local, "suspected SDC", (300.0, 1500.0), gap=(1.0, 60.0)),
    Signature("nan_gradients", SDC, 28, "exit", nan_gradients, gap=(1.0, 120.0), sets_aside=4),
    Signature("loss_spike", SDC, 26, "exit", loss_spike, gap=(60.0, 900.0), sets_aside=4),
    Signature(
        "loss_spike_unsolved",
        SDC,
        12,
        "exit",
        loss_spike_unsolved,
        "",
        gap=(60.0, 900.0),
        is_identifiable=False,
        accepted=("software_bug",),
    ),
    Signature("overheats", THERMAL, 34, "cancel", overheats, "GPU thermal slowdown", (60.0, 600.0), gap=(60.0, 300.0)),
    Signature("shuts_down", THERMAL, 30, "exit", shuts_down, "GPU temperature", (60.0, 600.0), gap=(0.0, 10.0)),
    Signature(
        "sensor_lost", THERMAL, 16, "cancel", sensor_lost, "node health check failed", (60.0, 600.0), gap=(60.0, 300.0)
    ),
    Signature(
        "hot_in_diagnostic", THERMAL, 20, "cancel", hot_in_diagnostic, "straggler", (60.0, 900.0), gap=(60.0, 300.0)
    ),
)
