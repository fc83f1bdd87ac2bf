"""Looking texts up gives what reading each of them gives, whatever was read before."""

from __future__ import annotations

import random

import polars as pl
import pytest

from transforms.parsing import sacct_distinct
from transforms.parsing.sacct_distinct import Distinct


def read(texts: pl.Series) -> pl.DataFrame:
    """Length and first letter; null has its own answer, as "nothing to read" has in the real readers."""
    text = pl.col(texts.name)
    return texts.to_frame().select(
        length=text.str.len_bytes().fill_null(99), first=text.str.head(1), is_null=text.is_null()
    )


@pytest.mark.parametrize("most", [3, 1000])
def test_any_sequence_of_chunks(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    # 3: it forgets and learns anew all the time; chunks are of one text, of few, of null alone, and of many different.
    monkeypatch.setattr(sacct_distinct, "_MAX_KNOWN", most)
    rng = random.Random(7)
    distinct = Distinct(read)
    for _ in range(200):
        pool: list[str | None] = [None, "", *("abcd"[: rng.randrange(5)] + str(rng.randrange(30)) for _ in range(6))]
        few = rng.sample(pool, rng.randrange(1, 5))
        texts = pl.Series("x", rng.choices(few, k=rng.choice((0, 1, 5, 60))), pl.String)
        assert distinct(texts).equals(read(texts), null_equal=True)


def test_a_text_is_read_once() -> None:
    seen: list[str | None] = []

    def noting(texts: pl.Series) -> pl.DataFrame:
        seen.extend(texts.to_list())
        return read(texts)

    distinct = Distinct(noting)
    for chunk in (["a", "b"] * 20, ["b", "c"] * 20, ["a"] * 20, ["c", None] * 20):
        distinct(pl.Series("x", chunk, pl.String))
    assert sorted(t for t in seen if t) == ["a", "b", "c"]
