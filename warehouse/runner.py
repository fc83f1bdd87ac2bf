"""Models: one SELECT a file, read from a folder, put in order by what they select from, and run.

    -- Parts: intermediate.attribution__rule_*

in a model's header says that models of such names are no tables of their own: they stand before this one as its CTEs, and
nothing else selects from them. Many small ones are then planned and run as one statement.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path
from typing import Any

import duckdb

from warehouse import slices
from warehouse.session import catalog_of, identifier
from warehouse.slices import Key, Slice

MODELS = Path(__file__).parent / "models"

Progress = Callable[[str, float], None]
"""Told the name of a finished step and the seconds it took."""


class ModelError(Exception):
    """A model file is wrong; the message names the file and what to do."""


@dataclass(frozen=True, slots=True)
class Model:
    """One table, defined by one SELECT.

    Attributes:
        schema: top folder below `models/`: staging, intermediate, marts or ops.
        table: file name without suffix.
        path: the file.
        sql: its text.
        grain: its first comment line: what one row is.
        references: `schema.table` names it selects from.
        slice: how it can be made anew in part; None = only as a whole.
        parts: texts of models that stand in it, by their names.
    """

    schema: str
    table: str
    path: Path
    sql: str
    grain: str
    references: frozenset[str]
    slice: Slice | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name as models write it: `schema.table`."""
        return f"{self.schema}.{self.table}"


def load(root: Path = MODELS, memory: Path | None = None) -> dict[str, Model]:
    """Read every model below `root`.

    Args:
        root: folder of models.
        memory: file that keeps what was parsed, by the hash of a model's text, since that takes half a second.

    Returns:
        models by `schema.table`; those that are parts of others stand there only.

    Raises:
        ModelError: a file is no single SELECT, lacks its grain line, two files make the same table, or parts do not fit.
    """
    models: dict[str, Model] = {}
    known = _remembered(memory)
    for path in sorted(root.rglob("*.sql")):
        model = read(path, root, known)
        if model.name in models:
            raise ModelError(f"{path} and {models[model.name].path} both make {model.name}; rename one of them")
        models[model.name] = model
    if memory is not None and (found := {_hash(m.sql): _parsed(m) for m in models.values()}) != known:
        unfinished = memory.with_name(memory.name + ".part")
        unfinished.write_text(json.dumps(found), encoding="utf-8")
        unfinished.replace(memory)
    return _composed(models)


def _composed(models: Mapping[str, Model]) -> dict[str, Model]:
    """Return the models that are tables, each with its parts before it as CTEs."""
    found, gone = dict(models), set[str]()
    for name, model in models.items():
        if line := re.search(r"^-- Parts: (.+)$", model.sql, re.MULTILINE):
            wanted = [pattern.strip() for pattern in line[1].split(",")]
            parts = {n: m for n, m in models.items() if any(fnmatchcase(n, pattern) for pattern in wanted)}
            if unread := parts.keys() - model.references - {r for m in parts.values() for r in m.references}:
                raise ModelError(f"{model.path}: does not select from its parts {', '.join(sorted(unread))}")
            if told := sorted(n for n, m in parts.items() if m.slice or m.sql.count("\n-- Parts:")):
                raise ModelError(f"{model.path}: of its parts {', '.join(told)} the header says how to make them")
            found[name] = _with_parts(model, parts)
            gone |= parts.keys()
    return {name: model for name, model in found.items() if name not in gone}


def _with_parts(model: Model, parts: Mapping[str, Model]) -> Model:
    texts = {
        m.name: _unqualified(m.sql, parts) for m in order(parts, {r for m in parts.values() for r in m.references})
    }
    ctes = ",\n\n".join(_cte(n, text) for n, text in texts.items())
    sql = _unqualified(model.sql, parts)
    header = "".join(takewhile(lambda line: line.startswith("--"), sql.splitlines(keepends=True)))
    body = sql.removeprefix(header)
    rest = f",\n\n{body.removeprefix('with ')}" if body.startswith("with ") else f"\n\n{body}"
    references = model.references.union(*(part.references for part in parts.values())) - parts.keys()
    return replace(model, sql=f"{header}with {ctes}{rest}", references=references, parts=texts)


def _unqualified(sql: str, names: Collection[str]) -> str:
    return re.sub(r"\b\w+\.(\w+)\b", lambda name: name[1] if name[0] in names else name[0], sql)


def _cte(name: str, sql: str) -> str:
    return f"{name.partition('.')[2]} as (\n{sql}\n)"


def without(model: Model, part: str) -> Model:
    """Return a model in which one of its parts gives no rows."""
    text = model.parts[part]
    silent = f"select * from (\n{text}\n) where false"
    return replace(model, sql=model.sql.replace(_cte(part, text), _cte(part, silent)))


Parsed = dict[str, list[Any]]
"""What was parsed of a model: `references`, and `keys` of its slice."""


