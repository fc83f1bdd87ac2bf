"""The truth about interruptions, as a simulation or an operator knows it: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.config_errors import did_you_mean

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


def read_truths(path: Path, known_causes: Collection[str] | None = None) -> list[Truth]:
    """Read truths, one JSON object a line.

    Args:
        path: the file.
        known_causes: codes that a cause may have; None = any.

    Raises:
        TruthError: the file or a line of it cannot be read, or names an unknown cause.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise TruthError(
            f"{path}: {error.strerror}; give the file that holds the truth, one JSON object a line"
        ) from None
    except UnicodeDecodeError:
        raise TruthError(f"{path}: is not UTF-8 text; give one JSON object a line") from None
    return [_truth(line, f"{path} line {n}", known_causes) for n, line in enumerate(lines, 1) if line.strip()]


def _truth(line: str, where: str, known_causes: Collection[str] | None) -> Truth:
    record = _record(line, where)
    return Truth(
        cluster=record["cluster"],
        interrupted_at=_instant(record["interrupted_at"], where),
        run=record.get("run"),
        job_id_raw=None if record.get("job_id_raw") is None else str(record["job_id_raw"]),
        causes=_causes(record.get("causes"), where, known_causes),
        is_planned=record.get("is_planned"),
        node=record.get("node"),
        is_identifiable=record.get("identifiable", True),
    )


def _record(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise TruthError(f"{where}: is not JSON: {error.msg}") from None
    if not isinstance(record, dict):
        raise TruthError(f"{where}: is not a JSON object")
    if unknown := sorted(set(record) - _KEYS):
        hint = did_you_mean(unknown[0], _KEYS, quote="'")
        raise TruthError(f"{where}: unknown key {unknown[0]!r}{hint}")
    for key in ("cluster", "interrupted_at"):
        if not isinstance(record.get(key), str):
            raise TruthError(f"{where}: needs {key!r}, a text")
    for key in ("run", "node"):
        if not isinstance(record.get(key), str | None):
            raise TruthError(f"{where}: {key} is no text")
    for key, absent in (("is_planned", None), ("identifiable", True)):
        if record.get(key, absent) not in (True, False, absent):
            raise TruthError(f"{where}: {key} is neither true nor false")
    return record


def _instant(text: str, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TruthError(f"{where}: interrupted_at {text!r} is no time; write 2026-05-04T13:30:00Z") from None
    if moment.tzinfo is None:
        raise TruthError(f"{where}: interrupted_at has no zone; end it with Z or an offset such as +02:00")
    return moment.astimezone(UTC)


def _causes(causes: object, where: str, known: Collection[str] | None) -> tuple[str, ...]:
    if causes is None:
        return ()
    if not isinstance(causes, list):
        raise TruthError(f'{where}: causes is no list of accepted causes; write ["gpu_hbm"]')
    for cause in causes:
        if not isinstance(cause, str):
            raise TruthError(f"{where}: causes holds {cause!r}, which is no text")
        if known is not None and cause not in known:
            hint = did_you_mean(cause, known) or '; `goodput sql "from reference.causes"` lists them'
            raise TruthError(f"{where}: no cause has the code {cause!r}{hint}")
    return tuple(causes)
