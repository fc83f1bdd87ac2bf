"""Errors in training logs: the kinds that have a name, exceptions, and what the launcher and Slurm say of a task's end."""

from __future__ import annotations

import re
from collections.abc import Callable

from transforms.parsing.training import limits
from transforms.parsing.training.told import ERROR, EXIT, NCCL_ERROR, NOT_FINITE, SPIKE, Found, Passed, Told

# Texts of errno(3), gai_strerror(3) and Lustre: what a storage or a name service does to a job, whoever prints it.
_SERVICE = re.compile(
    r"Stale file handle|No space left on device|Disk quota exceeded|Input/output error|Read-only file system|"
    r"Transport endpoint is not connected|Cannot send after transport endpoint shutdown|Remote I/O error|"
    r"Temporary failure in name resolution|Name or service not known|Connection refused|Connection reset by peer|"
    r"Connection timed out|No route to host|Host is down"
)
_CUDA = re.compile(r"CUDA error: ([^.\n;(]{1,80})")
_OUT_OF_MEMORY = re.compile(r"CUDA out of memory|OutOfMemoryError")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Expired|Failure)|"
    r"(?<=\.)(?:gaierror|herror|timeout|Empty))(?:: ?(?P<message>.*))?"
)
CUSTOM_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*)(?:: .*)?")
# The most telling first.
_NCCL_KINDS = tuple(
    map(
        re.compile,
        (
            r"(nccl(?:System|Remote|UnhandledCuda|Internal)Error|ncclInvalid(?:Usage|Argument)|ncclInProgress)",
            r"(IBV_WC_[A-Z_]+)",
            r"(ibv_[a-z_]+)",
            r"Cuda failure (?:[0-9]+ )?'([^']+)'",
            r"(Connection closed by remote peer)",
            r"(Got completion from peer)",
            r"Got async event : ([\w ]*\w)",
            r"Call to (\w+) (?:from .* )?failed",
        ),
    )
)
_NCCL_HOST = re.compile(r"([A-Za-z][\w.-]*):[0-9]+:[0-9]+ \[\w+\]")
_WHERE = re.compile(r"[Rr]ank ([0-9]+)(?:, node ([\w.-]+))?")
_NODE = re.compile(r"\bnode:? ([A-Za-z][\w.-]*)")
_ITERATION = re.compile(r"iteration #?([0-9]+)")
_VALIDATION = re.compile(r"Unexpected result \S+ .*\(message='([^']*)'\)")
# Megatron's own words, then what people's own guards say.
_FOUND = re.compile(
    r"found (?:NaN|Inf) in|\b(?:loss|grad(?:ient)?s?(?: norm)?)\b[^|:]{0,30}\b(?:nan|inf|non-?finite|not finite)\b|\bnan loss\b",
    re.IGNORECASE,
)
_SPIKE = re.compile(
    r"spiky loss|\bloss\b[^|:]{0,30}\b(?:spikes?|spiked|above|exceed(?:s|ed)|diverged)\b", re.IGNORECASE
)
_RERUN = re.compile(r"(Possible (?:transient|persistent) error)!|(?:First|Second) rerun: ")
_SRUN_TASK = re.compile(r"srun: error: (?P<node>[\w.\[\],-]+): tasks? [0-9,-]+: (?P<end>.*)")
_STEP_ENDED = re.compile(
    r"(?:slurmstepd(?:-[\w.-]+)?|srun): error: \*\*\* (?:STEP|JOB) \S+ (?:ON (?P<node>[\w.-]+) )?(?:CANCELLED|FAILED) AT \S+"
    r"(?: DUE [Tt][Oo] (?P<why>[A-Za-z ]+?))?(?:,.*|;.*| \*\*\*.*)?$"
)
_WHY = {"NODE FAILURE": "NODE_FAIL", "TIME LIMIT": "TIMEOUT", "PREEMPTION": "PREEMPTED", "JOB REQUEUE": "REQUEUED"}
_OOM_KILL = re.compile(r"oom[-_]kill event|OOM Killed|Out Of Memory", re.IGNORECASE)
_LAUNCHED = re.compile(r"failed \(exitcode: (-?[0-9]+)\) (?:local_rank: [0-9]+ )?\(pid: [0-9]+\) of")
_SIGTERM = re.compile(r"received SIGTERM, exiting|Received (?:Signals\.)?SIGTERM|Received [0-9]+ death signal")
_CRASH = re.compile(
    r"Fatal Python error: ([\w ]+)|(Segmentation fault|Bus error|Illegal instruction)(?: \(core dumped\))?"
)
_THROWN = re.compile(r"terminate called after throwing an instance of '([\w:]+)'")
_WARNING = re.compile(r"\[?W[0-9]{3,4} [0-9][0-9]:[0-9][0-9]:[0-9][0-9]|\bWARNING\b|Warning:|\[rank[0-9]+\]:\[W")


def read_error(body: str) -> Found | None:
    """Return what a message tells of an error or of its own end; None where it does not."""
    for reader in _READERS:
        found = reader(body)
        if found is not None:
            return found
    return None


