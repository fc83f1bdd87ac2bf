"""`goodput builds`: what has been built and which build readers see."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.tables import say_table
from flows.cli.terminal import note, say_json, warn
from flows.cli.words import spoken

if TYPE_CHECKING:
    from warehouse import history

_COLUMNS = ("build", "started_at", "age", "published", "interruptions", "code_version", "size_mb", "file")
_NARROW = (("file", 0), ("code_version", 0), ("started_at", 16), ("size_mb", 0), ("started_at", 0))


def builds(*, json: JsonOption = False, config: ConfigOption = None) -> int:
    """List the builds that are kept, oldest first: when, by which version, how large, and which one readers see."""
    from warehouse import history as made

    now = datetime.now(UTC)
    kept = made.kept(facts.configuration(config).data)
    found = [
        {
            "build": b.build_id,
            "started_at": b.started_at,
            "age_seconds": (now - b.started_at).total_seconds(),
            "published": b.is_published,
            "rolled_back": b.is_rolled_back,
            "interruptions": b.interruptions,
            "code_version": b.code_version,
            "size_mb": b.size_bytes / 1e6,
            "file": str(b.path),
            "problem": b.problem,
        }
        for b in kept
    ]
    if json:
        say_json(found)
        return 0
    if not found:
        note("no builds yet; `goodput run` makes one")
        return 0
    rows = [{**row, "age": spoken((now - b.started_at).total_seconds())} for row, b in zip(found, kept, strict=True)]
    say_table(rows, _COLUMNS, narrow=_NARROW)
    for build in kept:
        if build.problem:
            warn(f"{build.build_id} {build.problem}")
    _say_state(kept)
    return 0


def _say_state(kept: list[history.BuildFacts]) -> None:
    """Say why readers see another build than the newest, or none."""
    published = next((b for b in kept if b.is_published), None)
    if published is None:
        warn("readers see none of them; `goodput rollback BUILD` publishes one, `goodput build` makes a new one")
    elif kept[-1].is_rolled_back:
        note(
            f"readers see {published.build_id}, since {kept[-1].build_id} was rolled back; that holds until there is something "
            f"new, or until `goodput build --force`. `goodput rollback {kept[-1].build_id}` takes it back"
        )
    elif published is not kept[-1]:
        warn(f"the newest build, {kept[-1].build_id}, was made but not published; `goodput build` completes it")
