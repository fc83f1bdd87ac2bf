"""What differs between two builds: interruptions that came, went, or were judged otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from warehouse import publish
from warehouse.session import DamagedBuildError, columns_of, identifier, literal, reading

Row = dict[str, Any]

IDENTITY: Mapping[str, str] = {
    "interruption_id": "varchar",
    "cluster": "varchar",
    "run_id": "varchar",
    "run": "varchar",
    "job_id": "varchar",
    "interrupted_at": "timestamptz",
}
VERDICT: Mapping[str, str] = {
    "cause": "varchar",
    "class": "varchar",
    "is_planned": "boolean",
    "culprit_node": "varchar",
    "confidence": "double",
}
"""What is compared. A confidence counts as changed where its whole percentage does: it is never shown finer."""
GRAIN = "One row per build and interruption that it has otherwise than the build that was published before it."
KEPT = timedelta(days=400)
"""How long `ops.verdict_changes` remembers."""
_TOLD: Mapping[str, str] = {
    "changed_at": "timestamptz",
    "build_id": "varchar",
    "former_build_id": "varchar",
    "change": "varchar",
    **IDENTITY,
    "changed": "varchar[]",
    **{f"{side}_{name}": kind for name, kind in VERDICT.items() for side in ("old", "new")},
}


def compare(old: Path, new: Path) -> list[Row]:
    """Return how the interruptions of two builds differ, oldest first.

    Builds of former versions may lack columns: what either lacks is not compared, and null on its side.

    Args:
        old: file of the earlier build.
        new: file of the later one.

    Returns:
        rows with `change` (added, gone or changed), the columns of IDENTITY, `changed` (names of the columns of VERDICT that
        differ; empty unless `change` is changed), and each column of VERDICT as `old_*` and `new_*`.

    Raises:
        DamagedBuildError: one of them cannot be read.
    """
    former, later = publish.resolve(old), publish.resolve(new)
    if former == later:
        return []  # and one session attaches no file twice
    with reading(later, beside=former, is_small=True) as con:
        try:
            relation = con.sql(_comparison(con, "warehouse"))
            names = relation.columns
            return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DamagedBuildError(f"{old.name} and {new.name} cannot be compared ({reason})") from error


def is_verdict(row: Mapping[str, Any]) -> bool:
    """Tell whether a row of `compare` says more than that a confidence moved."""
    return bool(row["change"] != "changed" or row["changed"] != ["confidence"])


def record(con: duckdb.DuckDBPyConnection, former: Path | None, build_id: str, built_at: datetime) -> None:
    """Make `ops.verdict_changes` in the build that is being made: what it changes, after what builds before it changed.

    A build that is removed takes no history with it, since each carries that of the one before on. Confidences that moved
    alone are left out: some do with every new record. Only `ops` knows of history; no mart may depend on this table.

    Args:
        con: the session of a build whose marts are made.
        former: file of the published build; None, or one that cannot be read = there is nothing to compare with.
        build_id: the new build.
        built_at: UTC time it began.
    """
    columns = ", ".join(f"{identifier(name)} {kind}" for name, kind in _TOLD.items())
    con.execute(f"create or replace table build.ops.verdict_changes ({columns})")
    if former is None:
        return
    try:
        con.execute(f"attach {literal(str(former))} as former (read_only)")
    except duckdb.Error:  # it is damaged, which must keep nobody from building another
        return
    try:
        _carry_on(con, built_at)
        names = ", ".join(map(identifier, _TOLD))
        con.execute(
            f"insert into build.ops.verdict_changes select {names} from (select ? as build_id, ? as former_build_id, "
            f"?::timestamptz as changed_at, * from ({_comparison(con, 'build')})) where changed <> ['confidence']",
            [build_id, former.stem, built_at],
        )
    except duckdb.CatalogException:  # it is of a version without these marts
        return
    finally:
        con.execute("detach former")


def _carry_on(con: duckdb.DuckDBPyConnection, built_at: datetime) -> None:
    """Copy what the former build remembers, as far as its version tells it."""
    there = columns_of(con, "former", "ops.verdict_changes")
    if "changed_at" in there:
        columns = ", ".join(f"{identifier(n) if n in there else 'null'}::{kind}" for n, kind in _TOLD.items())
        con.execute(
            f"insert into build.ops.verdict_changes select {columns} from former.ops.verdict_changes where changed_at > ?",
            [built_at - KEPT],
        )


def _comparison(con: duckdb.DuckDBPyConnection, later: str) -> str:
    """Return the query that compares the catalogs `former` and `later`."""
    old, new = (columns_of(con, catalog, "marts.interruptions") for catalog in ("former", later))
    # An old build and a new one that never told a column do not differ in it.
    differs = [
        f"if({_told(f'old.{name}', name)} is distinct from {_told(f'new.{name}', name)}, {name!r}, null)"
        for name in VERDICT
        if name in old and name in new
    ]
    changed = f"list_filter([{', '.join(differs)}], lambda f: f is not null)::varchar[]"
    identity = ", ".join(f"coalesce(new.{name}, old.{name}) as {name}" for name in IDENTITY)
    verdicts = ", ".join(f"old.{name} as old_{name}, new.{name} as new_{name}" for name in VERDICT)
    return f"""
        with old as (select {_selected(old)} from former.marts.interruptions),
        new as (select {_selected(new)} from {later}.marts.interruptions),
        pairs as (
            select
                case
                    when old.interruption_id is null then 'added' when new.interruption_id is null then 'gone' else 'changed'
                end as change,
                {identity},
                if(old.interruption_id is null or new.interruption_id is null, []::varchar[], {changed}) as changed,
                {verdicts}
            from old full join new on old.interruption_id = new.interruption_id
        )
        from pairs where change <> 'changed' or len(changed) > 0 order by interrupted_at, interruption_id
    """


def _told(value: str, name: str) -> str:
    return f"round({value}, 2)" if name == "confidence" else value


def _selected(there: set[str]) -> str:
    columns = {**IDENTITY, **VERDICT}
    return ", ".join(
        f"cast({identifier(name) if name in there else 'null'} as {kind}) as {identifier(name)}"
        for name, kind in columns.items()
    )
