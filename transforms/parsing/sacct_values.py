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
    return _expressions(
        lambda c: dict(zip(names, durations.limit_seconds(c, is_minutes=is_minutes), strict=True))
    )


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
        lambda c: dict(zip(("gpus", "gpu_type", "value_unreadable?"), tres.allocated_gpus(c), strict=True))
    ),
    "alloc_gres": _expressions(
        lambda c: dict(zip(("gpus", "gpu_type", "value_unreadable?"), tres.allocated_gres(c), strict=True))
    ),
    "req_mem": _expressions(
        lambda c: dict(zip(("req_mem_bytes", "req_mem_per", "value_unreadable?"), sizes.requested_memory(c), strict=True))
    ),
}
_INSTEAD = {"elapsed": "elapsed_raw", "time_limit_raw": "time_limit"}  # where the second is present, the first is not read


@dataclass
class _Typed:
    """Columns by name as they are read; `causes` are flags and the rows that get them."""

    height: int
    columns: dict[str, pl.Series] = field(default_factory=dict)
    causes: list[tuple[str, pl.Series]] = field(default_factory=list)

    def take(self, read: pl.DataFrame) -> None:
        for column in read.get_columns():
            if column.name.endswith("?"):
                self.causes.append((column.name[:-1], column))
            else:
                self.columns[column.name] = column

    def mark(self, flag: str, *, everywhere: bool) -> None:
        if everywhere:
            self.causes.append((flag, self.constant(value=True)))

    def constant(self, *, value: bool | None, dtype: pl.DataType | None = None) -> pl.Series:
        return pl.Series([value], dtype=dtype or pl.Boolean()).new_from_index(0, self.height)


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
        typed.columns = {n: c for n, c in texts.items() if n in JOB_ATTEMPTS.schema and n not in _READERS}
        self._read(typed, texts)
        _arrays(typed, texts["job_id"])
        is_request = _nodes(typed)
        is_empty = self._times(typed, rows, zone)
        _requests(typed, is_request, is_empty)
        typed.causes += [("decoded", texts["is_decoded"]), ("free_text_unreadable", texts["is_free_text_lost"])]
        typed.mark("submit_absent", everywhere="submit" not in texts)
        typed.mark("start_absent", everywhere="start" not in texts)
        typed.columns["flags"] = flags(rows.height, typed.causes)
        typed.columns["cluster"] = pl.Series([cluster], dtype=pl.String).new_from_index(0, rows.height)
        names = [*(name for name in JOB_ATTEMPTS.schema if name in typed.columns)]
        frame = pl.DataFrame([typed.columns[n].alias(n) for n in names] + [texts["position"]])
        return identified(frame)
