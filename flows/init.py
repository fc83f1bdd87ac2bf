"""Look at exports and find out what a configuration for them has to say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flows.globs import grouped
from flows.globs_names import Names
from flows.init_columns import Words, guess, jobs_without_header
from flows.init_look import STAND_IN, Job, Looked, look
from flows.init_zone import ZoneGuess
from flows.init_zone import guess as guess_zone
from flows.landing import expression

TOP_RUNS = 5
FURTHER_RUNS = 4
NODELESS = frozenset({"dcgm_diag", "ipmi_sel"})
"""Formats whose files, as their tools print them, name no node."""


@dataclass(frozen=True, slots=True)
class RunGuess:
    """A job name of one user that looks like a training run.

    Attributes:
        user: user.
        job_name: job name.
        attempts: attempts seen.
        size: most GPUs that an attempt held; most nodes where no job tells its GPUs.
        hours: GPU-hours, or node-hours.
    """

    user: str
    job_name: str
    attempts: int
    size: int
    hours: float


@dataclass(frozen=True, slots=True)
class SourceGuess:
    """A `[[sources]]` entry.

    Attributes:
        pattern: path, glob, or pattern with captures.
        format: what its files hold.
        files: how many it matches.
        needs: settings its files need and do not carry.
        strange_nodes: captured names of nodes that no other export names.
        strange_jobs: captured ids of jobs that no export names.
        columns: guessed column names of files without a header; None = the values do not tell.
    """

    pattern: str
    format: str
    files: int
    needs: frozenset[str]
    strange_nodes: tuple[str, ...] = ()
    strange_jobs: tuple[str, ...] = ()
    columns: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """What a set of exports says about its configuration.

    Attributes:
        clusters: names of clusters; `main` where none is named.
        is_cluster_named: whether an export names them.
        sources: entries that cover every readable file.
        headless: entries for files that look like jobs without a header, with their guessed columns.
        runs: the largest runs, largest first.
        further: those with most GPU-time (or node-time) of the others.
        is_by_gpus: whether runs are measured in GPUs; False = no job tells its GPUs, so in nodes.
        jobs: number of job attempts.
        gpus_per_node: commonest number of GPUs of a node by cluster, where jobs tell.
        has_tres: whether any job attempt has AllocTRES.
        zone: zone for times that carry none.
        unread: files that cannot be read, with why.
    """

    clusters: list[str]
    is_cluster_named: bool
    sources: list[SourceGuess]
    headless: list[SourceGuess]
    runs: list[RunGuess]
    further: list[RunGuess]
    is_by_gpus: bool
    jobs: int
    gpus_per_node: dict[str, int]
    has_tres: bool
    zone: ZoneGuess
    unread: list[Looked]

    @property
    def needs_zone(self) -> bool:
        """Whether any export prints times without a zone."""
        return any("zone" in s.needs for s in self.sources)


def survey(paths: Sequence[Path]) -> Survey:
    """Look at every file in `paths`, folders with all that is in them.

    Raises:
        FileNotFoundError: a path does not exist.
    """
    looked = [look(path) for path in sorted(set(_files(paths)))]
    readable = _settled(_joined([x for x in looked if x.format is not None and x.problem is None]))
    named = sorted(set().union(*(x.clusters for x in readable)))
    nodes = frozenset[str]().union(*(x.nodes for x in readable))
    job_ids = frozenset[str]().union(*(x.job_ids for x in readable))
    jobs = _all_jobs(readable, named)
    is_by_gpus = any(job.gpus for job in jobs) or not any(job.nodes for job in jobs)
    runs, further = _runs(jobs, is_by_gpus=is_by_gpus)
    headless = [x for x in looked if x.format is None and x.problem is None and jobs_without_header(x.first_line)]
    return Survey(
        clusters=named or [STAND_IN],
        is_cluster_named=bool(named),
        sources=_sources(looked, readable, nodes, job_ids),
        headless=_headless(looked, headless, Words(_words(jobs, named), nodes)),
        runs=runs,
        further=further,
        is_by_gpus=is_by_gpus,
        jobs=len(jobs),
        gpus_per_node=_gpus_per_node(jobs),
        has_tres=any(job.gpus is not None for job in jobs),
        zone=guess_zone({x.path: x.offsets for x in readable if x.offsets}),
        unread=[x for x in looked if x.format is None or x.problem is not None],
    )


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inside = (p for p in path.rglob("*") if p.is_file())
            yield from (p for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts))
        elif path.is_file():
            yield path
        else:
            raise FileNotFoundError(f"{path}: is no file or folder")


def _all_jobs(readable: list[Looked], named: list[str]) -> list[Job]:
    """Return every job attempt once; those of exports that name no cluster are of the only one that is named."""
    cluster = named[0] if len(named) == 1 else STAND_IN
    jobs: dict[tuple[Any, ...], Job] = {}
    for looked in readable:
        for key, job in looked.jobs.items():
            where = cluster if job.cluster == STAND_IN and "cluster" in looked.needs else job.cluster
            jobs[(where, *key[1:])] = job._replace(cluster=where)
    return list(jobs.values())


def _joined(readable: list[Looked]) -> list[Looked]:
    """Let files without a record need a cluster where the others need one: those named alike, else those of the format."""
    decided: dict[tuple[str | None, str], set[bool]] = {}
    for x in readable:
        if not x.is_blank:
            for kind in (_alike(x.path), ""):
                decided.setdefault((x.format, kind), set()).add("cluster" in x.needs)
    return [
        replace(x, needs=x.needs | {"cluster"})
        if x.is_blank and (decided.get((x.format, _alike(x.path))) or decided.get((x.format, ""))) == {True}
        else x
        for x in readable
    ]


def _alike(path: Path) -> str:
    """Return what names of one series of files, in whatever folder, have in common: all but their numbers."""
    return re.sub(r"\d+", "*", path.name)


def _settled(readable: list[Looked]) -> list[Looked]:
    """Let files that tell of no event need a node where the others of their format do.

    Where no other decides, those formats need one whose lines never name it by themselves.
    """
    decided: dict[str | None, set[bool]] = {}
    for x in readable:
        if not x.is_node_open:
            decided.setdefault(x.format, set()).add("node" in x.needs)
    return [
        replace(x, needs=x.needs | {"node"})
        if x.is_node_open and decided.get(x.format, {x.format in NODELESS}) == {True}
        else x
        for x in readable
    ]


def _sources(
    looked: list[Looked], readable: list[Looked], nodes: Collection[str], jobs: Collection[str]
) -> list[SourceGuess]:
    """Return the entries; a missing zone makes no other kind of file, since it is set for the whole cluster.

    A file without content is no other kind either: whatever source matches it, nothing is read of it.
    """
    everything = [x.path for x in looked if not x.is_empty]
    kinds: dict[tuple[str, bool, bool], dict[Path, Looked]] = {}
    for x in readable:
        kinds.setdefault((x.format or "", "cluster" in x.needs, "node" in x.needs), {})[x.path] = x
    return [
        _source(pattern, count, files, nodes, jobs)
        for _, files in sorted(kinds.items(), key=lambda kind: kind[0])
        for pattern, count in grouped(files, everything, _names(files, nodes, jobs))
    ]


def _names(files: dict[Path, Looked], nodes: Collection[str], jobs: Collection[str]) -> Names:
    """Return what the paths of files of one kind may tell."""
    needs = next(iter(files.values())).needs
    single = {name for x in files.values() if len(x.nodes) == 1 for name in x.nodes}
    return Names(
        nodes=nodes if "node" in needs else None,
        jobs=jobs if "job_id" in needs else None,
        own=() if "node" in needs else single | {name.partition(".")[0] for name in single},
    )


def _source(
    pattern: str, count: int, files: dict[Path, Looked], nodes: Collection[str], jobs: Collection[str]
) -> SourceGuess:
    fits = expression(pattern)
    matches = {path: match.groupdict() for path in files if (match := fits.fullmatch(str(path)))}
    strange = {
        capture: tuple(sorted({m[capture] for m in matches.values() if capture in m} - set(known)))
        for capture, known in (("node", nodes), ("job_id", jobs))
    }
    needs = frozenset[str]().union(*(files[path].needs for path in matches))
    name = next(iter(files.values())).format or ""
    return SourceGuess(pattern, name, count, needs, strange["node"], strange["job_id"])


def _headless(looked: list[Looked], headless: list[Looked], words: Words) -> list[SourceGuess]:
    """Return an entry for each group of files without a header whose columns look the same."""
    everything = [x.path for x in looked]
    kinds: dict[tuple[str | None, ...], list[Path]] = {}
    for x in headless:
        kinds.setdefault(tuple(guess(x.lines, words)), []).append(x.path)
    return [
        SourceGuess(pattern, "slurm_sacct", count, frozenset(), columns=columns)
        for columns, paths in kinds.items()
        for pattern, count in grouped(paths, everything)
    ]


def _words(jobs: list[Job], clusters: list[str]) -> dict[str, frozenset[str]]:
    """Return the names that jobs use, by the column of sacct that holds them."""
    fields = {"User": "user", "Account": "account", "Partition": "partition", "JobName": "job_name"}
    told = {column: frozenset(filter(None, (getattr(j, f) for j in jobs))) for column, f in fields.items()}
    return told | {"Cluster": frozenset(clusters)}


def _runs(jobs: list[Job], *, is_by_gpus: bool) -> tuple[list[RunGuess], list[RunGuess]]:
    """Return the runs with most GPU-time (or node-time) that are large, and the next of all others, largest first."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        sized = job._replace(nodes=(job.gpus or 0) if is_by_gpus else job.nodes)
        if job.user and job.job_name and sized.nodes * job.seconds:
            groups.setdefault((job.user, job.job_name), []).append(sized)
    guesses = [
        RunGuess(user, name, len(group), max(j.nodes for j in group), sum(j.nodes * j.seconds for j in group) / 3600)
        for (user, name), group in groups.items()
    ]
    largest = max((g.size for g in guesses), default=0)
    guesses.sort(key=lambda g: (-g.hours, g.user, g.job_name))
    top = [g for g in guesses if 2 * g.size >= largest][:TOP_RUNS]
    return top, [g for g in guesses if g not in top][:FURTHER_RUNS]


def _gpus_per_node(jobs: list[Job]) -> dict[str, int]:
    """Return the commonest number of GPUs of a node, from jobs of the most nodes that share them out evenly."""
    counts: dict[str, Counter[int]] = {}
    for job in jobs:
        if job.cluster and job.nodes and job.gpus and job.gpus % job.nodes == 0:
            counts.setdefault(job.cluster, Counter())[job.gpus // job.nodes] += job.nodes
    return {cluster: counter.most_common(1)[0][0] for cluster, counter in counts.items()}
