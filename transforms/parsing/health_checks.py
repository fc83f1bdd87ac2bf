"""What a failed node health check is about: the kind of thing checked, the check, the device.

The kinds are a closed list, by what is checked. A check that tells of a setting (clocks, persistence mode, VBIOS), of a full
file system, of something slow (bandwidth tests), or that ran out of time is `other`: nothing was found to be broken. Sources: the checks of
mej/nhc (scripts/*.nhc), Azure/azurehpc-health-checks (customTests/*.nhc) and NVIDIA/deepops (roles/nhc).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from transforms.parsing.kernel.event import CORRECTED, UNCORRECTED
from transforms.parsing.pci import ADDRESS, pci_address

KINDS: dict[str, str] = {
    "gpu": "gpu",
    "gpu_memory": "gpu",
    "gpu_thermal": "gpu",
    "nvlink": "gpu",
    "network_link": "nic",
    "nic": "nic",
    "disk": "disk",
    "filesystem": "filesystem",
    "memory": "memory",
    "cpu": "cpu",
    "power": "node",
    "process": "node",
    "other": "node",
}
"""Kind of thing checked, and the kind of device it is about."""
EVENT_CLASSES = {kind: f"health_check_failed_{kind}" for kind in KINDS}


class Failure(NamedTuple):
    """A failed check.

    Attributes:
        kind: one of `KINDS`.
        check: name of the check, or None where it is not told.
        device: PCI address, GPU index, adapter, disk or mount point that the message names, or None.
        severity: corrected or uncorrected where the message says so of an error it counts.
    """

    kind: str
    check: str | None
    device: str | None
    severity: str | None


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


# The check could not do its work, or found no more than a setting.
_NOTHING_FOUND = _words(
    r"timed? ?out|terminated by signal|unable to terminate|prior nhc instance|no such check|unable to run check"
    r"|permission denied|invalid argument|version mismatch|bandwidth|_bw(?:_|\b)|persistence|vbios|drv_version|driver_version|app_?clocks|(?<![a-z])fs_(?:i?used|i?free|inodes|size)"
)
_GPU = r"gpu|nvidia|nv_|nvsmi|nvmsi|nvidia-smi|dcgm|cuda|rocm|xid"
# By the check's name first; the first that fits holds.
_BY_CHECK: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, _words(pattern))
    for kind, pattern in (
        ("nvlink", r"nvlink|nvswitch|xgmi|fabric_?manager"),
        ("gpu_memory", r"ecc|remap|retire|gpu_?mem|hbm"),
        ("gpu_thermal", r"gpu.*(?:temp|therm|throttl)|(?:temp|therm|throttl).*gpu"),
        ("gpu", _GPU),
        ("nic", r"(?:ib|hca|nic|roce)_(?:count|dev|present)"),
        ("network_link", r"hw_ib|(?:^|_)ib_|ibstat|ipoib|opa|roce|rdma|link_|_link|net_ping|net_socket|ping"),
        ("nic", r"hw_eth|hw_gm|nic|hca|mlx"),
        ("disk", r"nvme|smart|disk|raid|ssd"),
        ("filesystem", r"fs_|mount|gpfs|lustre|beegfs|nfs|cvmfs|file_"),
        ("memory", r"mem|swap|mce|dimm|numa|edac"),
        ("cpu", r"cpu|topology"),
        ("power", r"psu|power|ipmi_sel"),
        ("process", r"ps_|proc|daemon|service|systemd"),
    )
)
# Where the name says nothing (check_cmd_output, none at all), or too little: the message.
_BY_MESSAGE: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, _words(pattern))
    for kind, pattern in (
        ("nvlink", r"nvlink|nvswitch"),
        ("gpu_memory", r"gpu.*(?:\becc\b|row.?remap|retired)|(?:\becc\b|row.?remap|retired).*gpu|double.bit"),
        ("gpu_thermal", r"gpu.*(?:overheat|thermal|temperature)|thermal.*gpu"),
        ("gpu", r"\bgpus?\b|nvidia|dcgm|\bxid\b|fallen off the bus"),
        ("network_link", r"\bib port|infiniband|link (?:is )?(?:down|flap)|\blinkup\b|mlx5_[0-9]"),
        ("nic", r"ethernet device|\bhca\b"),
        ("disk", r"nvme|smart\b|i/o error|\bdisk\b|\braid\b"),
        ("filesystem", r"mount|read-only file|stale file|gpfs|lustre"),
        ("memory", r"\becc\b|\bdimm|\bram\b|\bswap\b|memory"),
        ("cpu", r"\bcpus?\b|socket count"),
        ("power", r"power|\bpsu\b"),
        ("process", r"process|daemon|not running"),
    )
)
_REFINED: dict[str, tuple[str, ...]] = {"gpu": ("nvlink", "gpu_memory", "gpu_thermal"), "cpu": ("memory",)}
"""Kinds that the message may make more exact."""

_CHECK = re.compile(r"\b((?:check|collect)_[A-Za-z0-9_]+)")
_ADDRESS = re.compile(rf"(?<![0-9a-fA-F])(?<![0-9a-fA-F]:){ADDRESS}(?!:?[0-9a-fA-F])")
_GPU_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GPU_INDEX = _words(r"\bGPU(?: (?:id|index))?[ #:=]{1,2}([0-9]{1,2})\b(?! (?:gpus?|expected))")
_ADAPTER = re.compile(
    r"\b((?:mlx[45]_\w*?[0-9]+|hfi1_[0-9]+|bnxt_re[0-9]+|irdma[0-9]+|efa_[0-9]+|ib[0-9]+|eth[0-9]+|en[opsx]\w+))(?::[0-9]+)?\b"
)
_DISK = re.compile(r"\b(nvme[0-9]+(?:n[0-9]+)?|sd[a-z]{1,2}|md[0-9]+)\b")
_PATH = re.compile(r"(?<![\w/])(/[\w./+@-]*)")
_CORRECTED = _words(r"(?<!un)(?<!un-)correct(?:ed|able)")
_UNCORRECTED = _words(r"un-?correct(?:ed|able)|double.bit")


def failure(message: str) -> Failure:
    """Return what a failed check says.

    Args:
        message: what NHC says of it, without `Health check failed:`, for example
            `check_hw_ib:  No IB port mlx5_0:1 is ACTIVE (LinkUp 200 Gb/sec).`
    """
    found = _CHECK.search(message)
    check = found[1] if found else None
    kind = _kind(check, message)
    return Failure(kind, check, _device(kind, message), _severity(kind, message))


def _kind(check: str | None, message: str) -> str:
    if _NOTHING_FOUND.search(message):
        return "other"
    rest = message.replace(check, "") if check else message
    by_message = next((kind for kind, pattern in _BY_MESSAGE if pattern.search(rest)), "other")
    by_check = next((k for k, p in _BY_CHECK if check and p.search(check.partition("_")[2])), None)
    if by_check is None or by_message in _REFINED.get(by_check, ()):
        return by_message
    return by_check


def _device(kind: str, message: str) -> str | None:
    """Return the device that a message names; where it names several, the first."""
    if found := _ADDRESS.search(message):
        return pci_address(found[0])
    of = KINDS[kind]
    if of == "gpu":
        if found := _GPU_UUID.search(message):
            return found[0]
        return found[1] if (found := _GPU_INDEX.search(message)) else None
    patterns = {"nic": _ADAPTER, "disk": _DISK, "filesystem": _PATH}
    found = patterns[of].search(message) if of in patterns else None
    return found[1] if found else None


def _severity(kind: str, message: str) -> str | None:
    if kind not in {"gpu_memory", "memory"}:
        return None
    if _CORRECTED.search(message) and not re.search(r"uncorrectable/correctable", message, re.IGNORECASE):
        return CORRECTED
    return UNCORRECTED if _UNCORRECTED.search(message) else None
