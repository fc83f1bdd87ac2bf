"""The daily report as tables in Prefect's pages. Each has a fixed key, so that its history stands behind the newest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact

from flows.cli.terminal import clean, shown
from flows.cli.words import spoken
from flows.summary import Row, Section

MAX_ROWS = 200  # a page, not an export: `goodput report --json` has all
EVERY_SECONDS = 5.0


def write(sections: Sequence[Section], warehouse: str) -> list[str]:
    """Write a table for each section; return their keys.

    Args:
        sections: what to show.
        warehouse: name of the warehouse in lower-case letters, digits and dashes, as Prefect wants keys; it stands in them, so
            that two warehouses on one server stay apart.
    """
    return [_write(section, warehouse) for section in sections]


def _write(section: Section, warehouse: str) -> str:
    key = f"{section.key}-{warehouse}"
    rows = [{name: _cell(row.get(name)) for name in section.columns} for row in section.rows[:MAX_ROWS]]
    text = f"### {section.title}\n\n{_literal(section.explanation)}\n"
    if not rows:
        text += "\nNothing to show.\n"
        rows = [dict.fromkeys(section.columns, "")]
    if left := len(section.rows) - MAX_ROWS:
        text += f"\n{left:,} more rows are not shown; `goodput report` has them.\n" if left > 0 else ""
    create_table_artifact(table=rows, key=key, description=text)
    return key


def _cell(value: Any) -> Any:
    """Return a value as people read it; numbers stay numbers, for the page to sort. Texts may come from exports."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return round(value, 4) if isinstance(value, float) else value
    return clean("" if value is None else shown(value))


def _literal(text: str) -> str:
    """Return a text in which Markdown and HTML mean nothing."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|!" else c for c in clean(text))


def stale(sections: Sequence[Section]) -> list[tuple[str, str]]:
    """Return the sources that the section `freshness` calls stale, each with what is to be said of it."""
    rows = [row for section in sections if section.key == "freshness" for row in section.rows]
    return [(str(row["source"]), _staleness(row)) for row in rows if row["is_stale"]]


def _staleness(row: Row) -> str:
    age, usual = (row[name] for name in ("age_seconds", "usual_seconds"))
    if not isinstance(age, float):
        return clean(
            f"{row['source']}: nothing was ever read of it; does its collector run, and does its `path` match?"
        )
    often = f", usually something every {spoken(usual)}" if isinstance(usual, float) else ""
    return clean(f"{row['source']}: nothing new for {spoken(age)}{often}; does its collector still run?")


class Progress:
    """A bar in Prefect's pages for work that takes minutes and more."""

    def __init__(self, what: str, warehouse: str) -> None:
        self._key, self._shown = f"{what}-{warehouse}", 0.0
        self._id: UUID | None = None

    def show(self, done: int, total: int) -> None:
        """Show what share is done; not more often than the server likes."""
        percent, now = 100.0 * done / total if total else 100.0, time.monotonic()
        if self._id is None:
            made = create_progress_artifact(percent, key=self._key, description=f"{total:,} windows")
            self._id = made if isinstance(made, UUID) else None
        elif done == total or now - self._shown > EVERY_SECONDS:
            update_progress_artifact(self._id, progress=percent)
        else:
            return
        self._shown = now
