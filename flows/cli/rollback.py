"""`goodput rollback`: let readers see a former build again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import CommandError, note, say, say_json, say_wait

if TYPE_CHECKING:
    from warehouse.publish import Build


def rollback(
    build: Annotated[
        str | None, Parameter(help="Build to publish again; the one before the published one if not given.")
    ] = None,
    /,
    *,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Publish a former build again. It stays until there is something new to build, or until `goodput build --force`."""
    from flows import lease
    from warehouse import publish

    data = facts.configuration(config).data
    alone = lease.hold(data, "rollback", wait_seconds=facts.WAIT_SECONDS, on_wait=say_wait)
    with facts.expected_errors(), alone:  # a build might remove what is about to be published
        kept = publish.builds(data)
        before = next((b.build_id for b in kept if b.is_published), None)
        try:
            publish.rollback(data, build or _former(kept))
        except (publish.NoSuchBuildError, FileExistsError) as error:
            raise CommandError(f"{error}; see `goodput builds`") from None
    now, held_back = publish.published(data).stem, publish.held_back(data)
    if json:
        say_json({"published": now, "before": before, "newest_held_back": held_back})
        return 0
    say(f"published {now}" + (f" instead of {before}" if before not in (None, now) else ""))
    if held_back:
        note(
            "new sessions see it, open ones keep what they have. It stays until there is something new: the next `goodput run` "
            "or schedule that finds new exports, other settings or another version publishes a new build; without, "
            f"`goodput build --force` does. `goodput rollback {held_back}` takes the rollback back"
        )
    return 0


def _former(kept: list[Build]) -> str:
    ids = [b.build_id for b in kept]
    position = next((i for i, b in enumerate(kept) if b.is_published), 0)
    if position == 0:
        raise CommandError("there is no build before the published one; see `goodput builds`")
    return str(ids[position - 1])
