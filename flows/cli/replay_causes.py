"""The table of causes that `goodput demo` prints of a replay: the paper's Table 5, what was found, and what is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flows.cli import facts
from flows.cli.scores import ADD_UP, cause_numbers
from flows.cli.tables import say_table
from flows.cli.terminal import say_prose, title
from flows.score import CauseCount, Score

CAUSES = """
select c.code as cause, c.label, c.table5_row, c.class,
    f.as_printed::bigint as paper, p.as_printed as printed, p.as_recomputed as "by count"
from reference.causes as c
left join marts.published_figures as f on c.code = f.cause and f.unit = 'interruptions'
left join marts.published_figures as p on c.code = p.cause and p.unit = 'percent'
order by c.table5_row nulls last, c.class desc, c.code
"""

TOTALS = """
select f.figure, f.as_printed::bigint as paper
from marts.published_figures as f
where f.figure in ('interruptions', 'interruptions_planned')
"""

CLASSES = ("unexpected", "planned", "scheduler")
PAPER = ("paper", "printed", "by count")
"""Columns that only the paper's own fleet has."""

_SHARES = ("printed", "by count")
_NARROW = (("cause", 23), ("printed", 0), ("by count", 0), ("paper", 0), ("cause", 12))

Row = dict[str, Any]


def say_causes(settings: facts.Config, score: Score, *, is_published: bool) -> None:
    """Print one row per cause, the planned ones in a block of their own, with totals that add up."""
    title(
        "What stopped it: Table 5 as published, true and found" if is_published else "What stopped it: true and found"
    )
    blocks = _blocks(settings, score, is_published=is_published)
    if not blocks:
        return
    totals = [_total(f"All {name}", rows) for name, rows in blocks.items()]
    every = _total("All interruptions", totals)
    if is_published:
        _put_the_papers(settings, totals, every)
    columns = [name for name in every if name != "class"]
    gap = dict.fromkeys(columns, "")
    printed: list[Row] = []
    for rows, total in zip(blocks.values(), totals, strict=True):
        printed += [*rows, total, gap]
    printed = [*printed, every] if len(blocks) > 1 else printed[:-1]
    say_table([_percent(row) for row in printed], columns, narrow=_NARROW, right=columns[1:])
    if is_published:
        say_prose("Paper: what its Table 5 counts; printed: its percentages; by count: what its counts make.")
    say_prose(ADD_UP)


def _blocks(settings: facts.Config, score: Score, *, is_published: bool) -> dict[str, list[Row]]:
    """Return the rows of each class that has any."""
    counts = {c.cause: c for c in score.by_cause()}
    blocks: dict[str, list[Row]] = {name: [] for name in CLASSES}
    for row in facts.rows(settings, CAUSES):
        if row["cause"] in counts or (is_published and row["table5_row"] is not None):
            count = counts.get(row["cause"], CauseCount(row["cause"], 0, 0, 0, 0))
            published = {name: row[name] for name in PAPER} if is_published else {}
            blocks[row["class"]].append({"cause": row["label"], **published, **cause_numbers(count)})
    return {name: rows for name, rows in blocks.items() if rows}


def _total(label: str, rows: Sequence[Row]) -> Row:
    return {"cause": label} | {name: _sum(rows, name) for name in rows[0] if name != "cause"}


def _sum(rows: Sequence[Row], name: str) -> float | None:
    numbers: list[float] = [row[name] for row in rows if row[name] is not None]
    return sum(numbers) if numbers else None


def _put_the_papers(settings: facts.Config, totals: Sequence[Row], every: Row) -> None:
    """Put what the paper counts into the totals: it gives no causes of planned interruptions, and no shares of all."""
    counts = {row["figure"]: row["paper"] for row in facts.rows(settings, TOTALS)}
    for total in totals:
        if total["cause"] == "All planned":
            total["paper"] = counts.get("interruptions_planned")
    every |= {"paper": counts.get("interruptions"), "printed": None, "by count": None}


def _percent(row: Row) -> Row:
    return row | {name: f"{row[name]:.1f}%" for name in _SHARES if isinstance(row.get(name), float)}
