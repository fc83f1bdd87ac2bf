"""`goodput builds`: what has been built and which build readers see."""

from __future__ import annotations

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.tables import say_table
from flows.cli.terminal import note, say_json


def builds(*, json: JsonOption = False, config: ConfigOption = None) -> int:
    """List the builds that are kept, oldest first."""
    from warehouse import publish

    found = [
        {"build": b.build_id, "published": b.is_published, "size_mb": b.size_bytes / 1e6, "file": str(b.path)}
        for b in publish.builds(facts.configuration(config).data)
    ]
    if json:
        say_json(found)
    elif found:
        say_table(found, ("build", "published", "size_mb", "file"), narrow=(("file", 0),))
    else:
        note("no builds yet; `goodput run` makes one")
    return 0
