"""Software bugs: uncaught exceptions of every rank, CUDA errors without a machine's word, and the accidents that happen to stand beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures import nvidia, pci
from flows.replay.signatures.effects import CUDA_HINTS, channels_torn_down, clean_up, lost_peers
from flows.replay.signatures.lines import between, kernel, said
from flows.replay.signatures.network import adapter, link
from flows.replay.signatures.tracebacks import trace

CAUSE = "software_bug"
Emit = Callable[[Scene], Iterator[Line]]

CUDA_BUGS = (
    "an illegal memory access was encountered",
    "device-side assert triggered",
    "misaligned address",
    "invalid configuration argument",
)


def _everywhere(scene: Scene, texts: list[str]) -> Iterator[Line]:
    """The same exception on many ranks within seconds: the code does not care where it runs."""
    rng = scene.rng
    crowd = [scene.node, *scene.neighbours[:4], *scene.bystanders]
    for node in crowd[: rng.randint(3, len(crowd))] if len(crowd) > 3 else crowd:
        for gpu in rng.sample(range(scene.fleet.gpus), rng.randint(1, 3)):
            yield from said(
                scene, node, gpu, between(scene, scene.stalled_at, min(scene.stalled_at + 4, scene.ended_at)), texts
            )


def _raises(kind: str) -> Emit:
    def emit(scene: Scene) -> Iterator[Line]:
        yield from _everywhere(scene, trace(scene.rng, kind))
        yield from clean_up(scene, share=0.5)

    return emit


def one_rank(scene: Scene) -> Iterator[Line]:
    """One rank meets the bad sample; all others see it leave."""
    yield from said(scene, scene.node, scene.gpu, scene.stalled_at + scene.rng.random(), trace(scene.rng, "data"))
    yield from lost_peers(scene, scene.stalled_at + 1, scene.ended_at)
    yield from clean_up(scene, share=0.5)


def cuda_only(scene: Scene) -> Iterator[Line]:
    """A kernel of our own writes out of bounds: CUDA says so on many ranks, no driver does."""
    texts = [
        *trace(scene.rng, "shape")[:-1],
        f"RuntimeError: CUDA error: {scene.rng.choice(CUDA_BUGS[1:])}",
        *CUDA_HINTS,
    ]
    yield from _everywhere(scene, texts)
    yield from clean_up(scene, share=0.4)


def faults_with_the_code(scene: Scene) -> Iterator[Line]:
    """The same bug seen by the driver: Xid 31 or 13 on many nodes at once, 43 behind it."""
    rng = scene.rng
    texts = [*trace(scene.rng, "shape")[:-1], f"RuntimeError: CUDA error: {CUDA_BUGS[0]}", *CUDA_HINTS]
    yield from _everywhere(scene, texts)
    as_page_fault = rng.random() < 0.6
    for node in (scene.node, *scene.neighbours[:5], *scene.bystanders):
        gpu, pid, at = (
            rng.randrange(scene.fleet.gpus),
            rng.randrange(20_000, 4_000_000),
            scene.stalled_at + rng.random() * 2,
        )
        who, address = f"pid={pid + gpu}, name={nvidia.TRAINER}", nvidia.pci(scene, gpu)
        lines = [nvidia.xid(address, 31, page_fault(scene), who)] if as_page_fault else out_of_range(scene, address)
        yield from kernel(node, at, *lines, step=0.0001)
        yield from channels_torn_down(scene, node, [gpu], at + 0.01, pid, 43)


def page_fault(scene: Scene) -> str:
    """Detail of an Xid 31."""
    rng = scene.rng
    where = (
        f"GPCCLIENT_T1_{rng.randrange(36)} faulted @ 0x7f{rng.randrange(256):02x}_{rng.randrange(1 << 20) << 12:08x}"
    )
    return f"{nvidia.channel(rng)}, intr 00000000. MMU Fault: ENGINE GRAPHICS {where}. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"


def out_of_range(scene: Scene, address: str) -> list[str]:
    """A burst of Xid 13: SM by SM, as gpud's sample has it."""
    rng, lines = scene.rng, []
    for _ in range(rng.randint(2, 12)):
        place = f"(GPC {rng.randrange(8)}, TPC {rng.randrange(9)}, SM {rng.randrange(2)})"
        base = 0x500000 + rng.randrange(0x8000) * 16
        registers = f"ESR 0x{base + 0x730:x}=0x{rng.randrange(1 << 25):x} 0x{base + 0x734:x}=0x24 0x{base + 0x728:x}=0xf81eb60 0x{base + 0x72C:x}=0x1174"
        lines.append(nvidia.xid(address, 13, f"Graphics SM Warp Exception on {place}: Out Of Range Address"))
        lines.append(nvidia.xid(address, 13, f"Graphics Exception: {registers}"))
    return lines


