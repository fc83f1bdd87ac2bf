"""Decide which bytes of a file are to be read, given what was read of it before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import RawIOBase
from pathlib import Path

from flows.manifest import LOADED, Piece

ANY_OTHER = "read again"
"""Settings that no piece was read with: `plan` then reads all of a file again, as it was cut."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes to read.

    Attributes:
        offset: where they begin in the file.
        length: how many.
        first_line: number of their first line.
        is_tail: they are an unterminated last line.
        collected_at: UTC time of collection kept from an earlier reading; None = not read before.
    """

    offset: int
    length: int
    first_line: int
    is_tail: bool = False
    collected_at: datetime | None = None

    @property
    def end(self) -> int:
        """Offset of the first byte after the span."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a file.

    Attributes:
        spans: bytes to read, in order.
        dropped: pieces that the spans take the place of.
        is_superseded: the file holds something else than before; its other pieces stay as they are.
        unrecoverable: lost pieces that the file no longer holds.
        begin: offset from which on the file holds bytes that its current pieces did not.
    """

    spans: tuple[Span, ...] = ()
    dropped: tuple[Piece, ...] = ()
    is_superseded: bool = False
    unrecoverable: tuple[Piece, ...] = ()
    begin: int = 0


def settings_of(fixed: Sequence[object], zones: Mapping[str, str]) -> str:
    """Return what a reading depends on beside the bytes, as text: a hash of `fixed`, and the zones of the clusters."""
    digest = hashlib.sha256(repr(tuple(fixed)).encode()).hexdigest()[:16]
    return f"{digest} {json.dumps(dict(sorted(zones.items())))}"


def is_fresh(piece: Piece, settings: str) -> bool:
    """Tell whether a piece needs no second reading. A cluster that was added since changes nothing for it."""
    if piece.status != LOADED or piece.is_lost:
        return False
    old, _, old_zones = piece.settings.partition(" ")
    new, _, new_zones = settings.partition(" ")
    return old == new and json.loads(old_zones or "{}").items() <= json.loads(new_zones).items()


def plan(path: Path, size: int, pieces: Sequence[Piece], settings: str, *, is_whole: bool, is_same: bool) -> Plan:
    """Return what to read of a file of `size` bytes.

    A file that only grew (every piece read before has the same hash) is read from its last complete line; pieces
    read with another parser version or other settings, failed or lost, are read again as they were cut. A
    file that holds something else than before is read anew as a whole, and the old pieces' rows stay.

    Args:
        path: the file.
        size: its length now, bytes.
        pieces: its current pieces, in order.
        settings: hash of the parser's version and settings.
        is_whole: it cannot be read in pieces (compressed, or a document).
        is_same: size and modification time are as they were, so that hashing it again is left out.

    Raises:
        OSError: the file cannot be read.
    """
    chain = [p for p in pieces if p.sha256 is not None]
    if not _is_still_held(path, size, chain, is_same=is_same):
        spans = (Span(0, size, 1),) if is_whole else _to_end(path, 0, size, 1)
        loaded = [p for p in pieces if p.status == LOADED]
        lost = tuple(p for p in loaded if p.is_lost)
        return Plan(spans, tuple(p for p in pieces if p.status != LOADED), bool(loaded), lost)
    unread = tuple(p for p in pieces if p.sha256 is None)
    if not is_whole:
        return _grown(path, size, chain, unread, settings)
    is_all = bool(chain) and chain[-1].end == size
    if is_all and all(is_fresh(p, settings) for p in chain):
        return Plan((), unread)
    return Plan(
        (Span(0, size, 1, collected_at=chain[0].collected_at if is_all else None),),
        tuple(pieces),
        begin=chain[-1].end if chain else 0,
    )


def _grown(path: Path, size: int, chain: list[Piece], unread: Sequence[Piece], settings: str) -> Plan:
    """Plan for a file of lines that holds everything that was read of it, and perhaps more."""
    kept, dropped = list(chain), list(unread)
    if (kept[-1].end if kept else 0) < size:
        while kept and _is_provisional(kept[-1]):
            dropped.append(kept.pop())
    again = [p for p in kept if not is_fresh(p, settings)]
    spans = [Span(p.byte_offset, p.byte_length, p.first_line, p.is_tail, p.collected_at) for p in again]
    start, line = (kept[-1].end, kept[-1].first_line + (kept[-1].lines or 0)) if kept else (0, 1)
    if start < size or not kept:
        spans += _to_end(path, start, size, line)
    return Plan(tuple(spans), (*dropped, *again), begin=chain[-1].end if chain else 0)


def is_grown(path: Path, size: int, pieces: Sequence[Piece], *, is_same: bool) -> bool:
    """Tell whether a file still begins with what a parser read of it before.

    Raises:
        OSError: the file cannot be read.
    """
    chain = [p for p in pieces if p.sha256 is not None]
    is_read = any(p.status == LOADED and p.byte_length for p in chain)
    return is_read and _is_still_held(path, size, chain, is_same=is_same)


def held_again(path: Path, size: int, begin: int, past: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return those of the earlier versions' pieces whose bytes lie where they lay, so that they were read a second time.

    A file that goes on from where it was (`begin` > 0) is asked only for last lines, which may be cut short: the rows of
    whole lines are the same in both readings.

    Args:
        path: the file, which was read to its end.
        size: its length, bytes.
        begin: offset from which on it holds what its current pieces did not.
        past: pieces that are not current, or no longer.

    Raises:
        OSError: the file cannot be read.
    """
    asked = [p for p in past if p.status == LOADED and begin < p.end <= size and (not begin or _is_provisional(p))]
    return tuple(p for p in asked if p.byte_length and sha256(path, p.byte_offset, p.byte_length) == p.sha256)


