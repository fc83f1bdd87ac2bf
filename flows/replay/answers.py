"""What the exports do not tell by themselves: the truth about each stop and the run, and the configuration that reads them."""

from __future__ import annotations

import json
from pathlib import Path

from flows.replay.fleet import GPUS
from flows.replay.jobs import RUN_NAME, RUN_USER
from flows.replay.ledger import ledger
from flows.replay.slurm_exports import weeks
from flows.replay.text import slurm_time
from flows.replay.timeline import Attempt, Timeline

CONFIG, TRUTH = "goodput.toml", "truth.jsonl"
_NOBODYS = ("software_bug", "dependency", "nccl_watchdog", "network_switch_cable")
"""Causes that sit in no node of the run."""

_TOML = """\
# Written by the replay: the exports of one training run of {nodes} nodes and what ran beside it.

[warehouse]
data = "data"
memory_limit = "1200MB"

[clusters.{cluster}]
zone = "UTC"
gpus_per_node = {gpus}
capacity_gpus = {capacity}

[[sources]]
path = "exports/sacct/sacct_{{collected_at}}.txt"

[[sources]]
path = "exports/slurm/sacctmgr_events_{{collected_at}}.txt"

[[sources]]
path = "exports/slurm/scontrol_show_reservation_{{collected_at}}.txt"

[[sources]]
path = "exports/kern/kern-{{collected_at}}.log"

[[sources]]
path = "exports/train/405b-{{job_id}}.log"
collected_at = {last}

[[sources]]
path = "exports/inventory/*.csv"
collected_at = {first}
{others}
[[runs]]
name = "{run}"
match = {{ user = "{user}", job_name = "{run}" }}
key = ["user", "job_name"]
max_gap = "24h"
resume_window = "1h"
"""
_OTHERS = {
    "sel": 'path = "exports/sel/sel_{collected_at}.txt"',
    "health": 'path = "exports/health/nhc.log"\ncollected_at = LAST',
    "diag": 'path = "exports/diag/{node}_{collected_at}.json"',
}


def write_truth(path: Path, timeline: Timeline, job_ids: list[int]) -> dict[str, object]:
    """Write one line for each interruption and one for the run; return the latter."""
    stops = [
        _stop(timeline, attempt, job_id)
        for attempt, job_id in zip(timeline.attempts, job_ids, strict=True)
        if attempt.stop is not None
    ]
    run = _run(timeline)
    path.write_text("".join(json.dumps(record) + "\n" for record in (*stops, run)))
    return run


def _stop(timeline: Timeline, attempt: Attempt, job_id: int) -> dict[str, object]:
    stop = attempt.stop
    if stop is None:
        raise ValueError(f"attempt {attempt.number} was not stopped")
    signature = stop.signature
    has_node = signature is not None and stop.cause not in _NOBODYS
    return {
        "cluster": timeline.fleet.cluster,
        "job_id_raw": str(job_id),
        "interrupted_at": f"{slurm_time(attempt.ended_at)}Z",
        "causes": [stop.cause, *(signature.accepted if signature else ())],
        "is_planned": stop.planned is not None,
        "node": attempt.node if has_node else None,
        "identifiable": signature.is_identifiable if signature else True,
        "signature": signature.name if signature else stop.planned,
    }


def _run(timeline: Timeline) -> dict[str, object]:
    spent = ledger(timeline)
    stops = [attempt.stop for attempt in timeline.attempts if attempt.stop is not None]
    planned = sum(stop.planned is not None for stop in stops)
    return {
        "kind": "run",
        "cluster": timeline.fleet.cluster,
        "run": RUN_NAME,
        "elapsed_seconds": timeline.end - timeline.start,
        "ledger": spent,
        "effective_training_time": round(spent["productive"] / sum(spent.values()), 6),
        "interruptions": len(stops),
        "planned": planned,
        "unexpected": len(stops) - planned,
        "manual": sum(stop.is_manual for stop in stops),
    }


def write_config(folder: Path, timeline: Timeline) -> None:
    """Write `goodput.toml`; a source that has no file is left out, since it would be an error.

    Every source says when it was collected, so that nothing depends on when the replay was written.
    """
    first, *_, last = timeline.start - 3_600, *weeks(timeline)
    others = [text for name, text in _OTHERS.items() if any((folder / "exports" / name).iterdir())]
    (folder / CONFIG).write_text(
        _TOML.format(
            nodes=timeline.size,
            cluster=timeline.fleet.cluster,
            gpus=GPUS,
            capacity=len(timeline.fleet.nodes) * GPUS,
            first=f"{slurm_time(first)}Z",
            last=f"{slurm_time(last)}Z",
            others="".join(f"\n[[sources]]\n{text}\n" for text in others).replace("LAST", f"{slurm_time(last)}Z"),
            user=RUN_USER,
            run=RUN_NAME,
        )
    )
