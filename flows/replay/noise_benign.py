"""Lines that look like trouble and are none: corrected errors, bounces, throttling, others' crashes.

On the run's own nodes nothing of this stops a step; on the other nodes other people's jobs crash as they do.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from flows.replay.model import Fleet
from flows.replay.noise_chatter import Episode
from flows.replay.signatures import nvidia, pci

Make = Callable[[Fleet, float, random.Random], Episode]

SWITCH_NONFATAL = (
    (12028, "egress non-posted PRIV error (First)"),
    (20001, "TX Replay Error"),
    (20009, "RX Short Error Rate"),
    (28006, "MC TS crumbstore MCTO (First)"),
)
"""Errors that NVSwitches report as not fatal."""

PEOPLE = ("python3", "python", "vllm", "ray::Worker", "a.out", "gmx", "namd3", "VLLM::EngineCor")
"""What other people run."""


def _spaced(texts: list[str], step: float) -> Episode:
    return [(n * step, text) for n, text in enumerate(texts)]


def _corrected_memory(_: Fleet, at: float, rng: random.Random) -> Episode:
    controller, channel, page, offset = (
        rng.randrange(8),
        rng.randrange(2),
        rng.randrange(1 << 27),
        rng.randrange(0, 4096, 64),
    )
    socket, number = divmod(controller, 4)
    place = f"CPU_SrcID#{socket}_MC#{number}_Chan#{channel}_DIMM#0"
    decoded = (
        f"(channel:{channel} slot:0 page:0x{page:x} offset:0x{offset:x} grain:32 syndrome:0x0 -  err_code:0x0101:0x0090  "
        f"SystemAddress:0x{page << 12 | offset:x} ProcessorSocketId:0x{socket:x} MemoryControllerId:0x{number:x} ChannelId:0x{channel:x} "
        f"PhysicalRankId:0x0 DimmSlotId:0x0 Row:0x{rng.randrange(1 << 16):x} Column:0x{rng.randrange(1 << 10):x} Bank:0x{rng.randrange(4):x} BankGroup:0x{rng.randrange(8):x})"
    )
    texts = [
        "mce: [Hardware Error]: Machine check events logged",
        f"EDAC skx MC{controller}: HANDLING MCE MEMORY ERROR",
        f"EDAC skx MC{controller}: CPU {socket * 56}: Machine Check Event: 0x0 Bank {13 + number}: 0x8c00004{rng.getrandbits(20):05x}{0x90 + channel:04x}",
        f"EDAC skx MC{controller}: TSC 0x{rng.getrandbits(52):x}",
        f"EDAC skx MC{controller}: ADDR 0x{page << 12 | offset:x}",
        f"EDAC skx MC{controller}: MISC 0x{rng.getrandbits(56):x}",
        f"EDAC skx MC{controller}: PROCESSOR 0:0x806f8 TIME {int(at)} SOCKET {socket} APIC 0x{socket * 128:x}",
        f"EDAC MC{controller}: 1 CE memory read error on {place} {decoded}",
    ]
    return _spaced(texts if rng.random() < 0.3 else texts[-1:], 0.00001)


def _corrected_link(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    name = rng.choice(sorted(pci.CORRECTED))
    if rng.random() < 0.5:
        address = f"{rng.choice(fleet.pci)}.0"
        return _spaced(pci.corrected(pci.port_above(address), address, pci.GPU, name, "nvidia"), 0.00002)
    address = rng.choice(fleet.nics)[1]
    return _spaced(pci.corrected(pci.port_above(address, below=3), address, pci.ADAPTER, name, "mlx5_core"), 0.00002)


def _bounce(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    """A port goes down and is up again before anything times out."""
    address = rng.choice(fleet.nics)[1]
    bus, slot = address.split(":")[1:]
    name = f"mlx5_core {address} ibp{int(bus, 16)}s{int(slot.split('.')[0], 16)}"
    return [(0.0, f"{name}: Link down"), (rng.uniform(0.8, 6.0), f"{name}: Link up")]


def _row_remap(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    """A lone 63: a row is replaced at the next reset, nobody read it."""
    text = f"Row Remapper: New row (0x{nvidia.physical_address(rng):016x}) marked for remapping, reset gpu to activate."
    return [(0.0, nvidia.xid(rng.choice(fleet.pci), 63, text))]


def _single_bit_rate(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    text = f"Disabling ECC single-bit error interrupts in framebuffer at logical partition {rng.randrange(12)}, due to high error rate"
    return [(0.0, nvidia.xid(rng.choice(fleet.pci), 92, text))]


def _switch_nonfatal(_: Fleet, __: float, rng: random.Random) -> Episode:
    code, text = rng.choice(SWITCH_NONFATAL)
    return _spaced(nvidia.switch_error(rng.randrange(4), code, "Non-fatal", rng.randrange(64), text), 0.000004)


def _link_retrained(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    """An NVLink error on a live node that recovers: 46 % of all, by NCSA Delta's count."""
    return [
        (0.0, nvidia.nvlink_fatal(rng.choice(fleet.pci), rng.randrange(18), "0x0, 0x0, 0x0, 0x10000, 0x0, 0x0, 0x0"))
    ]


