"""Find the name that was meant: of a node as a log prints it, of a cause as people call it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

MAX_SHOWN = 3
SHORTEST_WORD = 3


def resolved(name: str, known: Iterable[str]) -> str | None:
    """Return the known node that `name` is: as given, else its part before the first dot; case does not matter then."""
    names = sorted(set(known))
    folded = {n.casefold(): n for n in reversed(names)}
    short = name.partition(".")[0]
    for given in (name, short):
        if given in names:
            return given
        if found := folded.get(given.casefold()):
            return found
    return None


def meant_node(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean `x`?" for the nodes that end with `name`, else hold it, else are spelled like it; or nothing."""
    names = sorted(set(known))
    wanted = name.partition(".")[0].casefold()
    if not wanted:
        return ""
    ending = [n for n in names if n.casefold().endswith(wanted)]
    holding = [n for n in names if wanted in n.casefold()]
    folded = {n.casefold(): n for n in names}
    alike = [folded[n] for n in difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6)]
    return _question(ending or holding or alike)


def meant_cause(name: str, labels: Mapping[str, str]) -> str:
    """Return "; did you mean `x`?" for the causes whose code or label is like `name`, or holds one of its words; or nothing.

    Args:
        name: what was given.
        labels: label by code.
    """
    wanted = _words(name)
    keys = {_words(code): code for code in labels} | {_words(label): code for code, label in labels.items()}
    if near := difflib.get_close_matches(wanted, keys, n=1, cutoff=0.75):
        return _question([keys[near[0]]])
    words = [w for w in wanted.split() if len(w) >= SHORTEST_WORD]
    shares = {code: max(sum(w in key for w in words) for key, c in keys.items() if c == code) for code in labels}
    most = max(shares.values(), default=0)
    if most:
        return _question([code for code, share in shares.items() if share == most])
    return _question([keys[n] for n in difflib.get_close_matches(wanted, keys, n=1, cutoff=0.6)])


def _words(text: str) -> str:
    return "".join(c if c.isalnum() else " " for c in text.casefold()).strip()


def _question(names: list[str]) -> str:
    if not names:
        return ""
    shown = " or ".join(f"`{n}`" for n in names[:MAX_SHOWN])
    more = f" ({len(names) - MAX_SHOWN} more fit)" if len(names) > MAX_SHOWN else ""
    return f"; did you mean {shown}?{more}"
