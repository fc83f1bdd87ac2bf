"""Find the lines that hold one of the signatures' literals, without looking at the others one by one.

Hyperscan looks for all literals at once, at the speed of memory, and lets other threads run meanwhile. Two threads search ahead
of the consumer; only lines that hold a literal are cut out. Line numbers come from counting line ends up to the hit.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, cast

import polars as pl

from transforms.outcome import Reject
from transforms.parsing.kernel.messages import NEEDLES
from transforms.stream import Block, ExportStream

WORKERS = 2
AHEAD = 6
BLOCK_BYTES = 2 << 20  # fits a core's own cache: larger is not faster
# dmesg --reltime prints the minute only where it changes; the lines after it need it. Not a literal, hence apart.
RELTIME = rb"^\[(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ?\d{1,2} \d\d:\d\d\]"

Matcher = Callable[[memoryview], list[int]]
"""Returns, in ascending order, a position inside each line that holds a literal (several per line allowed)."""


class Hit(NamedTuple):
    """A line worth reading: how many lines of its block come before it, where it begins, its bytes without the newline."""

    lines_before: int
    byte_offset: int
    raw: bytes


class Scanned(NamedTuple):
    """A block that was searched: number of its first line, how many lines it has, the hits among them in order.

    `rejects` are lines that never reached the block, with their numbers; they are not among its `lines`.
    """

    first_line: int
    lines: int
    hits: list[Hit]
    rejects: list[Reject]


def re_matcher() -> Matcher:
    """Return a matcher built on `re`: slow, for processors that Hyperscan does not support."""
    found = re.compile(b"|".join([*map(re.escape, NEEDLES), RELTIME]), re.MULTILINE)
    return lambda data: [m.end() - 1 for m in found.finditer(data)]


def hyperscan_matcher() -> Matcher:
    """Return a matcher built on Hyperscan, which any number of threads may use at once.

    Raises:
        ImportError: there is no Hyperscan for this processor.
    """
    import hyperscan

    patterns = [*map(re.escape, NEEDLES), RELTIME]
    database = hyperscan.Database()
    flags = [0] * len(NEEDLES) + [hyperscan.HS_FLAG_MULTILINE]
    database.compile(expressions=patterns, ids=list(range(len(patterns))), elements=len(patterns), flags=flags)
    local = threading.local()

    def match(data: memoryview) -> list[int]:
        if not hasattr(local, "scratch"):
            local.scratch = hyperscan.Scratch(database)
        positions: list[int] = []
        add = positions.append

        def on_match(_id: int, _start: int, end: int, _flags: int, _context: Any) -> None:
            add(end - 1)

        database.scan(cast("bytes", data), match_event_handler=on_match, scratch=local.scratch)
        positions.sort()
        return positions

    return match


@cache
def best_matcher() -> Matcher:
    """Return the fastest matcher that works here."""
    try:
        return hyperscan_matcher()
    except ImportError:
        return re_matcher()


def scan(stream: ExportStream, matcher: Matcher | None = None) -> Iterator[Scanned]:
    """Yield the searched blocks of `stream`, in order; at most AHEAD blocks are held.

    The thread that searches a block also reads it, one at a time, so that it finds the block in its core's cache.

    Raises:
        UnreadableExportError: see ExportStream.
    """
    match = matcher or best_matcher()
    blocks, turn, numbers = stream.blocks(BLOCK_BYTES), threading.Lock(), itertools.count()

    def work() -> tuple[int, Block | None, tuple[int, list[Hit]]]:
        with turn:
            number, block = next(numbers), next(blocks, None)
        return number, block, search(block, match) if block else (0, [])

    line, wanted = stream.first_line, 0
    early: dict[int, tuple[Block | None, tuple[int, list[Hit]]]] = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        running = deque(pool.submit(work) for _ in range(AHEAD))
        while running:
            number, block, found = running.popleft().result()
            early[number] = block, found
            while wanted in early:
                block, (lines, hits) = early.pop(wanted)
                wanted += 1
                if block is None:
                    return
                running.append(pool.submit(work))
                rejects = [replace(block.reject, line=line + lines)] if block.reject else []
                stream.release(block)
                stream.lines = line + lines + len(rejects) - stream.first_line
                yield Scanned(line, lines, hits, rejects)
                line += lines + len(rejects)


def search(block: Block, match: Matcher) -> tuple[int, list[Hit]]:
    """Return the number of lines of a block, and its hits."""
    data, length = block.buffer, block.length
    if not length:
        return 0, []
    with memoryview(data)[:length] as view:
        positions = match(view)
    hits: list[Hit] = []
    lines, counted, end = 0, 0, -1
    for position in positions:
        if position < end:
            continue
        start = data.rfind(b"\n", 0, position) + 1
        end = data.find(b"\n", position, length)
        end = length if end < 0 else end
        lines += count_lines(data, counted, start)
        counted = start
        hits.append(Hit(lines, block.byte_offset + start, bytes(data[start:end])))
    lines += count_lines(data, counted, length)
    return lines + (data[length - 1] != _NEWLINE), hits


_NEWLINE = ord("\n")
_FEW_BYTES = 512 << 10


def count_lines(data: bytearray, start: int, end: int) -> int:
    """Return the number of line ends in data[start:end]; for long stretches with vector instructions, other threads running."""
    if end - start < _FEW_BYTES:
        return data.count(b"\n", start, end)
    import pyarrow as pa  # takes a while, which what is new within an hour does not need

    array = pa.Array.from_buffers(pa.uint8(), end - start, [None, pa.py_buffer(data)], offset=start)
    return int((pl.Series(array) == _NEWLINE).sum())
