"""Parts of paths that name a node or a job: what differs between today's file and tomorrow's."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

STAMP = re.compile(
    r"(?<!\d)(?:19|20)\d\d-?\d\d-?\d\d(?:[T_ -]?\d\d[:.-]?\d\d(?:[:.-]?\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\d])"
)
_NODE_LIKE = re.compile(r"[A-Za-z][A-Za-z0-9-]*\d[A-Za-z0-9-]*")
_NO_NODE = re.compile(
    r"(?:dmesg|kern(?:el)?|kmsg|messages|sys|syslog|journal|boot|log|out|txt|sel|diag|nhc)\d*", re.IGNORECASE
)
_KIND = r"(?:dmesg|kern|kmsg|messages|syslog|journal|sel|diag|nhc|gpus)"
_AFFIXES = re.compile(rf"^{_KIND}-|-{_KIND}$")
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-?\d\d-?\d\d(?!\d)")
_JOB = re.compile(r"(?<!\d)\d+(?:[_+]\d+)?(?!\d)")
_ALONE = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
MIN_DIGITS = 3
"""A shorter number may be a rank, a part or a rotation: it is taken for a job only where an export of jobs names it."""


@dataclass(frozen=True, slots=True)
class Names:
    """What paths of one kind of file may tell.

    Attributes:
        nodes: names of nodes; the files belong to one node each and do not name it. None = they name their nodes.
        jobs: ids of jobs; the files belong to one job each. None = they do not.
        own: nodes that files of the kind name themselves, one each: the same in a path may be any other.
    """

    nodes: Collection[str] | None = None
    jobs: Collection[str] | None = None
    own: Collection[str] = ()

    def in_name(self, core: str, *, is_alone: bool, is_dated: bool) -> Iterator[tuple[str, str]]:
        """Yield parts of a file's name and what stands for them.

        What looks like a node in one name alone may be anything, unless a date beside it shows that more will come.
        """
        node = node_in(core, self.nodes) if self.nodes is not None else None
        if node and (not is_alone or is_dated or node in (self.nodes or ())):
            yield node, "{node}"
        if self.jobs is not None and (job := job_in(core, self.jobs)):
            yield job, "{job_id}"
        if self.own and (node := _known_in(core, self.own)):
            yield node, "*"

    def of_folders(self, pattern: str, names: list[str]) -> str | None:
        """Return what stands for the names of sibling folders that hold files of the same pattern; None = nothing told."""
        if self.nodes is not None and "{node}" not in pattern and all(node_in(n, self.nodes) == n for n in names):
            return "{node}" if len(names) > 1 or names[0] in self.nodes else None
        if self.jobs is not None and "{job_id}" not in pattern and all(job_in(n, self.jobs) == n for n in names):
            return "{job_id}" if len(names) > 1 or names[0] in self.jobs else None
        return "*" if all(n in self.own for n in names) else None


def node_in(name: str, nodes: Collection[str]) -> str | None:
    """Return the part of a file's name, without its ending, that is the name of a node, or looks like one; None = none does."""
    if known := _known_in(name, nodes):
        return known
    words = [w for w in re.split(r"[._]+|(?<![A-Za-z0-9])-|-(?![A-Za-z0-9])", STAMP.sub(".", name)) if w]
    words = [_AFFIXES.sub("", w) for w in words]
    like = [w for w in words if _NODE_LIKE.fullmatch(w) and not _NO_NODE.fullmatch(w)]
    return like[0] if len(like) == 1 else None


def job_in(name: str, jobs: Collection[str]) -> str | None:
    """Return the part of a file's name that is the id of a job, or the only number of some length; None = none is."""
    dateless = _DATE.sub(".", name)  # what follows a date may look like its time and be a job
    told = [text for found in _JOB.findall(dateless) for text in (found, *re.split(r"[_+]", found)) if text in jobs]
    alone = _ALONE.findall(dateless)
    known = [text for text in told if len(text) >= MIN_DIGITS or text in alone]
    if known:
        return known[0] if len(set(known)) == 1 or known[0].startswith(known[1]) else None
    long = [text for text in _ALONE.findall(STAMP.sub(".", name)) if len(text) >= MIN_DIGITS]
    return long[0] if len(long) == 1 else None


def _known_in(name: str, nodes: Collection[str]) -> str | None:
    pieces = {n for n in nodes if n in name and re.search(rf"(?<![A-Za-z0-9]){re.escape(n)}(?![A-Za-z0-9])", name)}
    return max(pieces, key=lambda n: (len(n), n)) if pieces else None
