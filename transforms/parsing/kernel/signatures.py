"""What kernel messages look like that tell of a hardware event: literals to find the lines, patterns to read them.

Each signature names where its form comes from. A line is looked at only if it holds one of the literals, so each literal must
stand in every form its pattern takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from transforms.parsing.kernel.event import CORRECTED, FATAL, INFO, NONFATAL, UNCORRECTED, Event
from transforms.parsing.kernel.xid import read_sxid, read_xid
from transforms.parsing.pci import ADDRESS, pci_address

CACHE = 1 << 15
MAX_DIGITS = 10

# Parts of the report of a lost GPU: address, device id, and what happened.
LOST_HEAD, LOST_MIDDLE, LOST_TAIL = "gpu_lost_head", "gpu_lost_middle", "gpu_lost_tail"


class Signature(NamedTuple):
    """One kind of message.

    Attributes:
        name: event class, or the rule by which the line is passed over.
        literals: bytes of which one stands in every such message.
        pattern: searched in the message; groups named like columns of Event fill them.
        device_kind: what `device` is; None = an ignored line.
        severity: what the message itself says; a function of the match where it varies.
    """

    name: str
    literals: tuple[bytes, ...]
    pattern: re.Pattern[str]
    device_kind: str | None
    severity: str | Callable[[re.Match[str]], str | None] | None = None


def _words(**severities: str) -> Callable[[re.Match[str]], str | None]:
    """Return a reader of the group `word`: its severity by the word's beginning, lower case."""

    def read(found: re.Match[str]) -> str | None:
        word = (found["word"] or "").lower()
        return next((s for start, s in severities.items() if word.startswith(start)), None)

    return read


def _aer(found: re.Match[str]) -> str:
    text = found["word"].lower()
    return CORRECTED if text.startswith("corr") else NONFATAL if "non-fatal" in text else FATAL


def _mce(found: re.Match[str]) -> str:
    # IA32_MCi_STATUS bit 61 (UC): Intel SDM volume 3B, section 17.3.2.2; the same bit on AMD.
    return UNCORRECTED if int(found["status"], 16) >> 61 & 1 else CORRECTED


def _sig(
    name: str,
    literals: str,
    pattern: str,
    kind: str | None,
    severity: str | Callable[[re.Match[str]], str | None] | None = None,
) -> Signature:
    needles = tuple(part.encode() for part in literals.split("|"))
    return Signature(name, needles, re.compile(pattern, re.ASCII), kind, severity)


_DEV = rf"(?P<device>{ADDRESS})"
# netdev_printk: `driver address interface: `; some drivers print the interface alone.
_NETDEV = rf"^(?:\w+ (?P<device>{ADDRESS})[ :]*)?(?:\w+: )?(?:(?P<unit>[\w.@-]+):? )?"
_RDMA = rf"^mlx[45]_(?:core|ib) {_DEV}:? (?:(?P<unit>[\w.-]+): )?(?:.* )?"
_MLX = rf"^mlx[45]_core {_DEV}"
_NVME = r"^nvme (?P<device>nvme\d+): "
_PROCESS = r"(?P<process>.{1,64}?)"

