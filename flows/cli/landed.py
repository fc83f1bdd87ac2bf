"""What the manifest knows of the exports: the state now, before and after any build."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from flows.cli import facts
from flows.cli.terminal import CommandError
from flows.cli.words import counted

if TYPE_CHECKING:
    from flows.manifest import Manifest

Row = dict[str, Any]


def exports(settings: facts.Config) -> list[Row]:
    """Return every piece of an export that was seen, with the fate of its lines and whether that `is_settled`.

    Raises:
        CommandError: nothing was read yet, or the manifest cannot be used.
    """
    from flows import manifest

    if not (settings.data / manifest.FILE_NAME).exists():
        raise CommandError(f"nothing has been read into {settings.data} yet: run `goodput run` first")
    try:
        with manifest.opened(settings.data) as open_manifest:
            return pieces_of(open_manifest)
    except manifest.ManifestError as error:
        raise CommandError(str(error)) from None


def pieces_of(manifest: Manifest) -> list[Row]:
    """Return what `exports` does, of a manifest that is open."""
    settled = manifest.settled()
    return [piece | {"is_settled": piece["export_id"] in settled} for piece in manifest.exports()]


def by_file(pieces: list[Row]) -> list[Row]:
    """Return one row per file: format, pieces, lines by fate, latest collection, worst status."""
    files: dict[str, Row] = {}
    for piece in pieces:
        row = files.setdefault(
            piece["path"],
            {"path": piece["path"], "source": piece["source"], "status": piece["status"], "message": piece["message"],
             "collected_at": piece["collected_at"], "lines": 0, "used": 0, "ignored": 0, "rejected": 0},
        )  # fmt: skip
        for name in ("used", "ignored", "rejected"):
            row[name] += piece[f"lines_{name}"] or 0
        row["lines"] += piece["lines"] or 0
        row["collected_at"] = max(row["collected_at"], piece["collected_at"])
        if piece["status"] != "loaded":
            row["status"], row["message"] = piece["status"], piece["message"]
    return list(files.values())


def apart(settings: facts.Config, pieces: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return, by file, what sources match now, and what is past.

    Past are files that are gone or that no source matches any more, and what a file held before something newer, which was read
    in full, took its place. Of these nothing can be mended or read again: what is known of them is a fact, and no problem.
    """
    from flows.ingesting import still_there

    kept = still_there(settings, {piece["path"] for piece in pieces})
    present = [p for p in pieces if p["path"] in kept and not p["is_settled"]]
    past = [p for p in pieces if p["path"] not in kept or p["is_settled"]]
    return by_file(present), by_file(past)


def facts_of_past(gone: list[Row]) -> list[str]:
    """Return what could not be read of what is past, as one sentence; nothing where all was read."""
    failed = sum(file["status"] != "loaded" for file in gone)
    rejected = sum(file["rejected"] for file in gone)
    told = [counted(failed, "unreadable export")] if failed else []
    told += [counted(rejected, "rejected line")] if rejected else []
    if not told:
        return []
    verb = "is" if failed + rejected == 1 else "are"
    which = (
        "a file that is gone, holds something newer, or is matched by no source"
        if failed + rejected == 1
        else "files that are gone, hold something newer, or are matched by no source"
    )
    return [
        f"{' and '.join(told)} {verb} of {which} any more: no problem now; they stay in ops.exports and ops.rejects"
    ]


def without_jobs(files: list[Row]) -> list[str]:
    """Return what to do where no export of jobs was read: without one there is no run, and nothing to explain."""
    from transforms.registry import all_sources
    from transforms.tables import JOB_ATTEMPTS

    readers = {source.name for source in all_sources().values() if JOB_ATTEMPTS in source.tables}
    if any(file["source"] in readers and file["status"] == "loaded" for file in files):
        return []
    text = (
        "no export of jobs (sacct) was read: without one there are no runs and no interruptions. A file of sacct without its "
        "header line needs columns = [...] on its source: `goodput init` writes a proposal at the end of goodput.toml, "
        "compare and uncomment it. `goodput sources` shows what each path matched"
    )
    return [text]


def by_format(files: list[Row]) -> list[Row]:
    """Return one row per format: files, lines by fate, latest collection."""
    formats: dict[str, Row] = {}
    for file in files:
        name = file["source"] or "unknown"
        row = formats.setdefault(
            name,
            {"format": name, "files": 0, "lines": 0, "used": 0, "ignored": 0, "rejected": 0, "collected_at": _NEVER},
        )
        row["files"] += 1
        for fate in ("lines", "used", "ignored", "rejected"):
            row[fate] += file[fate]
        row["collected_at"] = max(row["collected_at"], file["collected_at"])
    return sorted(formats.values(), key=lambda row: str(row["format"]))


UNKNOWN_FORMAT = "no parser knows this format"
SHOWN_CHARACTERS = 60
_BEGINS = re.compile(r"it begins with (?P<quote>['\"]?)(?P<text>.*)(?P=quote)", re.DOTALL)
_UNREADABLE = re.compile(r"\\x(?!07|09|1b)[0-9a-f]{2}|[\ufffd\x00-\x06\x0e-\x1a\x80-\x9f]")
_BINARY_SHARE = 0.05


def problem(file: Row) -> str:
    """Return why a file was not loaded, in the words that every command uses.

    Args:
        file: with `status` and `message`.
    """
    if file["status"] != "unknown_format":
        return str(file["message"] or str(file["status"]).replace("_", " "))
    return unknown_format(file["message"])


def unknown_format(message: str | None) -> str:
    """Return that no parser knows a file and how it begins, in few characters; binary files are called so."""
    begins = _BEGINS.fullmatch(message or "")
    if begins is None:
        return f"{UNKNOWN_FORMAT}; {message or 'it is empty'}"
    text = begins["text"]
    if len(_UNREADABLE.findall(text)) > _BINARY_SHARE * len(text):
        return f"{UNKNOWN_FORMAT}; it is binary"
    if len(text) > SHOWN_CHARACTERS:
        text = text[:SHOWN_CHARACTERS] + "..."
    return f"{UNKNOWN_FORMAT}; it begins with {begins['quote']}{text}{begins['quote']}"


_NEVER = datetime.fromisoformat("0001-01-01T00:00:00+00:00")
