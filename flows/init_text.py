"""Write what a survey found as a goodput.toml that a person can check."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from pathlib import Path

from flows.cli.terminal import clean
from flows.init import Looked, RunGuess, SourceGuess, Survey

MAX_UNREAD = 30
_COLLECTED = """\
# Collected when? The files' own times count. Where they were copied without them, set collected_at on the source,
# or let the path tell it: path = "exports/{collected_at}/*.txt\""""
_JOB_STATES = {
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "REQUEUED",
    "OUT_OF_MEMORY",
    "RUNNING",
}


def text(survey: Survey, base: Path) -> str:
    """Return the text of a configuration that lies in `base`."""
    parts = [
        "# Written by `goodput init` from what the exports say. Check what is marked CHECK, then: goodput run",
        '[warehouse]\ndata = "data" # lake and warehouse, relative to this file',
        *(_cluster(name, survey) for name in survey.clusters),
        _COLLECTED,
        *(_source(guess, survey, base) for guess in survey.sources),
        _runs_heading(survey),
        *(_run(guess) for guess in survey.runs),
        *_all_unread(survey.unread, base),
    ]
    return "\n\n".join(parts) + "\n"


def quoted(value: str) -> str:
    """Return a TOML basic string."""
    plain = value.encode("utf-8", "replace").decode("utf-8")
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else _escape(c) for c in escaped) + '"'


def key(name: str) -> str:
    """Return a TOML key, bare where it may be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04X}" if ord(char) < 0x10000 else f"\\U{ord(char):08X}"


def _cluster(name: str, survey: Survey) -> str:
    lines = [f"[clusters.{key(name)}]"]
    if not survey.is_cluster_named:
        lines[0] += " # CHECK: no export names its cluster; this is a stand-in"
    if survey.needs_zone:
        lines.append('zone = "UTC" # CHECK: times in these exports carry no zone; give the one they were printed in')
    if gpus := survey.gpus_per_node.get(name):
        lines.append(f"gpus_per_node = {gpus} # from the jobs' AllocTRES")
    lines.append("# capacity_gpus = 0 # all GPUs of the cluster, for its utilization")
    return "\n".join(lines)


def _source(guess: SourceGuess, survey: Survey, base: Path) -> str:
    files = "1 file" if guess.files == 1 else f"{guess.files} files"
    lines = [
        f"[[sources]] # {files}",
        f"path = {quoted(relative(guess.pattern, base))}",
        f"format = {quoted(guess.format)}",
    ]
    if "cluster" in guess.needs:
        is_sure = len(survey.clusters) == 1 and survey.is_cluster_named
        mark = "" if is_sure else " # CHECK: these files do not name their cluster"
        lines.append(f"cluster = {quoted(survey.clusters[0])}{mark}")
    if "node" in guess.needs:
        lines.append(
            'node = "NODE" # CHECK: these files do not name their node; or capture it: path = ".../{node}/..."'
        )
    return "\n".join(lines)


def relative(pattern: str, base: Path) -> str:
    """Return a pattern relative to `base` where it lies below it."""
    start = glob.escape(str(base)) + "/"
    return pattern.removeprefix(start)


def _runs_heading(survey: Survey) -> str:
    if not survey.runs:
        return '# No job tells of GPU-time, so every job is tracked. Name the runs you care about:\n# [[runs]]\n# match = { job_name = "llama-*" }'
    return (
        "# Tracked runs: the largest by GPU-time. Attempts of one key make up one run; drop what you do not care about."
    )


def _run(guess: RunGuess) -> str:
    return "\n".join(
        [
            f"[[runs]] # {guess.attempts} attempts, up to {guess.gpus} GPUs, {guess.gpu_hours:,.1f} GPU-hours",
            f"match = {{ user = {quoted(guess.user)}, job_name = {quoted(glob.escape(guess.job_name))} }}",
            'key = ["user", "job_name"]',
        ]
    )


def jobs_without_header(line: str) -> int:
    """Return how many columns `line` has if it looks like a job of `sacct -P -n` (without a header), else 0."""
    fields = line.split("|")
    return len(fields) if any(field.partition(" ")[0] in _JOB_STATES for field in fields) else 0


def _all_unread(unread: list[Looked], base: Path) -> Iterator[str]:
    """Yield a comment for each file that cannot be read, those that can be helped first; many others are only counted."""
    ordered = sorted(unread, key=lambda x: (not jobs_without_header(x.first_line), x.problem is None))
    helped = sum(bool(jobs_without_header(x.first_line)) for x in ordered)
    listed = max(helped, MAX_UNREAD)
    yield from (_unread(x, base) for x in ordered[:listed])
    if len(ordered) > listed:
        yield f"# Not read: {len(ordered) - listed} more files that no parser knows"


def _unread(looked: Looked, base: Path) -> str:
    path = relative(glob.escape(str(looked.path)), base)
    lines = [f"# Not read: {clean(path)}: {clean(looked.problem or 'no parser knows this format')}"]
    if looked.first_line:
        lines.append(f"#   first line: {clean(looked.first_line)}")
    fields = jobs_without_header(looked.first_line)
    if looked.problem is None and fields:
        lines += [
            f"# If these are {fields} columns printed without a header, name them:",
            "# [[sources]]",
            f"# path = {quoted(path)}",
            '# format = "slurm_sacct"',
            f'# columns = ["JobID", "State", "..."] # all {fields}, in order',
        ]
    return "\n".join(lines)
