"""Every query that a document shows runs on the demo."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import DOCS, fenced, inline, text_of

Goodput = Callable[..., Any]
QUERIES = sorted(
    {
        words[2]
        for path in DOCS
        for line in [*fenced(text_of(path)), *inline(text_of(path))]
        if (words := shlex.split(line, comments=True))[1] == "sql" and len(words) > 2 and " " in words[2]
    }
)


def test_there_are_queries() -> None:
    assert len(QUERIES) >= 4


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_docs_runs_on_the_demo(goodput: Goodput, demo_folder: Path, query: str) -> None:
    ran = goodput("sql", query, "--format", "json", "--config", demo_folder / "goodput.toml")
    assert ran.code == 0, ran.err
