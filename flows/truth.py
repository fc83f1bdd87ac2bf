"""The truth about interruptions and runs, as a simulation or an operator knows it: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.config_errors import did_you_mean

_KEYS = {
    "kind",
    "cluster",
    "run",
    "job_id_raw",
    "interrupted_at",
    "causes",
    "is_planned",
    "node",
    "identifiable",
    "signature",
}
_COUNTS = ("interruptions", "planned", "unexpected", "manual")
_RUN_KEYS = {"kind", "cluster", "run", "elapsed_seconds", "ledger", "effective_training_time", *_COUNTS}
_YEARS = (1970, 2200)
_KINDS = ("interruption", "run")

Record = dict[str, Any]


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
        causes: causes that are right, any of them; the first is what happened; empty = not told.
        is_planned: whether it was planned; None = not told.
        node: node that is to blame; None = none, or not told.
        is_identifiable: whether the exports hold what it takes to find the cause.
        signature: how the cause showed itself, in the words of whoever knows; None = not told.
    """

    cluster: str
    interrupted_at: datetime
    run: str | None = None
    job_id_raw: str | None = None
    causes: tuple[str, ...] = ()
    is_planned: bool | None = None
    node: str | None = None
    is_identifiable: bool = True
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class RunTruth:
    """What is known of a whole run; None = not told.

    Attributes:
        cluster: cluster.
        run: run id or name.
        elapsed_seconds: from its first start to its last end, seconds.
        ledger: GPU-seconds by state; empty = not told.
        effective_training_time: productive time as a share of elapsed time.
        interruptions: number of interruptions.
        planned: planned ones.
        unexpected: unexpected ones.
        manual: recoveries made by people.
    """

    cluster: str
    run: str
    elapsed_seconds: float | None = None
    ledger: Mapping[str, float] = field(default_factory=dict)
    effective_training_time: float | None = None
    interruptions: int | None = None
    planned: int | None = None
    unexpected: int | None = None
    manual: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that a file tells."""

    interruptions: list[Truth]
    runs: list[RunTruth]


def read_truths(path: Path, known_causes: Collection[str] | None = None) -> list[Truth]:
    """Read the truths about interruptions alone; arguments and errors as of `read`."""
    return read(path, known_causes).interruptions


def read(path: Path, known_causes: Collection[str] | None = None) -> Known:
    """Read truths, one JSON object a line.

    Args:
        path: the file.
        known_causes: codes that a cause may have; None = any.

    Raises:
        TruthError: the file or a line of it cannot be read, or names an unknown cause.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise TruthError(
            f"{path}: {error.strerror}; give the file that holds the truth, one JSON object a line"
        ) from None
    except UnicodeDecodeError:
        raise TruthError(f"{path}: is not UTF-8 text; give one JSON object a line") from None
    known = Known([], [])
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{path} line {number}"
            record = _record(line, where)
            if record.get("kind") == "run":
                known.runs.append(_run(record, where))
            else:
                known.interruptions.append(_truth(record, where, known_causes))
    return known


def _truth(record: Record, where: str, known_causes: Collection[str] | None) -> Truth:
    _keys(record, where, _KEYS, ("cluster", "interrupted_at"))
    _typed(record, where, ("run", "node", "signature"), lambda v: isinstance(v, str | None), "is no text")
    for key, absent in (("is_planned", None), ("identifiable", True)):
        if record.get(key, absent) not in (True, False, absent):
            raise TruthError(f"{where}: {key} is neither true nor false")
    return Truth(
        cluster=record["cluster"],
        interrupted_at=_instant(record["interrupted_at"], where),
        run=record.get("run"),
        job_id_raw=None if record.get("job_id_raw") is None else str(record["job_id_raw"]),
        causes=_causes(record.get("causes"), where, known_causes),
        is_planned=record.get("is_planned"),
        node=record.get("node"),
        is_identifiable=record.get("identifiable", True),
        signature=record.get("signature"),
    )


def _run(record: Record, where: str) -> RunTruth:
    _keys(record, where, _RUN_KEYS, ("cluster", "run"))
    _typed(record, where, ("elapsed_seconds",), _is_amount_or_none, "is no number of seconds")
    _typed(record, where, _COUNTS, lambda v: v is None or (_is_amount(v) and v == int(v)), "is no whole number")
    share = record.get("effective_training_time")
    if share is not None and not (_is_amount(share) and share <= 1):
        raise TruthError(f"{where}: effective_training_time is no share between 0 and 1")
    ledger = record.get("ledger", {})
    if not isinstance(ledger, dict) or not all(_is_amount(seconds) for seconds in ledger.values()):
        raise TruthError(f'{where}: ledger holds no GPU-seconds by state; write {{"productive": 86400}}')
    return RunTruth(**{key: value for key, value in record.items() if key != "kind"})


def _record(line: str, where: str) -> Record:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise TruthError(f"{where}: is not JSON: {error.msg}") from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, brackets in thousands of brackets
        raise TruthError(f"{where}: is no truth; write one flat JSON object a line") from None
    if not isinstance(record, dict):
        raise TruthError(f"{where}: is not a JSON object")
    if record.get("kind", "interruption") not in _KINDS:
        raise TruthError(f"{where}: kind is neither of {', '.join(_KINDS)}")
    return record


def _keys(record: Record, where: str, known: Collection[str], needed: Collection[str]) -> None:
    if unknown := sorted(set(record) - set(known)):
        hint = did_you_mean(unknown[0], known, quote="'")
        raise TruthError(f"{where}: unknown key {unknown[0]!r}{hint}")
    for key in needed:
        if not isinstance(record.get(key), str):
            raise TruthError(f"{where}: needs {key!r}, a text")


def _typed(record: Record, where: str, keys: Collection[str], is_right: Callable[[Any], bool], told: str) -> None:
    for key in keys:
        if not is_right(record.get(key)):
            raise TruthError(f"{where}: {key} {told}")


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _is_amount_or_none(value: object) -> bool:
    return value is None or _is_amount(value)


def _instant(text: str, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TruthError(f"{where}: interrupted_at {text!r} is no time; write 2026-05-04T13:30:00Z") from None
    if moment.tzinfo is None:
        raise TruthError(f"{where}: interrupted_at has no zone; end it with Z or an offset such as +02:00")
    if not _YEARS[0] <= moment.year <= _YEARS[1]:  # further away the distance to a verdict is no date any more
        raise TruthError(f"{where}: interrupted_at {text!r} lies outside the years {_YEARS[0]} to {_YEARS[1]}")
    return moment.astimezone(UTC)


def _causes(causes: object, where: str, known: Collection[str] | None) -> tuple[str, ...]:
    if causes is None:
        return ()
    if not isinstance(causes, list):
        raise TruthError(f'{where}: causes is no list of accepted causes; write ["gpu_hbm"]')
    if not causes:
        raise TruthError(
            f"{where}: causes is empty; name a cause that is right, or leave causes out where it is not known"
        )
    for cause in causes:
        if not isinstance(cause, str):
            raise TruthError(f"{where}: causes holds {cause!r}, which is no text")
        if known is not None and cause not in known:
            hint = did_you_mean(cause, known) or '; `goodput sql "from reference.causes"` lists them'
            raise TruthError(f"{where}: no cause has the code {cause!r}{hint}")
    return tuple(causes)
