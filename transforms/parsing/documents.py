"""JSON documents in a file of lines: one or several, one after another, with lines of other text before and between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from transforms.parsing.lines import Line

MAX_BYTES = 16 << 20
TOO_LARGE = (
    f"the document that begins here is larger than {MAX_BYTES >> 20} MiB, and all of it is left out: "
    "no answer of `dcgmi diag -j` is; write it again"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
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
        is_too_large: they belong to an object larger than allowed; `problem` is told with its first lines only.
    """

    lines: list[Line]
    values: list[dict[str, Any]] = field(default_factory=list)
    problem: str | None = None
    is_too_large: bool = False


def documents(lines: Iterable[Line]) -> Iterator[Document]:
    """Yield the documents of a file, and the lines between them each by itself.

    An object begins at the first brace that stands alone or before a quote; it ends with the line on which its braces are closed.
    One that is not closed before the next begins (with a brace in the first column) or is larger than 16 MiB has a `problem`; the
    rest of one that is too large, to where it is closed or the next begins, follows line by line.
    """
    held: list[Line] = []
    depth = size = 0
    is_too_large = False
    for line in lines:
        text = line.text
        is_too_large = is_too_large and not text.startswith("{")
        if is_too_large:
            depth += _depth(text)
            is_too_large = depth > 0
            yield Document([line], is_too_large=True)
            continue
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
        depth += _depth(text)
        size += len(line.raw)
        if depth <= 0:
            yield _read(held)
            held = []
        elif size > MAX_BYTES:
            yield Document(held, problem=TOO_LARGE, is_too_large=True)
            held, is_too_large = [], True
    if held:
        yield Document(held, problem=_BROKEN)


def _depth(text: str) -> int:
    """Return how many more braces a line opens than it closes."""
    bare = _STRING.sub("", text)
    return bare.count("{") - bare.count("}")


def encodable(value: Any) -> Any:
    """Return a JSON value with U+FFFD for each half of a surrogate pair that stands alone: no text can be written with one."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [encodable(item) for item in value]
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    return value


def _read(lines: list[Line]) -> Document:
    text = "\n".join(line.text for line in lines)
    start = _START.search(text)
    at, values, decoder = (start.end() - 1 if start else 0), [], json.JSONDecoder()
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(encodable(value) if "\\u" in text else value)
            gap = _GAP.match(text, at)
            at = gap.end() if gap else at
    except (ValueError, RecursionError) as error:
        return Document(lines, problem=f"is no JSON: {error}")
    return Document(lines, values)
