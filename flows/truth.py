"""The truth about interruptions, as a simulation or an operator knows it: one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_KEYS = {"cluster", "run", "job_id_raw", "interrupted_at", "causes", "is_planned", "node", "identifiable"}


class TruthError(Exception):
    """The file of truths cannot be used; the message names file, line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known to have happened.

    Attributes:
        cluster: cluster.
        interrupted_at: UTC time at which the run stopped making progress.
        run: run id or name; None = not told.
        job_id_raw: job that was interrupted; None = not told.
        causes: causes that are right, any of them; empty = not told.
        is_planned: whether it was planned; None = not told.
        node: node that is to blame; None = none, or not told.
        is_identifiable: whether the exports hold what it takes to find the cause.
    """

    cluster: str
    interrupted_at: datetime
    run: str | None = None
    job_id_raw: str | None = None
    causes: tuple[str, ...] = ()
    is_planned: bool | None = None
    node: str | None = None
    is_identifiable: bool = True


def read_truths(path: Path) -> list[Truth]:
    """Read truths, one JSON object a line.

    Raises:
        TruthError: the file or a line of it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise TruthError(
            f"{path}: {error.strerror}; give the file that holds the truth, one JSON object a line"
        ) from None
    except UnicodeDecodeError:
        raise TruthError(f"{path}: is not UTF-8 text; give one JSON object a line") from None
    return [_truth(line, f"{path} line {n}") for n, line in enumerate(lines, 1) if line.strip()]


def _truth(line: str, where: str) -> Truth:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise TruthError(f"{where}: is not JSON: {error.msg}") from None
    if not isinstance(record, dict):
        raise TruthError(f"{where}: is not a JSON object")
    if unknown := sorted(set(record) - _KEYS):
        raise TruthError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
    for key in ("cluster", "interrupted_at"):
        if not isinstance(record.get(key), str):
            raise TruthError(f"{where}: needs {key!r}, a text")
    try:
        moment = datetime.fromisoformat(record["interrupted_at"])
    except ValueError:
        raise TruthError(
            f"{where}: interrupted_at {record['interrupted_at']!r} is no time; write 2026-05-04T13:30:00Z"
        ) from None
    if moment.tzinfo is None:
        raise TruthError(f"{where}: interrupted_at has no zone; end it with Z or an offset such as +02:00")
    causes = record.get("causes") or []
    if not isinstance(causes, list):
        raise TruthError(f"{where}: causes is no list of accepted causes")
    return Truth(
        cluster=record["cluster"],
        interrupted_at=moment.astimezone(UTC),
        run=record.get("run"),
        job_id_raw=None if record.get("job_id_raw") is None else str(record["job_id_raw"]),
        causes=tuple(causes),
        is_planned=record.get("is_planned"),
        node=record.get("node"),
        is_identifiable=record.get("identifiable", True),
    )
