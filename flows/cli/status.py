"""`goodput status`: how fresh everything is."""

from __future__ import annotations

from datetime import UTC, datetime

from flows.cli import facts, landed
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import here, say, say_json, say_table, shown, warn


def status(*, json: JsonOption = False, config: ConfigOption = None) -> int:
    """Show how fresh each format is, what became of its lines, and the last build."""
    settings = facts.configuration(config)
    files = landed.by_file(landed.exports(settings))
    formats = landed.by_format(files)
    last = _last_build(settings)
    bad = [f for f in files if f["status"] != "loaded"]
    if json:
        say_json({"formats": formats, "not_loaded": bad, "build": last})
        return 0
    now = datetime.now(UTC)
    for row in formats:
        row["age"] = facts.spoken((now - row["collected_at"]).total_seconds())
    say_table(formats, ("format", "files", "lines", "used", "ignored", "rejected", "collected_at", "age"))
    if last:
        age = facts.spoken((now - last["started_at"]).total_seconds())
        say(
            f"last build {last['build_id']}, {shown(last['started_at'])} UTC, {age} ago, by version {last['code_version']}"
        )
    else:
        say("nothing published yet; `goodput build` does it")
    for row in bad:
        warn(f"{here(row['path'])}: {row['status'].replace('_', ' ')}: {row['message']}")
    return 0


def _last_build(settings: facts.Config) -> facts.Row | None:
    from warehouse import publish

    if not publish.link_of(settings.data).exists():
        return None
    return facts.rows(
        settings, "select build_id, started_at, code_version from ops.builds order by started_at desc limit 1"
    )[0]
