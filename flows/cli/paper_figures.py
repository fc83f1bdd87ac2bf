"""The paper's figures beside its own counts and beside a replay: what agrees, and what does not bear out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from flows.cli import facts
from flows.cli.terminal import say_prose, title

DOUBTFUL = """
select f.*
from marts.published_figures as f
where not f.is_sound or f.figure like 'hardware_share_percent%'
order by f.figure_order
"""

TOLD = """
select f.*
from marts.published_figures as f
where f.as_printed is not null and f.in_warehouse is not null
order by f.figure_order
"""

PLANNED_PER_DAY = "select f.in_warehouse from marts.published_figures as f where f.figure = 'planned_per_day'"

MAINTENANCE = "maintenance_interruptions_per_day"
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "interruptions": "interruptions",
        "interruptions_planned": "planned",
        "interruptions_unexpected": "unexpected",
        "days": "days",
        "gpus": "GPUs",
        "manual_interventions": "recoveries by people",
    }
)
"""Figures that are told in one line where they agree, and what they count."""

Row = Mapping[str, Any]


def say_figures(settings: facts.Config) -> None:
    """Print what the paper prints and the replay finds too, then what the paper's own counts do not bear out."""
    title("Figures of the paper: by its own counts, and here")
    _say_agreeing(facts.rows(settings, TOLD))
    say_prose("Not borne out by its own counts, or in one reading only:")
    for meaning, rows in groupby(facts.rows(settings, DOUBTFUL), lambda row: row["meaning"]):
        _say_doubt(settings, meaning, list(rows))


def _say_doubt(settings: facts.Config, meaning: str, rows: Sequence[Row]) -> None:
    if rows[0]["figure"] == MAINTENANCE:
        _say_maintenance(settings, rows[0])
    elif len(rows) == 1:
        say_prose(f"{_amount(rows[0], 'as_printed')} printed, {_compared(rows[0])}: {meaning}", 4)
        say_prose(f"    {rows[0]['verdict']}: {rows[0]['trace']}", 6)
    else:
        say_prose(f"{_amount(rows[0], 'as_printed')} printed: {meaning}, in {len(rows)} readings", 4)
        for row in rows:
            say_prose(f"    {_compared(row)}: {row['verdict']}: {row['trace']}", 6)


def _say_maintenance(settings: facts.Config, row: Row) -> None:
    """Print that figure: what the paper counts holds all planned interruptions, what is found here maintenance alone."""
    planned = facts.rows(settings, PLANNED_PER_DAY)
    here = planned[0]["in_warehouse"] if planned else None
    say_prose("at least one a day printed: interruptions by automated maintenance", 4)
    found = "" if here is None else f", {here:.2f} a day found here"
    say_prose(f"    planned of all kinds: {row['as_recomputed']:.2f} a day by its counts{found}", 6)
    if row["in_warehouse"] is not None:
        found = f"{row['in_warehouse']:.2f} a day found here"
        say_prose(f"    planned maintenance alone: not counted in the paper, {found}", 6)
    say_prose(f"    {row['verdict']}: {row['trace']}", 6)


def _say_agreeing(rows: Sequence[Row]) -> None:
    same = [f"{row['as_printed']:,.0f} {NAMES[row['figure']]}" for row in rows if _agrees(row)]
    if same:
        say_prose(f"Printed and found here alike: {', '.join(same)}", 4)
    if counts := [row for row in rows if row["cause"] is not None and row["unit"] == "interruptions"]:
        alike = sum(row["is_reproduced"] for row in counts)
        say_prose(f"Of the {len(counts)} counts of Table 5, {alike} are found here alike; the table above has all", 4)
    for row in rows:
        if row["relation"] == "above":
            least, here = (_amount(row, name) for name in ("as_printed", "in_warehouse"))
            say_prose(f"More than {least} printed, {here} found here: {row['meaning']}", 4)


def _agrees(row: Row) -> bool:
    return row["figure"] in NAMES and row["is_sound"] and row["is_reproduced"]


def _compared(row: Row) -> str:
    here = "" if row["in_warehouse"] is None else f", {_amount(row, 'in_warehouse')} found here"
    return f"{_amount(row, 'as_recomputed')} by its counts{here}"


def _amount(row: Row, name: str) -> str:
    value = row[name]
    number = f"{value:.0f}" if value == int(value) else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return number + ("%" if row["unit"] == "percent" else f" {row['unit']}")
