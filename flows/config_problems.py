"""Turn what validation finds into problems a reader can act on."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from flows.config_errors import Loc, Problem, did_you_mean, line_of
from flows.config_schema import Document
from flows.config_types import shown


def problems(error: ValidationError, lines: dict[Loc, int]) -> list[Problem]:
    """Return a problem for each error of a validation of `Document`."""
    return [
        Problem(line_of(lines, e["loc"]), _text(e["type"], e["loc"], e.get("input"), e["msg"]))
        for e in error.errors(include_url=False, include_context=False)
    ]


def heading(loc: Loc) -> str:
    """Return how the table at `loc` is headed in the file: `[clusters.llm]`, `[[sources]]`."""
    if any(isinstance(part, int) for part in loc):
        return f"[[{loc[0]}]]"
    return f"[{'.'.join(map(str, loc))}]" if loc else "the file"


def _text(kind: str, loc: Loc, found: Any, message: str) -> str:
    key, parent = loc[-1], loc[:-1]
    if kind == "extra_forbidden":
        return f"unknown key `{key}` in {heading(parent)}" + did_you_mean(str(key), _keys(parent))
    if kind == "missing":
        return f"{heading(parent)} needs `{key}`"
    if kind in {"model_type", "model_attributes_type", "dict_type"}:
        return f"`{key}` is a table: write [{'.'.join(map(str, loc))}], not {key} = {shown(found)}"
    if kind == "tuple_type":
        return f"`{key}` is a list of tables: write [[{key}]]"
    if kind == "too_short":
        return f"`{key}` is empty; give it at least one item, or leave it out"
    return f"`{key}`: " + message.removeprefix("Value error, ")


def _keys(loc: Loc) -> list[str]:
    """Return the keys that the table at `loc` may have."""
    kind: Any = Document
    for part in loc:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = kind.model_fields[str(part)].annotation
        else:
            kind = next(a for a in reversed(get_args(kind)) if a is not Ellipsis)
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []
