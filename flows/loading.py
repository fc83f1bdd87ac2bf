"""Read one span of one export: every line's fate counted and checked, the rows handed to a batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from flows.batches import Batch, Rows
from flows.manifest import FAILED, LOADED, Piece, export_id
from flows.pieces import Span, sha256
from transforms.lake import Part
from transforms.outcome import Context, MissingSettingError, Parsed, Reject, UnreadableExportError
from transforms.registry import Source
from transforms.stream import HEAD_BYTES, MAX_LINE_BYTES, ExportStream, is_compressed, opened
from transforms.tables import REJECTS, TABLES

DOCUMENT_BYTES = 1 << 30
SMALL_BYTES = 1 << 20
_SCHEMAS = {t.name: pl.Schema({c: d for c, d in t.schema.items() if c != "export_id"}) for t in TABLES.values()}


class BrokenContractError(Exception):
    """A parser did not account for every line."""


@dataclass(frozen=True, slots=True)
class Target:
    """A file and the parser that reads it.

    Attributes:
        path: the file.
        name: the same as text, for the manifest.
        source: its format.
        head: first bytes of the whole file, decompressed.
        settings: hash of the parser's version and settings.
    """

    path: Path
    name: str
    source: Source
    head: bytes
    settings: str


def load(target: Target, span: Span, context: Context, batch: Batch, workers: Executor) -> Piece:
    """Read a span and hand its rows to `batch`; a span that cannot be read gives a failed piece and no rows.

    Rows go to parts of their own where one export alone fills the memory a batch may take; those are written while the next
    are read, one lot at a time. The content hash is computed beside the parser, and waited for only when rows are to be
    written.

    Raises:
        OSError: the lake cannot be written (whereas an export that cannot be read only fails itself).
    """
    digest = _hashing(target.path, span, workers)
    reading, rows, parts = _Reading(target, span, context), Rows(), list[Part]()
    writing: Future[list[Part]] | None = None
    for name, frame in reading.frames():
        rows.add(name, frame)
        if rows.size_bytes >= batch.max_bytes:
            if digest.exception():
                break
            ident = export_id(target.name, span.offset, span.length, digest.result())
            parts += writing.result() if writing else []
            writing = workers.submit(batch.write, rows.identified(ident), is_tail=span.is_tail)
            rows = Rows()
    parts += writing.result() if writing else []
    piece = reading.piece(None if digest.exception() else digest.result())
    if piece.status == FAILED:
        batch.discard(parts)
        rows, parts = Rows(), []
    batch.add(piece, rows.identified(piece.export_id), parts)
    return piece


def _hashing(path: Path, span: Span, workers: Executor) -> Future[str]:
    """Return the hash of a span to come; that of a small one at once, since handing it over takes longer."""
    if span.length > SMALL_BYTES:
        return workers.submit(sha256, path, span.offset, span.length)
    done: Future[str] = Future()
    try:
        done.set_result(sha256(path, span.offset, span.length))
    except OSError as error:
        done.set_exception(error)
    return done


class _Reading:
    """One span being read; what went wrong is kept, not raised."""

    def __init__(self, target: Target, span: Span, context: Context) -> None:
        self._target, self._span, self._context = target, span, context
        self._used, self._rejected, self._last_reject = 0, 0, 0
        self._ignored: Counter[str] = Counter()
        self._lines = 0
        self._is_open = False
        self._error: str | None = None

    def frames(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield rows by table. Errors in the export or its parser end the iteration; the caller's own pass through."""
        name = self._target.source.name
        try:
            yield from self._parsed()
        except (UnreadableExportError, MissingSettingError, BrokenContractError) as error:
            self._error = str(error)
        except (OSError, EOFError) as error:
            self._error = f"cannot be read: {error}"
        except Exception as error:  # noqa: BLE001 - a fault in one parser must not stop the other exports
            kind = type(error).__name__
            self._error = f"the parser {name} failed on it ({kind}: {error}); the other exports are not concerned. Please report it"

    def _parsed(self) -> Iterator[tuple[str, pl.DataFrame]]:
        source = self._target.source
        # Of a short export, packed too, making room for 8 MiB would take longer than reading it.
        is_long = len(self._target.head) >= HEAD_BYTES
        with self._target.path.open("rb") as handle:
            packed = is_compressed(handle.read(6))
            handle.seek(self._span.offset)
            stream = ExportStream(
                opened(handle) if packed else handle,
                head=self._target.head,
                first_line=self._span.first_line,
                byte_offset=0 if packed else self._span.offset,
                length=None if packed else self._span.length,
                chunk_bytes=source.chunk_bytes if is_long else min(source.chunk_bytes, HEAD_BYTES),
                max_line=DOCUMENT_BYTES if source.is_document else MAX_LINE_BYTES,
            )
            long_lines: set[int] = set()
            for parsed in source.parse(stream, self._context):
                self._count(parsed)
                long_lines.update(r.line for r in parsed.rejects if r.byte_length > MAX_LINE_BYTES)
                yield from self._rows(parsed)
            rest = Parsed(rejects=[r for r in stream.long_lines if r.line not in long_lines])
            self._count(rest)
            yield from self._rows(rest)
            self._lines = stream.lines
            if not packed and handle.tell() < self._span.end:
                raise UnreadableExportError(
                    "it became shorter while it was read; it will be read again by the next ingest"
                )
        self._check()

    def _rows(self, parsed: Parsed) -> Iterator[tuple[str, pl.DataFrame]]:
        for name, frame in parsed.frames.items():
            is_right = frame.schema == _SCHEMAS[name]  # enforcing takes longer than reading a short log
            yield name, frame if is_right else TABLES[name].enforce(frame).drop("export_id")
        if parsed.rejects:
            yield REJECTS.name, reject_rows(parsed.rejects)

    def _count(self, parsed: Parsed) -> None:
        self._used += parsed.used
        self._ignored += parsed.ignored
        self._rejected += len(parsed.rejects)
        self._is_open |= parsed.is_open
        self._last_reject = max([self._last_reject, *(r.line for r in parsed.rejects)])

    def _check(self) -> None:
        ignored = self._ignored.total()
        if self._used + ignored + self._rejected != self._lines:
            raise BrokenContractError(
                f"the parser {self._target.source.name} accounts for {self._used} used + {ignored} ignored + {self._rejected} "
                f"rejected lines, but read {self._lines}; nothing of this export was kept. Please report it"
            )

    def piece(self, content: str | None) -> Piece:
        """Return what became of the span, whose bytes have the hash `content` (None = they could not be read)."""
        span, target = self._span, self._target
        piece = Piece(
            export_id=export_id(target.name, span.offset, span.length, content),
            path=target.name,
            source=target.source.name,
            cluster=self._context.cluster,
            byte_offset=span.offset,
            byte_length=span.length,
            sha256=content,
            collected_at=self._context.collected_at,
            first_line=span.first_line,
            is_tail=span.is_tail,
            settings=target.settings,
        )
        error = self._error or (None if content else "cannot be read")
        if error:
            return replace(piece, status=FAILED, message=error)
        return replace(
            piece,
            lines=self._lines,
            lines_used=self._used,
            lines_ignored=self._ignored.total(),
            lines_rejected=self._rejected,
            ignored_by=json.dumps(dict(sorted(self._ignored.items()))),
            status=LOADED,
            is_open=self._is_open or (self._lines > 0 and self._last_reject == span.first_line + self._lines - 1),
        )


def reject_rows(rejects: list[Reject]) -> pl.DataFrame:
    """Return rows of the table `rejects`, still without the piece they belong to."""
    schema = _SCHEMAS[REJECTS.name]
    return pl.DataFrame([[getattr(r, name) for name in schema] for r in rejects], schema=schema, orient="row")
