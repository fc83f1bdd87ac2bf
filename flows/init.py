"""Look at exports and find out what a configuration for them has to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.globs import grouped

if TYPE_CHECKING:
    from transforms.outcome import Context
    from transforms.registry import Source

STAND_IN = "main"
"""Name for a cluster that no export names."""
READ_BYTES = 256 << 20
"""How much of a file `init` reads; enough to see clusters, zones and the largest runs."""
TOP_RUNS = 5
_FIRST_LINE = 300


@dataclass(frozen=True, slots=True)
class Looked:
    """What one export says.

    Attributes:
        path: the file.
        format: its format; None = unknown or cannot be told.
        needs: settings it needs and does not carry: zone, cluster, node, columns.
        clusters: clusters it names.
        jobs: (cluster, user, job name, gpus, nodes, GPU-seconds) by attempt, for job exports.
        problem: why it cannot be read; None = it can.
        first_line: its first line, for files that cannot be read.
    """

    path: Path
    format: str | None = None
    needs: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    jobs: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)
    problem: str | None = None
    first_line: str = ""


@dataclass(frozen=True, slots=True)
class RunGuess:
    """A job name of one user that looks like a training run."""

    user: str
    job_name: str
    attempts: int
    gpus: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class SourceGuess:
    """A `[[sources]]` entry.

    Attributes:
        pattern: path or glob.
        format: what its files hold.
        files: how many it matches.
        needs: settings its files need and do not carry.
    """

    pattern: str
    format: str
    files: int
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Survey:
    """What a set of exports says about its configuration.

    Attributes:
        clusters: names of clusters; `main` where none is named.
        is_cluster_named: whether an export names them.
        sources: entries that cover every readable file.
        runs: the largest runs, largest first.
        gpus_per_node: commonest number of GPUs of a node by cluster, where jobs tell.
        unread: files that cannot be read, with why.
    """

    clusters: list[str]
    is_cluster_named: bool
    sources: list[SourceGuess]
    runs: list[RunGuess]
    gpus_per_node: dict[str, int]
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
    readable = [x for x in looked if x.format is not None and x.problem is None]
    named = sorted(set().union(*(x.clusters for x in readable)))
    jobs = {key: job for x in readable for key, job in x.jobs.items()}
    return Survey(
        clusters=named or [STAND_IN],
        is_cluster_named=bool(named),
        sources=_sources(looked, readable),
        runs=_runs(list(jobs.values())),
        gpus_per_node=_gpus_per_node(list(jobs.values())),
        unread=[x for x in looked if x.format is None or x.problem is not None],
    )


def look(path: Path) -> Looked:
    """Look at one file: its format, and what it needs to be read."""
    from transforms import registry
    from transforms.stream import HEAD_BYTES, opened

    try:
        with path.open("rb") as raw:
            head = opened(raw).read(HEAD_BYTES)
    except (OSError, EOFError) as error:
        return Looked(path, problem=f"cannot be read: {error}")
    if not head.strip():
        return Looked(path, problem="is empty")
    first_line = head.split(b"\n", 1)[0][:_FIRST_LINE].decode("utf-8", "replace")
    found = registry.sniff(head)
    if len(found) != 1:
        names = ", ".join(s.name for s in found)
        return Looked(path, problem=f"may be any of {names}; set `format`" if found else None, first_line=first_line)
    return replace(_read(path, found[0]), first_line=first_line)


def _read(path: Path, source: Source) -> Looked:
    """Parse a file with as few settings as it takes, and say which it took."""
    from transforms.outcome import Context, MissingSettingError, UnreadableExportError

    stand_ins = {"zone": "UTC", "cluster": STAND_IN, "node": "node"}
    needs: set[str] = set()
    collected_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    while True:
        known = {k: v for k, v in stand_ins.items() if k in needs}
        context = Context(collected_at, known.get("cluster"), zone=known.get("zone"), node=known.get("node"))
        try:
            clusters, jobs = _facts(path, source, context)
        except MissingSettingError as error:
            missing = next((k for k in stand_ins if f"`{k}`" in str(error) and k not in needs), None)
            if missing is None:
                return Looked(path, source.name, frozenset(needs), problem=str(error))
            needs.add(missing)
        except (UnreadableExportError, OSError, EOFError) as error:
            return Looked(path, source.name, frozenset(needs), problem=str(error))
        except Exception as error:  # noqa: BLE001 - a fault in one parser must not hide the other exports
            reason = f"the parser {source.name} failed on it ({type(error).__name__}: {error}); please report it"
            return Looked(path, source.name, frozenset(needs), problem=reason)
        else:
            clusters -= {STAND_IN} if "cluster" in needs else set()
            return Looked(path, source.name, frozenset(needs), frozenset(clusters), jobs)


def _facts(path: Path, source: Source, context: Context) -> tuple[set[str], dict[tuple[Any, ...], tuple[Any, ...]]]:
    """Return the clusters a file names, and its job attempts."""
    from flows.loading import DOCUMENT_BYTES
    from transforms.stream import HEAD_BYTES, MAX_LINE_BYTES, ExportStream, is_compressed, opened

    clusters: set[str] = set()
    jobs: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    with path.open("rb") as raw:
        head = opened(raw).read(HEAD_BYTES)
        raw.seek(0)
        is_whole, is_packed = source.is_document, is_compressed(raw.read(8))
        length = READ_BYTES if not is_whole else None if is_packed else path.stat().st_size
        raw.seek(0)
        longest = DOCUMENT_BYTES if is_whole else MAX_LINE_BYTES
        stream = ExportStream(opened(raw), head=head, length=length, max_line=longest)
        for parsed in source.parse(stream, context):
            for table, frame in parsed.frames.items():
                if "cluster" in frame.columns:
                    clusters.update(frame["cluster"].drop_nulls().unique().to_list())
                if table == "job_attempts":
                    jobs.update(_jobs(frame))
    return clusters, jobs


def _jobs(frame: Any) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Yield job attempts by identity: cluster, user, job name, GPUs, nodes, GPU-seconds."""
    columns = ("cluster", "job_id_raw", "submitted_at", "started_at", "user", "job_name", "gpus", "node_count")
    for row in frame.filter(~frame["is_request"]).select(*columns, "elapsed_seconds").iter_rows(named=True):
        gpus = row["gpus"] or 0
        identity = tuple(row[c] for c in columns[:4])
        yield (
            identity,
            (
                *(row[c] for c in ("cluster", "user", "job_name")),
                gpus,
                row["node_count"] or 0,
                gpus * (row["elapsed_seconds"] or 0),
            ),
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


def _sources(looked: list[Looked], readable: list[Looked]) -> list[SourceGuess]:
    everything = [x.path for x in looked]
    kinds: dict[tuple[str, frozenset[str]], list[Path]] = {}
    for x in readable:
        kinds.setdefault((x.format or "", x.needs), []).append(x.path)
    return [
        SourceGuess(pattern, name, count, needs)
        for (name, needs), paths in sorted(kinds.items(), key=lambda kind: (kind[0][0], sorted(kind[0][1])))
        for pattern, count in grouped(paths, everything)
    ]


def _runs(jobs: list[tuple[Any, ...]]) -> list[RunGuess]:
    """Return the runs with most GPU-time that are large or were resumed, largest first."""
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for job in jobs:
        if job[1] and job[2] and job[5]:
            groups.setdefault((job[1], job[2]), []).append(job)
    guesses = [
        RunGuess(user, name, len(group), max(j[3] for j in group), sum(j[5] for j in group) / 3600)
        for (user, name), group in groups.items()
    ]
    largest = max((g.gpus for g in guesses), default=0)
    fit = [g for g in guesses if 2 * g.gpus >= largest]
    return sorted(fit, key=lambda g: (-g.gpu_hours, g.user, g.job_name))[:TOP_RUNS]


def _gpus_per_node(jobs: list[tuple[Any, ...]]) -> dict[str, int]:
    """Return the commonest number of GPUs of a node, from jobs of the most nodes that share them out evenly."""
    counts: dict[str, Counter[int]] = {}
    for cluster, _, _, gpus, nodes, _ in jobs:
        if cluster and nodes and gpus and gpus % nodes == 0:
            counts.setdefault(cluster, Counter())[gpus // nodes] += nodes
    return {cluster: counter.most_common(1)[0][0] for cluster, counter in counts.items()}
