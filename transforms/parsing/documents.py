"""JSON documents in a file of lines: one or several, one after another, with lines of other text before and between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from transforms.parsing.lines import Line

MAX_BYTES = 16 << 20
_BROKEN = "the document breaks off: write it again, or copy it again"
_START = re.compile(r'(?:^\ufeff?\s*\{(?=\s*(?:$|\}))|\{(?=\s*"))')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_GAP = re.compile(r"[^{]*")


@dataclass(frozen=True, slots=True)
class Document:
    """Lines that hold JSON, or lines that do not.

    Attributes:
        lines: the lines, in order.
        values: the JSON objects they hold; empty for other text.
        problem: why they cannot be read, where they begin an object and hold none.
    """

    lines: list[Line]
    values: list[dict[str, Any]] = field(default_factory=list)
    problem: str | None = None


def documents(lines: Iterable[Line]) -> Iterator[Document]:
    """Yield the documents of a file, and the lines between them each by itself.

    An object begins at the first brace that stands alone or before a quote; it ends with the line on which its braces are closed.
    One that is not closed before the next begins (with a brace in the first column) or is larger than 16 MiB has a `problem`.
    """
    held: list[Line] = []
    depth = size = 0
    for line in lines:
        text = line.text
        if held and text.startswith("{"):
            yield Document(held, problem=_BROKEN)
            held = []
        if not held:
            start = _START.search(text)
            if start is None:
                yield Document([line])
                continue
            text = text[start.end() - 1 :]
            depth = size = 0
        held.append(line)
        bare = _STRING.sub("", text)
        depth += bare.count("{") - bare.count("}")
        size += len(line.raw)
        if depth <= 0:
            yield _read(held)
            held = []
        elif size > MAX_BYTES:
            yield Document(held, problem=f"the document is larger than {MAX_BYTES >> 20} MiB")
            held = []
    if held:
        yield Document(held, problem=_BROKEN)


def _read(lines: list[Line]) -> Document:
    text = "\n".join(line.text for line in lines)
    start = _START.search(text)
    at, values, decoder = (start.end() - 1 if start else 0), [], json.JSONDecoder()
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            gap = _GAP.match(text, at)
            at = gap.end() if gap else at
    except (ValueError, RecursionError) as error:
        return Document(lines, problem=f"is no JSON: {error}")
    return Document(lines, values)
