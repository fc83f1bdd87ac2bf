"""Other parts of a host: PCI Express switch boards, CPUs and memory modules."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures import nvidia, pci
from flows.replay.signatures.effects import aftermath, lost_peers, rebooted, vanished
from flows.replay.signatures.lines import kernel, sel
from flows.replay.signatures.network import link

BOARD = "io_expansion_board"
CPU = "cpu"
MEMORY = "system_memory"
MODULES = ("CPU1_DIMM_A1", "CPU1_DIMM_C1", "CPU1_DIMM_F1", "CPU2_DIMM_B1", "CPU2_DIMM_E1", "CPU2_DIMM_H1")


def _half(scene: Scene) -> list[int]:
    """The GPUs that share the culprit's PCI Express switch."""
    size = scene.fleet.gpus // 2
    first = scene.gpu // size * size
    return list(range(first, first + size))


def board_lost(scene: Scene) -> Iterator[Line]:
    """A bridge reports a fatal error and everything below it is gone: GPUs and adapters."""
    rng, at, gpus = scene.rng, scene.fault_at, _half(scene)
    port = pci.port_above(f"{nvidia.pci(scene, gpus[0])}.0")
    victims = [f"nvidia {nvidia.pci(scene, gpu)}.0" for gpu in gpus]
    lines = pci.uncorrected(port, port, pci.SWITCH_PORT, rng.choice(("SDES", "DLP", "MalfTLP")), "pcieport")
    yield from kernel(scene.node, at, *lines, *pci.unrecovered(port, *victims))
    for gpu in gpus:
        yield from kernel(scene.node, at + 0.05 + rng.random(), *nvidia.off_the_bus(nvidia.pci(scene, gpu)))
        yield from kernel(scene.node, at + 0.2 + rng.random(), link(scene, gpu, "down"))
    if rng.random() < 0.6:
        yield sel(scene.node, at + 2, "Critical Interrupt PCIE Error", "Bus Fatal Error")


def board_lost_dies(scene: Scene) -> Iterator[Line]:
    """The same on a node that still answers."""
    yield from board_lost(scene)
    yield from aftermath(scene)


def board_lost_silent(scene: Scene) -> Iterator[Line]:
    """The same on a node that does not."""
    yield from board_lost(scene)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)


def _machine_check(scene: Scene, bank: int, status: int, exception: bool) -> list[str]:
    rng = scene.rng
    cpu = rng.randrange(112)
    socket = cpu // 56
    head = f"mce: [Hardware Error]: CPU {cpu}: Machine Check{' Exception: 5' if exception else ': 0'} Bank {bank}: {status:016x}"
    tsc = f"mce: [Hardware Error]: TSC {rng.randrange(1 << 52):x} ADDR {rng.randrange(1 << 38):x} MISC {rng.randrange(1 << 16):x}"
    who = f"mce: [Hardware Error]: PROCESSOR 0:806f8 TIME {int(scene.fault_at)} SOCKET {socket} APIC {cpu * 2:x} microcode 2b000461"
    return [head, tsc, who]


def cpu_panics(scene: Scene) -> Iterator[Line]:
    """A fatal machine check: the banks are read again at the next boot; the BMC notes IERR."""
    yield sel(scene.node, scene.fault_at + 1, f"Processor CPU{scene.rng.randint(1, 2)} Status", "IERR")
    yield from vanished(scene)
    at, lines = rebooted(scene)
    yield from lines
    told = _machine_check(scene, scene.rng.choice((0, 1, 3)), 0xBF80_0000_0010_0134, exception=False)
    yield from kernel(scene.node, at + 0.9, "mce: [Hardware Error]: Machine check events logged", *told)


def cpu_excepts(scene: Scene) -> Iterator[Line]:
    """The machine check exception reaches the log before the panic stops the node."""
    told = _machine_check(scene, scene.rng.choice((0, 1, 3)), 0xBD80_0000_0010_0134, exception=True)
    lines = [
        *told,
        "mce: [Hardware Error]: Machine check: Processor context corrupt",
        "Kernel panic - not syncing: Fatal machine check",
    ]
    yield from kernel(scene.node, scene.fault_at, *lines)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)


