"""What the training printed, one file a job, in Megatron-LM's own words, as torchrun and the log collector mark it."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from flows.replay.model import Line
from flows.replay.text import slurm_time
from flows.replay.timeline import Attempt, Timeline

CHECKPOINTS = "/ckpt/405b"
_BATCH, _TARGET = 2_048, 1_200_000
_PEAK_RATE, _WARM_UP_STEPS = 8.0e-05, 8_000
_TFLOPS_SECONDS = 2_540.0
_NOISE = 4_096
_BUFFER = 1 << 20
_RANK = re.compile(r"\[rank(\d+)\]:")
Stamped = tuple[float, str]


def write_training(
    folder: Path, timeline: Timeline, job_ids: list[int], incidents: Mapping[int, list[Line]], seed: int
) -> None:
    """Write `405b-<jobid>.log`: every step, checkpoint and start of each attempt, and what ranks said when it broke.

    Args:
        folder: where the files go.
        timeline: the run.
        job_ids: job of each attempt.
        incidents: what ranks said, by the number of the attempt that it ended.
        seed: what chance is drawn from.
    """
    folder.mkdir(parents=True)
    for attempt, job_id in zip(timeline.attempts, job_ids, strict=True):
        rng = random.Random(f"{seed}:training:{attempt.number}")
        others = [*_saves(attempt), *_begin(attempt, timeline, rng), *_end(attempt, job_id)]
        others += _said(incidents.get(attempt.number, ()), timeline.fleet.gpus)
        others.sort(key=lambda line: line[0])
        with (folder / f"405b-{job_id}.log").open("a", encoding="utf-8", buffering=_BUFFER) as file:
            file.writelines(_collected(_merged(_steps(attempt, rng), others)))


def _merged(steps: Iterable[Stamped], others: list[Stamped]) -> Iterator[Stamped]:
    """Put the few other lines, which are in order, between those of the steps."""
    waiting = iter(others)
    following = next(waiting, None)
    for step in steps:
        while following is not None and following[0] < step[0]:
            yield following
            following = next(waiting, None)
        yield step
    if following is not None:
        yield following
    yield from waiting


def _collected(lines: Iterable[Stamped]) -> Iterator[str]:
    """Put the collector's stamp before each line."""
    minute, clock = -1, ""
    for at, text in lines:
        second = int(at)
        if second // 60 != minute:
            minute = second // 60
            clock = slurm_time(minute * 60)[:-2]
        yield f"{clock}{second % 60:02d}.{int((at - second) * 1e6):06d}Z {text}\n"


def _steps(attempt: Attempt, rng: random.Random) -> Iterator[Stamped]:
    """One line a step, which the last rank prints."""
    steps = attempt.steps
    host = f"{attempt.nodes[-1]} [default7]:"
    wobble = [rng.gauss(0.0, 1.0) for _ in range(_NOISE)]
    before, iteration, minute, clock = steps.first_at, steps.resumed, -1, ""
    rate, loss, norm = 0.0, 0.0, 0.0
    for at in steps.ends:
        if iteration % 20 == 0 or not rate:
            rate, loss, norm = _rate(iteration), _loss(iteration), _norm(iteration)
        iteration += 1
        second = int(at)
        if second // 60 != minute:
            minute = second // 60
            clock = slurm_time(minute * 60)[:-2].replace("T", " ")
        noise, took = wobble[iteration % _NOISE], at - before
        before = at
        text = (
            f"{host} [{clock}{second % 60:02d}] iteration {iteration:8d}/{_TARGET:8d} | consumed samples: {iteration * _BATCH:12d} |"
            f" elapsed time per iteration (ms): {took * 1e3:.1f} | throughput per GPU (TFLOP/s/GPU): {_TFLOPS_SECONDS / took:.1f} |"
            f" learning rate: {rate:.6E} | global batch size: {_BATCH:5d} | lm loss: {loss + 0.012 * noise:.6E} | loss scale: 1.0 |"
            f" grad norm: {norm * (1.0 + 0.08 * noise):.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |"
        )
        yield at, text


