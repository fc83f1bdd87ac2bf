"""Read the message of a kernel log line by the signatures, and tell which literals find such lines."""

from __future__ import annotations

import re
from functools import lru_cache

from transforms.parsing.kernel.event import Event
from transforms.parsing.kernel.signatures import SIGNATURES, Signature
from transforms.parsing.kernel.xid import read_sxid, read_xid
from transforms.parsing.pci import pci_address

CACHE = 1 << 12
_MAX_DIGITS = 10
_XID, _SXID = "NVRM: Xid", "SXid"

NEEDLES: tuple[bytes, ...] = tuple(
    dict.fromkeys([_XID.encode(), _SXID.encode(), *(text.encode() for s in SIGNATURES for text in s.literals)])
)
"""One of them stands in every line that read_message knows."""

_BY_LITERAL = tuple((literal, signature) for signature in SIGNATURES for literal in signature.literals)


@lru_cache(CACHE)
def read_message(message: str) -> Event | str | None:
    """Return the event that a message tells, the name of the rule by which it is passed over, or None for no signature.

    The event classes LOST_HEAD and LOST_TAIL, and the rule LOST_MIDDLE, are parts of one event told over several lines.
    """
    if message.startswith(_XID):
        return read_xid(message)
    if _SXID in message:
        return read_sxid(message)
    for literal, signature in _BY_LITERAL:
        if literal in message and (found := signature.pattern.search(message)):
            return signature.name if signature.device_kind is None else _event(signature, signature.device_kind, found)
    return None


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