def cpu_interrupt(scene: Scene) -> Iterator[Line]:
    """Only the BMC: an uncorrectable machine check of the processor."""
    yield sel(
        scene.node,
        scene.fault_at + 1,
        f"Processor CPU{scene.rng.randint(1, 2)} Status",
        "Uncorrectable machine check exception",
    )
    yield from vanished(scene)


def _uncorrected_memory(scene: Scene) -> list[str]:
    """EDAC's record of an uncorrected read, and the page it takes away."""
    rng = scene.rng
    page, offset, controller, slot = (
        rng.randrange(1 << 27),
        rng.randrange(0, 4096, 64),
        rng.randrange(8),
        rng.randrange(2),
    )
    place = f"CPU_SrcID#{controller // 4}_MC#{controller % 4}_Chan#{slot}_DIMM#0"
    address = (page << 12) | offset
    decoded = (
        f"(channel:{slot} slot:0 page:0x{page:x} offset:0x{offset:x} grain:32 -  recoverable err_code:0x00a0:0x0090  SystemAddress:0x{address:x} "
        f"ProcessorSocketId:0x{controller // 4:x} MemoryControllerId:0x{controller % 4:x} ChannelId:0x{slot:x} PhysicalRankId:0x1 DimmSlotId:0x0 "
        f"Row:0x{rng.randrange(1 << 16):x} Column:0x{rng.randrange(1 << 10):x} Bank:0x{rng.randrange(4):x} BankGroup:0x{rng.randrange(8):x})"
    )
    return [
        "mce: [Hardware Error]: Machine check events logged",
        f"EDAC skx MC{controller}: HANDLING MCE MEMORY ERROR",
        f"EDAC MC{controller}: 1 UE memory read error on {place} {decoded}",
        f"Memory failure: 0x{page:x}: Sending SIGBUS to {nvidia.TRAINER}:{scene.pids[scene.gpu]} due to hardware memory corruption",
        f"Memory failure: 0x{page:x}: recovery action for dirty LRU page: Recovered",
    ]


def memory_kills_rank(scene: Scene) -> Iterator[Line]:
    """The rank that reads the page gets SIGBUS; the BMC names the module."""
    yield from kernel(scene.node, scene.fault_at, *_uncorrected_memory(scene), step=0.004)
    if scene.rng.random() < 0.7:
        yield sel(scene.node, scene.fault_at + 2, f"Memory {scene.rng.choice(MODULES)}", "Uncorrectable ECC")
    yield from aftermath(scene)


def memory_silent(scene: Scene) -> Iterator[Line]:
    """The kernel itself reads the page and is gone; the BMC has one record."""
    yield sel(scene.node, scene.fault_at + 1, f"Memory {scene.rng.choice(MODULES)}", "Uncorrectable ECC")
    yield from vanished(scene)


SIGNATURES = (
    Signature("board_lost", BOARD, 55, "exit", board_lost_dies, "node health check failed", gap=(0.0, 5.0)),
    Signature(
        "board_lost_silent", BOARD, 45, "node_fail", board_lost_silent, "4 GPUs gone", (600.0, 2400.0), gap=(0.0, 5.0)
    ),
    Signature(
        "cpu_panics", CPU, 50, "node_fail", cpu_panics, "hw check after node failure", (1700.0, 4000.0), gap=(0.0, 3.0)
    ),
    Signature("cpu_excepts", CPU, 30, "node_fail", cpu_excepts, "CPU machine check", (600.0, 2400.0), gap=(0.0, 3.0)),
    Signature(
        "cpu_interrupt",
        CPU,
        20,
        "node_fail",
        cpu_interrupt,
        "hw check after node failure",
        (600.0, 2400.0),
        gap=(0.0, 3.0),
    ),
    Signature("memory_kills_rank", MEMORY, 65, "exit", memory_kills_rank, "DIMM", (300.0, 1500.0), gap=(0.0, 3.0)),
    Signature(
        "memory_silent",
        MEMORY,
        35,
        "node_fail",
        memory_silent,
        "hw check after node failure",
        (600.0, 2400.0),
        gap=(0.0, 3.0),
    ),
)
