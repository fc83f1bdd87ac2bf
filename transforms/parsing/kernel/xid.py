"""Read NVIDIA Xid and SXid messages in the forms drivers have printed since MIG.

Sources: NVIDIA/open-gpu-kernel-modules, src/nvidia/src/kernel/diagnostics (`Xid (PCI:... GPU-I:.. GPU-CI:..): code,
pid=.., name=..`) and src/common/nvswitch/kernel (`SXid (PCI:...): code, Fatal|Non-fatal, Link nn ...`); NVIDIA's Xid
catalog, sheet for 144 to 150 (`UNIT Fatal|Nonfatal XC0 i0 Link nn (words)`); real lines in leptonai/gpud's test data.
"""

from __future__ import annotations

import re

from transforms.parsing.kernel.event import FATAL, INFO, NONFATAL, Event
from transforms.parsing.pci import pci_address

_XID = re.compile(
    r"(?i:NVRM: Xid) \((?P<device>[^ )]*)(?: GPU-I:(?P<gi>\d{1,9}))?(?: GPU-CI:(?P<ci>\d{1,9}))?[^)]*\): (?P<code>\d{1,9})\b(?:, ?(?P<rest>.*))?",
    re.ASCII | re.DOTALL,
)
_XID_BEGINS = re.compile(r"NVRM: Xid \(", re.IGNORECASE)
_SXID = re.compile(
    r"nvidia-nvswitch\d*: SXid \((?P<device>[^)]*)\): (?P<code>\d{1,9})\b(?:, ?(?P<rest>.*))?", re.ASCII | re.DOTALL
)
_PID = re.compile(r"pid='?(?P<pid><unknown>|\d+|[^,']*)'?(?:, |$)", re.ASCII)
# How the detail after `name=` begins; a process name may itself hold commas and blanks, and at most 15 bytes.
_DETAIL = re.compile(
    r", (?=Ch(?:annel)? |Graphics |Contained|Uncontained|Timeout |Row Remapper|NVLink|An uncorrect|DBE |MMU |[Ii]ntr |"
    r"errorString|GPU |Internal |Display|CE|Copy |Video |Fault|ENGINE |[A-Za-z_]+ Exception|FBHUB|Info |0x|[0-9a-f]{8}\b)"
)
_COMM_BYTES = 15

_NVLINK5_CODES = range(144, 151)
_NVLINK5 = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_]+)\s+(?P<severity>Fatal|Non-?[Ff]atal)\b.*?(?P<link>Link \d+)?(?: ?\(|$)", re.ASCII
)
_LINK = re.compile(r"\b[Ll]ink (\d+)", re.ASCII)
_NVLINK_SEVERITY = re.compile(r"\b(non-?fatal|fatal)\b", re.IGNORECASE)
_RECOVERY = 154
_RECOVERY_TO = re.compile(r"to 0x(?P<code>[0-9a-fA-F]+) \((?P<action>[^)]*)\)")
_UNITS = re.compile(
    r"\((?P<sm>GPC \d+, TPC \d+, SM \d+)\)|(?:Unc|C)ontained: (?P<contained>[^.(]+?) ?\(0x|"
    r"in the (?P<memory>framebuffer|[^,.]*?) at (?:physAddr )?0x[0-9a-f]+(?: (?P<partition>partition \d+, subpartition \d+))?|"
    r"(?P<gsp>GPU\d+ GSP)\b|(?P<sram>\bSRAM\b)",
    re.ASCII,
)


def from_xid(message: str) -> str | None:
    """Return the message from its Xid on, wherever that stands in it; None where there is none."""
    found = _XID_BEGINS.search(message)
    return message[found.start() :] if found else None


def read_xid(message: str) -> Event | None:
    """Return the Xid event with which `message` begins, or None."""
    found = _XID.match(message)
    if found is None:
        return None
    code, rest = int(found["code"]), found["rest"] or ""
    device = pci_address(found["device"])
    pid, process, detail = _process(rest)
    severity, unit = _severity_and_unit(code, detail)
    return Event(
        event_class="xid",
        device_kind="gpu",
        code=code,
        device=device,
        severity=severity,
        unit=unit,
        pid=pid,
        process=process,
        gpu_instance=int(found["gi"]) if found["gi"] else None,
        compute_instance=int(found["ci"]) if found["ci"] else None,
        flags=() if device else ("value_unreadable",),
    )


def read_sxid(message: str) -> Event | str | None:
    """Return the SXid event that `message` tells, the rule for its further lines of detail, or None."""
    found = _SXID.search(message)
    if found is None:
        return None
    rest = found["rest"] or ""
    if rest.startswith(("Severity ", "Data ")):  # two more lines of the report before
        return "sxid_detail"
    device = pci_address(found["device"])
    link = _LINK.search(rest)
    return Event(
        event_class="sxid",
        device_kind="nvswitch",
        code=int(found["code"]),
        device=device,
        severity=_severity(_NVLINK_SEVERITY.match(rest)),
        unit=f"Link {link[1]}" if link else None,
        flags=() if device else ("value_unreadable",),
    )


def _severity(found: re.Match[str] | None) -> str | None:
    if found is None:
        return None
    return FATAL if found[1].lower() == "fatal" else NONFATAL


def _process(rest: str) -> tuple[int | None, str | None, str]:
    """Return process id, process name and what follows them."""
    found = _PID.match(rest)
    if found is None:
        return None, None, rest
    pid = int(found["pid"]) if found["pid"].isdecimal() and len(found["pid"]) < 10 else None
    rest = rest[found.end() :]
    if not rest.startswith("name="):
        return pid, None, rest
    rest = rest[5:]
    split = _DETAIL.search(rest, 0)
    if split is None or split.start() > _COMM_BYTES:
        name, _, detail = rest.partition(", ")
    else:
        name, detail = rest[: split.start()], rest[split.end() :]
    return pid, None if name in {"<unknown>", "'<unknown>'", ""} else name, detail


def _severity_and_unit(code: int, detail: str) -> tuple[str | None, str | None]:
    if code in _NVLINK5_CODES and (found := _NVLINK5.match(detail)):
        unit = f"{found['unit']} {found['link']}" if found["link"] else found["unit"]
        return (FATAL if found["severity"] == "Fatal" else NONFATAL), unit
    if code == _RECOVERY:
        return _recovery(detail)
    if code == 74:
        link = _LINK.search(detail)
        return _severity(_NVLINK_SEVERITY.search(detail)), f"Link {link[1]}" if link else None
    found = _UNITS.search(detail)
    if found is None:
        return None, None
    parts = [
        v
        for v in (found["sm"], found["contained"], found["memory"], found["partition"], found["gsp"], found["sram"])
        if v
    ]
    return None, " ".join(parts)


def _recovery(detail: str) -> tuple[str | None, str | None]:
    """Return what the recovery action asks for.

    nvml.h: 0 none, 1 GPU reset, 2 node reboot, 3 drain P2P, 4 drain and reset; later drivers: 5 to 7, all resets.
    """
    found = _RECOVERY_TO.search(detail)
    if found is None:
        return None, None
    action = int(found["code"], 16)
    severity = INFO if action == 0 else NONFATAL if action == 3 else FATAL
    return severity, found["action"]
