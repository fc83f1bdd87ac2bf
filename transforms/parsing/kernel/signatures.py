"""What kernel messages look like that tell of a hardware event: literals to find the lines, patterns to read them.

A line is looked at only if it holds one of the literals, so one of a signature's literals must stand in every form that its
pattern takes. Comments name where the forms come from: files of Linux unless said otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from transforms.parsing.kernel.event import CORRECTED, FATAL, INFO, NONFATAL, UNCORRECTED
from transforms.parsing.pci import ADDRESS

# Parts of the report of a lost GPU: address, device id, and what happened.
LOST_HEAD, LOST_MIDDLE, LOST_TAIL = "gpu_lost_head", "gpu_lost_middle", "gpu_lost_tail"

Severity = str | Callable[[re.Match[str]], str | None] | None


class Signature(NamedTuple):
    """One kind of message.

    Attributes:
        name: event class, or the rule by which the line is passed over.
        literals: of which one stands in every such message.
        pattern: searched in the message; groups named like columns of Event fill them, `cpu` fills device.
        device_kind: what `device` is; None = the line is passed over.
        severity: what the message itself says; a function of the match where it varies.
    """

    name: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    device_kind: str | None
    severity: Severity = None


def _words(**severities: str) -> Callable[[re.Match[str]], str | None]:
    """Return a reader of the group `word`: its severity by how the word begins."""

    def read(found: re.Match[str]) -> str | None:
        word = (found["word"] or "").lower()
        return next((s for start, s in severities.items() if word.startswith(start)), None)

    return read


def _aer(found: re.Match[str]) -> str:
    word = found["word"].lower()
    return CORRECTED if word.startswith("corr") else NONFATAL if "non-fatal" in word else FATAL


def _mce(found: re.Match[str]) -> str:
    # Bit 61 (UC) of IA32_MCi_STATUS: Intel SDM volume 3B, machine-check architecture; the same bit on AMD.
    return UNCORRECTED if int(found["status"], 16) >> 61 & 1 else CORRECTED


def _sig(name: str, literals: str, pattern: str, kind: str | None, severity: Severity = None) -> Signature:
    return Signature(name, tuple(literals.split("|")), re.compile(pattern, re.ASCII), kind, severity)


_DEV = rf"(?P<device>{ADDRESS})"
# netdev_printk: `driver address interface: `; some drivers print the interface alone, or after their own name.
_NETDEV = rf"^(?:\w+ {_DEV}[ :]+|\w+: (?=[\w.@-]+:? (?:NIC )?Link))?(?P<unit>[\w.@-]+):? (?:NIC )?"
_BOND = r"^(?P<unit>[\w.-]+): "
_MLX = rf"^mlx[45]_core {_DEV}"
_PORT = _MLX + r":?(?: (?P<unit>[\w.-]+):)? "
_NVRM_GPU = rf"^NVRM: GPU (?:at )?(?:PCI:)?{_DEV}:? "
_NVME = r"^nvme (?P<device>nvme\d+): "
_PROCESS = r"(?P<process>.{1,64}?)"
_BLOCK = (
    r"(?:I/O|critical [a-z ]+|protection|timeout|device [a-z]+|recoverable transport|reservation conflict) error, dev "
)
_HOW = _words(fatal=FATAL, non=NONFATAL, recov=NONFATAL, corr=CORRECTED, info=INFO)

# fmt: off
SIGNATURES: tuple[Signature, ...] = (
    # NVIDIA/open-gpu-kernel-modules: osinit.c (the report in three lines, RmInitAdapter), osapi.c, nv.c.
    _sig("gpu_identity", "NVRM: GPU at PCI:", r"^NVRM: GPU at PCI:\S+ GPU-[0-9a-f]{8}-", None),
    _sig("gpu_crash_dump", "A GPU crash dump", r"^NVRM: .*A GPU crash dump", None),
    _sig("gpu_lost", "fallen off the bus", rf"^NVRM: The NVIDIA GPU {_DEV}.*fallen off the bus", "gpu"),
    _sig("gpu_lost", "fallen off the bus", _NVRM_GPU + r"(?:GPU )?has fallen off the bus", "gpu"),
    _sig(LOST_HEAD, "NVRM: The NVIDIA GPU ", rf"^NVRM: The NVIDIA GPU {_DEV}", "gpu"),
    _sig(LOST_MIDDLE, "installed in this system has", r"^NVRM: .*installed in this system has$", None),
    _sig(LOST_TAIL, "fallen off the bus", r"^NVRM: (?:GPU )?(?:has )?fallen off the bus", "gpu"),
    _sig("gpu_init_failed", "RmInitAdapter failed", _NVRM_GPU + r"RmInitAdapter failed! ?(?P<unit>\(\S+\))?", "gpu"),
    _sig("driver_load", "NVRM: loading NVIDIA", r"^NVRM: loading NVIDIA .*Kernel Module(?: for \S+)?\s+(?P<unit>\d+\.\d+(?:\.\d+)*)", "node"),
    # drivers/net/ethernet/mellanox/mlx5/core: en_main.c, events.c, health.c (MLNX_OFED prints a port's state as well).
    _sig("link_down", "Link down|Link DOWN|Link is Down", _PORT + r"(?:Port: \d+ )?Link (?:down|DOWN|is Down)\b", "nic"),
    _sig("link_up", "Link up|Link ACTIVE|Link is Up", _PORT + r"(?:Port: \d+ )?Link (?:up|ACTIVE|is Up)\b", "nic"),
    _sig("link_down", "Cable unplugged", _MLX + r":.*Port module event: (?P<unit>module \d+), Cable unplugged", "nic"),
    _sig("cable_error", "Port module event[error]", _MLX + r":.*Port module event\[error\]: (?P<unit>module \d+), Cable error", "nic", NONFATAL),
    _sig("nic_fatal", "health compromised", _MLX + r":.* device's health compromised", "nic"),
    _sig("nic_fatal", "Fatal error ", _MLX + r":.* Fatal error (?P<code>\d+) detected", "nic"),
    _sig("nic_fatal", "Health issue observed", _MLX + r":.* Health issue observed, (?P<unit>.+?), severity", "nic"),
    _sig("nic_detail", " synd 0x0", _MLX + r":.* synd 0x0\b", None),
    _sig("nic_fatal", " synd 0x", _MLX + r":.* synd 0x[0-9a-f]+: (?P<unit>.+)", "nic"),
    _sig("nic_fatal", "Will cause a leak of a command resource", _MLX + r":.* (?P<unit>\w+\(0x[0-9a-f]+\)) timeout\. Will cause a leak", "nic", NONFATAL),
    _sig("nic_fatal", "health recovery f", _MLX + r":.* health recovery f(?:ailed|low aborted)", "nic"),
    _sig("thermal", "High temperature on sensors", _MLX + r":.* High temperature on sensors", "nic"),
    # drivers/net/ethernet: broadcom/bnxt, intel/{ice,i40e,ixgbe,e1000e}, broadcom/tg3; drivers/net/phy/phylink.c; drivers/net/bonding.
    _sig("nic_fatal", "atal reset event", rf"^bnxt_en {_DEV}.*: Firmware (?P<word>fatal|non-fatal) reset event", "nic", _HOW),
    _sig("link_down", "Link is Down|Link is down", _NETDEV + r"Link is [Dd]own\b", "nic"),
    _sig("link_up", "Link is Up|Link is up", _NETDEV + r"Link is [Uu]p\b", "nic"),
    _sig("link_down", "definitely down", _BOND + r"\(slave (?P<device>\S+)\): link status definitely down", "nic"),
    _sig("link_down", "definitely down", _BOND + r"link status definitely down for interface (?P<device>[^\s,]+)", "nic"),
    _sig("link_up", "definitely up", _BOND + r"\(slave (?P<device>\S+)\): link status definitely up", "nic"),
    _sig("link_up", "definitely up", _BOND + r"link status definitely up for interface (?P<device>[^\s,]+)", "nic"),
    # drivers/pci/pcie/aer.c, dpc.c; drivers/pci/hotplug/pciehp_ctrl.c. A notice of the root port comes before the report itself.
    _sig("pcie_aer", "PCIe Bus Error: severity=", rf"{_DEV}: (?:AER: )?PCIe Bus Error: severity=(?P<word>\w+(?: \([^)]*\))?), type=(?P<unit>[^,]+)", "pcie", _aer),
    _sig("aer_notice", "error received|error message received", r"AER: .*error (?:message )?received", None),
    _sig("pcie_aer", "DPC: containment event", rf"{_DEV}: (?P<unit>DPC): containment event", "pcie", FATAL),
    _sig("pcie_link_down", "pciehp: Slot(", rf"{_DEV}: pciehp: (?P<unit>Slot\([^)]*\)): (?:Link Down|Card not present)", "pcie"),
    # arch/x86/kernel/cpu/mce/core.c; drivers/edac: mce_amd.c, edac_mc.c; mm/memory-failure.c; drivers/acpi/apei/ghes.c.
    _sig("mce", "Machine Check", r"\[Hardware Error\]: CPU (?P<cpu>\d+): Machine Check(?: Exception)?: [0-9a-f]+ Bank (?P<code>\d+): (?P<status>[0-9a-f]{16})", "cpu", _mce),
    _sig("mce", "_STATUS[", r"\[Hardware Error\]: CPU:(?P<cpu>\d+) .*MC(?P<code>\d+)_STATUS\[[^\]]*\]: 0x(?P<status>[0-9a-f]{16})", "cpu", _mce),
    _sig("edac", "EDAC MC", r"EDAC (?P<unit>MC\d+): (?:\d+ )?(?P<word>[CU]E) (?:.*? on (?P<device>\S+))?", "memory", _words(ce=CORRECTED, ue=UNCORRECTED)),
    _sig("memory_failure", "due to hardware memory corruption", rf"Killing {_PROCESS}:(?P<pid>\d+) due to hardware memory corruption", "memory", UNCORRECTED),
    _sig("memory_failure", "Memory failure: 0x", r"^Memory failure: (?P<unit>0x[0-9a-f]+): recovery action", "memory", UNCORRECTED),
    _sig("memory_failure", "Uncorrected hardware memory error", r"Uncorrected hardware memory error in user-access", "memory", UNCORRECTED),
    _sig("firmware_error", "event severity: ", r"\[Hardware Error\]: event severity: (?P<word>\w+)", "node", _HOW),
    # drivers/nvme/host: pci.c, core.c; block/blk-core.c; fs/buffer.c.
    _sig("nvme", "controller is down", _NVME + r"controller is down; will reset", "disk", NONFATAL),
    _sig("nvme", " timeout, ", _NVME + r"I/O (?:tag )?\d+ .*QID \d+ timeout, (?P<word>\w+)", "disk", _words(completion=INFO, abort=NONFATAL, reset=NONFATAL, disable=NONFATAL)),
    _sig("nvme", "after reset failure", _NVME + r"Disabling device after reset failure", "disk", FATAL),
    _sig("nvme", "after probe failure", _NVME + r"Removing after probe failure", "disk", FATAL),
    _sig("nvme", "not ready; aborting reset", _NVME + r"Device not ready; aborting reset", "disk", FATAL),
    _sig("nvme", "I/O Error (sct ", r"^(?P<device>nvme\d+n\d+): .*I/O Error (?P<unit>\(sct \S+ / sc \S+\))", "disk", NONFATAL),
    _sig("block_io", "error, dev ", _BLOCK + r"(?P<device>[^\s,]+)", "disk"),
    _sig("block_io", "Buffer I/O error on dev", r"^Buffer I/O error on dev(?:ice)? (?P<device>[^\s,]+)", "disk"),
    # fs/ext4/super.c, fs/xfs/xfs_message.c, fs/btrfs/messages.c, net/sunrpc/clnt.c; Lustre: ptlrpc/import.c.
    _sig("filesystem_error", "EXT4-fs error|BTRFS error", r"^(?:EXT4-fs|BTRFS) error \(device (?P<device>[^)]+)\)", "filesystem"),
    _sig("filesystem_error", "Remounting filesystem read-only", r"^\S+ \((?:device )?(?P<device>[^)]+)\): Remounting filesystem read-only", "filesystem", FATAL),
    _sig("filesystem_error", "XFS (", r"^XFS \((?P<device>[^)]+)\): .*(?:I/O [Ee]rror|[Cc]orruption|[Ss]hutting down filesystem|has been shut down)", "filesystem"),
    _sig("filesystem_error", "not responding", r"^nfs: server (?P<device>\S+) not responding, (?P<unit>still trying|timed out)", "filesystem"),
    _sig("filesystem_error", "This client was evicted by", r"^LustreError: .*?(?P<device>[\w-]+): This client was evicted by (?P<unit>[\w-]+)", "filesystem"),
    _sig("filesystem_error", "was lost; in progress", r"^Lustre: .*?(?P<device>[\w-]+): Connection to (?P<unit>\S+) .*was lost; in progress", "filesystem", NONFATAL),
    # kernel/panic.c; arch/x86: mm/fault.c, kernel/traps.c; arch/arm64/mm/fault.c; lib/bug.c.
    _sig("kernel_panic", "Kernel panic - not syncing", r"Kernel panic - not syncing(?:: (?P<unit>.+))?", "node"),
    _sig("process_fault", "segfault at ", rf"^{_PROCESS}\[(?P<pid>\d+)\]: segfault at .*?(?: in (?P<unit>[^\s\[]+)\[|$)", "node"),
    _sig("process_fault", "traps: ", rf"^traps: {_PROCESS}\[(?P<pid>\d+)\] (?:trap|general protection) .*?(?: in (?P<unit>[^\s\[]+)\[|$)", "node"),
    _sig("kernel_oops", "BUG: unable to handle|BUG: kernel NULL|Unable to handle kernel", r"BUG: unable to handle |BUG: kernel NULL pointer|Unable to handle kernel ", "node"),
    _sig("kernel_oops", "kernel BUG at", r"^kernel BUG at ", "node"),
    _sig("kernel_oops", "general protection fault", r"^(?:Oops: )?general protection fault", "node"),
    # kernel: watchdog.c, rcu/tree_stall.h, hung_task.c; mm/oom_kill.c.
    _sig("soft_lockup", "BUG: soft lockup", rf"BUG: soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<unit>\d+s)!(?: \[{_PROCESS}:(?P<pid>\d+)\])?", "cpu"),
    _sig("hard_lockup", "hard LOCKUP on cpu", r"hard LOCKUP on cpu (?P<cpu>\d+)", "cpu"),
    _sig("rcu_stall", "detected stall|detected expedited stall", r"INFO: (?P<unit>rcu_\w+) (?:self-)?detected (?:expedited )?stalls?\b", "node"),
    _sig("hung_task", "blocked for more than", rf"INFO: task {_PROCESS}:(?P<pid>\d+) blocked for more than (?P<unit>\d+ seconds)", "node"),
    _sig("oom_kill", "ut of memory: Kill", r"(?P<unit>Memory cgroup )?[Oo]ut of memory: Kill(?:ed)? process (?P<pid>\d+)(?:, UID \d+,)? \((?P<process>[^)]*)\)", "node"),
    _sig("oom_detail", "invoked oom-killer|oom-kill:constraint=|oom_reaper: reaped", r"invoked oom-killer: |^oom-kill:constraint=|^oom_reaper: reaped", None),
    # init/version.c; kernel/reboot.c; arch/x86/kernel/cpu/mce/therm_throt.c.
    _sig("boot", "Linux version ", r"^Linux version (?P<unit>\S+)", "node"),
    _sig("reboot", "reboot: ", r"^reboot: (?P<unit>Restarting system|Power(?:ing)? (?:down|off)|System halted)", "node"),
    _sig("thermal", "temperature above threshold", r"CPU(?P<cpu>\d+): (?P<unit>Core|Package) temperature above threshold", "cpu"),
)
# fmt: on
