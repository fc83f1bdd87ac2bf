"""Turn the lines of a training log into rows of `log_events`, chunk by chunk, and count what becomes of each."""

from __future__ import annotations

import re
from collections import Counter

import polars as pl

from transforms.outcome import Context, Parsed, Reject
from transforms.parsing.text import repaired
from transforms.parsing.training import noise, prefix, steps
from transforms.parsing.training.dating import Dating
from transforms.parsing.training.reading import Reading
from transforms.parsing.training.rows import finished, gathered, told_in
from transforms.parsing.training.told import Found, Lost, Passed
from transforms.stream import Chunk
from transforms.tables import LOG_EVENTS

CUT = "begins as the line of a step does and ends before its time: it was cut short, or its form is not known"
HOLE = "NUL bytes stand in it: what was there was not written, and two lines may have become one"
_HOLE = re.compile(rb"^\0+", re.MULTILINE)
_COLOUR_MARK, _COLOUR = b"\x1b[", re.compile(rb"\x1b\[[0-9;]*m")


def is_prefixed(head: bytes) -> bool:
    """Tell whether a collector stamped the lines of an export, by its first bytes."""
    text = _HOLE.sub(b"", _COLOUR.sub(b"", head)).decode("utf-8", "replace")
    lines = [line for line in text.split("\n") if line.strip()]
    stamps = prefix.split(pl.Series(lines, dtype=pl.String)).get_column("stamp")
    return 2 * int(stamps.is_not_null().sum()) > len(stamps)


class LogReader:
    """Reads the chunks of one export, in order.

    Args:
        ctx: what is known of the export.
        head: its first bytes.

    Raises:
        MissingSettingError: the source has no cluster.
    """

    def __init__(self, ctx: Context, head: bytes) -> None:
        self._ctx = ctx
        ctx.require_cluster()
        self._is_prefixed = is_prefixed(head)
        self._dating = Dating(ctx, is_prefixed=self._is_prefixed)
        self._reading = Reading()

    @property
    def is_open(self) -> bool:
        """Whether lines still to come may need what stands before them: a record that goes on, or a stamp.

        Among lines that a collector stamped, a few without belong to the ones before them, such as those of a traceback.
        """
        return self._reading.is_open or self._dating.ends_undated or not self._is_prefixed

    def read(self, chunk: Chunk) -> Parsed:
        """Return the rows of a chunk, and the fate of each of its lines.

        Raises:
            MissingSettingError: a stamp has no zone and none is configured.
        """
        texts, decoded = _texts(chunk.data)
        parts = prefix.split(texts).with_row_index("position")
        is_step = parts.select(steps.is_step()).to_series()
        found = self._reading.read(parts, is_step)
        told = told_in(found)
        is_used = is_step.clone().scatter(told.get_column("position").unique(), True) if len(told) else is_step
        stepped = steps.read(parts.filter(is_step))
        dated = self._dating.read(parts, is_used, stepped.filter(pl.col("step_problem").is_null()), found)
        problem = _problems(parts, is_used, dated, is_ended=chunk.data.endswith(b"\n"))
        problem = _with_told(problem, parts, stepped, found, is_used, has_holes=b"\0" in chunk.data)
        is_lost = problem.is_not_null()
        parsed = Parsed(used=int((is_used & ~is_lost).sum()))
        parsed.ignored = _ignored(parts, is_used | is_lost, found)
        parsed.rejects = _rejects(chunk, problem)
        rows = gathered(parts, stepped, told)
        if rows is not None:
            dated = dated.with_columns(is_lost.alias("is_lost")).select(pl.all().gather(rows.get_column("position")))
            rows = rows.hstack(dated).filter(~pl.col("is_lost"))
            parsed.frames[LOG_EVENTS.name] = finished(rows, self._ctx, decoded, chunk.first_line)
        return parsed


def _texts(data: bytes) -> tuple[pl.Series, list[int]]:
    """Return the lines of a chunk as text, without colours or NUL bytes before them, and the positions of those that were not UTF-8."""
    clean, decoded = repaired(data)
    if _COLOUR_MARK in clean:
        clean = _COLOUR.sub(b"", clean)
    if b"\0" in clean:  # blocks that a file system never wrote; what stands after them is a line of its own
        clean = _HOLE.sub(b"", clean)
    texts = clean.decode("utf-8").split("\n")
    if data.endswith(b"\n"):
        texts.pop()
    return pl.Series(texts, dtype=pl.String), decoded


def _ignored(parts: pl.DataFrame, is_used: pl.Series, found: dict[int, Found]) -> Counter[str]:
    rules = Counter(told.rule for position, told in found.items() if isinstance(told, Passed) and not is_used[position])
    rest = ~is_used
    passed = [p for p, told in found.items() if isinstance(told, Passed)]
    if passed:
        rest = rest.scatter(passed, False)
    if rest.any():
        counts = parts.lazy().filter(rest).select(noise.rule()).collect().to_series().value_counts()
        rules.update(dict(counts.iter_rows()))
    return rules


def _problems(parts: pl.DataFrame, is_used: pl.Series, dated: pl.DataFrame, *, is_ended: bool) -> pl.Series:
    """Return why lines cannot be read; null for all others. Values at the end of a line without line end may be cut."""
    problem = dated.select(pl.when(is_used).then("problem")).to_series()
    cut = parts.filter(~is_used & steps.is_begun(parts.get_column("body"))).get_column("position").to_list()
    if not is_ended and is_used[-1] and steps.may_be_cut(parts.item(-1, "body")):
        cut.append(len(parts) - 1)
    return problem.scatter(cut, CUT) if cut else problem


def _with_told(
    problem: pl.Series,
    parts: pl.DataFrame,
    stepped: pl.DataFrame,
    found: dict[int, Found],
    is_used: pl.Series,
    *,
    has_holes: bool,
) -> pl.Series:
    """Return `problem` with what is wrong with what lines tell."""
    why = {position: told.reason for position, told in found.items() if isinstance(told, Lost)}
    why |= dict(stepped.select("position", "step_problem").drop_nulls().iter_rows())
    if has_holes:
        holes = is_used & parts.get_column("body").str.contains("\0", literal=True)
        why |= dict.fromkeys(holes.arg_true().to_list(), HOLE)
    return problem.scatter(list(why), list(why.values())) if why else problem


def _rejects(chunk: Chunk, problem: pl.Series) -> list[Reject]:
    wanted = set(problem.is_not_null().arg_true())
    if not wanted:
        return []
    offset, rejects = chunk.byte_offset, []
    for position, raw in enumerate(chunk.data.split(b"\n")):
        if position in wanted:
            rejects.append(Reject.of(chunk.first_line + position, problem[position], raw, offset))
        offset += len(raw) + 1
    return rejects
