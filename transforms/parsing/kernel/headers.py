"""Split a line of a kernel log into stamp, host, tag, monotonic stamp and message.

Forms: RFC 3164 (`Nov 30 02:53:44 host kernel: ...`), RFC 5424, ISO stamps as rsyslog and journalctl print them,
journalctl's short-full, short-unix and short-monotonic; dmesg with ctime, ISO (decimal comma), reltime, delta and plain
monotonic stamps, each also behind `-x`'s facility and level or `-r`'s `<6>`; records of /dev/kmsg.

Sources: RFC 3164 section 4.1, RFC 5424 section 6, dmesg(1) (--time-format, -x, -r), journalctl(1) (--output),
Documentation/ABI/testing/dev-kmsg of Linux.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from transforms.parsing.log_stamps import MONTHS


class Clock(Enum):
    """How the stamp of a line is to be read; NONE = the form has no wall time, ABSENT = no header at all."""

    ISO = "iso"
    YEARLESS = "yearless"
    CTIME = "ctime"
    UNIX = "unix"
    RELTIME = "reltime"
    DELTA = "delta"
    NONE = "none"
    ABSENT = "absent"


class Header(NamedTuple):
    """A line taken apart.

    Attributes:
        clock: how to read `stamp`.
        stamp: time stamp as printed; empty where the form has none.
        host: host the line names, or None.
        is_kernel: False where a tag or facility says that another program wrote the line.
        monotonic_us: microseconds since boot, or None.
        message: what was logged, without surrounding blanks.
    """

    clock: Clock
    stamp: str
    host: str | None
    is_kernel: bool
    monotonic_us: int | None
    message: str


_MONTH = "(?:" + "|".join(MONTHS) + ")"
_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d"
_FRACTION = r"[.,]\d{1,9}"
_PRI = r"(?:<\d{1,3}>)?"

FORMS: tuple[tuple[Clock, re.Pattern[str]], ...] = tuple(
    (clock, re.compile(pattern, re.ASCII | re.DOTALL))
    for clock, pattern in (
        (
            Clock.YEARLESS,
            rf"{_PRI}(?P<stamp>{_MONTH} (?: \d|\d\d)(?: \d{{4}})? {_TIME}(?:{_FRACTION})?) (?P<syslog>.*)",
        ),
        (
            Clock.ISO,
            r"<\d{1,3}>1 (?P<stamp>\S+) (?P<host>\S+) (?P<app>\S+) \S+ \S+ (?:-|(?:\[(?:[^\]\\]|\\.)*\])+) ?(?P<msg>.*)",
        ),
        (Clock.ISO, rf"(?P<stamp>{_DATE}T{_TIME},\d{{1,9}}(?:Z|[+-]\d\d:?\d\d)?) (?P<msg>.*)"),
        (Clock.ISO, rf"{_PRI}(?P<stamp>{_DATE}[T ]{_TIME}(?:\.\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)?) (?P<syslog>.*)"),
        (Clock.CTIME, rf"\[(?P<stamp>[A-Z][a-z]{{2}} {_MONTH} [ \d]\d {_TIME} \d{{4}})(?: <[ \d.]+>)?\] ?(?P<msg>.*)"),
        (Clock.NONE, rf"{_PRI}(?P<msg>\[ *\d{{1,12}}\.\d{{6}}(?: <[ \d.]+>)?\].*)"),
        (Clock.NONE, r"\d+,\d+,(?P<us>\d{1,18}),[^;]*;(?P<msg>.*)"),
        (Clock.RELTIME, rf"\[(?P<stamp>{_MONTH} ?\d{{1,2}} \d\d:\d\d)\] ?(?P<msg>.*)"),
        (Clock.DELTA, r"\[ *\+\d+\.\d+\] ?(?P<msg>.*)"),
        (
            Clock.ISO,
            rf"[A-Z][a-z]{{2}} (?P<stamp>{_DATE} {_TIME}(?:\.\d{{1,9}})?) (?P<zone>[A-Z]{{3,5}}) (?P<syslog>.*)",
        ),
        (Clock.UNIX, r"(?P<stamp>\d{10}\.\d{1,6}) (?P<syslog>.*)"),
    )
)
# The form of nearly every line of a syslog file, in one pattern; it gives what the longer way gives (a test holds it).
_USUAL = re.compile(
    rf"(?:(?P<old>{_MONTH} (?: \d|\d\d) {_TIME})|(?P<iso>{_DATE}T{_TIME}(?:\.\d{{1,9}})?(?:Z|[+-]\d\d:\d\d))) "
    r"(?P<host>[A-Za-z0-9][\w.-]*) kernel: (?:\[ *(?P<seconds>\d{1,12})\.(?P<micros>\d{6})\] )?(?P<msg>[A-Za-z].*\S)",
    re.ASCII | re.DOTALL,
)
_LEVEL = re.compile(r"(?P<facility>[a-z]+\d?) *:(?:emerg|alert|crit|err|warn|notice|info|debug) *: ?", re.ASCII)
_TAG = re.compile(r"(?P<tag>[^\s:\[\]]+)(?:\[[^\]]*\])?: ?(?P<msg>.*)", re.DOTALL)
_MONOTONIC = re.compile(r"\s*\[ *(\d{1,12})\.(\d{6})(?: <[ \d.]+>)?\](?:\s*\[ *[TC]\d+\])? ?(.*)", re.ASCII | re.DOTALL)
_SHORT_MONOTONIC = re.compile(r"(?P<host>[A-Za-z0-9][\w.-]*) kernel: (?P<msg>.*)", re.ASCII | re.DOTALL)
_REPEATED = re.compile(r"message repeated \d+ times: \[ ?(.*)\]\s*", re.DOTALL)


class HeaderReader:
    """Splits lines; remembers which form the last line had, since a file rarely mixes them."""

    def __init__(self) -> None:
        self._forms = list(FORMS)

    def split(self, line: str) -> Header | None:
        """Return the parts of `line`, or None where it has no header of a known form."""
        if (found := _USUAL.fullmatch(line)) and not found["msg"].startswith("message repeated"):
            old, iso, host, seconds, micros, message = found.groups()
            monotonic = int(seconds + micros) if seconds else None
            return Header(Clock.YEARLESS if old else Clock.ISO, old or iso, host, True, monotonic, message)
        return self.split_any(line)

    def split_any(self, line: str) -> Header | None:
        """Return what `split` returns, by trying every form."""
        is_kernel = True
        if level := _LEVEL.match(line):
            is_kernel = level["facility"] == "kern"
            line = line[level.end() :]
        for i, (clock, pattern) in enumerate(self._forms):
            found = pattern.fullmatch(line)
            if found is not None:
                if i:
                    self._forms.insert(0, self._forms.pop(i))
                return _parts(clock, found.groupdict(), is_kernel)
        return None


def has_headers(head: bytes, lines: int = 50) -> bool:
    """Tell whether one of the first `lines` lines of an export has a header."""
    reader = HeaderReader()
    texts = head.decode("utf-8", "replace").splitlines()[:lines]
    return any(reader.split(text) is not None for text in texts)


def _parts(clock: Clock, groups: dict[str, str | None], is_kernel: bool) -> Header:
    stamp = groups.get("stamp") or ""
    host, message = groups.get("host"), groups.get("msg") or ""
    if groups.get("zone") in {"UTC", "GMT"}:  # other abbreviations name the local zone, which is configured
        stamp += "Z"
    if (app := groups.get("app")) is not None:
        is_kernel, message = app == "kernel", message.lstrip("\ufeff")
        if stamp == "-":  # NILVALUE
            clock, stamp = Clock.NONE, ""
    if (syslog := groups.get("syslog")) is not None:
        host, is_kernel, message = _syslog(syslog)
    monotonic = int(us) if (us := groups.get("us")) else None
    if repeated := _REPEATED.fullmatch(message):
        message = repeated[1]
    if found := _MONOTONIC.fullmatch(message):
        monotonic = int(found[1] + found[2])
        message = found[3]
        if clock is Clock.NONE and (short := _SHORT_MONOTONIC.fullmatch(message)):
            host, message = short["host"], short["msg"]
    return Header(clock, stamp, None if host == "-" else host, is_kernel, monotonic, message.strip())


def _syslog(text: str) -> tuple[str | None, bool, str]:
    """Return host, whether the kernel wrote it, and message of what follows a syslog stamp."""
    if text.startswith("kernel: "):  # written without a host
        return None, True, text[8:]
    if text.startswith("NVRM: "):
        return None, True, text
    host, _, tail = text.partition(" ")
    if tail.startswith("kernel: "):
        return host, True, tail[8:]
    tag = _TAG.fullmatch(tail)
    if tag is None:
        return host, False, tail
    if tag["tag"] == "NVRM":  # collectors that drop the tag leave the driver's own prefix
        return host, True, tail
    return host, tag["tag"] == "kernel", tag["msg"]
