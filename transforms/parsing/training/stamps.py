"""The times that lines of a training log print themselves.

A collector's stamp before the line wins. In a log without such stamps the line's own is read: Megatron's `[2024-07-23 10:00:00]`
(also DeepSpeed's and NeMo's), `datetime: ...`, Slurm's `CANCELLED AT ...`, and last PyTorch's `[E504 11:31:07.000000000`, which has
no year. In a log with a collector's stamps the others are not used: programs in containers often print another zone.
"""

from __future__ import annotations

import re

import polars as pl

from transforms.outcome import Context
from transforms.parsing.log_stamps import MONTHS, StampError, StampReader
from transforms.parsing.timestamps import FIRST_US, LAST_US, read_times
from transforms.parsing.training.prefix import STAMP
from transforms.tables import UTC

_INLINE = (
    rf"^ ?\[(?:NeMo [A-Z] )?(?P<stamp>{STAMP})(?:[.,](?P<fraction>[0-9]{{1,9}}))?",
    rf"\] datetime: (?P<stamp>{STAMP})(?P<fraction>$)?",
    rf"CANCELLED AT (?P<stamp>{STAMP})(?P<fraction>$)?",
)
_GLOG = re.compile(r"\[?[EWIF]([0-9]{1,2})([0-9][0-9]) ([0-9][0-9]:[0-9][0-9]:[0-9][0-9])(?:\.([0-9]{1,9}))?")
_HAS_GLOG = r"(?:^|\[)[EWIF][0-9]{3,4} [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
_MONTH_NAMES = tuple(MONTHS)
SCHEMA: dict[str, pl.DataType] = {
    "at": UTC,
    "is_ambiguous": pl.Boolean(),
    "is_yearless": pl.Boolean(),
    "problem": pl.String(),
}


class Stamps:
    """Reads the stamps of one export.

    Args:
        ctx: tells the zone, when first needed.
        is_prefixed: a collector stamped the lines.
    """

    def __init__(self, ctx: Context, *, is_prefixed: bool) -> None:
        self._ctx = ctx
        self._is_prefixed = is_prefixed
        self._reader = StampReader(ctx)

    def read(self, parts: pl.DataFrame) -> pl.DataFrame:
        """Return the time of each line.

        Args:
            parts: columns of `prefix.split`.

        Returns:
            Columns SCHEMA: `at` is null where the line prints none or one that names no instant; then `problem` says why.

        Raises:
            MissingSettingError: a stamp has no zone and none is configured.
        """
        stamps = parts.select("stamp", "fraction", "offset")
        is_bare = parts.get_column("stamp").is_null()
        if self._is_prefixed or not is_bare.any():
            return self._times(stamps)
        at = is_bare.arg_true()
        bodies = parts.select(pl.col("body").gather(at))
        inline = (
            bodies.select(_first_inline()).unnest("inline").select("stamp", "fraction", offset=pl.lit(None, pl.String))
        )
        times = self._times(_scattered(stamps, at, inline))
        return self._with_glog(times, parts.get_column("body"))

    def _times(self, stamps: pl.DataFrame) -> pl.DataFrame:
        text = stamps.get_column("stamp").str.replace(" ", "T", literal=True)
        offset = stamps.get_column("offset")
        is_local = text.is_not_null() & offset.is_null()
        is_ambiguous = pl.repeat(False, len(text), dtype=pl.Boolean, eager=True)
        wall = text.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False).dt.replace_time_zone("UTC")
        at = stamps.select(pl.lit(wall) - pl.duration(minutes=_offset_minutes())).to_series()
        if is_local.any():
            read = read_times(text, self._ctx.zone_of(self._ctx.cluster))
            at = read.get_column("instant").zip_with(is_local, at)
            is_ambiguous = read.get_column("is_ambiguous") & is_local
        micros = stamps.get_column("fraction").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64).fill_null(0)
        times = pl.DataFrame(
            [
                _in_range((at + micros.cast(pl.Duration("us"))).cast(UTC)).alias("at"),
                is_ambiguous.alias("is_ambiguous"),
                pl.repeat(False, len(text), dtype=pl.Boolean, eager=True).alias("is_yearless"),
                pl.repeat(None, len(text), dtype=pl.String, eager=True).alias("problem"),
            ]
        )
        lost = (text.is_not_null() & times.get_column("at").is_null()).arg_true()
        return _scattered(times, lost, self._one_by_one(stamps.select(pl.all().gather(lost)))) if len(lost) else times

    def _one_by_one(self, stamps: pl.DataFrame) -> pl.DataFrame:
        """Read unusual stamps: leap seconds, local times that do not exist, no dates at all."""
        rows: list[tuple[int | None, bool, bool, str | None]] = []
        for stamp, fraction, offset in stamps.iter_rows():
            text = stamp + (f".{fraction}" if fraction else "") + (offset or "")
            try:
                instant = self._reader.iso(text)
                rows.append((instant.us, "time_ambiguous" in instant.flags, False, None))
            except StampError as error:
                rows.append((None, False, False, f"time stamp {text!r}: {error}"))
        return _frame(rows)

    def _with_glog(self, times: pl.DataFrame, bodies: pl.Series) -> pl.DataFrame:
        is_bare = times.get_column("at").is_null() & times.get_column("problem").is_null()
        at = (is_bare & bodies.str.contains(_HAS_GLOG)).arg_true()
        if not len(at):
            return times
        return _scattered(times, at, _frame([self._glog(body) for body in bodies.gather(at)]))

    def _glog(self, body: str) -> tuple[int | None, bool, bool, str | None]:
        found = _GLOG.search(body)
        if found is None or not 1 <= int(found[1]) <= 12:
            return None, False, False, None
        text = f"{_MONTH_NAMES[int(found[1]) - 1]} {found[2]} {found[3]}" + (f".{found[4]}" if found[4] else "")
        try:
            instant = self._reader.yearless(text)
        except StampError:
            return None, False, False, None
        return instant.us, "time_ambiguous" in instant.flags, True, None


def _in_range(at: pl.Series) -> pl.Series:
    """Return `at` without what an offset put outside the years 1 to 9999, where no calendar has a name for it."""
    us = at.to_physical()
    low, high = us.min(), us.max()
    if isinstance(low, int) and isinstance(high, int) and (low < FIRST_US or high > LAST_US):
        return at.to_frame().select(pl.when(us.is_between(FIRST_US, LAST_US)).then(pl.first())).to_series()
    return at


def _first_inline() -> pl.Expr:
    found = [pl.col("body").str.extract_groups(pattern) for pattern in _INLINE]
    first, second, third = found
    is_first, is_second = (f.struct.field("stamp").is_not_null() for f in (first, second))
    return pl.when(is_first).then(first).when(is_second).then(second).otherwise(third).alias("inline")


def _offset_minutes() -> pl.Expr:
    offset = pl.col("offset")
    hours, minutes = (
        offset.str.slice(1, 2).cast(pl.Int64, strict=False),
        offset.str.slice(-2).cast(pl.Int64, strict=False),
    )
    sign = pl.when(offset.str.starts_with("-")).then(-1).otherwise(1)
    is_zulu = offset.is_in(["Z", "z"])
    return pl.when(is_zulu).then(0).when((hours < 24) & (minutes < 60)).then(sign * (60 * hours + minutes))


def _frame(rows: list[tuple[int | None, bool, bool, str | None]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA | {"at": pl.Int64()}, orient="row").with_columns(pl.col("at").cast(UTC))


def _scattered(frame: pl.DataFrame, at: pl.Series, rows: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame([c.scatter(at, rows.get_column(c.name)) for c in frame.get_columns()])
