"""An interruption as a short report in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.cli import facts
from flows.cli.evidence import say_evidence
from flows.cli.interruptions import held, unpriced, waiting
from flows.cli.terminal import clean, say, say_wrapped, shown, title
from flows.cli.words import (
    WEAK,
    command,
    confidence,
    counted,
    gpu_hours,
    is_class_weak,
    is_labelled,
    is_weak,
    spoken,
)

Row = Mapping[str, Any]

INDENT = 12
"""Where the words begin behind "verdict" and its like."""

HARDWARE = {
    "confirmed": "confirmed: a fatal device event, a failed diagnostic or a replaced part says so",
    "suspected": "suspected: likely, but no fatal device event, failed diagnostic or replaced part proves it",
}

_LOST = (("stalled", "no progress before the end"), ("lost_work", "done again since the last checkpoint"),
         ("starting", "starting up again"))  # fmt: skip


def say_report(row: Row, *, is_all: bool = False) -> None:
    """Print an interruption: what stopped, why, what proves it (`is_all`: every piece), what it cost, what would help."""
    title(headline(row))
    for line in [*_what(row), *_verdict(row)]:
        say_wrapped(line, INDENT)
    say_evidence(row, is_all=is_all)
    say()
    for line in costs(row):
        say_wrapped(line, 4)
    if hints := advice(row):
        say()
        say("Surer with:")
        for hint in hints:
            say_wrapped(f"  - {hint}", 4)


def headline(row: Row) -> str:
    """Return which run stopped and when."""
    run = clean(row.get("run") or row["run_id"])
    return f"{run} on {clean(row['cluster'])} was interrupted at {shown(row['interrupted_at'])} UTC  [{row['interruption_id']}]"


def _what(row: Row) -> list[str]:
    state = f"{row['scheduler_state']}, exit code {row['exit_code']}:{row['signal']}"
    gpus = "an unknown number of GPUs" if row["gpus"] is None else counted(row["gpus"], "GPU")
    where = f"{gpus} on {_nodes(row['nodes'])}, since {shown(row['started_at'])}"
    which = f"job {row['job_id']}, its attempt {row['attempt']} (attempt {row['run_attempt']} of the run)"
    lines = [f"  stopped   {which}, {where}; Slurm says {state}"]
    if row["resumed_at"] is None:
        lines.append("  resumed   not within the data")
    else:
        how = f", {row['recovery']}" if row.get("recovery") else ""
        lines.append(f"  resumed   {shown(row['resumed_at'])}, after {spoken(row['down_seconds'])}{how}")
    return lines


def _nodes(nodes: object) -> str:
    if isinstance(nodes, list):
        return counted(len(nodes), "node") if len(nodes) > 1 else str(nodes[0]) if nodes else "no node"
    return counted(nodes, "node") if isinstance(nodes, int) else "an unknown number of nodes"


def _verdict(row: Row) -> list[str]:
    if row["cause"] == "unknown":
        lines = [f"  verdict   unknown: {row['unknown_reason'] or 'nothing speaks for a cause'}; class {row['class']}"]
    else:
        weak = f", weak: below {WEAK:.0%}, so that another cause is likelier than this one" if is_weak(row) else ""
        how = "operator's label" if is_labelled(row) else f"{confidence(row['confidence'])} sure{weak}"
        name = f"{row.get('label') or row['cause']} ({row['cause']}), {how}"
        category = f", category {row['category']}" if row.get("category") else ""
        lines = [f"  verdict   {name}; class {_class(row)}{category}"]
        if row.get("hardware"):
            lines.append(f"  hardware  {HARDWARE.get(row['hardware'], row['hardware'])}")
    if row["culprit_node"]:
        gpu = "" if row["culprit_gpu"] is None else f", GPU {row['culprit_gpu']}"
        lines.append(f"  blamed    {row['culprit_node']}{gpu}")
    if row["runner_up_cause"]:
        lines.append(f"  else      {_else(row)}")
    if row.get("rule"):
        lines.append(f"  rule      {row['rule']}")
    return lines


def _class(row: Row) -> str:
    """Return the class; how sure that is where it is not as sure as the cause: causes of one class may rival each other."""
    share = row.get("class_confidence")
    if share is None or is_labelled(row) or not (row["is_planned"] or is_weak(row) or is_class_weak(row)):
        return str(row["class"])
    weak = f", weak: below {WEAK:.0%}, so that another class is likelier" if is_class_weak(row) else ""
    return f"{row['class']} ({confidence(share)} sure{weak})"


def _else(row: Row) -> str:
    """Return the runner-up; of a labelled interruption that is what the program says by itself."""
    cause = row["runner_up_cause"]
    is_sure = not (is_labelled(row) and cause == "unknown")
    share = f", {confidence(row['runner_up_confidence'])}" if is_sure else ""
    return f"{'the program says: ' if is_labelled(row) else ''}{cause}{share}"


def costs(row: Row) -> list[str]:
    """Return what it cost, in GPU-hours: on GPUs held, and waiting. What is assumed rather than measured says so."""
    if row["lost_gpu_seconds"] is None:
        return [f"Cost: {text}" for text in unpriced([row])]
    assumed = {part: row.get(f"{part}_assumed_gpu_seconds") for part in ("lost_work", "starting")}
    lines = [
        f"Cost: {gpu_hours(row['lost_gpu_seconds'])} GPU-hours lost",
        f"  {gpu_hours(held(row)):>10}  on GPUs that were held",
    ]
    for part, meaning in _LOST:
        if seconds := row.get(f"{part}_gpu_seconds"):
            of = f", of {row['lost_work_attempts']} attempts" if part == "lost_work" and _is_of_several(row) else ""
            lines.append(f"    {gpu_hours(seconds):>10}  {meaning}{of}{_assumed(seconds, assumed.get(part))}")
    lines.append(f"  {gpu_hours(waiting(row)):>10}  waiting for the next start, not held")
    lines += [f"  {text}" for text in unpriced([row])]
    if any(assumed.values()):
        lines.append("  assumed = from checkpoint_interval and restart_overhead in goodput.toml; no training log says")
    return lines


def _is_of_several(row: Row) -> bool:
    """Tell whether what is done again had been done by more attempts than the one that stopped."""
    return int(row.get("lost_work_attempts") or 0) > 1


def _assumed(seconds: int, assumed: int | None) -> str:
    """Return how much of a cost is assumed, in a bracket: all of it, some, or none."""
    if not assumed:
        return ""
    return " (assumed)" if assumed >= seconds else f" ({gpu_hours(assumed)} of it assumed)"


def advice(row: Row) -> list[str]:
    """Return what would make the verdict surer."""
    hints = []
    if row["last_progress_at"] is None:
        hints.append(
            "a training log of the run: it shows the last step, and so when progress stopped and what was lost"
        )
    if not any(e["kind"] in {"hardware event", "standing fault"} for e in row["evidence"]) and not row["is_planned"]:
        status = command("status")
        hints.append(f"kernel logs of its nodes over that hour, if they are not among the sources yet ({status})")
    if row["cause"] == "unknown" or is_weak(row):
        label = command(f'annotate {row["interruption_id"][: facts.ID_DIGITS]} --cause X --why "..."')
        hints.append(f"your own knowledge: {label}")
    return hints
