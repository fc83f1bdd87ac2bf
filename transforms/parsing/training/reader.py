"""Turn the lines of a training log into rows of `log_events`, chunk by chunk, and count what becomes of each."""

from __future__ import annotations

from collections import Counter

import polars as pl

from transforms.outcome import Context, Parsed, Reject
from transforms.parsing.text import repaired
from transforms.parsing.training import noise, prefix, steps
from transforms.parsing.training.clock import Clock
from transforms.parsing.training.reading import Reading
from transforms.parsing.training.stamps import Stamps
from transforms.parsing.training.told import LOADED, NOT_FINITE, START, Found, Passed
from transforms.records import record_id
from transforms.stream import Chunk
from transforms.tables import LOG_EVENTS
from transforms.tables import UTC as UTC_TIME

MAX_TEXT = 2_000
CUT = "begins as the line of a step does and ends before its time: it was cut short, or its form is not known"
_STEP = "step"
_IDENTITY = ("cluster", "job_id", "node", "rank", "local", "task", "identity", "event", "body")
_EVENTS = {
    "position": pl.UInt32,
    "event": pl.String,
    "step": pl.Int64,
    "told_rank": pl.Int64,
    "told_node": pl.String,
    "error_class": pl.String,
    "sequence": pl.Int64,
    "seconds": pl.Float64,
}
_COLUMNS = _EVENTS | {
    "step_seconds": pl.Float64,
    "loss": pl.Float64,
    "samples": pl.Int64,
    "batch_size": pl.Int64,
    "inner_rank": pl.String,
    "is_merged": pl.Boolean,
    "is_unreadable": pl.Boolean,
}