def segfault(scene: Scene) -> Iterator[Line]:
    """A library of our own crashes on several nodes: the kernel notes the address, the ranks only die."""
    rng = scene.rng
    base, offset = rng.randrange(1 << 35, 1 << 36) << 12, rng.randrange(1 << 20)
    for node in (scene.node, *scene.bystanders[:3]):
        pid = rng.randrange(20_000, 4_000_000)
        where = f"{nvidia.TRAINER}[{pid}]: segfault at 7f{rng.randrange(1 << 40):010x} ip {base + offset:016x} sp {base - 0x2000:016x} error 4 in libtrainops.so[{base:x}+a1000]"
        yield from kernel(node, scene.stalled_at + rng.random(), where)
        yield Line(scene.stalled_at + 1 + rng.random(), node, "training", "Fatal Python error: Segmentation fault")
    yield from clean_up(scene, share=0.4)


def beside_corrected_memory(scene: Scene) -> Iterator[Line]:
    """An exception everywhere, and by chance a corrected memory error on the node that says it first."""
    yield from _everywhere(scene, trace(scene.rng, "types"))
    controller, page = scene.rng.randrange(8), scene.rng.randrange(1 << 27)
    place = f"CPU_SrcID#{controller // 4}_MC#{controller % 4}_Chan#1_DIMM#0 (channel:1 slot:0 page:0x{page:x} offset:0x40 grain:32 syndrome:0x0 -  err_code:0x0101:0x0090)"
    yield from kernel(
        scene.node,
        scene.stalled_at - 30 + scene.rng.random() * 25,
        f"EDAC MC{controller}: 1 CE memory read error on {place}",
    )
    yield from clean_up(scene, share=0.5)


def beside_link_bounce(scene: Scene) -> Iterator[Line]:
    """An exception everywhere, and by chance a port that bounced a minute before."""
    yield from _everywhere(scene, trace(scene.rng, "checkpoint"))
    at = scene.stalled_at - 90 + scene.rng.random() * 60
    yield from kernel(scene.node, at, link(scene, scene.gpu, "down"))
    yield from kernel(scene.node, at + 1.5 + scene.rng.random() * 3, link(scene, scene.gpu, "up"))
    yield from clean_up(scene, share=0.5)


def beside_corrected_link(scene: Scene) -> Iterator[Line]:
    """An exception everywhere, and by chance corrected PCI Express errors of an adapter."""
    yield from _everywhere(scene, trace(scene.rng, "config"))
    _, address, _ = adapter(scene, scene.gpu)
    lines = pci.corrected(pci.port_above(address, below=3), address, pci.ADAPTER, "RxErr", "mlx5_core")
    yield from kernel(scene.node, scene.stalled_at - 20 + scene.rng.random() * 15, *lines)
    yield from clean_up(scene, share=0.5)


def deadlocks(scene: Scene) -> Iterator[Line]:
    """A worker thread dies of an exception and its rank waits for it for ever."""
    texts = ["Exception in thread prefetch-3:", *trace(scene.rng, "data")]
    yield from said(scene, scene.node, scene.gpu, scene.stalled_at - 1 + scene.rng.random(), texts)


def wordless(scene: Scene) -> Iterator[Line]:
    """Every rank leaves with the same code, and nobody says why."""
    yield from clean_up(scene, share=0.3)


SIGNATURES = (
    Signature("shape_error", CAUSE, 9, "exit", _raises("shape"), gap=(0.0, 2.0)),
    Signature("data_error", CAUSE, 9, "exit", _raises("data"), gap=(0.0, 2.0)),
    Signature("assertion", CAUSE, 10, "exit", _raises("assertion"), gap=(0.0, 2.0)),
    Signature("type_error", CAUSE, 8, "exit", _raises("types"), gap=(0.0, 2.0)),
    Signature("checkpoint_error", CAUSE, 7, "exit", _raises("checkpoint"), gap=(0.0, 2.0)),
    Signature("config_error", CAUSE, 6, "exit", _raises("config"), gap=(0.0, 2.0)),
    Signature("one_rank", CAUSE, 9, "exit", one_rank, gap=(0.0, 2.0)),
    Signature("cuda_only", CAUSE, 8, "exit", cuda_only, gap=(0.0, 2.0)),
    Signature("faults_with_the_code", CAUSE, 8, "exit", faults_with_the_code, gap=(0.0, 2.0)),
    Signature("segfault", CAUSE, 4, "exit", segfault, gap=(0.0, 2.0)),
    Signature("beside_corrected_memory", CAUSE, 5, "exit", beside_corrected_memory, gap=(0.0, 2.0)),
    Signature("beside_link_bounce", CAUSE, 5, "exit", beside_link_bounce, gap=(0.0, 2.0)),
    Signature("beside_corrected_link", CAUSE, 4, "exit", beside_corrected_link, gap=(0.0, 2.0)),
    Signature("deadlocks", CAUSE, 5, "watchdog", deadlocks, gap=(0.0, 2.0)),
    Signature("wordless", CAUSE, 3, "exit", wordless, gap=(0.0, 2.0), is_identifiable=False),
)
