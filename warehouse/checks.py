"""Checks: queries that return the rows that must not exist."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from warehouse import publish
from warehouse.session import reading

CHECKS = Path(__file__).parent / "checks"
SHOWN = 5


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check that found rows.

    Attributes:
        name: file name without suffix.
        rule: what must hold.
        count: number of bad rows.
        rows: the first of them.
    """

    name: str
    rule: str
    count: int
    rows: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        rows = f"{self.count:,} row breaks" if self.count == 1 else f"{self.count:,} rows break"
        shown = "\n".join(f"    {_readable(row)}" for row in self.rows)
        more = f"\n    and {self.count - len(self.rows):,} more" if self.count > len(self.rows) else ""
        return f"{self.name}: {rows} the rule: {self.rule}\n{shown}{more}"


def _readable(row: dict[str, Any]) -> str:
    """Return a row as names and values: times in UTC, lists and texts as they are, what is null as a dash."""
    return ", ".join(f"{name} = {_plain(value)}" for name, value in row.items())


def _plain(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_plain(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return str(value)


class CheckError(Exception):
    """A check file is wrong; the message names it."""


def rule_of(path: Path) -> str:
    """Return the sentence that heads a check file.

    Raises:
        CheckError: it has none.
    """
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").strip())
    if not lines:
        raise CheckError(f"{path}: its first line must say what must hold: `-- ...`")
    return " ".join(lines)


def run(con: duckdb.DuckDBPyConnection, root: Path = CHECKS) -> list[FailedCheck]:
    """Run every check below `root` and return those that found rows.

    Raises:
        CheckError: a check has no heading, or DuckDB refuses it.
    """
    found = (_run_one(con, path) for path in sorted(root.rglob("*.sql")))
    return [failed for failed in found if failed is not None]


def run_published(path: Path, root: Path = CHECKS) -> list[FailedCheck]:
    """Run every check below `root` on a published build: `data/warehouse.duckdb`, or the file of one build.

    Checks may therefore read only the schemas that are published.

    Raises:
        NoWarehouseError: nothing has been published.
        CheckError: as `run`.
    """
    with reading(publish.resolve(path), is_small=True) as con:
        return run(con, root)


def _run_one(con: duckdb.DuckDBPyConnection, path: Path) -> FailedCheck | None:
    rule = rule_of(path)
    query = path.read_text(encoding="utf-8").strip().removesuffix(";")
    try:
        cursor = con.execute(f"select *, count(*) over () from (\n{query}\n) limit {SHOWN}")
        names = [column[0] for column in cursor.description or ()]
        bad = cursor.fetchall()
    except duckdb.Error as error:
        raise CheckError(f"{path}: {error}") from error
    if not bad:
        return None
    shown = tuple(dict(zip(names[:-1], row[:-1], strict=True)) for row in bad)
    return FailedCheck(path.stem, rule, int(bad[0][-1]), shown)
