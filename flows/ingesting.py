"""Take one file after another through landing: recognize it, decide what of it is new, read that."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from flows.batches import Batch, Rows
from flows.config import Config, SourceConfig
from flows.contexts import Contexts, is_time_known, known_format
from flows.contexts import settings as settings_for
from flows.landing import BadStampError, Found, find, real_path
from flows.loading import Target, load
from flows.manifest import FAILED, LOADED, UNKNOWN_FORMAT, FileState, Manifest, Piece, export_id
from flows.nearest import nearest
from flows.pieces import ANY_OTHER, Plan, Span, held_again, is_fresh, is_grown, plan, sha256
from flows.reports import NO_FILE, SKIPPED, UNCHANGED, ExportReport
from transforms.foreign import foreign
from transforms.outcome import Context
from transforms.registry import Source, all_sources, sniff
from transforms.stream import HEAD_BYTES, is_compressed, opened

ANNOTATIONS_FILE = "annotations.jsonl"
_OWN_FILES = r"lake|builds|quarantine|manifest\.sqlite.*|writer\.lock|warehouse\.duckdb.*|annotations\.jsonl"
_SERVED = r"prefect|serve\.lock"
_LAST_SECOND = 253_402_300_799.0
Progress = Callable[[int, int, str], None]


class FormatError(Exception):
    """Several parsers claim a file, or its configured format does not exist."""


@dataclass(frozen=True, slots=True)
class Job:
    """A file, and the source of the configuration it belongs to."""

    found: Found
    source: SourceConfig

    @property
    def size(self) -> int:
        """Bytes of the file; 0 where that cannot be told."""
        try:
            return self.found.path.stat().st_size
        except OSError:
            return 0


def jobs(config: Config) -> tuple[list[Job], list[SourceConfig]]:
    """Return every file the configuration names, each once, for the first source that matches it; and sources without any.

    What we keep in the data folder ourselves is no export, whatever a pattern matches; what a command printed is one of its
    own source only.
    """
    own, kept = _in_data(config, _OWN_FILES), _in_data(config, "landing")
    taken: dict[str, Job] = {}
    empty = []
    for source in config.sources:
        found = find(source.path)
        if not any(not f.is_folder for f in found):
            empty.append(source)
        for item in found:
            real = real_path(item.path)
            if not own.match(real) and (source.command or not kept.match(real)):
                taken.setdefault(real, Job(item, source))
    labels = config.data / ANNOTATIONS_FILE
    if labels.exists():
        taken.setdefault(os.path.realpath(labels), Job(Found(labels), SourceConfig(str(labels), format="annotations")))
    return list(taken.values()), empty


def _in_data(config: Config, names: str) -> re.Pattern[str]:
    """Return an expression that fits real paths of what has one of these names in the data folder, and what is in it."""
    return re.compile(re.escape(os.path.realpath(config.data)) + f"/(?:{names})(?:/|$)")


def is_own(config: Config) -> Callable[[str], object]:
    """Return what tells whether a real path is of a file that we keep in the data folder ourselves, outputs of commands too."""
    return _in_data(config, f"{_OWN_FILES}|landing|{_SERVED}").match


def still_there(config: Config, names: Iterable[str]) -> set[str]:
    """Return those of these files that a source matches now, or of which this user cannot see whether they are there.

    Of the others nothing can be mended or read again: what is known of them is a fact, and no problem.

    Args:
        config: the configuration.
        names: of files that were seen, as the manifest has them.
    """
    matched = {job.found.name for job in jobs(config)[0]}
    return {name for name in names if name in matched or _is_hidden(name)}


def _is_hidden(path: str) -> bool:
    try:
        Path(path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return False


def unmatched(config: Config, empty: Iterable[SourceConfig]) -> list[ExportReport]:
    """Return an error for each source that matches no file: where it is configured, and what was probably meant.

    A command that was not asked yet, or failed so far, has no file, and that is no error of a path.
    """
    start = os.path.join(glob.escape(str(config.base)), "")  # noqa: PTH118 - a pattern, no path
    return [
        ExportReport(
            s.path.removeprefix(start),
            s.format,
            status=NO_FILE,
            message=f"{s.where}: no file matches this path; {nearest(s.path, config.base)}",
        )
        for s in empty
        if not s.command
    ]


class Ingester:
    """Reads files into a batch. The caller holds the lease and commits what is left at the end."""

    def __init__(self, config: Config, manifest: Manifest, batch: Batch, workers: ThreadPoolExecutor) -> None:
        self._contexts = Contexts(config)
        self._manifest, self._batch, self._workers = manifest, batch, workers

    def ingest(self, job: Job, *, again: bool = False) -> ExportReport:
        """Read what is new in one file, or all of it `again`; whatever is wrong with it concerns only itself."""
        found = job.found
        if found.problem is not None:
            return ExportReport(found.name, status=SKIPPED if found.is_folder else FAILED, message=found.problem)
        try:
            return self._ingest(job, again=again)
        except (_UnreadableFileError, FormatError, BadStampError) as error:
            return self._failed(job, str(error))

    def _ingest(self, job: Job, *, again: bool) -> ExportReport:
        path, name = job.found.path, job.found.name
        try:
            stat = path.stat()
        except OSError as error:
            raise _UnreadableFileError(f"cannot be read: {error.strerror}") from error
        state = FileState.of(name, stat)
        pieces = self._manifest.pieces(name)
        is_same = self._manifest.file(name) == state
        context = self._contexts.of(job.source, job.found.captures, stat.st_mtime)
        time_known = is_time_known(job.source, job.found.captures)
        if is_same and not again and (known := known_format(job.source, pieces)):
            settings = settings_for(known, context, is_time_known=time_known)
            if pieces[-1].end == state.size and all(is_fresh(p, settings) for p in pieces):
                return ExportReport(name, known.name, status=UNCHANGED)
        head, is_packed = _head(path)
        if not head:
            return self._empty(job, state, pieces)
        source = self._source(job, head, pieces, state, is_same=is_same)
        if source is None:
            return self._unknown(job, state, head, pieces)
        settings = settings_for(source, context, is_time_known=time_known)
        target = Target(path, name, source, head, settings)
        try:
            whole = is_packed or source.is_document
            wanted = ANY_OTHER if again else settings
            todo = plan(path, state.size, pieces, wanted, is_whole=whole, is_same=is_same)
        except OSError as error:
            raise _UnreadableFileError(f"cannot be read: {error}") from error
        return self._carry_out(target, todo, state, context, keeps_time=not time_known)

    def _source(self, job: Job, head: bytes, pieces: list[Piece], state: FileState, *, is_same: bool) -> Source | None:
        """Return the format to read a file as: what its head says; where that is unclear, and it only grew, as before.

        A line that is half written can hide what a short file is, and what was read of it must not be left half read.

        Raises:
            FormatError: there is no such format, or several claim a file that was not read before.
        """
        try:
            if found := _recognized(job.source, head):
                return found
            error = None
        except FormatError as several:
            error = several
        known = known_format(job.source, pieces)
        try:
            if known and is_grown(job.found.path, state.size, pieces, is_same=is_same):
                return known
        except OSError as unreadable:
            raise _UnreadableFileError(f"cannot be read: {unreadable}") from unreadable
        if error:
            raise error
        return None

    def _carry_out(
        self, target: Target, todo: Plan, state: FileState, context: Context, *, keeps_time: bool
    ) -> ExportReport:
        self._batch.drop(todo.dropped)
        if not todo.spans:
            self._batch.settle(state)
            return ExportReport(target.name, target.source.name, status=UNCHANGED)
        if todo.is_superseded:
            self._batch.supersede(target.name)
        read: list[Piece] = []
        for span in todo.spans:
            if span.is_tail and span.collected_at is None and read and read[-1].status == FAILED:
                continue
            collected = span.collected_at if keeps_time and span.collected_at else context.collected_at
            piece = load(
                target, _after(read, span), replace(context, collected_at=collected), self._batch, self._workers
            )
            read.append(piece)
        if all(p.status == LOADED for p in read):
            self._batch.drop(self._held_again(target, todo, state.size))
        self._batch.settle(state)
        report = ExportReport.of(target.name, read)
        if todo.unrecoverable and not report.message:
            return replace(report, message="rows of an earlier version of this file were lost with a damaged part")
        return report

    def _held_again(self, target: Target, todo: Plan, size: int) -> tuple[Piece, ...]:
        """Return pieces of earlier versions of a file that was just read, whose bytes it holds again."""
        past = self._manifest.past(target.name)
        if todo.is_superseded:
            past += self._manifest.pieces(target.name)
        try:
            return held_again(target.path, size, todo.begin, past)
        except OSError:  # it went away since: what is there twice is deduplicated later
            return ()

    def _empty(self, job: Job, state: FileState, pieces: list[Piece]) -> ExportReport:
        """Note a file without content."""
        if [p.byte_length for p in pieces] == [state.size] and pieces[0].status == LOADED:
            self._batch.settle(state)
            return ExportReport(state.path, job.source.format, status=UNCHANGED, message="is empty")
        piece = self._unparsed(job, state, LOADED, "is empty")
        empty = replace(
            piece,
            sha256=sha256(job.found.path, 0, state.size),
            lines=0,
            lines_used=0,
            lines_ignored=0,
            lines_rejected=0,
        )
        self._replace(state, pieces, empty)
        return ExportReport(state.path, job.source.format, message="is empty")

    def _unknown(self, job: Job, state: FileState, head: bytes, pieces: list[Piece]) -> ExportReport:
        """Note a file that no parser recognizes, with its first line."""
        first = _printable(head.split(b"\n", 1)[0])
        message = foreign(head) or f"it begins with {first}"
        self._replace(state, pieces, self._unparsed(job, state, UNKNOWN_FORMAT, message))
        return ExportReport(state.path, status=UNKNOWN_FORMAT, message=message)

    def _failed(self, job: Job, message: str) -> ExportReport:
        """Note a file that could not be opened or assigned to a parser; what was read of it earlier stays."""
        name = job.found.name
        pieces = self._manifest.pieces(name)
        try:
            state = FileState.of(name, job.found.path.stat())
        except OSError:
            state = FileState(name, 0, 0, 0)
        failed = self._unparsed(job, state, FAILED, message)
        self._batch.drop(tuple(p for p in pieces if p.sha256 is None))
        self._batch.add(failed, Rows(), [])
        return ExportReport(name, job.source.format, status=FAILED, message=message)

    def _unparsed(self, job: Job, state: FileState, status: str, message: str) -> Piece:
        mtime = datetime.fromtimestamp(min(max(state.mtime_ns / 1e9, 0), _LAST_SECOND), UTC)
        return Piece(
            export_id=export_id(state.path, 0, state.size, None),
            path=state.path,
            source=job.source.format,
            cluster=self._contexts.cluster(job.source, job.found.captures),
            byte_offset=0,
            byte_length=state.size,
            sha256=None,
            collected_at=job.source.collected_at or mtime,
            first_line=1,
            status=status,
            message=message,
        )

    def _replace(self, state: FileState, pieces: list[Piece], piece: Piece) -> None:
        """Let `piece` stand for all of a file that no parser read; rows of what it held before stay."""
        self._batch.drop(tuple(p for p in pieces if p.status != LOADED or not p.byte_length))
        if any(p.status == LOADED and p.byte_length for p in pieces):
            self._batch.supersede(state.path)
        self._batch.add(piece, Rows(), [])
        self._batch.settle(state)


class _UnreadableFileError(Exception):
    """The file cannot be opened, or its compression cannot be undone."""


def _head(path: Path) -> tuple[bytes, bool]:
    """Return the first bytes of a file, decompressed, and whether it is compressed.

    Raises:
        _UnreadableFileError: it cannot be opened, or its compression cannot be undone.
    """
    try:
        with path.open("rb") as handle:
            is_packed = is_compressed(handle.read(6))
            handle.seek(0)
            return opened(handle).read(HEAD_BYTES), is_packed
    except Exception as error:  # decompressors raise errors of many kinds
        raise _UnreadableFileError(f"cannot be read: {error}") from error


def _recognized(source: SourceConfig, head: bytes) -> Source | None:
    """Return the format of a file: as configured, else by its first bytes; None = unknown.

    Raises:
        FormatError: there is no such format, or several claim the file.
    """
    if source.format is not None:
        if source.format not in all_sources():
            raise FormatError(f"{source.where}: there is no format `{source.format}`; `goodput sources` lists them")
        return all_sources()[source.format]
    try:
        claims = sniff(head)
    except Exception as error:
        raise FormatError(
            f"a parser failed to look at it ({error}): set `format` on the source, and report it"
        ) from error
    if len(claims) > 1:
        names = ", ".join(s.name for s in claims)
        raise FormatError(f"several formats fit ({names}): set `format` on the source ({source.where})")
    return claims[0] if claims else None


def _after(read: list[Piece], span: Span) -> Span:
    """Number the lines of an unterminated last line on from the piece that was read just before it."""
    if span.is_tail and span.collected_at is None and read and read[-1].end == span.offset:
        return replace(span, first_line=read[-1].first_line + (read[-1].lines or 0))
    return span


def _printable(line: bytes) -> str:
    """Return a line of a foreign file in quotes, cut, with control characters escaped."""
    return (
        ascii(line[:160].decode("utf-8", "replace")) if line.isascii() else repr(line[:160].decode("utf-8", "replace"))
    )
