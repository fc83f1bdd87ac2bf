"""`goodput rollback`: let readers see a former build again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption
from flows.cli.terminal import CommandError, say

if TYPE_CHECKING:
    from warehouse.publish import Build


def rollback(
    build: Annotated[
        str | None, Parameter(help="Build to publish again; the one before the published one if not given.")
    ] = None,
    /,
    *,
    config: ConfigOption = None,
) -> int:
    """Publish a former build again. The next `goodput run` publishes a new one."""
    from warehouse import publish

    data = facts.configuration(config).data
    try:
        publish.rollback(data, build or _former(publish.builds(data)))
    except publish.NoSuchBuildError as error:
        raise CommandError(f"{error}; see `goodput builds`") from None
    say(f"published {publish.published(data).stem}")
    return 0


def _former(kept: list[Build]) -> str:
    ids = [b.build_id for b in kept]
    position = next((i for i, b in enumerate(kept) if b.is_published), 0)
    if position == 0:
        raise CommandError("there is no build before the published one; see `goodput builds`")
    return str(ids[position - 1])