def is_prefixed(head: bytes) -> bool:
    """Tell whether a collector stamped the lines of an export, by its first bytes."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n") if line.strip()]
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
        self._cluster = ctx.require_cluster()
        self._is_prefixed = is_prefixed(head)
        self._stamps = Stamps(ctx, is_prefixed=self._is_prefixed)
        self._clock = Clock()
        self._reading = Reading()
        self._ends_undated = False

    @property
    def is_open(self) -> bool:
        """Whether lines still to come may need what stands before them: a record that goes on, or a stamp.

        Among lines that a collector stamped, a few without belong to the ones before them, such as those of a traceback.
        """
        return self._reading.is_open or self._ends_undated or not self._is_prefixed

    def read(self, chunk: Chunk) -> Parsed:
        """Return the rows of a chunk, and the fate of each of its lines.

        Raises:
            MissingSettingError: a stamp has no zone and none is configured.
        """
        clean, decoded = repaired(chunk.data)
        texts = clean.decode("utf-8").split("\n")
        if not texts[-1]:
            texts.pop()
        parts = prefix.split(pl.Series(texts, dtype=pl.String)).with_row_index("position")
        is_step = parts.select(steps.is_step()).to_series()
        found = self._reading.read(parts, is_step)
        told = _told(found)
        is_used = is_step.clone().scatter(told.get_column("position").unique(), True) if len(told) else is_step
        stepped = steps.read(parts.filter(is_step))
        dated = self._dated(parts, is_used, stepped, found)
        problem = _problems(parts, is_used, dated, is_ended=chunk.data.endswith(b"\n"))
        is_lost = problem.is_not_null()
        parsed = Parsed(used=int((is_used & ~is_lost).sum()))
        parsed.ignored = _ignored(parts, is_used | is_lost, found)
        parsed.rejects = _rejects(chunk, problem)
        rows = _rows(parts, stepped, told)
        if rows is not None:
            dated = dated.with_columns(is_lost.alias("is_lost"))
            parsed.frames[LOG_EVENTS.name] = self._finished(rows, dated, decoded, chunk.first_line)
        last = is_used.arg_true()
        if len(last):
            self._ends_undated = bool(dated.item(last[-1], "is_derived"))
        return parsed

    def _dated(
        self, parts: pl.DataFrame, is_used: pl.Series, stepped: pl.DataFrame, found: dict[int, Found]
    ) -> pl.DataFrame:
        """Return the stamps' columns for every line, with `identity` and `is_derived`; lines without stamp get the clock's time."""
        times = self._stamps.read(parts)
        us = times.get_column("at").to_physical()
        is_bare = is_used & us.is_null() & times.get_column("problem").is_null()
        marks = _marks(us, stepped, found, is_bare)
        read: list[tuple[int, int | None, str]] = []
        for position, at, is_step, step, seconds in marks.iter_rows():
            if at is not None:
                self._clock.stamped(at)
            self._heed(found.get(position), parts, position)
            line = self._clock.step(step, seconds, is_stamped=at is not None) if is_step else self._clock.line()
            if is_bare[position]:
                read.append((position, *line))
        dated = times.with_columns(us.cast(pl.String).alias("identity"), is_bare.alias("is_derived"))
        if not read:
            return dated
        found_at = pl.DataFrame(
            read, schema={"position": pl.UInt32, "us": pl.Int64, "identity": pl.String}, orient="row"
        )
        at = found_at.get_column("position")
        return dated.with_columns(
            dated.get_column("at").scatter(at, found_at.get_column("us").cast(UTC_TIME)),
            dated.get_column("identity").scatter(at, found_at.get_column("identity")),
        )

    def _heed(self, told: Found | None, parts: pl.DataFrame, position: int) -> None:
        """Tell the clock of what a line says about steps to come."""
        if isinstance(told, Passed):
            if told.step is not None:
                self._clock.counted_from(told.step)
            self._clock.paused(told.pause_seconds)
            return
        for one in told or ():
            if one.event == START:
                is_process = "datetime: " not in parts.item(position, "body")
                self._clock.started(is_process=is_process)
            elif one.event == LOADED and one.step is not None:
                self._clock.counted_from(one.step)

    def _finished(self, rows: pl.DataFrame, dated: pl.DataFrame, decoded: list[int], first_line: int) -> pl.DataFrame:
        """Return rows of `log_events` from rows with a position."""
        times = dated.select("at", "identity", "is_derived", "is_ambiguous", "is_yearless", "is_lost")
        rows = rows.hstack(times.select(pl.all().gather(rows.get_column("position")))).filter(~pl.col("is_lost"))
        is_decoded = pl.col("position").is_in(decoded) if decoded else pl.lit(False)
        flags = {
            "time_missing": pl.col("at").is_null(),
            "time_derived": pl.col("is_derived") & pl.col("at").is_not_null(),
            "time_ambiguous": pl.col("is_ambiguous"),
            "year_inferred": pl.col("is_yearless"),
            "merged_lines": pl.col("is_merged"),
            "value_unreadable": pl.col("is_unreadable"),
            "decoded": is_decoded,
        }
        rows = rows.with_columns(
            cluster=pl.lit(self._cluster),
            job_id=pl.lit(self._ctx.job_id, pl.String),
            node=pl.coalesce("told_node", "host", pl.lit(self._ctx.node, pl.String)),
            rank=pl.coalesce(
                "told_rank", pl.col("rank").cast(pl.Int64), pl.col("inner_rank").cast(pl.Int64), _task_rank()
            ),
        )
        return rows.select(
            "cluster",
            record_id(_IDENTITY).alias("record_id"),
            "job_id",
            "node",
            "rank",
            pl.col("at").alias("occurred_at"),
            *("event", "step", "step_seconds", "loss", "samples", "batch_size", "error_class", "sequence", "seconds"),
            # A step's columns say what its line does.
            pl.when(pl.col("event") != _STEP)
            .then(pl.col("body").str.strip_chars().str.slice(0, MAX_TEXT))
            .alias("text"),
            _listed(rows, flags).alias("flags"),
            pl.lit(self._ctx.collected_at, UTC_TIME).alias("collected_at"),
            (pl.col("position").cast(pl.Int64) + first_line).alias("line"),
        )


def _task_rank() -> pl.Expr:
    # A task is a rank where srun starts every process; under torchrun it is a node, and the line names a local rank as well.
    return pl.when(pl.col("local").is_null()).then(pl.col("task").cast(pl.Int64))


def _listed(rows: pl.DataFrame, flags: dict[str, pl.Expr]) -> pl.Expr:
    """Return an expression for the list of those flags that hold."""
    held = rows.select(pl.any_horizontal(is_held.any()).alias(name) for name, is_held in flags.items()).row(
        0, named=True
    )
    names = [
        pl.when(is_held).then(pl.lit(name)).otherwise(pl.lit(None, pl.String))
        for name, is_held in flags.items()
        if held[name]
    ]
    if not names:
        return pl.lit([], pl.List(pl.String))
    return pl.concat_list(names).list.drop_nulls()


def _told(found: dict[int, Found]) -> pl.DataFrame:
    """Return one row per event that lines tell, with its position."""
    rows = [(position, *one) for position, told in found.items() if not isinstance(told, Passed) for one in told]
    return pl.DataFrame(rows, schema=_EVENTS | {"text": pl.String}, orient="row")


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


def _marks(us: pl.Series, stepped: pl.DataFrame, found: dict[int, Found], is_bare: pl.Series) -> pl.DataFrame:
    """Return the lines that the clock must see, in order: position, stamp, whether it is a step, its number and seconds.

    Where every line of interest has a stamp, the last ones do.
    """
    seen = stepped.select("position", "step", "step_seconds", is_step=pl.lit(True))
    if not is_bare.any():
        seen = seen.tail(1)
    told = pl.DataFrame({"position": list(found)}, schema={"position": pl.UInt32})
    stamped = us.is_not_null().arg_true().alias("position").to_frame()
    if not is_bare.any():
        stamped = stamped.tail(1)
    positions = pl.concat([stamped, told, seen.select("position")]).unique().sort("position")
    marks = positions.with_columns(us.gather(positions.get_column("position")).alias("at"))
    marks = marks.join(seen, on="position", how="left", maintain_order="left")
    is_of_interest = pl.col("is_step").fill_null(False) | pl.col("position").is_in(
        told.get_column("position").implode()
    )
    kept = marks.filter(is_of_interest | is_of_interest.shift(-1).fill_null(True))
    return kept.select("position", "at", pl.col("is_step").fill_null(False), "step", "step_seconds")


def _rows(parts: pl.DataFrame, stepped: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame | None:
    """Return one row per event of a chunk, in order of lines, with columns of the prefix and of what is told."""
    frames: list[pl.DataFrame] = []
    if len(stepped):
        frames.append(stepped.with_columns(event=pl.lit(_STEP)))
        odd = stepped.filter(~pl.col("is_finite"))
        if len(odd):
            frames.append(odd.select(*parts.columns, "step", event=pl.lit(NOT_FINITE)))
    if len(told):
        lines = parts.select(pl.col("host", "task", "local", "rank", "body").gather(told.get_column("position")))
        events = told.hstack(lines).with_columns(
            body=pl.coalesce("text", "body"),
            is_merged=pl.col("text").is_not_null(),
            inner_rank=pl.col("body").str.extract(r"\[rank(\d{1,6})\]"),
        )
        frames.append(events.drop("text"))
    if not frames:
        return None
    rows = pl.concat(frames, how="diagonal")
    missing = [pl.lit(None, t).alias(n) for n, t in _COLUMNS.items() if n not in rows.columns]
    return (
        rows.with_columns(missing)
        .with_columns(pl.col("is_merged", "is_unreadable").fill_null(False))
        .sort("position", maintain_order=True)
    )
