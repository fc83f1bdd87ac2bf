"""What follows a fault elsewhere: ranks that lose their peers, channels torn down, nodes that boot again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flows.replay.model import Line, Scene
from flows.replay.signatures import nvidia
from flows.replay.signatures.lines import between, kernel, process_group, said

NCCL = "2.20.5"
REMOTE = (
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    "Last error:",
)
CUDA_HINTS = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
)


def _peer(scene: Scene) -> str:
    rng = scene.rng
    return f"10.{rng.randrange(16, 24)}.{rng.randrange(256)}.{rng.randrange(1, 255)}<{rng.randrange(32768, 60999)}>"


def _last_error(scene: Scene) -> str:
    rng = scene.rng
    if rng.random() < 0.3:
        return f"socketProgress: Connection closed by remote peer {_peer(scene)}"
    error, vendor = rng.choice(((12, 129), (5, 244), (5, 249)))
    return (
        f"NET/IB : Got completion from peer {_peer(scene)} with error {error}, opcode {rng.choice((0, 129))}, "
        f"len {rng.choice((0, 1, 32764))}, vendor err {vendor} ({rng.choice(('Recv', 'Send'))})"
    )


def lost_peers(scene: Scene, first: float, last: float, most: int = 8) -> Iterator[Line]:
    """NCCL errors of other nodes' ranks whose connection to the culprit broke: they know who is gone, not why."""
    rng = scene.rng
    others = [*scene.neighbours[:4], *scene.bystanders]
    for node in rng.sample(others, min(len(others), rng.randint(2, most))):
        gpu, at = rng.randrange(scene.fleet.gpus), between(scene, first, last)
        told = f"NCCL error: remote process exited or there was a network error, NCCL version {NCCL}"
        if rng.random() < 0.5:
            text = f"Process group watchdog thread terminated with exception: {told}"
            yield process_group(scene, node, gpu, at, 1414, text)
        else:
            yield from said(scene, node, gpu, at, [f"torch.distributed.DistBackendError: {told}"])
        yield from said(scene, node, gpu, at + 0.001, [*REMOTE, _last_error(scene)])


def cuda_error(scene: Scene, what: str, at: float | None = None) -> Iterator[Line]:
    """The culprit's own rank, when a CUDA call returns the error."""
    at = scene.stalled_at + scene.rng.random() * 5 if at is None else at
    yield from said(scene, scene.node, scene.gpu, at, [f"RuntimeError: CUDA error: {what}", *CUDA_HINTS])


def channels_torn_down(scene: Scene, node: str, gpus: Iterable[int], at: float, pid: int, code: int) -> Iterator[Line]:
    """Clean-up Xids of dying ranks on one node: 43 where a channel was hung, 45 where it was torn down."""
    rng = scene.rng
    for gpu in gpus:
        who = f"pid={pid + gpu}, name={nvidia.TRAINER}"
        first = rng.randrange(8, 16)
        lines = [nvidia.xid(nvidia.pci(scene, gpu), code, f"Ch {first + n:08x}", who) for n in range(rng.randint(1, 4))]
        yield from kernel(node, at + rng.random() * 0.5, *lines, step=0.009)


def clean_up(scene: Scene, share: float = 0.7, culprit_answers: bool = True) -> Iterator[Line]:
    """Xid 43 and 45 after the end, on the culprit's other GPUs and on some bystanders."""
    rng = scene.rng
    if rng.random() > share:
        return
    if culprit_answers:
        others = [gpu for gpu in range(scene.fleet.gpus) if gpu != scene.gpu]
        gpus = rng.sample(others, rng.randint(1, len(others)))
        yield from channels_torn_down(scene, scene.node, gpus, scene.ended_at + rng.random() * 4, scene.pids[0], 45)
    crowd = [*scene.neighbours, *scene.bystanders]
    for node in rng.sample(crowd, min(len(crowd), rng.randrange(6))):
        gpus = list(range(scene.fleet.gpus)) if rng.random() < 0.3 else [rng.randrange(scene.fleet.gpus)]
        pid = rng.randrange(20_000, 4_000_000)
        code = 43 if rng.random() < 0.35 else 45
        yield from channels_torn_down(scene, node, gpus, scene.ended_at + rng.random() * 8, pid, code)


def rebooted(scene: Scene, after: tuple[float, float] = (300.0, 1500.0)) -> tuple[float, list[Line]]:
    """The culprit comes up again on its own; gives the instant and the first lines."""
    at = scene.ended_at + after[0] + scene.rng.random() * (after[1] - after[0])
    return at, [
        *kernel(scene.node, at, "Linux version 5.15.0-1052 (build@host) #57 SMP"),
        *kernel(scene.node, at + 21, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07"),
    ]


def aftermath(scene: Scene, most: int = 8) -> Iterator[Line]:
    """The usual end of an attempt whose culprit still answers: peers complain, then channels are torn down."""
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at, most)
    yield from clean_up(scene)


def vanished(scene: Scene) -> Iterator[Line]:
    """The usual end of an attempt whose culprit fell silent: only the others say anything."""
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)
    yield from clean_up(scene, share=0.5, culprit_answers=False)