SIGNATURES: tuple[Signature, ...] = (
    # NVIDIA/open-gpu-kernel-modules: osinit.c (three lines printed at once), osapi.c, nv.c, rmapi.
    _sig("gpu_identity", "NVRM: GPU at PCI:", r"^NVRM: GPU at PCI:\S+ GPU-[0-9a-f]{8}-", None),
    _sig("gpu_crash_dump", "A GPU crash dump", r"^NVRM: .*A GPU crash dump", None),
    _sig("gpu_lost", "fallen off the bus", rf"^NVRM: (?:GPU (?:at )?(?:PCI:)?|The NVIDIA GPU ){_DEV}.*fallen off the bus", "gpu", FATAL),
    _sig(LOST_HEAD, "NVRM: The NVIDIA GPU ", rf"^NVRM: The NVIDIA GPU {_DEV}", "gpu", FATAL),
    _sig(LOST_MIDDLE, "installed in this system has", r"^NVRM: .*installed in this system has$", None),
    _sig(LOST_TAIL, "fallen off the bus", r"^NVRM: (?:GPU )?(?:has )?fallen off the bus", "gpu", FATAL),
    _sig("gpu_init_failed", "RmInitAdapter failed", rf"^NVRM: GPU (?:at )?(?:PCI:)?{_DEV}:? RmInitAdapter failed! (?P<unit>\(\S+\))?", "gpu", FATAL),
    _sig("driver_load", "NVRM: loading NVIDIA", r"^NVRM: loading NVIDIA .*Kernel Module(?: for \S+)?\s+(?P<unit>\d+\.\d+(?:\.\d+)*)", "node", INFO),
    # drivers/net/ethernet/mellanox/mlx5/core: en_main.c, events.c, health.c; drivers/infiniband/hw/mlx5 (MLNX_OFED prints the port's state);
    # netdev_* of bnxt, ice, i40e, ixgbe, e1000e, tg3; drivers/net/phy/phylink.c; drivers/net/bonding/bond_main.c.
    _sig("link_down", "Link down|Link DOWN|Cable unplugged", _RDMA + r"(?:Link (?:down|DOWN)|Port module event: module \d+, Cable unplugged)\b", "nic"),
    _sig("link_up", "Link up|Link ACTIVE", _RDMA + r"Link (?:up|ACTIVE)\b", "nic", INFO),
    _sig("link_down", "Link is Down|Link is down", _NETDEV + r"(?:NIC )?Link is [Dd]own\b", "nic"),
    _sig("link_up", "Link is Up|Link is up", _NETDEV + r"(?:NIC )?Link is [Uu]p\b", "nic", INFO),
    _sig("link_down", "definitely down", r"^(?P<unit>[\w.-]+): .*?(?:slave|interface) (?P<device>[\w.-]+)\)?.* definitely down", "nic"),
    _sig("link_up", "definitely up", r"^(?P<unit>[\w.-]+): .*?(?:slave|interface) (?P<device>[\w.-]+)\)?.* definitely up", "nic", INFO),
    _sig("cable_error", "Port module event[error]", _MLX + r":.* Port module event\[error\]: (?P<unit>module \d+), Cable error", "nic", NONFATAL),
    _sig("nic_fatal", "health compromised", _MLX + r":.* device's health compromised", "nic", FATAL),
    _sig("nic_fatal", "Fatal error ", _MLX + r":.* Fatal error (?P<code>\d+) detected", "nic", FATAL),
    _sig("nic_fatal", "Health issue observed", _MLX + r":.* Health issue observed, (?P<unit>.+?), severity", "nic", FATAL),
    _sig("nic_detail", " synd 0x0", _MLX + r":.* synd 0x0\b", None),
    _sig("nic_fatal", " synd 0x", _MLX + r":.* synd 0x[0-9a-f]+: (?P<unit>.+)", "nic", FATAL),
    _sig("nic_fatal", "health recovery f", _MLX + r":.* health recovery f(?:ailed|low aborted)", "nic", FATAL),
    _sig("nic_fatal", "atal reset event", rf"^bnxt_en {_DEV}.*: Firmware (?P<word>fatal|non-fatal) reset event", "nic", _words(fatal=FATAL, non=NONFATAL)),
    _sig("thermal", "High temperature on sensors", _MLX + r":.* High temperature on sensors", "nic", NONFATAL),
    # drivers/pci/pcie/aer.c, dpc.c; drivers/pci/hotplug/pciehp_ctrl.c. The root port's notice comes before the report itself.
    _sig("pcie_aer", "PCIe Bus Error: severity=", rf"{_DEV}: (?:AER: )?PCIe Bus Error: severity=(?P<word>\w+(?: \([^)]*\))?), type=(?P<unit>[^,]+)", "pcie", _aer),
    _sig("aer_notice", "error received|error message received", r"AER: .*error (?:message )?received", None),
    _sig("pcie_aer", "DPC: containment event", rf"{_DEV}: (?P<unit>DPC): containment event", "pcie", FATAL),
    _sig("pcie_link_down", "pciehp: Slot(", rf"{_DEV}: pciehp: (?P<unit>Slot\([^)]*\)): (?:Link Down|Card not present)", "pcie"),
    # arch/x86/kernel/cpu/mce/core.c; drivers/edac/mce_amd.c, edac_mc.c; mm/memory-failure.c; drivers/acpi/apei/ghes.c, cper.c.
    _sig("mce", "Machine Check", r"\[Hardware Error\]: CPU (?P<cpu>\d+): Machine Check(?: Exception)?: [0-9a-f]+ Bank (?P<code>\d+): (?P<status>[0-9a-f]{16})", "cpu", _mce),
    _sig("mce", "_STATUS[", r"\[Hardware Error\]: CPU:(?P<cpu>\d+) .*MC(?P<code>\d+)_STATUS\[[^\]]*\]: 0x(?P<status>[0-9a-f]{16})", "cpu", _mce),
    _sig("edac", "EDAC MC", r"EDAC (?P<unit>MC\d+): (?:\d+ )?(?P<word>[CU]E) (?:.*? on (?P<device>\S+))?", "memory", _words(ce=CORRECTED, ue=UNCORRECTED)),
    _sig("memory_failure", "due to hardware memory corruption", rf"Killing {_PROCESS}:(?P<pid>\d+) due to hardware memory corruption", "memory", UNCORRECTED),
    _sig("memory_failure", "Memory failure: 0x", r"^Memory failure: (?P<unit>0x[0-9a-f]+): recovery action", "memory", UNCORRECTED),
    _sig("memory_failure", "Uncorrected hardware memory error", r"Uncorrected hardware memory error in user-access", "memory", UNCORRECTED),
    _sig("firmware_error", "event severity: ", r"\[Hardware Error\]: event severity: (?P<word>\w+)", "node", _words(fatal=FATAL, recov=NONFATAL, corr=CORRECTED, info=INFO)),
    # drivers/nvme/host/pci.c, core.c; block/blk-core.c; fs/buffer.c.
    _sig("nvme", "controller is down", _NVME + r"controller is down; will reset", "disk", NONFATAL),
    _sig("nvme", " timeout, ", _NVME + r"I/O (?:tag )?\d+ .*QID \d+ timeout, (?P<word>\w+)", "disk", _words(completion=INFO, abort=NONFATAL, reset=NONFATAL, disable=NONFATAL)),
    _sig("nvme", "after reset failure|after probe failure|not ready; aborting reset", _NVME + r"(?:Disabling device after reset failure|Removing after probe failure|Device not ready; aborting reset)", "disk", FATAL),
    _sig("nvme", "I/O Error (sct ", r"^(?P<device>nvme\d+n\d+): .*I/O Error (?P<unit>\(sct \S+ / sc \S+\))", "disk", NONFATAL),
    _sig("block_io", "error, dev ", r"(?:I/O|critical [a-z ]+|protection|timeout|device [a-z]+|recoverable transport|reservation conflict) error, dev (?P<device>[^\s,]+)", "disk"),
    _sig("block_io", "Buffer I/O error on dev", r"^Buffer I/O error on dev(?:ice)? (?P<device>[^\s,]+)", "disk"),
    # fs/ext4/super.c, fs/xfs/xfs_message.c, fs/btrfs/messages.c, net/sunrpc/clnt.c; lustre ptlrpc import.c.
    _sig("filesystem_error", "EXT4-fs error|BTRFS error", r"^(?:EXT4-fs|BTRFS) error \(device (?P<device>[^)]+)\)", "filesystem"),
    _sig("filesystem_error", "Remounting filesystem read-only", r"^\S+ \((?:device )?(?P<device>[^)]+)\): Remounting filesystem read-only", "filesystem", FATAL),
    _sig("filesystem_error", "XFS (", r"^XFS \((?P<device>[^)]+)\): .*(?:I/O error|[Cc]orruption|[Ss]hutting down filesystem|has been shut down)", "filesystem"),
    _sig("filesystem_error", "not responding", r"^nfs: server (?P<device>\S+) not responding, (?P<unit>still trying|timed out)", "filesystem"),
    _sig("filesystem_error", "This client was evicted by", r"^LustreError: .*?(?P<device>[\w-]+): This client was evicted by (?P<unit>[\w-]+)", "filesystem"),
    _sig("filesystem_error", "was lost; in progress", r"^Lustre: (?P<device>[\w-]+): Connection to (?P<unit>\S+) .*was lost; in progress", "filesystem", NONFATAL),
    # kernel/panic.c; arch/x86/mm/fault.c, kernel/traps.c; arch/arm64/mm/fault.c; lib/bug.c. The die line (`[#1]`) follows the first.
    _sig("kernel_panic", "Kernel panic - not syncing", r"Kernel panic - not syncing(?:: (?P<unit>.+))?", "node", FATAL),
    _sig("process_fault", "segfault at ", rf"^{_PROCESS}\[(?P<pid>\d+)\]: segfault at .*?(?: in (?P<unit>[^\s\[]+)\[|$)", "node"),
    _sig("process_fault", "traps: ", rf"^traps: {_PROCESS}\[(?P<pid>\d+)\] (?:trap|general protection) .*?(?: in (?P<unit>[^\s\[]+)\[|$)", "node"),
    _sig("kernel_oops", "BUG: unable to handle|BUG: kernel NULL|Unable to handle kernel|kernel BUG at", r"BUG: unable to handle |BUG: kernel NULL pointer|Unable to handle kernel |kernel BUG at ", "node", FATAL),
    _sig("kernel_oops", "general protection fault", r"^(?:Oops: )?general protection fault", "node", FATAL),
    # kernel/watchdog.c, watchdog_hld.c; kernel/rcu/tree_stall.h; kernel/hung_task.c; mm/oom_kill.c.
    _sig("soft_lockup", "BUG: soft lockup", rf"BUG: soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<unit>\d+s)!(?: \[{_PROCESS}:(?P<pid>\d+)\])?", "cpu", FATAL),
    _sig("hard_lockup", "hard LOCKUP on cpu", r"hard LOCKUP on cpu (?P<cpu>\d+)", "cpu", FATAL),
    _sig("rcu_stall", "detected stall|detected expedited stall", r"INFO: (?P<unit>rcu_\w+) (?:self-)?detected (?:expedited )?stalls?\b", "node"),
    _sig("hung_task", "blocked for more than", rf"INFO: task {_PROCESS}:(?P<pid>\d+) blocked for more than (?P<unit>\d+ seconds)", "node"),
    _sig("oom_kill", "ut of memory: Kill", r"(?P<unit>Memory cgroup)? ?[Oo]ut of memory: Kill(?:ed)? process (?P<pid>\d+)(?:, UID \d+,)? \((?P<process>[^)]*)\)", "node"),
    # init/version.c; kernel/reboot.c; arch/x86/kernel/cpu/mce/therm_throt.c.
    _sig("boot", "Linux version ", r"^Linux version (?P<unit>\S+)", "node", INFO),
    _sig("reboot", "reboot: ", r"^reboot: (?P<unit>Restarting system|Power(?:ing)? (?:down|off)|System halted)", "node", INFO),
    _sig("thermal", "temperature above threshold", r"CPU(?P<cpu>\d+): (?P<unit>Core|Package) temperature above threshold", "cpu", NONFATAL),
)

