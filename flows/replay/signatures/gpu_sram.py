"""GPU SRAM: uncorrectable errors that name an SM, L2 slice or cache, never a row of HBM."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures import nvidia
from flows.replay.signatures.dcgm import diagnosed
from flows.replay.signatures.effects import aftermath, cuda_error, lost_peers
from flows.replay.signatures.lines import health, kernel

CAUSE = "gpu_sram"
UNITS = ("SM ICACHE", "SM ICACHE", "SM L1 DATA", "SM RF")


def _where(scene: Scene) -> str:
    return f"GPC {scene.rng.randrange(8)} TPC {scene.rng.randrange(9)}"


def _channels(scene: Scene, code: int) -> list[str]:
    return [
        nvidia.xid(nvidia.pci(scene), code, f"Ch {8 + n:08x}", nvidia.process(scene))
        for n in range(scene.rng.randint(1, 5))
    ]


def _dies(scene: Scene, lines: list[str]) -> Iterator[Line]:
    yield from kernel(scene.node, scene.fault_at, *lines, step=0.007)
    if scene.rng.random() < 0.7:
        yield from cuda_error(scene, "uncorrectable ECC error encountered")
    yield from aftermath(scene)


def annotated(scene: Scene) -> Iterator[Line]:
    """172 names the unit, 48 the channels."""
    unit = scene.rng.choice(UNITS)
    line = nvidia.xid(nvidia.pci(scene), 172, f"{unit}, Uncorrectable SRAM error in {_where(scene)}")
    yield from _dies(scene, [line, *_channels(scene, 48)])


def double_bit(scene: Scene) -> Iterator[Line]:
    """48 in the words of drivers that know no 172."""
    place = "the SM L1 cache" if scene.rng.random() < 0.6 else "the L2 cache"
    text = f"An uncorrectable double bit error (DBE) has been detected on GPU in {place}."
    yield from _dies(scene, [nvidia.xid(nvidia.pci(scene), 48, text), *_channels(scene, 45)])


def contained(scene: Scene) -> Iterator[Line]:
    """94 from an SM, and no row is remapped."""
    line = nvidia.xid(nvidia.pci(scene), 94, "Contained: SM (0x1). RST: No, D-RST: No")
    yield from _dies(scene, [line, *_channels(scene, 94)])


def uncontained(scene: Scene) -> Iterator[Line]:
    """95 from the L2 cache's tag or data store."""
    rng = scene.rng
    part = rng.choice(("LTC TAG", "LTC Data", "LTC CBC"))
    place = f"(0x{rng.randrange(12):x},0x{rng.randrange(4):x})"
    line = nvidia.xid(nvidia.pci(scene), 95, f"Uncontained: {part} {place}. RST: Yes, D-RST: No")
    yield from _dies(scene, [line, *_channels(scene, 45)])


def then_silent(scene: Scene) -> Iterator[Line]:
    """172 and 95, then the node stops answering."""
    address = nvidia.pci(scene)
    lines = [
        nvidia.xid(address, 172, f"{scene.rng.choice(UNITS)}, Uncorrectable SRAM error in {_where(scene)}"),
        nvidia.xid(address, 95, "Uncontained: GCC (0x1). RST: Yes, D-RST: No"),
    ]
    yield from kernel(scene.node, scene.fault_at, *lines, step=0.007)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)


def diagnosed_later(scene: Scene) -> Iterator[Line]:
    """The rank dies of an ECC error; the diagnostic finds the cache that miscompares, or the counter of the SMs."""
    yield from cuda_error(scene, "uncorrectable ECC error encountered")
    yield from aftermath(scene)
    at = scene.ended_at + 1500 + scene.rng.random() * 8000
    if scene.rng.random() < 0.4:
        counts = f"({scene.rng.randint(1, 3)},{scene.rng.randint(3, 9)})"
        text = f"check_gpu_ecc: GPU id {scene.gpu}: SRAM Uncorrectable ECC error count detected, {counts}. FaultCode: NHC2019"
        yield health(scene.node, scene.ended_at + 40 + scene.rng.random() * 300, text)
    elif scene.rng.random() < 0.5:
        yield diagnosed(scene, at, "diagnostic", "l1")
    else:
        yield diagnosed(scene, at, "targeted_stress", "dbe", scene.rng.randint(1, 6))


SIGNATURES = (
    Signature("annotated", CAUSE, 28, "exit", annotated, "node health check failed", gap=(0.0, 6.0)),
    Signature("double_bit", CAUSE, 20, "exit", double_bit, "ECC errors", gap=(0.0, 6.0)),
    Signature("contained", CAUSE, 14, "exit", contained, "SRAM threshold exceeded", gap=(0.0, 6.0)),
    Signature("uncontained", CAUSE, 14, "exit", uncontained, "GPU needs reset", gap=(0.0, 6.0)),
    Signature("then_silent", CAUSE, 16, "node_fail", then_silent, "SRAM uncorrectable", (600.0, 1500.0)),
    Signature("diagnosed_later", CAUSE, 8, "exit", diagnosed_later, gap=(0.0, 6.0), sets_aside=1),
)
