"""`goodput status`: how fresh everything is."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from flows.cli import facts, labels, landed, pulls
from flows.cli.coverage import say_coverage
from flows.cli.doubts import doubts, flags
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.periods import SourceOption
from flows.cli.tables import say_table
from flows.cli.terminal import CommandError, here, note, say, say_json, shown, title, warn
from flows.cli.words import command, counted, spoken

_NARROW = (("collected_at", 16), ("collected_at", 0), ("age", 0))


def status(
    *,
    coverage: Annotated[
        bool, Parameter(help="Show instead a calendar: which day of which source is loaded, missing, failed or stale.")
    ] = False,
    start: Annotated[
        str | None,
        Parameter(name=("--start", "--since"), help="With --coverage: first day or time, UTC; or how long ago: 30d."),
    ] = None,
    end: Annotated[
        str | None, Parameter(help="With --coverage: last day, which is included, or a time; now if not given.")
    ] = None,
    source: SourceOption = (),
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Show how fresh each format is, what became of its lines, what had to be assumed, and the build that readers see."""
    settings = facts.configuration(config)
    if coverage:
        return say_coverage(settings, start, end, source, json=json)
    if start or end or source:
        raise CommandError("--start, --end and --source go with --coverage", 2)
    with facts.one_session(settings) if facts.is_published(settings) else nullcontext():
        return _say_status(settings, json=json)


def _say_status(settings: facts.Config, *, json: bool) -> int:
    pieces = landed.exports(settings)
    files = landed.by_file(pieces)
    formats = landed.by_format(files)
    last = _last_build(settings)
    assumed = flags(settings) if last else []
    late = [*pulls.problems(settings), *pulls.overdue(settings)]
    warnings = [*landed.without_jobs(files), *late, *(doubts(settings) if last else [])]
    present, past = landed.apart(settings, pieces)
    bad, notes = [f for f in present if f["status"] != "loaded"], landed.facts_of_past(past)
    if json:
        found = {"formats": formats, "not_loaded": bad, "build": last, "flags": assumed}
        say_json(found | {"warnings": warnings, "notes": notes})
        return 0
    now = datetime.now(UTC)
    for row in formats:
        row["age"] = spoken((now - row["collected_at"]).total_seconds())
    columns = ("format", "files", "lines", "used", "ignored", "rejected", "collected_at", "age")
    say_table(formats, columns, narrow=_NARROW)
    _say_flags(assumed)
    _say_build(last, now)
    for text in [*(f"{here(row['path'])}: {landed.problem(row)}" for row in bad), *warnings]:
        warn(text)
    for text in notes:
        note(text)
    if last:
        labels.note_waiting(settings)
    return 0


def _say_flags(assumed: list[facts.Row]) -> None:
    """Print what had to be assumed or repaired while reading, by source."""
    from transforms.tables import FLAGS

    if not assumed:
        return
    title("Assumed or repaired, in records")
    rows = [
        {
            "format": row["source"],
            "cluster": row["cluster"],
            "records": row["records"],
            "flag": row["flag"],
            "meaning": FLAGS.get(row["flag"], ""),
        }
        for row in assumed
    ]
    say_table(rows, tuple(rows[0]), narrow=(("meaning", 20), ("cluster", 0), ("meaning", 0)))
    say()


def _say_build(last: facts.Row | None, now: datetime) -> None:
    if last is None:
        warn("nothing published yet; `goodput build` does it")
        return
    age = spoken((now - last["started_at"]).total_seconds())
    about = f"{last['build_id']}, {shown(last['started_at'])} UTC, {age} ago, by version {last['code_version']}"
    newer = last["newer_builds"]
    if not newer:
        say(f"last build {about}")
        return
    why = "rolled back" if last["is_rolled_back"] else "not published"
    there = f"{counted(len(newer), 'newer build')} ({why}), the newest {newer[-1]}: `{command('builds')}`"
    say(f"published build {about}; there {'is' if len(newer) == 1 else 'are'} {there}")


def _last_build(settings: facts.Config) -> facts.Row | None:
    """Return the build that readers see, and which newer ones are kept; None = nothing is published."""
    if not facts.is_published(settings):
        return None
    from warehouse import publish

    row = facts.rows(
        settings, "select build_id, started_at, code_version from ops.builds order by started_at desc limit 1"
    )[0]
    kept = publish.builds(settings.data)
    position = next((i for i, b in enumerate(kept) if b.is_published), len(kept))
    newer = [b.build_id for b in kept[position + 1 :]]
    return row | {"newer_builds": newer, "is_rolled_back": publish.held_back(settings.data) is not None}
