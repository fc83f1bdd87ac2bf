"""What ranks print when a collective never ends and NCCL's watchdog gives up."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene
from flows.replay.signatures.lines import process_group

_MOST_RANKS = 96
_CHECKED_EVERY = 2.0
_OPERATIONS = (
    ("ALLREDUCE", 4, 4),
    ("ALLREDUCE", 1, 1),
    ("_REDUCE_SCATTER_BASE", 268_435_456, 2_097_152),
    ("_ALLGATHER_BASE", 2_097_152, 268_435_456),
    ("COALESCED", 18_446_744_073_709_551_615, 18_446_744_073_709_551_615),
    ("SEND", 67_108_864, 67_108_864),
)
# Lines of ProcessGroupNCCL.cpp of PyTorch 2.3 and 2.4 that print these messages.
_CAUGHT, _WORK, _FAILED, _DOWN = 616, 1785, 621, 627


def given_up(scene: Scene, halted_at: float, timeout: int) -> Iterator[Line]:
    """Ranks of many nodes report the operation in which they waited; those of the culprit do not come to it.

    Args:
        scene: the incident.
        halted_at: when the step in flight came to a halt.
        timeout: seconds after which the watchdog gives up.
    """
    rng = scene.rng
    operation, elements_in, elements_out = rng.choice(_OPERATIONS)
    sequence = rng.randrange(20_000, 4_000_000)
    begun_at = rng.uniform(scene.stalled_at, halted_at)
    nodes = [n for n in scene.ranks if n != scene.node]
    for node in rng.sample(nodes, min(len(nodes), rng.randint(_MOST_RANKS // 3, _MOST_RANKS))):
        gpu = rng.randrange(scene.fleet.gpus)
        waited = rng.uniform(0.005, _CHECKED_EVERY)
        at = begun_at + timeout + waited
        work = (
            f"WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn={elements_in}, NumelOut={elements_out}, "
            f"Timeout(ms)={timeout * 1000})"
        )
        text = (
            f"Watchdog caught collective operation timeout: {work} ran for {timeout * 1000 + int(waited * 1000)} "
            "milliseconds before timing out."
        )
        yield process_group(scene, node, gpu, at, _CAUGHT, text)
        text = (
            f"Timeout at NCCL work: {sequence}, last enqueued NCCL work: {sequence + rng.randrange(3)}, "
            f"last completed NCCL work: {sequence - 1}."
        )
        yield process_group(scene, node, gpu, at + 0.0004, _WORK, text)
        if rng.random() < 0.5:
            text = (
                "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, "
                "subsequent GPU operations might run on corrupted/incomplete data."
            )
            yield process_group(scene, node, gpu, at + 0.0007, _FAILED, text)
            text = "To avoid data inconsistency, we are taking the entire process down."
            yield process_group(scene, node, gpu, at + 0.0009, _DOWN, text)
