"""`goodput sources`: formats that can be read, and what the configured sources match."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli import facts, pulls
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.tables import say_table
from flows.cli.terminal import here, say, say_json, title, warn
from flows.cli.words import command, counted

if TYPE_CHECKING:
    from flows.config import SourceConfig

NEWEST = 3
"""Files of a command that are listed: an hourly one has thousands."""
ENDS = 3
"""Files of a path that are listed at its beginning and at its end; the others are counted."""


def sources(
    *,
    every: Annotated[
        bool,
        Parameter(name="--all", negative="", help="Every file of a path, not only the first and last three of many."),
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """List the export formats, and for each configured source which files it matches and as what they are recognized.

    Of many files that are alike the first and last three are shown. For a command: what it was asked for last, what it is to be asked for next,
    and the newest files that keep what it printed.
    """
    from flows.config import FILE_NAME
    from transforms.registry import all_sources

    formats = [
        {"format": s.name, "what": s.doc, "tables": sorted(t.name for t in s.tables)} for s in all_sources().values()
    ]
    has_config = config is not None or Path(FILE_NAME).exists()
    settings = facts.configuration(config) if has_config else None
    configured = [matches(s) for s in settings.sources] if settings else []
    commands = {one.source.name: one for one in (pulls.asked(settings) if settings else [])}
    if json:
        told = {name: pulls.as_json(one) for name, one in commands.items()}
        say_json({"formats": formats, "sources": [s | told.get(s["name"], {}) for s in configured]})
        return 0
    title("Formats")
    say_table(formats, ("format", "what"), narrow=(("what", 20),))
    title("Configured sources")
    if not has_config:
        say(f"no goodput.toml here; {command('init PATHS...')} writes one")
    for source in configured:
        one = commands.get(source["name"])
        what = f"`{pulls.words(one.source)}`" if one else here(source["path"])
        say(f"{source['where']}: {source['name']}: {what}: {counted(source['kept'], 'file')}")
        for line in pulls.lines(one) if one else ():
            say(f"  {line}")
        _say_files(source["files"] if every else _ends(source["files"]))
        if not source["files"] and one is None:
            warn(f"{source['where']}: matches no file; is the path right?")
    return 0


def _ends(files: list[facts.Row]) -> list[facts.Row]:
    """Return the first and last files that are known as the same, and between them how many others there are.

    Files that cannot be read, or are of another format, are never hidden behind those that can.
    """
    alike: dict[tuple[object, object], list[facts.Row]] = {}
    for file in files:
        alike.setdefault((file["format"], file["how"]), []).append(file)
    return [row for group in alike.values() for row in _ends_of(group)]


def _ends_of(alike: list[facts.Row]) -> list[facts.Row]:
    hidden = len(alike) - 2 * ENDS
    if hidden < 2:
        return alike
    return [*alike[:ENDS], {**alike[0], "file": f"… and {hidden:,} more (--all)"}, *alike[-ENDS:]]


def _say_files(files: list[facts.Row]) -> None:
    if files:
        rows = [file | {"file": here(file["file"])} for file in files]
        say_table(rows, ("file", "format", "how"), narrow=(("how", 14),))


def matches(source: SourceConfig) -> facts.Row:
    """Return the files of a source, each with its format and how that is known; of a command the newest only."""
    from flows.landing import find

    found = [f for f in find(source.path) if not f.is_folder]
    listed = found[-NEWEST:] if source.command else found
    return {
        "where": source.where,
        "name": source.name,
        "path": source.path,
        "format": source.format,
        "kept": len(found),
        "files": [recognized(f.path, source.format, f.problem) | {"captured": f.captures} for f in listed],
    }


def recognized(path: Path, configured: str | None, problem: str | None) -> facts.Row:
    """Return the format of a file and how it is known."""
    from transforms.registry import sniff
    from transforms.stream import HEAD_BYTES, opened

    if problem is not None:
        return {"file": str(path), "format": None, "how": problem}
    if configured is not None:
        return {"file": str(path), "format": configured, "how": "configured"}
    try:
        with path.open("rb") as raw:
            head = opened(raw).read(HEAD_BYTES)
        found = [s.name for s in sniff(head)]
    except Exception as error:  # noqa: BLE001 - decompressors raise errors of many kinds
        return {"file": str(path), "format": None, "how": f"cannot be read: {error}"}
    if len(found) == 1:
        return {"file": str(path), "format": found[0], "how": "recognized by its content"}
    if not head:
        return {"file": str(path), "format": None, "how": "is empty"}
    how = (
        f"may be any of {', '.join(found)}; set `format`"
        if found
        else "no parser knows it; it will be listed, not read"
    )
    return {"file": str(path), "format": None, "how": how}
