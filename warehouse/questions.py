"""The questions of docs/questions.md with their queries, for those who have the program and not its documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warehouse.session import literal

FOLDER = Path(__file__).parent / "questions"
_CLUSTER = "'atlas'"
"""The cluster that the queries name."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the query that answers it."""

    title: str
    sql: str


@cache
def read() -> dict[str, Question]:
    """Return the questions by number, in order; 0 is the one to ask before the others.

    A file is named for its number; its first line is a comment with the question.
    """
    found = {}
    for path in sorted(FOLDER.glob("*.sql"), key=lambda p: int(p.stem)):
        first, _, sql = path.read_text(encoding="utf-8").partition("\n")
        found[path.stem] = Question(first.removeprefix("-- "), sql.strip())
    return found


def fitted(sql: str, clusters: list[str]) -> str:
    """Return a query with a cluster that there is in the place of the documents'."""
    if not clusters or _CLUSTER.strip("'") in clusters:
        return sql
    return sql.replace(_CLUSTER, literal(clusters[0]))
