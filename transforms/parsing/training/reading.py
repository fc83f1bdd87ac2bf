"""What the lines of a chunk tell that are no steps, one by one and in order; tracebacks and failure reports span several."""

from __future__ import annotations

import re
from bisect import bisect_right

import polars as pl

from transforms.parsing.training import limits
from transforms.parsing.training.errors import CUSTOM_EXCEPTION, exception, is_exception
from transforms.parsing.training.messages import NEEDLES, ROOT_CAUSE, TRACEBACK, read_message
from transforms.parsing.training.told import ERROR, Found, Passed, Told

TRACEBACK_RULE, REPORT_RULE = "traceback", "failure_report"
MAX_TRACEBACK = 500
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_REPORT = re.compile(r"(?:\[[0-9]+\]:|\s+(?P<key>time|host|rank|exitcode|error_file|traceback)\s*: (?P<value>.*))$")

Key = tuple[str | None, str | None, str | None, str | None]


class Reading:
    """Reads the lines of one export that are no steps, chunk after chunk."""

    def __init__(self) -> None:
        self._open: dict[Key, list[int]] = {}  # tracebacks begun and not ended, and lines since the last one's head
        self._report: dict[Key, dict[str, str]] = {}

    @property
    def is_open(self) -> bool:
        """Whether a traceback or a failure report goes on."""
        return bool(self._open or self._report)

    def read(self, parts: pl.DataFrame, is_step: pl.Series) -> dict[int, Found]:
        """Return what lines tell, or why they are passed over, by their position; lines without interest are left out.

        Args:
            parts: columns of `prefix.split`.
            is_step: which lines are steps; of those only such are read as hold a literal.
        """
        columns = parts.select("host", "task", "local", "rank", "body")
        is_near = parts.get_column("body").str.contains_any(list(NEEDLES))
        at = is_near.arg_true()
        near = at.to_list()
        rows = columns.select(pl.all().gather(at)).rows()
        everything: list[tuple[str, ...]] = []
        found: dict[int, Found] = {}
        position, upcoming = -1, 0
        while True:
            if self.is_open:
                everything = everything or columns.rows()
                position += 1
            else:
                upcoming = bisect_right(near, position, lo=upcoming)
                position = near[upcoming] if upcoming < len(near) else len(parts)
            if position >= len(parts):
                return found
            row = everything[position] if everything else rows[upcoming]
            if not is_step[position] or is_near[position]:
                self._line(position, (row[0], row[1], row[2], row[3]), row[4], found)

    def _line(self, position: int, key: Key, body: str, found: dict[int, Found]) -> None:
        if body.startswith(ROOT_CAUSE):
            self._report[key] = {}
            told: Found | None = Passed(REPORT_RULE)
        elif key in self._report:
            told = self._in_report(key, body)
        elif key in self._open or TRACEBACK in body:
            told = self._in_traceback(key, body)
        else:
            told = read_message(body)
        if told is not None:
            found[position] = told

    def _in_report(self, key: Key, body: str) -> Found | None:
        """Return the fate of a line of the launcher's report of what failed first; the exit code's line tells the event."""
        part = _REPORT.fullmatch(body)
        if part is None:
            del self._report[key]
            return read_message(body)
        values = self._report[key]
        if part["key"]:
            values[part["key"]] = part["value"]
        if part["key"] != "exitcode":
            return Passed(REPORT_RULE)
        rank, node = re.match(r"[0-9]+", values.get("rank", "")), re.match(r"[A-Za-z][\w.-]*", values.get("host", ""))
        code = re.match(r"-?[0-9]+", part["value"])
        rank_told = rank[0] if rank else None
        number = limits.count(rank_told)
        return [
            Told(
                ERROR,
                rank=number,
                node=node[0] if node else None,
                error_class=f"exit code {code[0]}" if code else "ChildFailedError",
                text="; ".join(f"{k}: {v}" for k, v in values.items()),
                is_unreadable=limits.is_lost((rank_told, number)),
            )
        ]

    def _in_traceback(self, key: Key, body: str) -> Found | None:
        """Return the fate of a line of a traceback; the exception's own line tells the event and ends it."""
        if TRACEBACK in body:
            # Ranks that write without a mark begin several before the first ends.
            self._open[key] = [self._open[key][0] + 1 if key in self._open else 1, 0]
            return Passed(TRACEBACK_RULE)
        state = self._open[key]
        state[1] += 1
        if body.startswith(("  ", "\t", *_CHAINED)) or not body:
            return Passed(TRACEBACK_RULE)
        custom = CUSTOM_EXCEPTION.fullmatch(body)
        state[0] -= bool(custom or is_exception(body))
        if not state[0] or state[1] > MAX_TRACEBACK:
            del self._open[key]
        told = read_message(body)
        return [exception(custom["name"], body)] if told is None and custom else told
