"""What `[[sources]]` entries are called, and what is wrong with them beside each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from flows.config_errors import Loc, Problem, line_of
from flows.config_schema import SourceEntry
from flows.config_types import zone

_ONLY_FOR_COMMANDS = ("delay", "since", "timeout", "environment", "secrets")
_TZ = "TZ"
_WILD = re.compile(r"\{[^}]*\}|\[[^]]*\]|[*?]+")


def source_names(sources: Sequence[SourceEntry]) -> list[str]:
    """Return a name for each source, each once: its own, else one made from its path or command."""
    taken = {s.name for s in sources if s.name}
    names = []
    for source in sources:
        name = base = source.name or _made_up(source)
        number = 2
        while not source.name and name in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name)
        names.append(name)
    return names


def _made_up(source: SourceEntry) -> str:
    """Return the part of a file's name that is alike for all files, else that of the folder; or the program's name."""
    if source.command:
        return _plain(Path(source.command[0]).name) or "command"
    parts = Path(source.path or "").parts
    stems = [parts[-1].split(".", 1)[0], *reversed(parts[:-1])] if parts else []
    return next((name for name in map(_plain, stems) if name), "source")


def _plain(text: str) -> str:
    """Return a name without wildcards and captures, and without what stood round them."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", _WILD.sub("", text)).strip("._-")[:60]


def source_problems(sources: Sequence[SourceEntry], lines: dict[Loc, int]) -> Iterator[Problem]:
    """Find sources with neither path nor command or with both, keys that only a command can have, and names used twice."""
    named = Counter(s.name for s in sources if s.name)
    for i, source in enumerate(sources):
        if (source.path is None) == (not source.command):
            has = "has both `path` and `command`; keep one" if source.command else "needs `path` or `command`"
            yield Problem(line_of(lines, ("sources", i)), f"[[sources]] {has}")
        extra = [k for k in _ONLY_FOR_COMMANDS if k in source.model_fields_set]
        if source.path is not None and not source.command and extra:
            text = f"`{extra[0]}` is for sources with a `command`; this one has a `path`"
            yield Problem(line_of(lines, ("sources", i, extra[0])), text)
        yield from _command_problems(source, lines, ("sources", i))
        if source.name and named[source.name] > 1:
            text = f'`name`: two sources are called "{source.name}"; give each its own name'
            yield Problem(line_of(lines, ("sources", i, "name")), text)


def zone_in_environment(source: SourceEntry) -> str | None:
    """Return the zone that a command is told to print times in: `TZ` in its `environment`; None = it is not told."""
    return source.environment.get(_TZ) if source.command else None


def _command_problems(source: SourceEntry, lines: dict[Loc, int], loc: Loc) -> Iterator[Problem]:
    """Find what would let a command fail every time, or its times be read in another zone than it prints them in."""
    if not source.command:
        return
    told = zone_in_environment(source)
    if told is not None and source.zone is not None and source.zone != told:
        text = f'`zone`: "{source.zone}" is not the TZ of `environment`, "{told}"; a command prints times in one of them: keep that'
        yield Problem(line_of(lines, (*loc, "zone")), text)
    elif told is not None:
        try:
            zone(told)
        except ValueError:
            text = f'`environment`: TZ "{told}" is no IANA time zone; write one such as "UTC" or "Europe/Berlin"'
            yield Problem(line_of(lines, (*loc, "environment")), text)
    if told is not None and Path(source.command[0]).name == "ssh":
        text = f'`environment`: ssh passes no TZ on; write TZ={told} before the remote program, and zone = "{told}"'
        yield Problem(line_of(lines, (*loc, "environment")), text)
    if source.collected_at is not None:
        text = "`collected_at` is for sources with a `path`; what a command prints is collected when it runs"
        yield Problem(line_of(lines, (*loc, "collected_at")), text)
    if source.timeout == 0:
        yield Problem(
            line_of(lines, (*loc, "timeout")), "`timeout`: 0 leaves a command no time; leave it out for 5 minutes"
        )
    for name in [n for n in (*source.environment, *source.secrets) if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", n)]:
        key = "secrets" if name in source.secrets else "environment"
        text = f'`{key}`: "{name}" is no name of a variable; write letters, digits and "_"'
        yield Problem(line_of(lines, (*loc, key)), text)
