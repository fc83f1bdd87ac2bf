"""What two builds say that the interruptions cost: both may tell the same ones, and price them otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from warehouse import publish
from warehouse.session import DamagedBuildError, columns_of, reading

Row = dict[str, Any]

_LOST = "lost_gpu_seconds"
_HELD = ("stalled_gpu_seconds", "lost_work_gpu_seconds", "starting_gpu_seconds")
_SHARE = "effective_training_time"
_RUN = ("cluster", "run_id", "run", _SHARE)


def compare(old: Path, new: Path) -> Row:
    """Return what the interruptions of two builds cost, and the runs whose training time differs.

    Builds of former versions may lack columns: what they do not tell is None on their side, and no difference.

    Args:
        old: file of the earlier build.
        new: file of the later one.

    Returns:
        `old_*` and `new_*` of lost_gpu_seconds (all that was lost) and held_gpu_seconds (the part of it on GPUs that were held);
        `number_of_runs` of the later build; and `runs`, those that both have with another effective_training_time, the
        largest difference first: cluster, run_id, run, and both shares, 0 to 1.

    Raises:
        DamagedBuildError: one of them cannot be read.
    """
    former, later = publish.resolve(old), publish.resolve(new)
    with reading(later, beside=None if former == later else former, is_small=True) as con:
        catalogs = {"old": "warehouse" if former == later else "former", "new": "warehouse"}
        try:
            told = {side: _told(con, catalog) for side, catalog in catalogs.items()}
            shares = {side: _shares(con, catalog) for side, catalog in catalogs.items()}
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DamagedBuildError(f"{old.name} and {new.name} cannot be compared ({reason})") from error
    return {
        **{f"{side}_{name}": value for side, values in told.items() for name, value in values.items()},
        "number_of_runs": len(shares["new"]),
        "runs": _differing(shares["old"], shares["new"]),
    }


def _told(con: duckdb.DuckDBPyConnection, catalog: str) -> Row:
    """Return the seconds lost; None where no column tells them, or no interruption has a price."""
    there = columns_of(con, catalog, "marts.interruptions")
    sums = {
        "lost_gpu_seconds": _LOST if _LOST in there else None,
        "held_gpu_seconds": " + ".join(f"coalesce({n}, 0)" for n in _HELD) if there >= {_LOST, *_HELD} else None,
    }
    found: Row = dict.fromkeys(sums)
    for name, value in sums.items():
        if value is not None:
            sql = f"if(count(*) = 0, 0, sum({value}) filter (where {_LOST} is not null))"
            [(found[name],)] = con.execute(f"select ({sql})::bigint from {catalog}.marts.interruptions").fetchall()
    return found


def _shares(con: duckdb.DuckDBPyConnection, catalog: str) -> dict[str, Row]:
    """Return the runs of a build by their id."""
    if not columns_of(con, catalog, "marts.runs") >= set(_RUN):
        return {}
    found = con.execute(
        f"select {', '.join(_RUN[:3])}, {_SHARE}::double from {catalog}.marts.runs order by run_id"
    ).fetchall()
    return {row[1]: dict(zip(_RUN, row, strict=True)) for row in found}


def _differing(old: dict[str, Row], new: dict[str, Row]) -> list[Row]:
    """Return the runs that both builds have, and whose share differs by what is shown of it: a hundredth of a percent."""
    rows = []
    for run_id, row in new.items():
        was, now = old.get(run_id, {}).get(_SHARE), row[_SHARE]
        if was is not None and now is not None and round(was, 4) != round(now, 4):
            rows.append({**{n: row[n] for n in _RUN[:3]}, f"old_{_SHARE}": was, f"new_{_SHARE}": now})
    return sorted(rows, key=lambda row: -abs(row[f"new_{_SHARE}"] - row[f"old_{_SHARE}"]))
