"""Find the exports a source names, what their paths tell about them, and when they were collected."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from itertools import takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

CAPTURES = ("cluster", "node", "job_id", "collected_at")
_CAPTURE = re.compile(r"\{(\w+)\}")
_WILD = re.compile(r"[*?\[{]")
_ESCAPED = re.compile(r"\[([*?[])\]")
"""What `glob.escape` makes of a character."""
_STAMP = (
    r"\d{4}-?\d\d-?\d\d"
    r"(?:[T_ -]?\d\d[:.-]?\d\d(?:[:.-]?\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)
_STAMP_PARTS = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)"
    r"(?:[T_ -]?(\d\d)[:.-]?(\d\d)(?:[:.-]?(\d\d)(?:\.(\d{1,6}))?)?(Z|[+-]\d\d:?\d\d)?)?"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A path that a source's pattern matches.

    Attributes:
        path: where it is.
        captures: what the path tells, by capture name.
        problem: why it cannot be read as an export; None = a regular file.
        is_folder: it is a folder, which is no export and no fault.
    """

    path: Path
    captures: dict[str, str] = field(default_factory=dict)
    problem: str | None = None
    is_folder: bool = False

    @property
    def name(self) -> str:
        """The path as text that is valid UTF-8 whatever bytes the file's name has."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")


class BadStampError(ValueError):
    """The text is no date or time."""


def find(pattern: str) -> list[Found]:
    """Return what `pattern` matches, sorted by path; a file reached by several links counts once, by its own path if that matches.

    `*`, `?` and `[...]` match within one name, `**` any number of folders, `{cluster}`, `{node}`, `{job_id}`,
    `{collected_at}` a name or part of one, which is kept. Links are followed, but never into a folder that holds them.
    """
    base, parts = _split(pattern)
    exact = expression(pattern)
    loose = expression(pattern, is_loose=True)
    by_file: dict[str, list[Path]] = {}
    closed: dict[Path, str] = {}
    for path in _walk(base, parts, frozenset(), closed):
        by_file.setdefault(real_path(path), []).append(path)
    chosen = [Path(real) if Path(real) in paths else min(paths) for real, paths in by_file.items()]
    found = [_described(path, exact, loose) for path in chosen]
    found += [Found(path, problem=f"cannot be listed: {reason}") for path, reason in closed.items()]
    return sorted(found, key=lambda f: f.path)


def some(pattern: str) -> Iterator[Path]:
    """Yield what `pattern` matches as it is come across, so that a few are found without listing all; folders too."""
    return _walk(*_split(pattern), frozenset(), {})


def _described(path: Path, exact: re.Pattern[str], loose: re.Pattern[str]) -> Found:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return Found(path, problem=f"cannot be read: {error.strerror}")
    if stat.S_ISDIR(mode):
        return Found(path, problem="is a folder; end the path with /* or /** to read what is in it", is_folder=True)
    if not stat.S_ISREG(mode):
        return Found(path, problem="is no regular file (a pipe, socket or device)")
    if match := exact.fullmatch(str(path)):
        return Found(path, match.groupdict())
    if (match := loose.fullmatch(str(path))) and "collected_at" in match.groupdict():
        text = match["collected_at"]
        return Found(
            path,
            problem=f"{{collected_at}} in the path is {text!r}, which is no date; rename the file or narrow the pattern",
        )
    return Found(path, problem="does not fit the pattern: one capture stands for two different names")


def plain_folder(pattern: str) -> Path:
    """Return the folder that a pattern begins in: what of it is a plain path, without the name of a file."""
    plain = takewhile(lambda part: not _WILD.search(_ESCAPED.sub("", part)), Path(pattern).parts[:-1])
    return Path(*(_ESCAPED.sub(r"\1", part) for part in plain))


def _split(pattern: str) -> tuple[Path, list[str]]:
    """Return the part of a pattern that is a plain path, and the names after it."""
    parts = Path(pattern).parts
    plain = next((i for i, p in enumerate(parts) if _WILD.search(p)), len(parts) - 1)
    return Path(*parts[:plain]), list(parts[plain:])


def _walk(folder: Path, parts: list[str], above: frozenset[str], closed: dict[Path, str]) -> Iterator[Path]:
    """Yield the paths under `folder` that fit the names `parts`.

    `above` are the folders on the way, to stop at loops; folders that cannot be listed are added to `closed`.
    """
    if not parts:
        yield folder
        return
    first, rest = parts[0], parts[1:]
    below = above | {real_path(folder)}
    if first == "**":
        yield from _walk_deep(folder, parts, above, closed)
    elif not _WILD.search(first):
        if os.path.lexists(folder / first):
            yield from _walk(folder / first, rest, below, closed)
    else:
        fits = re.compile(fnmatch.translate(_CAPTURE.sub("*", first)))
        for child in _children(folder, closed, with_hidden=first.startswith(".")):
            if fits.match(child.name) and (not rest or _is_folder(child)):
                yield from _walk(child, rest, below, closed)


def _walk_deep(folder: Path, parts: list[str], above: frozenset[str], closed: dict[Path, str]) -> Iterator[Path]:
    """Yield the paths that fit `parts`, which begin with `**`: in `folder` and in every folder below it."""
    below = above | {real_path(folder)}
    if parts[1:]:
        yield from _walk(folder, parts[1:], above, closed)
    for child in _children(folder, closed):
        if _is_folder(child):
            if real_path(child) not in below:
                yield from _walk_deep(child, parts, below, closed)
        elif not parts[1:]:
            yield child


def real_path(path: Path) -> str:
    """Return a path with its links resolved; one whose links may not be read stays as it is."""
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.abspath(path)  # noqa: PTH100 - without looking at it


def _is_folder(path: Path) -> bool:
    """Tell whether a path is a folder; what may not be looked at is none, and is reported when it is opened."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _children(folder: Path, closed: dict[Path, str], *, with_hidden: bool = False) -> list[Path]:
    """Return what a folder holds, sorted; names that begin with a dot only where asked for."""
    try:
        return sorted(p for p in folder.iterdir() if with_hidden or not p.name.startswith("."))
    except (NotADirectoryError, FileNotFoundError):
        return []
    except OSError as error:
        closed[folder] = error.strerror or str(error)
        return []


