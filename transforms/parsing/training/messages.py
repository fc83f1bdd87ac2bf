"""Messages of training logs that tell of something: literals to find the lines, patterns to read them.

A line is read here only if it holds one of NEEDLES. Forms come from the sources of Megatron-LM (megatron/training/training.py,
checkpointing.py), Megatron-DeepSpeed, NeMo and PyTorch (ProcessGroupNCCL.cpp).
"""

from __future__ import annotations

import re

from transforms.parsing.training import limits
from transforms.parsing.training.errors import is_exception, read_error
from transforms.parsing.training.told import (
    BEGUN,
    DURABLE,
    EXIT,
    LOADED,
    NCCL_TIMEOUT,
    START,
    Found,
    Lost,
    Passed,
    Told,
)

TRACEBACK = "Traceback (most recent call last)"
ROOT_CAUSE = "Root Cause (first observed failure)"
NEEDLES = (
    TRACEBACK,
    ROOT_CAUSE,
    "datetime: ",
    "using world size: ",
    "heckpoint",
    "save-checkpoint",
    "ProcessGroupNCCL",
    "atchdog",
    "Heartbeat monitor",
    "NCCL WARN",
    "NCCL error",
    "NCCL communicator",
    "ncclInvalid",
    "ncclInProgress",
    "ibv_poll_cq",
    "IBV_WC_",
    "Got completion from peer",
    "Cuda failure",
    "Error",
    "Exception",
    "Interrupt",
    "Exit",
    "Timeout",
    "timeout",
    "Expired",
    "Failure",
    "Empty",
    "gaierror",
    "herror",
    "CUDA error",
    "CUDA out of memory",
    "Unexpected result",
    "found NaN",
    "found Inf",
    "loss is ",
    "NaN loss",
    "nan loss",
    "rerun: ",
    "Possible ",
    "piky loss",
    "oss spike",
    "srun: ",
    "slurmstepd",
    "exitcode: ",
    "SIGTERM",
    "death signal",
    "Segmentation fault",
    "Bus error",
    "Illegal instruction",
    "Fatal Python error",
    "terminate called",
    "Stale file handle",
    "No space left on device",
    "Disk quota exceeded",
    "Input/output error",
    "Read-only file system",
    "ransport endpoint",
    "Remote I/O error",
    "name resolution",
    "Name or service not known",
    "Connection re",
    "Connection timed out",
    "Connection closed",
    "No route to host",
    "Host is down",
)
_WATCHDOG = re.compile(
    r"\[(?:PG [^\]]*)?[Rr]ank (?P<rank>[0-9]+)\] Watchdog caught collective operation timeout: WorkNCCL\((?P<work>(?:[^()]|\(ms\))*)\)"
    r"(?: ran for (?P<ms>[0-9]+) milliseconds)?"
)
_SEQUENCE, _OPERATION = re.compile(r"SeqNum=([0-9]+)"), re.compile(r"OpType=(\w+)")
_REPEATED = re.compile(r"terminated with exception: |what\(\): ")
_STUCK = re.compile(
    r"(?:[Rr]ank ([0-9]+)\].*)?(?:watchdog got stuck for ([0-9]+) ?(?:seconds|milliseconds)|Heartbeat monitor timed out)"
)
_DETAIL = re.compile(r"ProcessGroupNCCL|[Ww]atchdog")
_CAUGHT = re.compile(r"CUDA error|NCCL error")  # the watchdog found another error than a time-out
_MILESTONE = re.compile(r"\[(?P<what>[^\]]+)\] datetime: ")
_BEFORE_STEPS = "before the start of training step"
_SAVING = re.compile(r"saving checkpoint at iteration +([0-9]+) to ")
_SAVED = re.compile(r"successfully saved (?:\w+ )?checkpoint (?:from|at) iteration +([0-9]+)")
_FINALIZED = re.compile(r"Async checkpoint save for step ([0-9]+) .*finalized successfully")
_SCHEDULED = re.compile(r"Scheduled async checkpoint save for .*?step=([0-9]+)")
_LOADED_FROM = re.compile(r"successfully loaded checkpoint from .* at iteration +([0-9]+)")
_SAVE_TIME = re.compile(r"save-checkpoint(?: \.+)?: (?:\([0-9.eE+-]+, )?([0-9.]+(?:[eE][+-]?[0-9]+)?)")
NO_ITERATION = f"the iteration it names is none: at most {limits.MAX_COUNT:,} can be"
NO_SAVE_TIME = f"the time it names is none: a save takes at most {limits.MAX_STEP_SECONDS:,.0f} seconds"


