"""Columns of sacct: which hold free text, what the others may hold, and how a header line is recognized.

Source: sacct(1), `--format` and `--helpformat`, of Slurm 17.11 to 25.11 (Reserved became Planned, AllocGRES became AllocTRES).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from transforms.parsing.states import read_state

Check = Callable[[str], bool]
_TIMES = "eligible end start submit"
_DURATIONS = (
    "elapsed suspended timelimit totalcpu usercpu systemcpu cputime reserved planned resvcpu plannedcpu mincpu avecpu"
)
_COUNTS = (
    "alloccpus allocnodes ncpus nnodes ntasks reqcpus reqnodes uid gid associd restarts elapsedraw cputimeraw "
    "dbindex priority qosraw resvcpuraw plannedcpuraw reservationid"
)
_NAMES = "account cluster group partition qos user"
_FREE = "admincomment comment constraints container extra jobname stderr stdin stdout submitline systemcomment workdir"
_LISTS = "alloctres reqtres"
_SIZES = "maxrss maxvmsize averss avevmsize reqmem"
_OTHER = """
    allocgres avecpufreq avediskread avediskwrite avepages blockid consumedenergy consumedenergyraw derivedexitcode exitcode
    failednode flags jobid jobidraw layout licenses maxdiskread maxdiskreadnode maxdiskreadtask maxdiskwrite maxdiskwritenode
    maxdiskwritetask maxpages maxpagesnode maxpagestask maxrssnode maxrsstask maxvmsizenode maxvmsizetask mcslabel mincpunode
    mincputask nodelist originalsluid reason reqcpufreq reqcpufreqgov reqcpufreqmax reqcpufreqmin reqgres reqreservation
    reservation segmentsize sluid state timelimitraw tresusageinave tresusageinmax tresusageinmaxnode tresusageinmaxtask
    tresusageinmin tresusageinminnode tresusageinmintask tresusageintot tresusageoutave tresusageoutmax
    tresusageoutmaxnode tresusageoutmaxtask tresusageoutmin tresusageoutminnode tresusageoutmintask tresusageouttot
    wckey wckeyid qosreq jobidraw het_job_offset hetjoboffset consumedenergyraw