NEEDLES: tuple[bytes, ...] = tuple(
    dict.fromkeys(
        [b"NVRM: Xid", b"SXid (", *(literal for signature in SIGNATURES for literal in signature.literals)],
    ),
)
_BY_LITERAL = tuple((literal.decode(), signature) for signature in SIGNATURES for literal in signature.literals)


@lru_cache(CACHE)
def read_message(message: str) -> Event | str | None:
    """Return the event that a message tells, the name of the rule by which it is passed over, or None for no signature.

    The event classes LOST_HEAD and LOST_TAIL are parts of one event told over several lines.
    """
    if message.startswith("NVRM: Xid ("):
        return read_xid(message)
    if "SXid (" in message:
        return read_sxid(message)
    for literal, signature in _BY_LITERAL:
        if literal in message and (found := signature.pattern.search(message)):
            return signature.name if signature.device_kind is None else _event(signature, signature.device_kind, found)
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text and len(text) < MAX_DIGITS else None


def _event(signature: Signature, device_kind: str, found: re.Match[str]) -> Event:
    groups = found.groupdict()
    device = groups.get("device")
    if cpu := groups.get("cpu"):
        device = f"cpu{cpu}"
    elif device:
        device = pci_address(device) or device
    severity = signature.severity(found) if callable(signature.severity) else signature.severity
    return Event(
        signature.name,
        device_kind,
        code=_number(groups.get("code")),
        device=device,
        severity=severity,
        unit=groups.get("unit"),
        pid=_number(groups.get("pid")),
        process=groups.get("process"),
    )
