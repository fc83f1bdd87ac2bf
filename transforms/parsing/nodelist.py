"""Slurm host lists: `gpu[001-008],login1` to host names, in the list's order."""

from __future__ import annotations

import re
from math import prod

import hostlist

MAX_HOSTS = 100_000
_MAX_DIGITS = 18
_MAX_BRACKETS = 8
_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_RANGES = re.compile(r"\[([^\[\]]*)\]")
_NO_HOSTS = frozenset({"", "None assigned", "None", "(null)", "N/A", "Unknown"})


class BadHostListError(ValueError):
    """The text is no host list, or one of more than `MAX_HOSTS` hosts."""


def expand(text: str) -> list[str]:
    """Return the hosts of a compressed Slurm host list, in its order, each once.

    `gn[098-102]` pads to the width of the low end, `gx[9-11]` does not: gn1 and gn001 are different hosts.
    Words that stand for "no nodes" (empty, `None assigned`, `(null)`, `Unknown`) give an empty list.

    Args:
        text: host list as sacct, scontrol and sinfo print it.

    Returns:
        Host names.

    Raises:
        BadHostListError: brackets do not close (a cut list), a range runs backwards, or it is too large.
    """
    text = text.strip()
    if text in _NO_HOSTS:
        return []
    if any(c.isspace() for c in text):
        raise BadHostListError(f"host list holds white space: {text[:80]!r}")
    _check_size(text)
    try:
        return list(hostlist.expand_hostlist(text))
    except hostlist.BadHostlist as error:
        raise BadHostListError(f"{error}: {text[:80]!r}") from None


def _check_size(text: str) -> None:
    """Refuse a list whose expansion would be large before anything is expanded."""
    total = 0
    for part in _PART.findall(text):
        brackets = _RANGES.findall(part)
        if len(brackets) > _MAX_BRACKETS:
            raise BadHostListError(f"more than {_MAX_BRACKETS} bracket pairs in one name: {text[:80]!r}")
        total += prod(sum(map(_range_size, ranges.split(","))) for ranges in brackets)
        if total > MAX_HOSTS:
            raise BadHostListError(f"more than {MAX_HOSTS} hosts: {text[:80]!r}")


def _range_size(text: str) -> int:
    low, dash, high = text.partition("-")
    if max(len(low), len(high)) > _MAX_DIGITS:
        raise BadHostListError(f"a number of more than {_MAX_DIGITS} digits: {text[:80]!r}")
    if not (dash and low.isdecimal() and high.isdecimal()):
        return 1
    return max(int(high) - int(low) + 1, 1)