"""

# What we keep, by our name, and the columns it is taken from: the first one present.
WANTED: dict[str, tuple[str, ...]] = {
    "job_id": ("jobid", "jobidraw"),
    "job_id_raw": ("jobidraw", "jobid"),
    "sluid": ("sluid",),
    "db_index": ("dbindex",),
    "cluster": ("cluster",),
    "job_name": ("jobname",),
    "user": ("user",),
    "uid": ("uid",),
    "account": ("account",),
    "partition": ("partition",),
    "qos": ("qos",),
    "reservation": ("reservation",),
    "comment": ("comment",),
    "state": ("state",),
    "exit_code": ("exitcode",),
    "derived_exit_code": ("derivedexitcode",),
    "reason": ("reason",),
    "failed_node": ("failednode",),
    "restarts": ("restarts",),
    "submit": ("submit",),
    "eligible": ("eligible",),
    "start": ("start",),
    "end": ("end",),
    "elapsed": ("elapsed",),
    "elapsed_raw": ("elapsedraw",),
    "suspended": ("suspended",),
    "time_limit": ("timelimit",),
    "time_limit_raw": ("timelimitraw",),
    "node_count": ("nnodes", "allocnodes"),
    "node_list": ("nodelist",),
    "cpus": ("alloccpus", "ncpus"),
    "alloc_tres": ("alloctres",),
    "alloc_gres": ("allocgres",),
    "total_cpu": ("totalcpu",),
    "max_rss": ("maxrss",),
    "req_mem": ("reqmem",),
}
KNOWN = frozenset(f"{_TIMES} {_DURATIONS} {_COUNTS} {_NAMES} {_FREE} {_LISTS} {_SIZES} {_OTHER}".split())
_TELLING = frozenset(
    "state start end submit elapsed elapsedraw exitcode nodelist nnodes alloctres alloccpus ncpus".split()
)

_WORDS = r"|None|Unknown|N/A|\(null\)|INVALID"
_JOB = r"[0-9]+(?:_(?:[0-9]+|\[[^\]]*\]?)|\+[0-9]+)?"
JOB_ID = re.compile(_JOB)
_STEP = r"\.\w+(?:\+[0-9]*)?"
STEP_ID = re.compile(_JOB + _STEP)
_PATTERNS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(_TIMES.split(), re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*|\d{9,10}" + _WORDS)),
    **dict.fromkeys(
        _DURATIONS.split(), re.compile(r"(?:\d+-)?\d+(?::\d+){1,2}(?:\.\d+)?|UNLIMITED|Partition_Limit|0" + _WORDS)
    ),
    **dict.fromkeys(_COUNTS.split(), re.compile(r"\d+(?:\.\d+)?[KMG]?" + _WORDS)),
    **dict.fromkeys(_NAMES.split(), re.compile(r"\S*")),
    **dict.fromkeys(_SIZES.split(), re.compile(r"\d+(?:\.\d+)?[KMGTPE?]?[nc]?" + _WORDS)),
    **dict.fromkeys(_LISTS.split(), re.compile(r"(?:[a-z][^=,\s]*=[^=,\s]+(?:,[a-z][^=,\s]*=[^=,\s]+)*)?")),
    **dict.fromkeys(("exitcode", "derivedexitcode"), re.compile(r"(?:\d+:\d+)?")),
    "jobid": re.compile(f"{_JOB}(?:{_STEP})?"),
    "jobidraw": re.compile(rf"\d+(?:{_STEP})?"),
    "nodelist": re.compile(r"(?:[\w.\-]|\[[\d,\-]+\])+(?:,(?:[\w.\-]|\[[\d,\-]+\])+)*|None assigned|\(null\)|"),
    "timelimitraw": re.compile(r"\d+|UNLIMITED|Partition_Limit" + _WORDS),
    "": re.compile(""),
}
_DELIMITER_BEFORE = re.compile(r"(\w)([^\w \r\n]{1,8})JobID(?:Raw)?(?!\w)", re.IGNORECASE)
_DELIMITER_AFTER = re.compile(r"(?<!\w)JobID(?:Raw)?([^\w \r\n]{1,8})(?=\w)", re.IGNORECASE)
_MIN_KNOWN = 2 / 3


@dataclass(frozen=True)
class Layout:
    """Columns of an export and what stands between them.

    Attributes:
        names: column names in lower case; a last empty one where each line ends with the delimiter (`-p`).
        delimiter: text between two fields.
    """

    names: tuple[str, ...]
    delimiter: str

    @property
    def width(self) -> int:
        """Fields in a line."""
        return len(self.names)

    @cached_property
    def wanted(self) -> dict[str, int]:
        """Positions of the columns we keep, by our name."""
        present = {n: i for i, n in reversed(list(enumerate(self.names)))}
        found = {ours: next((present[n] for n in theirs if n in present), None) for ours, theirs in WANTED.items()}
        return {ours: position for ours, position in found.items() if position is not None}

    @cached_property
    def flexible(self) -> tuple[bool, ...]:
        """Whether the text of a column may hold the delimiter."""
        lists = {"alloctres", "reqtres", "nodelist", "jobid"} if self.delimiter == "," else set()
        free = set(_FREE.split()) | lists
        return tuple(n in free for n in self.names)

    @cached_property
    def checks(self) -> tuple[Check | None, ...]:
        """What tells whether a text can stand in a column; None where any text can."""
        return tuple(_is_state if n == "state" else _check(n) for n in self.names)


def _is_state(text: str) -> bool:
    return text == "" or read_state(text).is_known


def _check(name: str) -> Check | None:
    pattern = _PATTERNS.get(name)
    return None if pattern is None else lambda text: pattern.fullmatch(text) is not None


def read_header(line: str, delimiter: str | None = None) -> Layout | None:
    """Return the layout that a header line declares, None if the line is no header of sacct.

    Args:
        line: first line of an export.
        delimiter: configured delimiter; None = what stands beside the name JobID.
    """
    line = line.strip("\r\n\ufeff")
    if delimiter is None:
        found = _DELIMITER_AFTER.search(line) or _DELIMITER_BEFORE.search(line)
        delimiter = found.group(found.lastindex or 1) if found else None
    if not delimiter or delimiter not in line:
        return None
    names = tuple(n.strip().lower() for n in line.split(delimiter))
    named = [n for n in names if n]
    known = KNOWN.intersection(named)
    is_header = (
        ("jobid" in known or "jobidraw" in known)
        and not known.isdisjoint(_TELLING)
        and sum(n in known for n in named) >= _MIN_KNOWN * len(named)
        and "" not in names[:-1]
    )
    return Layout(names, delimiter) if is_header else None


def configured_layout(columns: tuple[str, ...], delimiter: str | None, head: str) -> Layout:
    """Return the layout of an export without a header, from its configured columns.

    Args:
        columns: names of sacct's columns, in order, case ignored.
        delimiter: configured delimiter; None = `|`.
        head: first lines; where each ends with the delimiter beyond the last column, it is `-p` output.
    """
    names, mark = tuple(c.strip().lower() for c in columns), delimiter or "|"
    lines = [line.rstrip("\r") for line in head.split("\n")[:-1][:50] if line.strip()]
    is_p = bool(lines) and all(line.endswith(mark) and line.count(mark) >= len(names) for line in lines)
    return Layout((*names, "") if is_p else names, mark)
