"""Recognize what no parser can read as it is: archives, other encodings, other line ends; and say how to make it readable."""

from __future__ import annotations

import re

_ARCHIVES = (
    (0, b"PK\x03\x04", "a zip archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_JSON_OF_JOBS = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:jobs|meta)"\s*:\s*[\[{]')
"""How what `sacct --json` prints begins, in any version that has it."""
_LOOKED_AT = 1_000
_ZERO_SHARE = 0.3
"""Half of the bytes of English UTF-16 text are zero."""


def foreign(head: bytes) -> str | None:
    """Return what an export is, and what to do, where its form is no lines of text; None = nothing speaks against it.

    Args:
        head: first bytes of the export, decompressed.
    """
    for offset, magic, name in _ARCHIVES:
        if head.startswith(magic, offset):
            return f"it is {name}: unpack it"
    text = head[:_LOOKED_AT]
    if text.startswith(_UTF_16) or _is_interleaved(text):
        return "it is UTF-16 text: convert it, for example with `iconv -f UTF-16 -t UTF-8`"
    if b"\n" not in head and head.rstrip(b"\r").count(b"\r"):
        return "its lines end with carriage returns alone: convert it, for example with `tr '\\r' '\\n'`"
    if _JSON_OF_JOBS.match(text):
        return "it looks like JSON of sacct, which is not read: export with `sacct --parsable2` instead of `--json`"
    return None


def _is_interleaved(text: bytes) -> bool:
    """Tell whether zeros stand in nearly every second place, and nearly nowhere else."""
    halves = sorted((text[0::2].count(0), text[1::2].count(0)))
    return halves[1] > 2 * _ZERO_SHARE * len(text) / 2 and halves[0] * 10 < halves[1]
