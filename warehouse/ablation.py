"""What the verdicts would be without one of the rules: tells what each rule is worth."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from warehouse import load, runner
from warehouse.inputs import Inputs
from warehouse.runner import Model
from warehouse.session import building, catalog_of, identifier

RULE = "intermediate.attribution__rule_"
VERDICTS = "marts.interruptions"

Row = dict[str, Any]


def rules(models: Mapping[str, Model] | None = None) -> list[str]:
    """Return the names of all rules: `gpu_lost` of `attribution__rule_gpu_lost.sql`."""
    found = runner.load() if models is None else models
    parts = [part for model in found.values() for part in model.parts]
    return sorted(part.removeprefix(RULE) for part in parts if part.startswith(RULE))


def without_each_rule(
    scratch: Path,
    inputs: Inputs,
    left_out: Collection[str] | None = None,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Iterator[tuple[str | None, list[Row]]]:
    """Make the verdicts with all rules, then with each rule left out in turn; nothing is published.

    What does not depend on the rule is made once.

    Args:
        scratch: existing folder for the working file and spill; the file is removed.
        inputs: lake, exports and settings.
        left_out: rules to leave out; None = each.
        memory_limit: for DuckDB, as it reads it (`4GB`); None = from the container's limits.
        threads: for DuckDB; None = from the container's limits.

    Yields:
        the rule that is left out, None at first, and the rows of marts.interruptions without it.

    Raises:
        KeyError: there is no such rule.
        ModelError: a model is wrong, or memory or spill space ran out.
    """
    models = runner.upstream(runner.load(), [VERDICTS])
    order = runner.order(models, load.known())
    names = rules(models) if left_out is None else list(left_out)
    if unknown := set(names) - set(rules(models)):
        raise KeyError(f"no rule is called {', '.join(sorted(unknown))}; rules are {', '.join(rules(models))}")
    file = scratch / "without_rules.duckdb"
    file.unlink(missing_ok=True)
    try:
        with building(file, scratch, memory_limit=memory_limit, threads=threads) as con:
            load.inputs(con, inputs)
            for model in order:
                runner.create(con, model)
            yield None, _verdicts(con)
            for name in names:
                yield name, _without(con, order, RULE + name)
    finally:
        file.unlink(missing_ok=True)
        file.with_name(file.name + ".wal").unlink(missing_ok=True)


def _without(con: duckdb.DuckDBPyConnection, order: list[Model], rule: str) -> list[Row]:
    """Return the verdicts without a rule, and put everything back."""
    votes = next(model for model in order if rule in model.parts)
    later = _downstream(order, votes)
    _make(con, [runner.without(votes, rule), *later])
    found = _verdicts(con)
    _make(con, [votes, *later])
    return found


def _make(con: duckdb.DuckDBPyConnection, models: list[Model]) -> None:
    for model in models:
        con.execute(f"drop table {catalog_of(model.schema)}.{model.schema}.{identifier(model.table)}")
        runner.create(con, model)


def _downstream(order: list[Model], first: Model) -> list[Model]:
    """Return the models of `order` that select from `first`, directly or by others, in order."""
    changed = {first.name}
    later = []
    for model in order:
        if model.references & changed:
            changed.add(model.name)
            later.append(model)
    return later


def _verdicts(con: duckdb.DuckDBPyConnection) -> list[Row]:
    found = con.execute(f"select * from {VERDICTS} order by interruption_id")
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
