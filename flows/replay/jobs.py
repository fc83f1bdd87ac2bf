"""Jobs as Slurm accounts for them: the run's attempts, and other people's small jobs beside it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from flows.replay.endings import OPS_UID, OWNER_UID
from flows.replay.holding import Holding, free
from flows.replay.text import host_list
from flows.replay.timeline import DAY, Attempt, Timeline

RUN_NAME, RUN_USER, RUN_ACCOUNT = "pretrain-405b", "llama", "pretrain"
FIRST_JOB = 84_213
_CPU_NODES = 16
_CPU_JOBS_A_DAY = 150.0
_PEOPLE = (
    ("amara", 5021, "research"),
    ("bjorn", 5022, "research"),
    ("chen", 5023, "eval"),
    ("dmitri", 5024, "eval"),
    ("elif", 5025, "data"),
    ("farid", 5026, "data"),
    ("greta", 5027, "research"),
    ("hana", 5028, "infra"),
    ("ivan", 5029, "research"),
    ("jun", 5030, "eval"),
)
_GPU_NAMES = ("eval-mmlu", "sft-8b", "debug", "interactive", "ablation", "bench-attn", "rm-train", "notebook")
_CPU_NAMES = ("tokenize", "dedup", "crawl-clean", "shard", "stats", "convert", "upload", "unit-tests")
_OUTCOMES = (("COMPLETED", 62), ("FAILED", 22), ("CANCELLED", 9), ("TIMEOUT", 4), ("OUT_OF_MEMORY", 2), ("NONE", 1))
_EXITS = {"COMPLETED": ("0:0",), "FAILED": ("1:0", "1:0", "2:0", "139:0", "127:0"), "OUT_OF_MEMORY": ("0:125",)}
_REASONS = {"FAILED": "NonZeroExitCode", "TIMEOUT": "TimeLimit", "OUT_OF_MEMORY": "OutOfMemory"}
_LONG_WAITS = 0.1
_LIMITS = (1_800, 3_600, 14_400, 43_200, 86_400)


@dataclass(slots=True)
class Job:
    """One record of the accounting; times in whole seconds since 1970.

    Attributes:
        submit: when it was submitted or requeued.
        eligible: when it could have started.
        start: when it started; None = never.
        end: when it ended.
        name: job name.
        user: user name.
        uid: user id.
        account: account.
        partition: partition.
        qos: quality of service.
        state: state at the end.
        exit_code: as sacct prints it.
        reason: why it waited last, or why it ended.
        limit: time limit in seconds; 0 = none.
        nodes: nodes it ran on.
        tres: what it was given.
        restarts: requeues before it.
        raw: number, given when all are known.
        job_id: number as sacct prints it, with the array task.
    """

    submit: int
    eligible: int
    start: int | None
    end: int
    name: str
    user: str
    uid: int
    account: str
    partition: str
    qos: str
    state: str
    exit_code: str
    reason: str
    limit: int
    nodes: tuple[str, ...]
    tres: str
    restarts: int = 0
    raw: int = 0
    job_id: str = ""


def all_jobs(timeline: Timeline, holding: Holding, seed: int) -> tuple[list[Job], list[int]]:
    """Return all records in order of submission, and the job number of each attempt of the run."""
    run, groups = _run_jobs(timeline)
    groups += [[job] for job in _gpu_jobs(timeline, holding, random.Random(f"{seed}:gpu-jobs"))]
    groups += _cpu_jobs(timeline, random.Random(f"{seed}:cpu-jobs"))
    groups.sort(key=lambda group: (group[0].submit, group[0].name, group[0].nodes))
    number = FIRST_JOB
    for group in groups:
        is_array = len(group) > 1 and group[0].name != RUN_NAME
        for task, job in enumerate(group):
            job.raw = number + task if is_array else number
            job.job_id = f"{number}_{task}" if is_array else str(number)
        number += len(group) if is_array else 1
    records = [job for group in groups for job in group]
    records.sort(key=lambda job: (job.submit, job.raw))
    return records, [job.raw for job in run]


def _run_jobs(timeline: Timeline) -> tuple[list[Job], list[list[Job]]]:
    records: list[Job] = []
    groups: list[list[Job]] = []
    for attempt in timeline.attempts:
        records.append(_run_job(timeline, attempt))
        if attempt.is_new:
            groups.append([])
        groups[-1].append(records[-1])
    return records, groups


def _run_job(timeline: Timeline, attempt: Attempt) -> Job:
    end, count = attempt.end, timeline.size
    gpus = count * timeline.fleet.gpus
    return Job(
        attempt.submitted_at,
        attempt.eligible_at,
        attempt.started_at,
        attempt.ended_at,
        RUN_NAME,
        RUN_USER,
        OWNER_UID,
        RUN_ACCOUNT,
        "train",
        "high",
        end.state if end else "COMPLETED",
        end.exit_code if end else "0:0",
        end.reason if end and end.reason != "None" else "None" if attempt.is_new else "BeginTime",
        0,
        attempt.nodes,
        f"billing={gpus},cpu={count * 192},gres/gpu:h100={gpus},gres/gpu={gpus},mem={count * 2000}G,node={count}",
        attempt.restarts,
    )


def _gpu_jobs(timeline: Timeline, holding: Holding, rng: random.Random) -> Iterable[Job]:
    """One job after another on each node that is free; whoever is still there when the run needs the node is preempted."""
    for node in timeline.fleet.nodes:
        if holding.spans(node) == [(timeline.start, timeline.end)]:
            continue
        for begin, end in free(timeline, holding, node, start=timeline.start, end=timeline.end):
            at = begin + rng.uniform(60.0, 3_600.0)
            while at < end - 300.0:
                job = _job(rng, int(at), "preempt", rng.choice(_GPU_NAMES), (node,), _gpu_tres(rng))
                if job.start is None or job.end < end:
                    yield job
                else:
                    yield _pushed_out(job, *_why_out(timeline, holding, node, end, rng))
                at = max(at + 60.0, float(job.end)) + rng.uniform(600.0, 14_400.0)


def _why_out(timeline: Timeline, holding: Holding, node: str, end: float, rng: random.Random) -> tuple[int, str, str]:
    """Return when and how a job ends on a node that is free until `end`."""
    if (node, int(end)) in timeline.failed:
        return int(end), "NODE_FAIL", "0:0"
    if any(start == end for start, _ in holding.spans(node)):
        return int(end) - 2, "PREEMPTED", rng.choice(("0:0", "0:15"))
    return int(end) - 2, f"CANCELLED by {OPS_UID}", "0:0"


def _pushed_out(job: Job, end: int, state: str, exit_code: str) -> Job:
    job.end, job.state, job.exit_code, job.reason = end, state, exit_code, "None"
    return job


def _gpu_tres(rng: random.Random) -> str:
    gpus = rng.choice((1, 1, 2, 4, 8, 8, 8))
    return f"billing={gpus},cpu={gpus * 24},gres/gpu:h100={gpus},gres/gpu={gpus},mem={gpus * 250}G,node=1"


def _cpu_jobs(timeline: Timeline, rng: random.Random) -> list[list[Job]]:
    groups = []
    at = float(timeline.start)
    while (at := at + rng.expovariate(_CPU_JOBS_A_DAY / DAY)) < timeline.end:
        name, cpus = rng.choice(_CPU_NAMES), rng.choice((1, 2, 4, 8, 16, 32))
        tres = f"billing={cpus},cpu={cpus},mem={cpus * 4}G,node=1"
        tasks = rng.randint(3, 12) if rng.random() < 0.06 else 1
        group = [_job(rng, int(at), "cpu", name, (_cpu_node(rng),), tres) for _ in range(tasks)]
        for job in group[1:]:
            job.submit, job.user, job.uid, job.account = group[0].submit, group[0].user, group[0].uid, group[0].account
            job.eligible = job.submit
        groups.append(group)
    return groups


def _cpu_node(rng: random.Random) -> str:
    return f"cpu{rng.randint(1, _CPU_NODES):03d}"


def _job(rng: random.Random, start: int, partition: str, name: str, nodes: tuple[str, ...], tres: str) -> Job:
    user, uid, account = rng.choice(_PEOPLE)
    limit = rng.choice(_LIMITS)
    seconds = max(4, int(min(limit, rng.lognormvariate(7.6, 1.3))))
    state = rng.choices([s for s, _ in _OUTCOMES], [w for _, w in _OUTCOMES])[0]
    submit = start - int(rng.expovariate(1 / (9_000.0 if rng.random() < _LONG_WAITS else 240.0))) - 1
    started: int | None = start
    if state == "TIMEOUT":
        seconds = limit + rng.randint(0, 30)
    elif state == "NONE":
        started, state, seconds = None, "CANCELLED", 0
    shown = state
    if state == "CANCELLED":
        shown = f"CANCELLED by {rng.choice((uid, uid, uid, 0))}"
    return Job(
        submit,
        submit,
        started,
        start + seconds,
        name,
        user,
        uid,
        account,
        partition,
        "normal",
        shown,
        rng.choice(_EXITS.get(state, ("0:0",))),
        _REASONS.get(state, "None"),
        limit,
        nodes if started is not None else (),
        tres if started is not None else "",
    )


def node_list(job: Job) -> str:
    """Print the nodes of a job as sacct does."""
    return host_list(job.nodes) if job.nodes else "None assigned"
