"""Look at one export: its format, what it needs to be read, and what it says about the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from transforms.outcome import Context
    from transforms.registry import Source

STAND_IN = "main"
"""Name for a cluster that no export names."""
READ_BYTES = 256 << 20
"""How much of a file `init` reads; enough to see clusters, zones and the largest runs."""
MAX_LINES = 500
_FIRST_LINE = 300
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\x1b\x1e\x1f")
_OF_MANY = re.compile(r"[A-Za-z0-9][\w.-]*: ")
"""What pdsh and clush put before each line: the node."""
_OFFSET_STAMP = re.compile(r"^(?:<\d+>(?:1 )?)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?(?:([+-])(\d\d):?(\d\d)|Z)")


class Job(NamedTuple):
    """A job attempt, as far as a proposal needs it. `gpus` None = the export does not tell."""

    cluster: str
    user: str | None
    account: str | None
    partition: str | None
    job_name: str | None
    gpus: int | None
    nodes: int
    seconds: int


class Offset(NamedTuple):
    """A stamp with an offset from UTC, as printed."""

    local: datetime
    offset: timedelta


@dataclass(frozen=True, slots=True)
class Looked:
    """What one export says.

    Attributes:
        path: the file.
        format: its format; None = unknown or cannot be told.
        needs: settings it needs and does not carry: zone, cluster, node, job_id, columns.
        clusters: clusters it names.
        nodes: nodes it names.
        jobs: its job attempts by identity.
        job_ids: ids of the jobs it names.
        is_blank: it holds no record, so that nobody knows what its records would name.
        is_node_open: its lines tell of no event, so that nobody knows whether they would name their node.
        offsets: stamps with an offset from UTC, the first and last of its first lines.
        problem: why it cannot be read; None = it can.
        is_empty: it has no content.
        is_binary: it is no text.
        lines: its first lines, for files that cannot be read.
    """

    path: Path
    format: str | None = None
    needs: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    jobs: dict[tuple[Any, ...], Job] = field(default_factory=dict)
    job_ids: frozenset[str] = frozenset()
    is_blank: bool = False
    is_node_open: bool = False
    offsets: tuple[Offset, ...] = ()
    problem: str | None = None
    is_empty: bool = False
    is_binary: bool = False
    lines: tuple[str, ...] = ()

    @property
    def first_line(self) -> str:
        """The first line, cut; empty where there is none to show."""
        return self.lines[0][:_FIRST_LINE] if self.lines else ""


def look(path: Path) -> Looked:
    """Look at one file: its format, and what it needs to be read."""
    from transforms import registry
    from transforms.stream import HEAD_BYTES, opened

    try:
        with path.open("rb") as raw:
            head = opened(raw).read(HEAD_BYTES)
    except Exception as error:  # noqa: BLE001 - decompressors raise errors of many kinds
        return Looked(path, problem=f"cannot be read: {error}")
    if not head.strip():
        return Looked(path, problem="is empty", is_empty=True)
    found = registry.sniff(head)
    if not found and is_binary(head):
        return Looked(path, is_binary=True)
    lines = tuple(head.decode("utf-8", "replace").splitlines()[:MAX_LINES])
    if len(found) != 1:
        names = ", ".join(s.name for s in found)
        return Looked(path, problem=f"may be any of {names}; set `format`" if found else None, lines=lines)
    looked = _read(path, found[0])
    if found[0].name == "kernel_log":
        needs = (looked.needs - {"node"}) | ({"node"} if _lacks_host(lines) else set())
        looked = replace(looked, needs=needs, is_node_open=False, offsets=offsets_in(lines))
    if looked.is_node_open and all(map(_OF_MANY.match, filter(None, lines))):
        looked = replace(looked, is_node_open=False)
    if found[0].name == "training_log":
        looked = replace(looked, needs=looked.needs | {"job_id"})
    return replace(looked, lines=lines)


def is_binary(head: bytes) -> bool:
    """Tell whether bytes are no text in any encoding that keeps ASCII: they hold NUL or many control characters."""
    sample = head[:4096]
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in sample)
    return b"\0" in sample or 50 * controls > len(sample)


def offsets_in(lines: tuple[str, ...]) -> tuple[Offset, ...]:
    """Return the first and the last stamp of `lines` that has an offset from UTC."""
    found = [match for line in lines if (match := _OFFSET_STAMP.match(line))]
    return tuple(_offset(match) for match in dict.fromkeys(found[:1] + found[-1:]))


def _offset(match: re.Match[str]) -> Offset:
    minutes = 60 * int(match[3] or 0) + int(match[4] or 0)
    try:
        local = datetime.fromisoformat(match[1])
    except ValueError:
        local = datetime.min  # noqa: DTZ901 - local by nature
    return Offset(local, timedelta(minutes=-minutes if match[2] == "-" else minutes))


def _lacks_host(lines: tuple[str, ...]) -> bool:
    """Tell whether a kernel log has lines that do not name their host."""
    from transforms.parsing.kernel.headers import HeaderReader

    reader = HeaderReader()
    headers = [h for line in lines if (h := reader.split(line)) is not None and h.is_kernel]
    return 2 * sum(h.host is None for h in headers) > len(headers)


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
            facts = _facts(path, source, context)
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
            clusters = facts.clusters - ({STAND_IN} if "cluster" in needs else set())
            nodes = facts.nodes - ({"node"} if "node" in needs else set())
            is_open = "hardware_events" in {t.name for t in source.tables} and not facts.events and "node" not in needs
            if 2 * facts.nodeless > facts.events:
                needs.add("node")
            return Looked(
                path,
                source.name,
                frozenset(needs),
                frozenset(clusters),
                frozenset(nodes),
                facts.jobs,
                frozenset(facts.job_ids),
                is_blank=not facts.records,
                is_node_open=is_open,
            )


@dataclass(slots=True)
class _Facts:
    clusters: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    jobs: dict[tuple[Any, ...], Job] = field(default_factory=dict)
    job_ids: set[str] = field(default_factory=set)
    records: int = 0
    events: int = 0
    nodeless: int = 0


def _facts(path: Path, source: Source, context: Context) -> _Facts:
    """Return the clusters and nodes a file names, and its job attempts."""
    from flows.loading import DOCUMENT_BYTES
    from transforms.stream import HEAD_BYTES, MAX_LINE_BYTES, ExportStream, is_compressed, opened

    facts = _Facts()
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
                _note(facts, table, frame)
    return facts


def _note(facts: _Facts, table: str, frame: Any) -> None:
    facts.records += len(frame)
    if "cluster" in frame.columns:
        facts.clusters.update(frame["cluster"].drop_nulls().unique().to_list())
    if "node" in frame.columns:
        facts.nodes.update(frame["node"].drop_nulls().unique().to_list())
    if table == "host_lists":
        facts.nodes.update(frame["nodes"].explode().drop_nulls().unique().to_list())
    if table == "job_attempts":
        facts.jobs.update(_jobs(frame))
        for column in ("job_id", "job_id_raw"):
            facts.job_ids.update(frame[column].drop_nulls().to_list())
    if table == "hardware_events":
        facts.events += len(frame)
        facts.nodeless += frame["node"].null_count()


def _jobs(frame: Any) -> Iterator[tuple[tuple[Any, ...], Job]]:
    """Yield job attempts by identity: cluster, job, submission and start."""
    identity = ("cluster", "job_id_raw", "submitted_at", "started_at")
    more = ("user", "account", "partition", "job_name", "gpus", "node_count", "elapsed_seconds", "ended_at")
    columns = (*identity, *more, "state", "collected_at")
    for row in frame.filter(~frame["is_request"]).select(columns).iter_rows(named=True):
        names = {c: row[c] for c in ("cluster", "user", "account", "partition", "job_name", "gpus")}
        yield tuple(row[c] for c in identity), Job(**names, nodes=row["node_count"] or 0, seconds=_seconds(row))


def _seconds(row: dict[str, Any]) -> int:
    """Return how long an attempt ran, seconds: as printed, else from start to end, or to the collection while it runs."""
    if row["elapsed_seconds"] is not None:
        return int(row["elapsed_seconds"])
    end = row["ended_at"] or (row["collected_at"] if row["state"] == "RUNNING" else None)
    if row["started_at"] is None or end is None:
        return 0
    return max(int((end - row["started_at"]).total_seconds()), 0)