def _nvlink5_nonfatal(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    text = nvidia.nvlink5(rng.choice(fleet.pci), 149, "NETIR_LINK_EVT", "Nonfatal", rng.randrange(18), 0x0040_05C6)
    return [(0.0, text)]


def _throttled(_: Fleet, __: float, rng: random.Random) -> Episode:
    cpus, events = sorted(rng.sample(range(224), rng.randint(1, 4))), rng.randint(1, 900)
    texts = [
        f"CPU{cpu}: Core temperature is above threshold, cpu clock is throttled (total events = {events})"
        for cpu in cpus
    ]
    texts += [f"CPU{cpu}: Core temperature/speed normal (total events = {events})" for cpu in cpus]
    return _spaced(texts, 0.002)


def _drive_slow(_: Fleet, __: float, rng: random.Random) -> Episode:
    drive = f"nvme{rng.randrange(4)}"
    timeout = f"nvme {drive}: I/O {rng.randrange(1024)} QID {rng.randint(1, 112)} timeout, aborting"
    return [(0.0, timeout), (0.4, f"nvme {drive}: Abort status: 0x0")]


def _hot_module(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    address = rng.choice(fleet.nics)[1]
    return [
        (
            0.0,
            f"mlx5_core {address}: temp_warn:197:(pid 0): High temperature on sensors with bit set 0 {1 << rng.randrange(4):x}",
        )
    ]


def _checker(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    """The health check's own little program is killed by its time limit: its channels are torn down."""
    who = (
        f"pid={rng.randrange(20_000, 4_000_000)}, name={rng.choice(('nvbandwidth', 'dcgmproftester12', 'nvidia-smi'))}"
    )
    return [(0.0, nvidia.xid(rng.choice(fleet.pci), 45, nvidia.channel(rng), who))]


def _user_fault(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    """Another user's kernel faults: 31 or 13, then 43."""
    address, who = rng.choice(fleet.pci), f"pid={rng.randrange(20_000, 4_000_000)}, name={rng.choice(PEOPLE)}"
    channel = nvidia.channel(rng)
    if rng.random() < 0.5:
        where = f"GPCCLIENT_T1_{rng.randrange(36)} faulted @ 0x7f{rng.randrange(256):02x}_{rng.randrange(1 << 20) << 12:08x}"
        text = f"{channel}, intr 00000000. MMU Fault: ENGINE GRAPHICS {where}. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
        return [(0.0, nvidia.xid(address, 31, text, who)), (0.004, nvidia.xid(address, 43, channel, who))]
    place = f"(GPC {rng.randrange(8)}, TPC {rng.randrange(9)}, SM {rng.randrange(2)})"
    return [
        (0.0, nvidia.xid(address, 13, f"Graphics SM Warp Exception on {place}: Out Of Range Address")),
        (0.0001, nvidia.xid(address, 13, f"Graphics SM Global Exception on {place}: Multiple Warp Errors")),
        (0.004, nvidia.xid(address, 43, channel, who)),
    ]


def _user_gone(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    """Another user's job is cancelled: 45 on its GPUs."""
    pid, name = rng.randrange(20_000, 4_000_000), rng.choice(PEOPLE)
    gpus = rng.sample(fleet.pci, rng.randint(1, len(fleet.pci)))
    texts = [
        nvidia.xid(address, 45, nvidia.channel(rng), f"pid={pid + n}, name={name}") for n, address in enumerate(gpus)
    ]
    return _spaced(texts, 0.02)


def _user_contained(fleet: Fleet, _: float, rng: random.Random) -> Episode:
    """Another user's process dies of a contained error."""
    address, who = rng.choice(fleet.pci), f"pid={rng.randrange(20_000, 4_000_000)}, name={rng.choice(PEOPLE)}"
    row = f"Row Remapper: New row (0x{nvidia.physical_address(rng):016x}) marked for remapping, reset gpu to activate."
    return [
        (0.0, nvidia.xid(address, 63, row)),
        (0.008, nvidia.xid(address, 94, "Contained: SM (0x1). RST: No, D-RST: No")),
        (0.02, nvidia.xid(address, 94, "Ch 00000008", who)),
    ]


Kinds = tuple[list[Make], list[float]]
COMMON: tuple[tuple[Make, float], ...] = (
    (_corrected_memory, 34),
    (_corrected_link, 22),
    (_bounce, 12),
    (_throttled, 12),
    (_drive_slow, 5),
    (_hot_module, 3),
    (_row_remap, 2.5),
    (_single_bit_rate, 1),
    (_switch_nonfatal, 5),
    (_link_retrained, 0.22),
    (_nvlink5_nonfatal, 0.4),
)
HELD: Kinds = ([make for make, _ in COMMON] + [_checker], [weight for _, weight in COMMON] + [3])
"""What happens on the run's own nodes, and how often."""
FREE: Kinds = ([make for make, _ in COMMON], [weight for _, weight in COMMON])
"""What happens on all other nodes."""
CRASHES: Kinds = ([_user_fault, _user_gone, _user_contained], [50, 50, 0.3])
"""What other people's jobs leave on them."""


def benign(fleet: Fleet, kinds: Kinds, at: float, rng: random.Random) -> Episode:
    """One occasion of the kinds given."""
    return rng.choices(*kinds)[0](fleet, at, rng)
