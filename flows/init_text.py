"""Write what a survey found as a goodput.toml that a person can check."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from pathlib import Path

from flows.cli.terminal import clean
from flows.globs import escaped
from flows.init import RunGuess, SourceGuess, Survey
from flows.init_columns import jobs_without_header
from flows.init_look import Looked

MAX_UNREAD = 30
_COLLECTED = """\
# Collected when? The files' own times count. Where they were copied without them, set collected_at on the source,
# or let the path tell it: path = "exports/sacct-{collected_at}.txt\""""


def text(survey: Survey, base: Path) -> str:
    """Return the text of a configuration that lies in `base`."""
    unit = "GPU" if survey.is_by_gpus else "node"
    parts = [
        "# Written by `goodput init` from what the exports say. Check what is marked CHECK, then: goodput run",
        '[warehouse]\ndata = "data" # lake and warehouse, relative to this file',
        *(_cluster(name, survey) for name in survey.clusters),
        *([_COLLECTED] if any("{collected_at}" not in s.pattern for s in survey.sources) else []),
        *(_source(guess, survey, base) for guess in survey.sources),
        _runs_heading(survey),
        *(_run(guess, unit) for guess in survey.runs),
        *_further(survey, unit),
        *(_headless(guess, survey, base) for guess in survey.headless),
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
        lines.append(f"zone = {quoted(survey.zone.zone)} # CHECK: some times carry no zone; {clean(survey.zone.why)}")
    if gpus := survey.gpus_per_node.get(name):
        lines.append(f"gpus_per_node = {gpus} # from the jobs' AllocTRES")
    else:
        lines.append(f"# gpus_per_node = 8 # CHECK: {_no_gpus(survey)}")
    lines.append("# capacity_gpus = 0 # all GPUs of the cluster, for its utilization")
    return "\n".join(lines)


def _no_gpus(survey: Survey) -> str:
    if not survey.jobs:
        return "no export of jobs was found; this is used for those without AllocTRES"
    if survey.has_tres:
        return "AllocTRES names no GPUs; without this nothing is counted in GPU-hours"
    return "the exports of jobs have no AllocTRES; without this nothing is counted in GPU-hours"


def _source(guess: SourceGuess, survey: Survey, base: Path) -> str:
    lines = [
        f"[[sources]] # {_files(guess)}",
        f"path = {quoted(relative(guess.pattern, base))}{_captures(guess)}",
        f"format = {quoted(guess.format)}",
    ]
    if "cluster" in guess.needs:
        lines.append(_cluster_of(survey))
    if "node" in guess.needs and "{node}" not in guess.pattern:
        lines += [
            "# CHECK: these files do not name their node, nor does this path: their events will have no node.",
            '# Capture it, path = ".../{node}.log", or set node = "..." where all files are of one.',
        ]
    if "job_id" in guess.needs and "{job_id}" not in guess.pattern:
        lines += [
            "# CHECK: a log does not name its job. Without it lines go to the one tracked job that ran at their time, and to none where",
            '# several did. Capture it, path = ".../{job_id}.out", or set job_id = "..." where all files are of one.',
        ]
    return "\n".join(lines)


def _files(guess: SourceGuess) -> str:
    return "1 file" if guess.files == 1 else f"{guess.files} files"


def _cluster_of(survey: Survey) -> str:
    is_sure = len(survey.clusters) == 1 and survey.is_cluster_named
    mark = "" if is_sure else " # CHECK: these files do not name their cluster"
    return f"cluster = {quoted(survey.clusters[0])}{mark}"


def _captures(guess: SourceGuess) -> str:
    """Return a comment on what the path tells."""
    notes = []
    if "{node}" in guess.pattern:
        known = _known(guess.strange_nodes, "are these nodes?")
        notes.append(f"CHECK: these files do not name their node, the path does: {known}")
    if "{job_id}" in guess.pattern:
        known = _known(guess.strange_jobs, "are these jobs?")
        notes.append(f"CHECK: a log does not name its job, the path does: {known}")
    if "{collected_at}" in guess.pattern:
        notes.append("collected at the time in the name; a date alone is the end of that day")
    return f" # {'; '.join(notes)}" if notes else ""


def _known(strange: tuple[str, ...], question: str) -> str:
    """Return whether other exports name what a path tells."""
    if not strange:
        return "all are named by other exports"
    more = ", ..." if len(strange) > 3 else ""
    return f"no other export names {', '.join(clean(n) for n in strange[:3])}{more}; {question}"


def relative(pattern: str, base: Path) -> str:
    """Return a pattern relative to `base` where it lies below it."""
    start = escaped(str(base)) + "/"
    return pattern.removeprefix(start)


def _runs_heading(survey: Survey) -> str:
    if survey.runs:
        unit = "GPU-time" if survey.is_by_gpus else "node-time, since no job tells of GPU-time"
        return f"# Tracked runs: the largest by {unit}. Attempts of one key make up one run; drop what you do not care about."
    why = "No export of jobs was found" if not survey.jobs else "No job tells its user, its name and how long it ran"
    return f'# {why}, so every job is tracked. Name the runs you care about:\n# [[runs]]\n# match = {{ job_name = "llama-*" }}'


def _run(guess: RunGuess, unit: str) -> str:
    return "\n".join(
        [
            f"[[runs]] # {guess.attempts} attempts, up to {guess.size} {unit}s, {guess.hours:,.1f} {unit}-hours",
            f"match = {{ user = {quoted(guess.user)}, job_name = {quoted(glob.escape(guess.job_name))} }}",
            'key = ["user", "job_name"]',
        ]
    )


def _further(survey: Survey, unit: str) -> Iterator[str]:
    """Yield the next runs as commented entries."""
    if survey.further:
        yield "# Not tracked: the next by time. Uncomment those you care about:"
    for guess in survey.further:
        yield "\n".join(f"# {line}" for line in _run(guess, unit).splitlines())


def _headless(guess: SourceGuess, survey: Survey, base: Path) -> str:
    """Return a commented entry for files that look like `sacct -P -n`."""
    names = [name or f"Unknown{position}" for position, name in enumerate(guess.columns, 1)]
    unknown = [name for name, known in zip(names, guess.columns, strict=True) if known is None]
    mark = f"; nothing tells {', '.join(unknown)}" if unknown else ""
    lines = [
        f"# {_files(guess)} without a header, probably of sacct. Compare the columns with the file, then uncomment:",
        "# [[sources]]",
        f"# path = {quoted(relative(guess.pattern, base))}",
        '# format = "slurm_sacct"',
        f"# columns = [{', '.join(map(quoted, names))}] # CHECK: all {len(names)}, guessed from the values{mark}",
    ]
    if "Cluster" not in names:
        lines.append(f"# {_cluster_of(survey)}")
    return "\n".join(lines)


def _all_unread(unread: list[Looked], base: Path) -> Iterator[str]:
    """Yield a comment for each file that cannot be read, those with a reason first; many others are only counted."""
    rest = [x for x in unread if x.problem or not jobs_without_header(x.first_line)]  # the others have their entry
    ordered = sorted(rest, key=lambda x: x.problem is None)
    yield from (_unread(x, base) for x in ordered[:MAX_UNREAD])
    if len(ordered) > MAX_UNREAD:
        yield f"# Not read: {len(ordered) - MAX_UNREAD} more files that no parser knows"


def _unread(looked: Looked, base: Path) -> str:
    path = relative(escaped(str(looked.path)), base)
    why = looked.problem or ("binary" if looked.is_binary else "no parser knows this format")
    lines = [f"# Not read: {clean(path)}: {clean(why)}"]
    if looked.first_line:
        lines.append(f"#   first line: {clean(looked.first_line)}")
    return "\n".join(lines)
