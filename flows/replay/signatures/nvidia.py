"""Messages of NVIDIA's driver (NVRM) and NVSwitch driver.

Forms: NVIDIA/open-gpu-kernel-modules (ras_events.c, kern_gpu_error_cont_ga100.c, error_cont.h) and real logs kept by gpud and NVSentinel.
"""

from __future__ import annotations

import random

from flows.replay.model import Scene

NVSWITCHES = ("0000:83:00.0", "0000:84:00.0", "0000:85:00.0", "0000:86:00.0")
"""NVSwitches of an eight-GPU baseboard."""

TRAINER = "pt_main_thread"
"""What the kernel calls a training rank."""

NO_PROCESS = "pid='<unknown>', name=<unknown>"


def pci(scene: Scene, gpu: int | None = None) -> str:
    """PCI address of a GPU as NVRM prints it, without function: the culprit's unless told otherwise."""
    return scene.fleet.pci[scene.gpu if gpu is None else gpu]


def xid(address: str, code: int, detail: str, process: str = NO_PROCESS) -> str:
    """An Xid line; `process` is "pid=..., name=..." or empty for the codes that name none."""
    return f"NVRM: Xid (PCI:{address}): {code}, {process + ', ' if process else ''}{detail}"


def process(scene: Scene, gpu: int | None = None, name: str = TRAINER) -> str:
    """The training process on a GPU of the scene's node."""
    return f"pid={scene.pids[scene.gpu if gpu is None else gpu]}, name={name}"


def channel(rng: random.Random) -> str:
    """A channel as drivers up to 560 print it."""
    return f"Ch {rng.randrange(1, 32):08x}"


def physical_address(rng: random.Random) -> int:
    """An address within 80 GB of HBM, aligned to a sector."""
    return rng.randrange(0x0001_0000_0000, 0x0014_0000_0000) & ~0x1F


def off_the_bus(address: str, numbered: bool = True) -> list[str]:
    """GPU lost: with Xid 79, or without the word, as when the link is gone before the handler runs."""
    lines = [xid(address, 79, "GPU has fallen off the bus.")] if numbered else []
    return [*lines, f"NVRM: GPU {address}.0: GPU has fallen off the bus."]


CRASH_DUMP = (
    "NVRM: A GPU crash dump has been created. If possible, please run",
    "NVRM: nvidia-bug-report.sh as root to collect this data before",
    "NVRM: the NVIDIA kernel module is unloaded.",
)


def probe_failed(address: str) -> list[str]:
    """What the driver says at the next boot of a GPU that does not answer; its lines are one message, indented from the second on."""
    return [
        f"NVRM: The NVIDIA GPU {address}.0",
        "               NVRM: (PCI ID: 10de:2330) installed in this system has",
        "               NVRM: fallen off the bus and is not responding to commands.",
        f"nvidia: probe of {address}.0 failed with error -1",
    ]


def nvlink_fatal(address: str, link: int, registers: str = "0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0") -> str:
    """Xid 74 of Hopper and older."""
    return xid(address, 74, f"NVLink: fatal error detected on link {link}({registers})")


def nvlink5(address: str, code: int, unit: str, severity: str, link: int, first_word: int) -> str:
    """Xid 144-150 of NVLink 5 drivers."""
    words = " ".join([f"0x{first_word:08x}", *["0x00000000"] * 5])
    return xid(address, code, f"{unit:<15} {severity:<7} XC0 i0 Link {link:02d} ({words})", "")


def recovery(address: str, before: str, after: str) -> str:
    """Xid 154: the recovery action asked for."""
    return xid(address, 154, f"GPU recovery action changed from {before} to {after}", "")


def switch_error(switch: int, code: int, severity: str, link: int, text: str) -> list[str]:
    """An NVSwitch error: the first line and the two that follow it."""
    head = f"nvidia-nvswitch{switch}: SXid (PCI:{NVSWITCHES[switch]}): {code}"
    level = 1 if severity == "Fatal" else 0
    data = ", ".join(["0x10000000", "0x10000000", "0x00000000", "0x10000000", *["0x00000000"] * 5])
    return [
        f"{head}, {severity}, Link {link:02d} {text}",
        f"{head}, Severity {level} Engine instance {link:02d} Sub-engine instance 00",
        f"{head}, Data {{{data}}}",
    ]


GSP_CALLS = (
    (
        "76",
        "GSP_RM_CONTROL",
        ("0x20801702 0x8", "0x20802a02 0x8", "0x2080302a 0x4", "0x20803032 0x58c", "0x20801813 0x4c"),
    ),
    ("103", "GSP_RM_ALLOC", ("0x2080 0x4", "0x2081 0x4", "0xc56f 0x170")),
    ("10", "FREE", ("0xa55a0210 0x0", "0xa55a0090 0x0", "0xc1d00023 0x0")),
)


def gsp_timeout(address: str, gpu: int, seconds: int, who: str, rng: random.Random) -> str:
    """Xid 119: the GSP does not answer an RPC in time."""
    number, name, data = rng.choice(GSP_CALLS)
    detail = f"Timeout after {seconds}s of waiting for RPC response from GPU{gpu} GSP! "
    return xid(address, 119, f"{detail}Expected function {number} ({name}) ({rng.choice(data)}).", who)
