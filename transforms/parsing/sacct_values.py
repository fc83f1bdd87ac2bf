"""Text columns of sacct to the typed columns of `job_attempts`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from transforms.parsing import durations, sizes, tres
from transforms.parsing.attempts import flags, identified
from transforms.parsing.durations import Reading
from transforms.parsing.sacct_distinct import Distinct, Read
from transforms.parsing.sacct_times import placed
from transforms.parsing.states import exit_code, read_state
from transforms.tables import JOB_ATTEMPTS

_COLUMNS = tuple(JOB_ATTEMPTS.schema)
_NO_NODES = ("", "None assigned", "None", "(null)", "Unknown", "N/A")
_NO_WORD = ("", "None", "(null)", "Unknown", "N/A")
_PENDING_TASKS = re.compile(r"\[([0-9,\-:]+)(?:%[0-9]+)?\]")
_MAX_TASKS = 10_000_000


def _expressions(outputs: Callable[[str], dict[str, pl.Expr]]) -> Read:
    """Return a reader that evaluates expressions over a column."""
    return lambda texts: texts.to_frame().select(**outputs(texts.name))


def _reading(value: str, reading: Callable[[str], Reading]) -> Read:
    return _expressions(lambda c: dict(zip((value, "value_unreadable?"), reading(c), strict=True)))


def _states(texts: pl.Series) -> pl.DataFrame:
    read = [read_state(t) for t in texts.to_list()]
    columns = {
        "state": [s.state for s in read],
        "cancelled_by_uid": [s.cancelled_by_uid for s in read],
        "state_unknown?": [not s.is_known for s in read],
        "truncated?": [s.is_cut for s in read],
    }
    return pl.DataFrame(columns, schema_overrides={"state": pl.String, "cancelled_by_uid": pl.Int64})


def _exits(code: str, signal: str) -> Read:
    return _expressions(lambda c: dict(zip((code, signal, "value_unreadable?"), exit_code(c), strict=True)))


def _limits(*, is_minutes: bool) -> Read:
    names = ("time_limit_seconds", "is_time_limit_unlimited", "value_unreadable?")
    return _expressions(lambda c: dict(zip(names, durations.limit_seconds(c, is_minutes=is_minutes), strict=True)))


def _elapsed(texts: pl.Series) -> pl.DataFrame:
    read = durations.add_seconds(texts.to_frame(), texts.name, "elapsed_seconds", "value_unreadable?")
    return read.drop(texts.name)


# How the text columns are read that are not taken as they are; a flag ends in `?`.
_READERS: dict[str, Read] = {
    "state": _states,
    "exit_code": _exits("exit_code", "signal"),
    "derived_exit_code": _exits("derived_exit_code", "derived_signal"),
    "elapsed": _elapsed,
    "elapsed_raw": _reading("elapsed_seconds", durations.whole_number),
    "suspended": _reading("suspended_seconds", durations.seconds),
    "total_cpu": _reading("total_cpu_seconds", durations.exact_seconds),
    "max_rss": _reading("max_rss_bytes", sizes.size_bytes),
    "node_count": _reading("node_count", sizes.count),
    "cpus": _reading("cpus", sizes.count),
    "uid": _reading("uid", durations.whole_number),
    "restarts": _reading("restarts", durations.whole_number),
    "time_limit": _limits(is_minutes=False),
    "time_limit_raw": _limits(is_minutes=True),
    "alloc_tres": _expressions(
        lambda c: {
            **dict(zip(("gpus", "gpu_type", "value_unreadable?"), tres.allocated_gpus(c), strict=True)),
            "tres_cpus": tres.allocated_cpus(c),
        }
    ),
    "alloc_gres": _expressions(
        lambda c: dict(zip(("gres", "gres_type", "value_unreadable?"), tres.allocated_gres(c), strict=True))
    ),
    "req_mem": _expressions(
        lambda c: dict(
            zip(("req_mem_bytes", "req_mem_per", "value_unreadable?"), sizes.requested_memory(c), strict=True)
        )
    ),
}
_INSTEAD = {
    "elapsed": "elapsed_raw",
    "time_limit_raw": "time_limit",
}  # where the second is present, the first is not read


@dataclass
class _Typed:
    """Columns by name as they are read; `causes` are flags and the rows that get them."""

    height: int
    columns: dict[str, pl.Series] = field(default_factory=dict)
    causes: list[tuple[str, pl.Series]] = field(default_factory=list)

    def take(self, read: pl.DataFrame) -> None:
        for column in read.get_columns():
            flag, mark, _ = column.name.partition("?")
            if mark:
                self.causes.append((flag, column))
            else:
                self.columns[flag] = column

    def filled(self, value: bool | str | None, dtype: pl.DataType) -> pl.Series:
        return pl.Series([value], dtype=dtype).new_from_index(0, self.height)


class Typist:
    """Types the text columns of one export; what it read once it knows."""

    def __init__(self) -> None:
        self._readers = {column: Distinct(read) for column, read in _READERS.items()}

    def attempts(self, rows: pl.DataFrame, cluster: str, zone: str) -> pl.DataFrame:
        """Return job attempts of one cluster, without provenance.

        Args:
            rows: a `Section`'s rows: String columns by our names, those absent that the export does not have.
            cluster: the cluster they belong to.
            zone: IANA zone of their times.

        Returns:
            Columns of `job_attempts` that the export gives, `cluster`, `record_id`, `filled_columns`, `flags`, `position`.
        """
        texts = {column.name: column for column in rows.get_columns()}
        typed = _Typed(rows.height)
        typed.columns = {n: c for n, c in texts.items() if n in _COLUMNS and n not in _READERS}
        for column, read in self._readers.items():
            if column in texts and _INSTEAD.get(column) not in texts:
                typed.take(read(texts[column]))
        if "state" in texts:
            typed.columns["state_raw"] = texts["state"]
        _gpus(typed)
        _cpus(typed)
        _arrays(typed, texts["job_id"])
        _words(typed)
        _times(typed, texts, zone)
        typed.causes += [("decoded", texts["is_decoded"]), ("free_text_unreadable", texts["is_free_text_lost"])]
        for column in ("submit", "start"):
            typed.causes.append((f"{column}_absent", typed.filled(column not in texts, pl.Boolean())))
        typed.columns["flags"] = flags(rows.height, typed.causes)
        typed.columns["cluster"] = typed.filled(cluster, pl.String())
        names = [name for name in _COLUMNS if name in typed.columns]
        return identified(pl.DataFrame([typed.columns[n].alias(n) for n in names] + [texts["position"]]))


def _gpus(typed: _Typed) -> None:
    """Take the GPUs of AllocGRES where AllocTRES is absent or empty."""
    gres, kinds = typed.columns.pop("gres", None), typed.columns.pop("gres_type", None)
    if gres is None or kinds is None:
        return
    has_tres = typed.columns["gpus"].is_not_null() if "gpus" in typed.columns else typed.filled(False, pl.Boolean())
    for name, old in (("gpus", gres), ("gpu_type", kinds)):
        typed.columns[name] = typed.columns[name].zip_with(has_tres, old) if name in typed.columns else old


def _cpus(typed: _Typed) -> None:
    """Take the CPUs of AllocTRES where the export has no column of them."""
    cpus = typed.columns.pop("tres_cpus", None)
    if cpus is not None:
        typed.columns.setdefault("cpus", cpus)


def _arrays(typed: _Typed, job: pl.Series) -> None:
    """Read array and heterogeneous job ids, and how many tasks a pending array record stands for."""
    for mark, name, pattern in (("_", "array_job_id", r"^([0-9]+)_"), ("+", "het_job_id", r"^([0-9]+)\+")):
        is_there = job.str.contains(mark, literal=True).any()
        typed.columns[name] = job.str.extract(pattern) if is_there else typed.filled(None, pl.String())
    typed.columns["array_tasks_pending"] = typed.filled(None, pl.Int64())
    if job.str.contains("[", literal=True).any():
        tasks = [pending_tasks(j) if "[" in j else None for j in job.to_list()]
        typed.columns["array_tasks_pending"] = pl.Series(tasks, dtype=pl.Int64)
        cut = [t is None and "[" in j for t, j in zip(tasks, job.to_list(), strict=True)]
        typed.causes.append(("array_cut", pl.Series(cut, dtype=pl.Boolean)))


def pending_tasks(job_id: str) -> int | None:
    """Return how many tasks `5000_[3-10%2]` stands for; None where the list is cut (`...`) or unreadable."""
    found = _PENDING_TASKS.search(job_id)
    if found is None:
        return None
    total = 0
    for part in found.group(1).split(","):
        step = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part)
        if step is None or step.group(3) == "0":
            return None
        low, high = int(step.group(1)), int(step.group(2) or step.group(1))
        total += len(range(low, high + 1, int(step.group(3) or 1)))
    return total if 0 < total <= _MAX_TASKS else None


def _words(typed: _Typed) -> None:
    """Turn words for "nothing" into null; a row whose node list is `None assigned` is a request."""
    nodes = typed.columns.get("node_list")
    typed.columns["is_request"] = (
        typed.filled(False, pl.Boolean()) if nodes is None else (nodes == "None assigned").fill_null(value=False)
    )
    for name in ("reason", "failed_node", "reservation", "node_list"):
        if name in typed.columns:
            typed.columns[name] = _without(typed.columns[name], _NO_NODES if name == "node_list" else _NO_WORD)


def _without(texts: pl.Series, words: tuple[str, ...]) -> pl.Series:
    is_word = texts.is_in(words)
    return texts.set(is_word, None) if is_word.any() else texts


def _times(typed: _Typed, texts: dict[str, pl.Series], zone: str) -> None:
    """Read the times; a row whose Start is empty is a request, one whose Start cannot be read lacks a time."""
    names = [n for n in ("elapsed_seconds", "suspended_seconds") if n in typed.columns]
    stamps = [texts[n] for n in ("submit", "eligible", "start", "end") if n in texts]
    given = pl.DataFrame([*stamps, *(typed.columns[n].alias(n) for n in names), texts["position"]])
    times = placed(given, zone)
    is_empty = times.get_column("is_start_empty") if "start" in texts else None
    typed.take(times.drop("is_start_empty", strict=False))
    is_request = typed.columns["is_request"]
    if is_empty is None:
        typed.causes.append(("time_missing", ~is_request))
    else:
        typed.columns["is_request"] = is_request | is_empty
        typed.causes.append(("time_missing", typed.columns["started_at"].is_null() & ~typed.columns["is_request"]))