def read_message(body: str) -> Found | None:
    """Return what a message tells; None where it tells nothing of interest."""
    for reader in (_watchdog, _milestone, _checkpoint, read_error):
        found = reader(body)
        if found is not None:
            return found
    return None


def _watchdog(body: str) -> Found | None:
    """The collective of a rank that was given up; a line may hold those of several ranks, written over each other."""
    if "atchdog" not in body and "ProcessGroupNCCL" not in body and "Heartbeat monitor" not in body:
        return None
    if is_exception(body):
        return None
    told = [_timeout(found) for found in _WATCHDOG.finditer(body)]
    if told:
        return Passed("watchdog_detail") if _REPEATED.search(body) else told
    if stuck := _STUCK.search(body):
        rank, unit = limits.count(stuck[1]), 1000 if "milliseconds" in stuck[0] else 1
        seconds = limits.seconds(stuck[2], unit=unit)
        lost = limits.is_lost((stuck[1], rank), (stuck[2], seconds))
        return [Told(NCCL_TIMEOUT, rank=rank, error_class="watchdog stuck", seconds=seconds, is_unreadable=lost)]
    return Passed("watchdog_detail") if _DETAIL.search(body) and not _CAUGHT.search(body) else None


def _timeout(found: re.Match[str]) -> Told:
    number, operation = _SEQUENCE.search(found["work"]), _OPERATION.search(found["work"])
    number_told = number[1] if number else None
    rank, sequence = limits.count(found["rank"]), limits.count(number_told)
    seconds = limits.seconds(found["ms"], unit=1000)
    return Told(
        NCCL_TIMEOUT,
        rank=rank,
        error_class=operation[1] if operation else None,
        sequence=sequence,
        seconds=seconds,
        is_unreadable=limits.is_lost((found["rank"], rank), (number_told, sequence), (found["ms"], seconds)),
    )


def _milestone(body: str) -> Found | None:
    if body.startswith("using world size: "):
        return [Told(START)]
    found = _MILESTONE.search(body)
    if found is None:
        return None
    if found["what"] == _BEFORE_STEPS:
        return [Told(START)]
    return (
        [Told(EXIT)] if found["what"].startswith(("exiting program", "after training is done")) else Passed("milestone")
    )


_CHECKPOINTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (_SAVED, DURABLE),
    (_LOADED_FROM, LOADED),
    (_SAVING, BEGUN),
    (_FINALIZED, DURABLE),
    (_SCHEDULED, BEGUN),
)
_CHECKPOINT_DETAIL = re.compile(
    r"loading (?:\w+ )?checkpoint from|scheduled an async checkpoint save|checkpoint version"
)


def _checkpoint(body: str) -> Found | None:
    if time := _SAVE_TIME.search(body):
        took = limits.seconds(time[1].rstrip("."), unit=1000, most=limits.MAX_STEP_SECONDS)
        return Lost(NO_SAVE_TIME) if took is None else Passed("timer", pause_seconds=took)
    if "heckpoint" not in body:
        return None
    for pattern, event in _CHECKPOINTS:
        if found := pattern.search(body):
            step = limits.count(found[1])
            return Lost(NO_ITERATION) if step is None else [Told(event, step=step)]
    if "will not load any checkpoints" in body:
        return Passed("checkpoint_detail", step=0)
    return Passed("checkpoint_detail") if _CHECKPOINT_DETAIL.search(body) else None
