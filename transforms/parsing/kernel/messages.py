"""Read the message of a kernel log line by the signatures, and tell which literals find such lines."""

from __future__ import annotations

import re
from functools import lru_cache

from transforms.parsing.kernel.event import Event
from transforms.parsing.kernel.signatures import SIGNATURES, Signature
from transforms.parsing.kernel.xid import from_xid, read_sxid, read_xid
from transforms.parsing.pci import pci_address

CACHE = 1 << 12
_MAX_DIGITS = 10
_XIDS, _SXID = ("NVRM: Xid", "NVRM: xid", "NVRM: XID", "nvrm: xid"), "SXid"

UNREADABLE_XID = "unreadable_xid"

NEEDLES: tuple[bytes, ...] = tuple(
    dict.fromkeys(
        [*(x.encode() for x in _XIDS), _SXID.encode(), *(text.encode() for s in SIGNATURES for text in s.literals)]
    )
)
"""One of them stands in every line that read_message knows."""

_BY_LITERAL = tuple((literal, signature) for signature in SIGNATURES for literal in signature.literals)


@lru_cache(CACHE)
def read_message(message: str) -> Event | str | None:
    """Return the event that a message tells, the name of the rule by which it is passed over, or None for no signature.

    The event classes LOST_HEAD and LOST_TAIL, and the rule LOST_MIDDLE, are parts of one event told over several lines. An Xid
    counts wherever it stands, and is never passed over: where it cannot be read the answer is UNREADABLE_XID.
    """
    if (xid := from_xid(message)) is not None:
        return read_xid(xid) or UNREADABLE_XID
    if _SXID in message:
        return read_sxid(message)
    for literal, signature in _BY_LITERAL:
        if literal in message and (found := signature.pattern.search(message)):
            return signature.name if signature.device_kind is None else _event(signature, signature.device_kind, found)
    return None


# What loggers and consoles put before a message that has a header already: the tag again, a level, a stamp, the caller
# (CONFIG_PRINTK_CALLER).
_PREFIXES = re.compile(
    r"(?:\s*(?:kernel(?:\[\d*\])?:|<\d{1,3}>|\[ *\d+\.\d+\]|\[ *[TC]\d+\]|"
    r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]))+\s*",
    re.ASCII,
)


def bare_message(message: str) -> str:
    """Return a message without what was put before it; from its Xid on, where it has one."""
    if (xid := from_xid(message)) is not None:
        return xid
    found = _PREFIXES.match(message)
    return message[found.end() :] if found else message


def _event(signature: Signature, device_kind: str, found: re.Match[str]) -> Event:
    groups = found.groupdict()
    unit, device = groups.get("unit"), groups.get("device")
    if cpu := groups.get("cpu"):
        device = f"cpu{cpu}"
    elif device:
        device = pci_address(device) or device
    elif device_kind == "nic":  # the interface is all that is known of it
        device = unit
    return Event(
        signature.name,
        device_kind,
        code=_number(groups.get("code")),
        device=device,
        severity=signature.severity(found) if callable(signature.severity) else signature.severity,
        unit=unit.strip() if unit else None,
        pid=_number(groups.get("pid")),
        process=groups.get("process"),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and len(text) < _MAX_DIGITS else None
