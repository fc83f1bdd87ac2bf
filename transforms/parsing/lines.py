"""The lines of an export one by one, for small exports whose lines are read by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from transforms.outcome import Reject
from transforms.parsing.text import repaired
from transforms.stream import Chunk


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        number: its number in the file, from 1.
        text: its text without line end; Latin-1 where it is not UTF-8.
        raw: its bytes without line end.
        byte_offset: where it begins.
        is_decoded: it was not UTF-8.
    """

    number: int
    text: str
    raw: bytes
    byte_offset: int
    is_decoded: bool

    def reject(self, reason: str) -> Reject:
        """Return it as a line that could not be read."""
        return Reject.of(self.number, reason, self.raw, self.byte_offset)


def lines_of(chunk: Chunk) -> Iterator[Line]:
    """Yield the lines of a chunk. Only a line feed ends a line; a carriage return before it is dropped."""
    clean, bad = repaired(chunk.data)
    decoded = frozenset(bad)
    raws, texts = chunk.data.split(b"\n"), clean.decode("utf-8").split("\n")
    if not raws[-1]:
        raws.pop()
        texts.pop()
    offset = chunk.byte_offset
    for position, (raw, text) in enumerate(zip(raws, texts, strict=True)):
        yield Line(chunk.first_line + position, text.removesuffix("\r"), raw, offset, position in decoded)
        offset += len(raw) + 1