def is_exception(body: str) -> bool:
    """Tell whether a line is the last one of a traceback: the exception's name, and what it says."""
    return _EXCEPTION.fullmatch(body) is not None


def exception(name: str, message: str) -> Told:
    """Return what an exception tells."""
    if name.startswith("nccl") or "NCCL error" in message or "NCCL communicator" in message:
        return Told(NCCL_ERROR, error_class=name)
    return Told(ERROR, error_class=_kind(message, name))


def _kind(message: str, otherwise: str | None) -> str | None:
    """Return the kind of error that a message names, else `otherwise`."""
    if found := _SERVICE.search(message):
        return found[0]
    if found := _CUDA.search(message):
        return found[1].strip().removesuffix(" was encountered").removesuffix(" encountered")
    return "OutOfMemoryError" if _OUT_OF_MEMORY.search(message) else otherwise


def _validation(body: str) -> Found | None:
    """Megatron-LM's checks of results (rerun_state_machine.py, pretrain_gpt.py, param_and_grad_buffer.py)."""
    told = _VALIDATION.search(body)
    text = told[1] if told else body
    if rerun := _RERUN.search(body):
        if rerun[1] is None:
            return Passed("rerun_detail")
        event, kind = ERROR, rerun[1]
    elif _FOUND.search(text):
        event, kind = NOT_FINITE, None
    elif _SPIKE.search(text):
        event, kind = SPIKE, None
    elif told:
        event, kind = ERROR, "Unexpected result"
    else:
        return None
    where, node, step = _WHERE.search(body), _NODE.search(body), _ITERATION.search(body)
    name = _EXCEPTION.match(body)
    rank_told, step_told = where and where[1], step[1] if step and event != ERROR else None
    rank, iteration = limits.count(rank_told), limits.count(step_told)
    return [
        Told(
            event,
            step=iteration,
            rank=rank,
            node=where[2] if where and where[2] else node[1] if node else None,
            error_class=kind or (name["name"] if name else None),
            is_unreadable=limits.is_lost((rank_told, rank), (step_told, iteration)),
        )
    ]


def _nccl(body: str) -> Found | None:
    """NCCL's own warnings (src/debug.cc) and the names of its results (nccl.h)."""
    if ("NCCL" not in body and "nccl" not in body) or _is_exception_of_python(body):
        return None
    kind = next((found[1] for pattern in _NCCL_KINDS if (found := pattern.search(body))), None)
    kind = kind or next((name for name in ("NCCL WARN", "NCCL error") if name in body), None)
    if kind is None:
        return None
    host = _NCCL_HOST.search(body)
    return [Told(NCCL_ERROR, node=host[1] if host else None, error_class=kind)]


def _is_exception_of_python(body: str) -> bool:
    found = _EXCEPTION.fullmatch(body)
    return found is not None and not found["name"].startswith("nccl")


def _scheduler(body: str) -> Found | None:
    """What srun and slurmstepd write into a job's output (src/srun, src/slurmd/slurmstepd of Slurm)."""
    if not body.startswith(("srun: ", "slurmstepd")):
        return None
    if ended := _STEP_ENDED.match(body):
        why = _WHY.get((ended["why"] or "").strip().upper(), "CANCELLED")
        return [Told(ERROR if why == "NODE_FAIL" else EXIT, node=ended["node"], error_class=why)]
    if task := _SRUN_TASK.match(body):
        return [
            Told(ERROR, node=None if "[" in task["node"] else task["node"], error_class=task["end"].strip() or None)
        ]
    if failed := re.match(r"srun: error: Node failure on ([\w.-]+)", body):
        return [Told(ERROR, node=failed[1], error_class="NODE_FAIL")]
    if _OOM_KILL.search(body):
        return [Told(ERROR, error_class="oom_kill")]
    return Passed("scheduler")


def _launcher(body: str) -> Found | None:
    """PyTorch's launchers: torchrun (torch/distributed/elastic), torch.distributed.launch, and the C++ runtime."""
    if failed := _LAUNCHED.search(body):
        return [Told(ERROR, error_class=f"exit code {failed[1]}")]
    if _SIGTERM.search(body):
        return [Told(EXIT, error_class="SIGTERM")]
    if crash := _CRASH.search(body):
        return [Told(ERROR, error_class=(crash[1] or crash[2]).strip())]
    if thrown := _THROWN.search(body):
        # PyTorch's watchdog ends the process so; it has told why before.
        return Passed("watchdog_detail") if "DistBackendError" in thrown[1] else [Told(ERROR, error_class=thrown[1])]
    return None


def _exception(body: str) -> Found | None:
    found = _EXCEPTION.fullmatch(body)
    return [exception(found["name"], found["message"] or "")] if found else None


def _anywhere(body: str) -> Found | None:
    kind = _kind(body, None)
    if kind is None:
        return None
    return Passed("warning") if _WARNING.search(body) else [Told(ERROR, error_class=kind)]


_READERS: tuple[Callable[[str], Found | None], ...] = (
    _scheduler,
    _validation,
    _nccl,
    _exception,
    _launcher,
    _anywhere,
)