def _parsed(model: Model) -> Parsed:
    parsed = [[key, list(columns)] for key, columns in model.slice.parsed] if model.slice else []
    return {"references": sorted(model.references), "keys": parsed}


def _remembered(memory: Path | None) -> dict[str, Parsed]:
    try:
        found = dict(json.loads(memory.read_bytes())) if memory else {}
    except (OSError, ValueError, TypeError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, dict) and v.keys() == {"references", "keys"}}


def _hash(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()


def read(path: Path, root: Path, known: Mapping[str, Parsed] | None = None) -> Model:
    """Read one model file; what must be parsed is taken from `known`, by the hash of its text, where it stands there.

    Raises:
        ModelError: it is no single SELECT, lacks its grain line, or names a table without its schema.
    """
    relative = path.relative_to(root)
    if len(relative.parts) < 2:
        raise ModelError(f"{path}: move it into a schema's folder, for example {root.name}/marts/")
    sql = path.read_text(encoding="utf-8").strip().removesuffix(";")
    grain = sql.split("\n", 1)[0]
    if not grain.startswith("-- One row"):
        raise ModelError(f"{path}: its first line must say what a row is: `-- One row per ...`")
    remembered = (known or {}).get(_hash(sql))
    references = frozenset(references_of(path, sql) if remembered is None else remembered["references"])
    keys: list[Key] | None = None
    if remembered is not None:
        keys = [(key, tuple(columns)) for key, columns in remembered["keys"]]
    try:
        sliced = slices.read(sql, keys)
    except slices.SliceError as error:
        raise ModelError(f"{path}: {error}") from error
    return Model(relative.parts[0], path.stem, path, sql, grain.removeprefix("--").strip(), references, sliced)


def references_of(path: Path, sql: str) -> set[str]:
    """Return the `schema.table` names that one SELECT reads.

    Raises:
        ModelError: it is no single SELECT, or names a table without its schema.
    """
    import sqlglot
    from sqlglot import exp

    try:
        statements = [s for s in sqlglot.parse(sql, dialect="duckdb") if s is not None]
    except sqlglot.errors.SqlglotError as error:
        raise ModelError(f"{path}: cannot be parsed: {error}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise ModelError(f"{path}: must hold exactly one SELECT, with its CTEs")
    ctes = {cte.alias_or_name.lower() for cte in statements[0].find_all(exp.CTE)}
    found: set[str] = set()
    for table in statements[0].find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):  # a table function: unnest, generate_series
            continue
        if table.catalog:
            raise ModelError(f"{path}: `{table.sql()}` names a catalog; write schema.table")
        if table.db:
            found.add(f"{table.db}.{table.name}".lower())
        elif table.name.lower() not in ctes:
            raise ModelError(f"{path}: `{table.name}` is neither one of its CTEs nor schema.table")
    return found


def order(models: Mapping[str, Model], known: Collection[str]) -> list[Model]:
    """Return `models` so that each comes after all it selects from.

    Args:
        models: by `schema.table`.
        known: relations that exist before any model runs.

    Raises:
        ModelError: a model selects from something unknown, or models form a circle.
    """
    graph: dict[str, set[str]] = {}
    for name, model in sorted(models.items()):
        unknown = model.references - models.keys() - set(known)
        if unknown:
            raise ModelError(f"{model.path}: selects from {', '.join(sorted(unknown))}, which no model or input makes")
        graph[name] = {r for r in model.references if r in models}
    try:
        return [models[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        circle = " -> ".join(str(models[n].path) for n in error.args[1])
        raise ModelError(f"models select from each other in a circle: {circle}") from error


def upstream(models: Mapping[str, Model], wanted: Iterable[str]) -> dict[str, Model]:
    """Return the models named in `wanted` and all models they need."""
    found: dict[str, Model] = {}
    todo = list(wanted)
    while todo:
        name = todo.pop()
        if name in models and name not in found:
            found[name] = models[name]
            todo.extend(models[name].references)
    return found


def create(con: duckdb.DuckDBPyConnection, model: Model) -> int:
    """Make the model's table.

    Returns:
        its number of rows.

    Raises:
        ModelError: DuckDB refuses the SELECT.
    """
    target = f"{catalog_of(model.schema)}.{model.schema}.{identifier(model.table)}"
    try:
        con.execute(f"create table {target} as\n{model.sql}\n")
    except duckdb.OutOfMemoryException as error:
        raise out_of_memory(model, error) from error
    except duckdb.Error as error:
        raise ModelError(f"{model.path}: {error}") from error
    row = con.execute(f"select count(*) from {target}").fetchone()
    return int(row[0]) if row else 0


def out_of_memory(model: Model, error: Exception) -> ModelError:
    """Return the error of a model for which memory or spill space ran out."""
    return ModelError(
        f"{model.path}: the build ran out of memory or spill space; raise memory_limit, lower threads, "
        f"or free space on the data volume (max_temp_directory_size): {error}"
    )
