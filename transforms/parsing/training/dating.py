"""Give every line of interest a time: its own stamp, else what the clock works out."""

from __future__ import annotations

import polars as pl

from transforms.outcome import Context
from transforms.parsing.training.clock import Clock
from transforms.parsing.training.stamps import Stamps
from transforms.parsing.training.told import LOADED, START, Found, Lost, Passed
from transforms.tables import UTC


class Dating:
    """Dates the lines of one export, chunk after chunk.

    Args:
        ctx: tells the zone and the collection time.
        is_prefixed: a collector stamped the lines.
    """

    def __init__(self, ctx: Context, *, is_prefixed: bool) -> None:
        self._stamps = Stamps(ctx, is_prefixed=is_prefixed)
        self._clock = Clock()
        self.ends_undated = False

    def read(
        self, parts: pl.DataFrame, is_used: pl.Series, stepped: pl.DataFrame, found: dict[int, Found]
    ) -> pl.DataFrame:
        """Return the time of each line.

        Args:
            parts: columns of `prefix.split`, and `position`.
            is_used: which lines make rows.
            stepped: the steps, as `steps.read` gives them.
            found: what the other lines tell.

        Returns:
            Columns of `Stamps.read`, `is_derived` (it makes a row and prints no time), and `identity`, what tells the record from
            others with the same words: its stamp, else what `Clock` gives.

        Raises:
            MissingSettingError: a stamp has no zone and none is configured.
        """
        times = self._stamps.read(parts)
        us = times.get_column("at").to_physical()
        is_bare = is_used & us.is_null() & times.get_column("problem").is_null()
        read: list[tuple[int, int | None, str]] = []
        for position, at, is_step, step, seconds in _marks(us, stepped, found, is_bare).iter_rows():
            self._heed(found.get(position), parts, position)
            if at is not None:
                self._clock.stamped(at)
            line = self._clock.step(step, seconds, is_stamped=at is not None) if is_step else self._clock.line()
            if is_bare[position]:
                read.append((position, *line))
        last = is_used.arg_true()
        if len(last):
            self.ends_undated = bool(is_bare[last[-1]])
        dated = times.with_columns(us.cast(pl.String).alias("identity"), is_bare.alias("is_derived"))
        if not read:
            return dated
        schema = {"position": pl.UInt32, "us": pl.Int64, "identity": pl.String}
        bare = pl.DataFrame(read, schema=schema, orient="row")
        positions = bare.get_column("position")
        return dated.with_columns(
            dated.get_column("at").scatter(positions, bare.get_column("us").cast(UTC)),
            dated.get_column("identity").scatter(positions, bare.get_column("identity")),
        )

    def _heed(self, told: Found | None, parts: pl.DataFrame, position: int) -> None:
        """Tell the clock what a line says about steps to come."""
        if isinstance(told, Passed):
            if told.step is not None:
                self._clock.counted_from(told.step)
            self._clock.paused(told.pause_seconds)
            return
        if told is None or isinstance(told, Lost):
            return
        for one in told:
            if one.event == START:
                is_process = "datetime: " not in parts.item(position, "body")
                self._clock.started(is_process=is_process)
            elif one.event == LOADED and one.step is not None:
                self._clock.counted_from(one.step)


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
