"""An interruption as a short report in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.cli import facts
from flows.cli.terminal import clean, here, say, shown, title

Row = Mapping[str, Any]

PLACES = 3
"""Places of one record that the report names; the rest are counted."""

ROLES = {"initiating": 0, "cascade": 1, "clean-up": 2, "bystander": 3, "noise": 4}

_LOST = (("stalled", "no progress before the end"), ("lost_work", "done again since the last checkpoint"),
         ("starting", "starting up again"), ("down", "waiting for the next start"))  # fmt: skip


def say_report(row: Row) -> None:
    """Print an interruption with its evidence: what stopped, why, what proves it, what it cost, what would help."""
    title(headline(row))
    for line in [*_what(row), *_verdict(row)]:
        say(line)
    _say_evidence(row["evidence"])
    say()
    for line in costs(row):
        say(line)
    if hints := advice(row):
        say()
        say("Surer with:")
        for hint in hints:
            say(f"  - {hint}")


def headline(row: Row) -> str:
    """Return which run stopped and when."""
    run = clean(row.get("run") or row["run_id"])
    return f"{run} on {clean(row['cluster'])} was interrupted at {shown(row['interrupted_at'])} UTC  [{row['interruption_id']}]"


def _what(row: Row) -> list[str]:
    state = f"{row['scheduler_state']}, exit code {row['exit_code']}:{row['signal']}"
    where = f"{row['gpus']} GPUs on {_nodes(row['nodes'])}, since {shown(row['started_at'])}"
    lines = [f"  stopped   job {row['job_id']} attempt {row['attempt']}, {where}; Slurm says {state}"]
    if row["resumed_at"] is None:
        lines.append("  resumed   not within the data")
    else:
        how = f", {row['recovery']}" if row.get("recovery") else ""
        lines.append(f"  resumed   {shown(row['resumed_at'])}, after {facts.spoken(row['down_seconds'])}{how}")
    return lines


def _nodes(nodes: object) -> str:
    if isinstance(nodes, list):
        return f"{len(nodes)} nodes" if len(nodes) > 1 else str(nodes[0]) if nodes else "no node"
    return f"{nodes} nodes" if isinstance(nodes, int) else str(nodes)


def _verdict(row: Row) -> list[str]:
    label = row.get("label") or row["cause"]
    lines = [f"  verdict   {label} ({row['cause']}), {facts.percent(row['confidence'])} sure; class {row['class']}"]
    if row.get("category"):
        lines[0] += f", category {row['category']}, hardware {row['hardware']}"
    if row["culprit_node"]:
        gpu = "" if row["culprit_gpu"] is None else f", GPU {row['culprit_gpu']}"
        lines.append(f"  blamed    {row['culprit_node']}{gpu}")
    if row["runner_up_cause"]:
        lines.append(f"  else      {row['runner_up_cause']}, {facts.percent(row['runner_up_confidence'])}")
    if row["unknown_reason"]:
        lines.append(f"  unknown   {row['unknown_reason']}")
    if row.get("rule"):
        lines.append(f"  rule      {row['rule']}")
    return lines


def _say_evidence(evidence: list[Row]) -> None:
    say()
    say("Evidence:" if evidence else "Evidence: none in the window.")
    for item in sorted(evidence, key=lambda e: ROLES.get(e["role"], len(ROLES))):
        device = "" if item["gpu"] is None else f" GPU {clean(item['gpu'])}"
        say(
            f"  {item['role']:<10} {when(item['seconds_before_end']):>16}  {clean(item['node'])}{device}  {clean(item['class'])}"
        )
        say(f"             {clean(item['text'])}")
        for place in item["places"][:PLACES]:
            say(f"             {here(place)}")
        if len(item["places"]) > PLACES:
            say(f"             and {len(item['places']) - PLACES} more places")


def when(seconds_before_end: float | None) -> str:
    """Return when evidence happened, seen from the end of the attempt."""
    if seconds_before_end is None:
        return "at no known time"
    if seconds_before_end == 0:
        return "at the end"
    side = "before" if seconds_before_end > 0 else "after"
    return f"{facts.spoken(abs(seconds_before_end))} {side}"


def costs(row: Row) -> list[str]:
    """Return what it cost, in GPU-hours; what is assumed rather than measured says so."""
    lines = [f"Cost: {facts.gpu_hours(row['lost_gpu_seconds'])} GPU-hours lost"]
    is_assumed = row["lost_work_assumed_seconds"] is not None
    for part, meaning in _LOST:
        if seconds := row.get(f"{part}_gpu_seconds"):
            assumed = " (assumed)" if is_assumed and part in {"lost_work", "starting"} else ""
            lines.append(f"  {facts.gpu_hours(seconds):>10}  {meaning}{assumed}")
    if is_assumed:
        lines.append("  assumed = from checkpoint_interval and restart_overhead in goodput.toml; no training log says")
    return lines


def advice(row: Row) -> list[str]:
    """Return what would make the verdict surer."""
    hints = []
    if row["last_progress_at"] is None:
        hints.append(
            "a training log of the run: it shows the last step, and so when progress stopped and what was lost"
        )
    if not any(e["kind"] in {"hardware event", "standing fault"} for e in row["evidence"]) and not row["is_planned"]:
        hints.append(
            "kernel logs of its nodes over that hour, if they are not among the sources yet (`goodput status`)"
        )
    if row["cause"] == "unknown":
        hints.append(
            f'your own knowledge: goodput annotate {row["interruption_id"][: facts.ID_DIGITS]} --cause X --why "..."'
        )
    return hints