def _is_provisional(piece: Piece) -> bool:
    """Tell whether the last piece of a file may look different when more of the file is there."""
    return piece.is_tail or piece.is_open or piece.status != LOADED or not piece.byte_length


def _to_end(path: Path, offset: int, size: int, first_line: int) -> tuple[Span, ...]:
    """Return the complete lines from `offset` on, and the unterminated last line as a span of its own.

    The first line of the second span is not known before the first was read; the reader fills it in.
    """
    cut = _after_last_newline(path, offset, size)
    lines = Span(offset, cut - offset, first_line)
    tail = Span(cut, size - cut, first_line, is_tail=True)
    if cut == size:
        return (lines,)
    return (lines, tail) if cut > offset else (tail,)


def _after_last_newline(path: Path, offset: int, size: int) -> int:
    """Return the offset after the last newline in [offset, size); `offset` where there is none."""
    with path.open("rb") as handle:
        end = size
        while end > offset:
            begin = max(end - _BLOCK, offset)
            handle.seek(begin)
            found = handle.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return offset


def _is_still_held(path: Path, size: int, chain: Sequence[Piece], *, is_same: bool) -> bool:
    """Tell whether the pieces, without a gap, are the beginning of the file."""
    end = 0
    for piece in chain:
        if piece.byte_offset != end:
            return False
        end = piece.end
    if end > size:
        return False
    return is_same or _hashes(path, [p.byte_length for p in chain]) == [p.sha256 for p in chain]


def _hashes(path: Path, lengths: Sequence[int]) -> list[str]:
    """Return the SHA-256 of each of the stretches of a file that follow each other from its beginning."""
    with path.open("rb", buffering=0) as handle:
        return [_hash(handle, length) for length in lengths]


def sha256(path: Path, offset: int, length: int) -> str:
    """Return the SHA-256 of a part of a file, in hex; fewer bytes are hashed where the file is shorter."""
    with path.open("rb", buffering=0) as handle:
        handle.seek(offset)
        return _hash(handle, length)


def _hash(handle: RawIOBase, length: int) -> str:
    digest, left = hashlib.sha256(), length
    while left and (block := handle.read(min(left, _BLOCK))):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest()
