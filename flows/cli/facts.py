"""How commands get at configuration and marts, with expected failures as `CommandError`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.terminal import CommandError
from flows.cli.words import config_given

if TYPE_CHECKING:
    from flows.config import Config as Config
    from warehouse.query import Ask

Row = dict[str, Any]

WAIT_SECONDS = 30.0
"""How long a command waits for another one that writes to the same folder."""
ID_DIGITS = 10
"""Digits of an interruption's id that tables show; `explain` and `annotate` take any prefix that is unique."""


def configuration(path: Path | None) -> Config:
    """Return the checked configuration.

    Raises:
        CommandError: it is missing or wrong (exit 2).
    """
    from flows.config import ConfigError, load

    config_given.set(path)
    try:
        return load(path)
    except ConfigError as error:
        raise CommandError(str(error), 2) from None


_held: ContextVar[tuple[Path, Ask] | None] = ContextVar("_held", default=None)
"""The session that `one_session` keeps open, and the data folder whose build it reads."""


@contextmanager
def one_session(config: Config) -> Iterator[None]:
    """Let `rows` ask all its queries in one session, of the build that is published now: a session of its own costs each 20 ms.

    Raises:
        CommandError: nothing has been published yet.
    """
    from warehouse import publish, query

    if _ask_of(config):
        yield
        return
    with ExitStack() as stack:
        try:
            ask = stack.enter_context(query.asking(publish.link_of(config.data)))
        except publish.NoWarehouseError as error:
            raise CommandError(str(error)) from None
        token = _held.set((config.data, ask))
        try:
            yield
        finally:
            _held.reset(token)


def _ask_of(config: Config) -> Ask | None:
    """Return what asks the session that is held for this data folder."""
    held = _held.get()
    return held[1] if held is not None and held[0] == config.data else None


def rows(config: Config, sql: str, params: Sequence[Any] = ()) -> list[Row]:
    """Return the rows of a query on the published warehouse.

    Raises:
        CommandError: nothing has been published yet, or the build lacks a mart or column.
    """
    from warehouse import publish, query

    try:
        if ask := _ask_of(config):
            return ask(sql, list(params))
        return query.rows(publish.link_of(config.data), sql, list(params))
    except publish.NoWarehouseError as error:
        raise CommandError(str(error)) from None
    except query.QueryError as error:
        reason = str(error).splitlines()[0]
        raise CommandError(f"the published build lacks what this needs ({reason}); run `goodput build`") from error


def is_published(config: Config) -> bool:
    """Tell whether there is a build to read."""
    from warehouse import publish

    return publish.link_of(config.data).exists()


def one_interruption(config: Config, prefix: str) -> Row:
    """Return the interruption whose id begins with `prefix`.

    Raises:
        CommandError: none or several do.
    """
    if not prefix.strip():
        raise CommandError("the id is empty; `goodput interruptions` lists the ids", 2)
    found = rows(config, f"{INTERRUPTIONS} where starts_with(i.interruption_id, ?) order by i.interrupted_at", [prefix])
    if not found:
        raise CommandError(f"no interruption has an id that begins with {prefix}; `goodput interruptions` lists them")
    if len(found) > 1:
        ids = ", ".join(r["interruption_id"][: len(prefix) + 6] for r in found[:5])
        raise CommandError(f"{len(found)} interruptions have ids that begin with {prefix}: {ids}; give more of it", 2)
    return found[0]


@contextmanager
def expected_errors() -> Iterator[None]:
    """Turn the errors that ingest and build announce into `CommandError`.

    Raises:
        CommandError: with the same message; exit 2 where the configuration is wrong.
    """
    from flows.config import ConfigError
    from flows.pipeline import EXPECTED

    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise CommandError(
            f"{where}{error.strerror or error}; may this user write there, and is there room? What was published stays"
        ) from None
    except EXPECTED as error:
        raise CommandError(str(error), 2 if isinstance(error, ConfigError) else 1) from None


NOT_BUILT = "the newest build does not hold all that was read, or was made by other rules"
BUILD_NEXT = "`goodput build` makes the next, and says why if that is not published"
INTERRUPTIONS = "select i.* from marts.interruptions as i"

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def duration(text: str) -> timedelta:
    """Return a duration such as 90s, 45m, 24h, 7d or 2w.

    Raises:
        CommandError: it is none (exit 2).
    """
    match = re.fullmatch(r"\s*(\d+)\s*([smhdw])\s*", text)
    if match is None:
        raise CommandError(f"{text!r} is no duration; write 90s, 45m, 24h, 7d or 2w", 2)
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def moment(text: str) -> datetime:
    """Return a time: a duration before now, or a day or time as ISO 8601 writes it, in UTC where no zone is given.

    Raises:
        CommandError: it is none (exit 2).
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        pass
    else:
        try:
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except OverflowError:
            raise CommandError(f"{text!r} is before the first year or after the last; write a nearer time", 2) from None
    try:
        return datetime.now(UTC) - duration(text)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
    except CommandError:
        raise CommandError(
            f"{text!r} is no time; write 45m, 24h, 7d, 2w, 2026-05-04 or 2026-05-04T13:30:00Z", 2
        ) from None


def has_column(config: Config, mart: str, column: str) -> bool:
    """Tell whether the published build has a column: builds of former versions may lack newer ones."""
    sql = """
        select count(*) as n
        from information_schema.columns
        where table_schema = 'marts' and table_name = ? and column_name = ?
    """
    return bool(rows(config, sql, [mart, column])[0]["n"])
