"""GPU HBM: uncorrectable errors (48, 171), row remapping (63, 64), containment (94, 95), residual errors (140), and what is left without."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures import nvidia
from flows.replay.signatures.dcgm import diagnosed
from flows.replay.signatures.effects import aftermath, clean_up, cuda_error, lost_peers, vanished
from flows.replay.signatures.lines import health, kernel

CAUSE = "gpu_hbm"
ECC = "uncorrectable ECC error encountered"
REMAP_FAILURES = (
    "Row Remapping table is full",
    "All reserved rows for bank are remapped",
    "Attempting to remap a reserved row",
)


def _double_bit(scene: Scene) -> tuple[str, int]:
    """Xid 48 of the frame buffer and the address it names."""
    rng, at = scene.rng, nvidia.physical_address(scene.rng)
    place = f"physAddr 0x{at:x} partition {rng.randrange(12)}, subpartition {rng.randrange(4)}."
    text = f"An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at {place}"
    return nvidia.xid(nvidia.pci(scene), 48, text), at


def _annotated(scene: Scene, at: int) -> str:
    where = f"FBPA {scene.rng.randrange(24)} subpartition {scene.rng.randrange(4)} physAddr 0x{at:x}"
    return nvidia.xid(nvidia.pci(scene), 171, f"HBM, Uncorrectable DRAM error in {where}")


def _remap(scene: Scene, at: int) -> str:
    return nvidia.xid(
        nvidia.pci(scene), 63, f"Row Remapper: New row (0x{at:016x}) marked for remapping, reset gpu to activate."
    )


def _remap_failure(scene: Scene, at: int) -> str:
    return nvidia.xid(nvidia.pci(scene), 64, f"Row Remapper Error: (0x{at:016x}) - {scene.rng.choice(REMAP_FAILURES)}")


def _contained(scene: Scene) -> list[str]:
    """Xid 94: the copy engine or an SM read the poison; then every channel of the process."""
    address, rng = nvidia.pci(scene), scene.rng
    reader = (
        "Contained: CE User Channel (0x9). RST: No, D-RST: No"
        if rng.random() < 0.6
        else "Contained: SM (0x1). RST: No, D-RST: No"
    )
    who, first = nvidia.process(scene), 8
    return [
        nvidia.xid(address, 94, reader),
        *(nvidia.xid(address, 94, f"Ch {first + n:08x}", who) for n in range(rng.randint(1, 8))),
    ]


def _uncontained(scene: Scene, at: int) -> str:
    rng = scene.rng
    detail = f"Uncontained: FB DED (0x{rng.randrange(12):x},0x{rng.randrange(4):x}). physAddr: 0x{at:08x} RST: Yes, D-RST: No"
    return nvidia.xid(nvidia.pci(scene), 95, detail)


def _checked(scene: Scene, what: str) -> Line:
    """AzNHC's check_gpu_ecc, at the node's next turn."""
    at = scene.ended_at + 40 + scene.rng.random() * 300
    return health(scene.node, at, f"check_gpu_ecc: GPU id {scene.gpu}: {what}. FaultCode: NHC2007")


def _torn_down(scene: Scene) -> list[str]:
    return [
        nvidia.xid(nvidia.pci(scene), 45, f"Ch {8 + n:08x}", nvidia.process(scene))
        for n in range(scene.rng.randint(1, 8))
    ]


def _dies(scene: Scene, lines: list[str]) -> Iterator[Line]:
    yield from kernel(scene.node, scene.fault_at, *lines, step=0.009)
    if scene.rng.random() < 0.75:
        yield from cuda_error(scene, ECC)
    yield from aftermath(scene)


def remapped(scene: Scene) -> Iterator[Line]:
    """48, 63 and 94: found, remapped, contained to the rank that read it."""
    line, at = _double_bit(scene)
    extra = [_annotated(scene, at)] if scene.rng.random() < 0.35 else []
    yield from _dies(scene, [line, *extra, _remap(scene, at), *_contained(scene)])


def contained(scene: Scene) -> Iterator[Line]:
    """63 and 94 without 48."""
    at = nvidia.physical_address(scene.rng)
    yield from _dies(scene, [_remap(scene, at), *_contained(scene)])


def uncontained(scene: Scene) -> Iterator[Line]:
    """95: every channel of the GPU goes."""
    line, at = _double_bit(scene)
    first = [line] if scene.rng.random() < 0.6 else []
    yield from _dies(scene, [*first, _uncontained(scene, at), _remap(scene, at), *_torn_down(scene)])


def remap_failed(scene: Scene) -> Iterator[Line]:
    """48 and 64: no spare row is left."""
    line, at = _double_bit(scene)
    yield from _dies(scene, [line, _remap_failure(scene, at), *_torn_down(scene)])
    if scene.rng.random() < 0.4:
        yield diagnosed(scene, scene.ended_at + 2400 + scene.rng.random() * 7200, "software", "row_remap_failure")


def residual(scene: Scene) -> Iterator[Line]:
    """140: errors that the firmware did not handle."""
    counts = f"DRAM:{scene.rng.randint(1, 9)}, LTC:0, MMU:0, PCIE:0"
    text = f"An uncorrectable ECC error detected (possible firmware handling failure) {counts}"
    yield from _dies(scene, [nvidia.xid(nvidia.pci(scene), 140, text), *_torn_down(scene)])


def double_bit_only(scene: Scene) -> Iterator[Line]:
    """A lone 48 that names no unit; the reason of the drain does."""
    lines = [nvidia.xid(nvidia.pci(scene), 48, "DBE (double bit error) ECC Error"), *_torn_down(scene)]
    yield from _dies(scene, lines)
    if scene.rng.random() < 0.4:
        yield _checked(scene, "Row remap pending")


def remap_hang(scene: Scene) -> Iterator[Line]:
    """48 and 63, and the ranks hang on the missing contribution."""
    line, at = _double_bit(scene)
    yield from kernel(scene.node, scene.fault_at, line, _annotated(scene, at), _remap(scene, at), step=0.009)
    yield from clean_up(scene)


def then_silent(scene: Scene) -> Iterator[Line]:
    """48 and 95, then the node itself stops answering."""
    line, at = _double_bit(scene)
    yield from kernel(scene.node, scene.fault_at, line, _uncontained(scene, at), _remap(scene, at), step=0.009)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)


def drained(scene: Scene) -> Iterator[Line]:
    """The kernel log of the node is lost with it; only the drain's reason speaks."""
    yield from vanished(scene)


