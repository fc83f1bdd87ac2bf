"""Messages of training logs that tell of something: literals to find the lines, patterns to read them.

A line is read here only if it holds one of NEEDLES. Forms come from the sources of Megatron-LM (megatron/training/training.py,
checkpointing.py), Megatron-DeepSpeed, NeMo and PyTorch (ProcessGroupNCCL.cpp).
"""

from __future__ import annotations

import re

from transforms.parsing.training.errors import is_exception, read_error
from transforms.parsing.training.told import BEGUN, DURABLE, EXIT, LOADED, NCCL_TIMEOUT, START, Found, Passed, Told

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
_SAVE_TIME = re.compile(r"save-checkpoint(?: \.+)?: (?:\([0-9.]+, )?([0-9.]+)")


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
        rank = int(stuck[1]) if stuck[1] else None
        return [Told(NCCL_TIMEOUT, rank=rank, error_class="watchdog stuck", seconds=_seconds(stuck))]
    return Passed("watchdog_detail") if _DETAIL.search(body) and not _CAUGHT.search(body) else None


def _seconds(stuck: re.Match[str]) -> float | None:
    return float(stuck[2]) / (1000 if "milliseconds" in stuck[0] else 1) if stuck[2] else None


def _timeout(found: re.Match[str]) -> Told:
    sequence, operation = _SEQUENCE.search(found["work"]), _OPERATION.search(found["work"])
    return Told(
        NCCL_TIMEOUT,
        rank=int(found["rank"]),
        error_class=operation[1] if operation else None,
        sequence=int(sequence[1]) if sequence else None,
        seconds=int(found["ms"]) / 1000 if found["ms"] else None,
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
        return Passed("timer", pause_seconds=_longest(time))
    if "heckpoint" not in body:
        return None
    for pattern, event in _CHECKPOINTS:
        if found := pattern.search(body):
            return [Told(event, step=int(found[1]))]
    if "will not load any checkpoints" in body:
        return Passed("checkpoint_detail", step=0)
    return Passed("checkpoint_detail") if _CHECKPOINT_DETAIL.search(body) else None


def _longest(time: re.Match[str]) -> float:
    try:
        return float(time[1].rstrip(".")) / 1000
    except ValueError:
        return 0.0