def expression(pattern: str, *, is_loose: bool = False) -> re.Pattern[str]:
    """Return the regular expression of a pattern, a group for each capture; loose = any text may be `{collected_at}`."""
    seen: set[str] = set()
    out = []
    for word in re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|\{\w+\})", str(Path(pattern))):
        if word in ("**/", "**"):
            out.append("(?:[^/]+/)*" if word == "**/" else ".*")
        elif word in ("*", "?"):
            out.append("[^/]*" if word == "*" else "[^/]")
        elif word.startswith("[") and word.endswith("]") and len(word) > 2:
            inner = word[1:-1].replace("\\", r"\\").replace("[", r"\[")
            out.append(f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]")
        elif (name := _CAPTURE.fullmatch(word)) and name[1] in CAPTURES:
            out.append(_group(name[1], seen, is_loose=is_loose))
        else:
            out.append(re.escape(word))
    return re.compile("".join(out), re.DOTALL)


def _group(name: str, seen: set[str], *, is_loose: bool) -> str:
    if name in seen:
        return f"(?P={name})"
    seen.add(name)
    inner = _STAMP if name == "collected_at" and not is_loose else "[^/]+"
    return f"(?P<{name}>{inner})"


def stamp_utc(text: str, zone: str | None) -> datetime:
    """Return the UTC time that a stamp in a path stands for.

    Read are `2026-11-30T02:53:45Z`, `20261130T025345Z`, `2026-11-30_02-53-45`, with an offset or without; without one
    it is local time in `zone` (None = UTC; the earlier instant where the clock shows it twice). A date
    alone stands for the end of that day: an export named for a day holds the day.

    Raises:
        BadStampError: the text is no such stamp, or no day of the calendar.
    """
    match = _STAMP_PARTS.fullmatch(text)
    if match is None:
        raise BadStampError(f"{text!r} is no date or time")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    try:
        local = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
        local = local.replace(microsecond=int((fraction or "0").ljust(6, "0")), tzinfo=_offset(offset, zone))
        return (local if hour else local + timedelta(days=1)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadStampError(f"{text!r} is no date or time: {error}") from None


def _offset(text: str | None, zone: str | None) -> timezone | ZoneInfo:
    if text is None:
        return ZoneInfo(zone or "UTC")
    if text == "Z":
        return UTC
    sign = -1 if text[0] == "-" else 1
    digits = text[1:].replace(":", "")
    return timezone(sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:])))