def diagnosed_later(scene: Scene) -> Iterator[Line]:
    """The rank dies of an ECC error that no kernel line tells; the diagnostic finds faulty memory."""
    yield from cuda_error(scene, ECC)
    yield from aftermath(scene)
    at = scene.ended_at + 1200 + scene.rng.random() * 9000
    if scene.rng.random() < 0.3:
        yield _checked(scene, "Row remap error")
    elif scene.rng.random() < 0.5:
        yield diagnosed(scene, at, "memory", "memory", scene.rng.randint(1, 40))
    else:
        yield diagnosed(scene, at, "software", "row_remap_pending")


SIGNATURES = (
    Signature(
        "remapped", CAUSE, 28, "exit", remapped, "ECC: uncorrectable, row remap pending", (60.0, 600.0), gap=(0.0, 6.0)
    ),
    Signature("contained", CAUSE, 12, "exit", contained, "node health check failed", gap=(0.0, 6.0)),
    Signature("uncontained", CAUSE, 12, "exit", uncontained, "GPU needs reset", (60.0, 600.0), gap=(0.0, 6.0)),
    Signature("remap_failed", CAUSE, 11, "exit", remap_failed, "row remap failure", gap=(0.0, 6.0)),
    Signature("residual", CAUSE, 5, "exit", residual, "ECC errors", gap=(0.0, 6.0)),
    Signature("double_bit_only", CAUSE, 6, "exit", double_bit_only, "DBE, row remap pending", gap=(0.0, 6.0)),
    Signature("remap_hang", CAUSE, 6, "cancel", remap_hang, "row remap pending", (30.0, 400.0)),
    Signature("then_silent", CAUSE, 16, "node_fail", then_silent, "uncorrectable ECC", (600.0, 1800.0)),
    Signature("drained", CAUSE, 4, "node_fail", drained, "GPU ECC uncorrectable after boot", (700.0, 1800.0)),
    Signature("diagnosed_later", CAUSE, 3, "exit", diagnosed_later, gap=(0.0, 6.0), sets_aside=1),
)
