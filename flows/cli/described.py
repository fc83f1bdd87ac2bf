"""A table described: what one row is, and its columns with their types and meanings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flows.cli.tables import say_table
from flows.cli.terminal import say_wrapped

if TYPE_CHECKING:
    from warehouse.console import Relation


def called(relations: Iterable[Relation], name: str) -> Relation | None:
    """Return the first table with this name, with or without its schema, quotes aside; None = there is none."""
    wanted = name.replace('"', "").lower()
    return next((relation for relation in relations if wanted in (relation.name, relation.table)), None)


def say_relation(relation: Relation) -> None:
    """Print what a table holds."""
    say_wrapped(f"{relation.name}: {relation.grain or 'no description'}")
    rows = [{"column": c.name, "type": c.kind.lower(), "means": c.meaning} for c in relation.columns]
    say_table(rows, ["column", "type", "means"])