def _rate(iteration: int) -> float:
    if iteration < _WARM_UP_STEPS:
        return _PEAK_RATE * (iteration + 1) / _WARM_UP_STEPS
    done = (iteration - _WARM_UP_STEPS) / (_TARGET - _WARM_UP_STEPS)
    return _PEAK_RATE * (0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done)))


def _loss(iteration: int) -> float:
    return 1.55 + 10.4 / math.sqrt(1.0 + iteration / 90.0)


def _norm(iteration: int) -> float:
    return 0.19 + 2.0 / (1.0 + iteration / 300.0)


def _saves(attempt: Attempt) -> Iterator[Stamped]:
    first = f"{attempt.nodes[0]} [default0]:"
    for save in attempt.steps.saves:
        yield (
            save.begun_at,
            f"{first}saving checkpoint at iteration {save.iteration:7d} to {CHECKPOINTS} in torch_dist format",
        )
        if save.durable_at is not None:
            text = (
                f"  successfully saved checkpoint from iteration {save.iteration:7d} to {CHECKPOINTS} [ t 1/8, p 1/16 ]"
            )
            yield save.durable_at, first + text


def _begin(attempt: Attempt, timeline: Timeline, rng: random.Random) -> Iterator[Stamped]:
    """Container and ranks, then the checkpoint, then the first step."""
    first, resumed = f"{attempt.nodes[0]} [default0]:", attempt.steps.resumed
    start, ready = float(attempt.started_at), attempt.steps.first_at
    ranks = len(attempt.nodes) * timeline.fleet.gpus
    at = start + (ready - start) * rng.uniform(0.25, 0.35)
    yield (
        at,
        f"{first}using world size: {ranks}, data-parallel size: {max(1, ranks // 128)}, context-parallel size: 1, tensor-model-parallel size: 8, pipeline-model-parallel size: 16",
    )
    at = start + (ready - start) * rng.uniform(0.4, 0.5)
    yield at, f"{first}[after megatron is initialized] datetime: {_datetime(at)} "
    at = start + (ready - start) * rng.uniform(0.52, 0.6)
    if resumed:
        yield at, f"{first} loading checkpoint from {CHECKPOINTS} at iteration {resumed}"
        at = ready - rng.uniform(3.0, 8.0)
        text = f"  successfully loaded checkpoint from {CHECKPOINTS} [ t 1/8, p 1/16 ] at iteration {resumed}"
        yield at, first + text
    else:
        yield at, f"{first}WARNING: could not find the metadata file {CHECKPOINTS}/latest_checkpointed_iteration.txt"
        yield at + 1e-4, f"{first}    will not load any checkpoints and will start from random"
    yield ready, f"{first}[before the start of training step] datetime: {_datetime(ready)} "


def _datetime(at: float) -> str:
    return slurm_time(int(at)).replace("T", " ")


def _end(attempt: Attempt, job_id: int) -> Iterator[Stamped]:
    """What Slurm writes into the log when it is Slurm that ends the job."""
    end, node = attempt.end, attempt.nodes[0]
    if end is None:
        yield (
            attempt.ended_at - 5.0,
            f"{node} [default0]:[after training is done] datetime: {_datetime(attempt.ended_at - 5.0)} ",
        )
        return
    at = attempt.ended_at - 0.4
    said = {
        "node_fail": " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
        "requeue": " DUE TO JOB REQUEUE",
        "cancel": "",
    }
    if end.kind in said:
        yield (
            at,
            f"{node} slurmstepd: error: *** JOB {job_id} ON {node} CANCELLED AT {slurm_time(int(at))}{said[end.kind]} ***",
        )


def _said(lines: Iterable[Line], gpus: int) -> Iterator[Stamped]:
    """Mark what ranks said with host and local rank."""
    for line in lines:
        rank = _RANK.match(line.text)
        marked = f"[default{int(rank.group(1)) % gpus}]:{line.text}" if rank else line.text
        yield line.at, f"{line.node} {marked}" if line.node else marked
