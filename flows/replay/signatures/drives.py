"""Solid-state drives: controllers that vanish, journals that abort, mounts that are gone."""

from __future__ import annotations

from collections.abc import Iterator

from flows.replay.model import Line, Scene, Signature
from flows.replay.signatures.effects import aftermath, clean_up, lost_peers
from flows.replay.signatures.lines import health, kernel, said, sel

CAUSE = "ssd"


def _drive_gone(scene: Scene) -> list[str]:
    rng = scene.rng
    drive = f"nvme{rng.randrange(4)}"
    state = "CSTS=0xffffffff, PCI_STATUS=0xffff" if rng.random() < 0.6 else "CSTS=0x3, PCI_STATUS=0x10"
    lines = [
        f"nvme {drive}: I/O {rng.randrange(1024)} QID {rng.randint(1, 112)} timeout, aborting"
        for _ in range(rng.randint(0, 4))
    ]
    lines += [
        f"nvme {drive}: controller is down; will reset: {state}",
        f"nvme {drive}: Device not ready; aborting reset, CSTS=0x1",
        f"nvme {drive}: Removing after probe failure status: -19",
    ]
    for _ in range(rng.randint(2, 20)):
        sector, write = rng.randrange(1 << 33), rng.random() < 0.7
        op = "0x1:(WRITE) flags 0x8800" if write else "0x0:(READ) flags 0x80700"
        lines.append(f"blk_update_request: I/O error, dev {drive}n1, sector {sector} op {op} phys_seg 1 prio class 0")
    return [
        *lines,
        f"XFS ({drive}n1p1): log I/O error -5",
        f"XFS ({drive}n1p1): Filesystem has been shut down due to log error (0x2).",
    ]


def drive_gone(scene: Scene) -> Iterator[Line]:
    """The drive of the data cache goes; the loader's reads fail."""
    yield from kernel(scene.node, scene.fault_at, *_drive_gone(scene), step=0.3)
    texts = [
        "Traceback (most recent call last):",
        '  File "/opt/train/data/shards.py", line 211, in read_block',
        "    block = os.pread(handle, size, offset)",
        "OSError: [Errno 5] Input/output error",
    ]
    yield from said(scene, scene.node, scene.gpu, scene.stalled_at + 1, texts)
    yield from aftermath(scene)
    if scene.rng.random() < 0.5:
        text = "check_nvme_count: Expected to see 8 but found 7. FaultCode: NHC2009"
        yield health(scene.node, scene.ended_at + 60 + scene.rng.random() * 240, text)


def drive_stops_node(scene: Scene) -> Iterator[Line]:
    """The system drive goes: nothing can be written or run any more, not even slurmd."""
    rng = scene.rng
    lines = [
        f"nvme nvme0: I/O {rng.randrange(1024)} QID {rng.randint(1, 112)} timeout, reset controller",
        "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
    ]
    lines += [
        f"Buffer I/O error on dev nvme0n1p2, logical block {rng.randrange(1 << 26)}, lost async page write"
        for _ in range(rng.randint(3, 9))
    ]
    lines += [
        "EXT4-fs error (device nvme0n1p2): ext4_journal_check_start:83: comm systemd-journal: Detected aborted journal",
        "EXT4-fs (nvme0n1p2): Remounting filesystem read-only",
    ]
    yield from kernel(scene.node, scene.fault_at, *lines, step=0.2)
    yield from lost_peers(scene, scene.stalled_at, scene.ended_at)


def drive_unmounted(scene: Scene) -> Iterator[Line]:
    """The BMC and the check see a drive fault; the loader only an error."""
    yield sel(scene.node, scene.fault_at, f"Drive Slot / Bay Bay{scene.rng.randint(1, 8)}", "Drive Fault")
    texts = [
        "Traceback (most recent call last):",
        '  File "/opt/train/data/shards.py", line 198, in open_shard',
        "    handle = os.open(path, os.O_RDONLY)",
        "OSError: [Errno 5] Input/output error: '/scratch/shards/000217.bin'",
    ]
    yield from said(scene, scene.node, scene.gpu, scene.stalled_at + 1, texts)
    yield health(scene.node, scene.ended_at + 90 + scene.rng.random() * 300, "check_fs_mount:  /scratch not mounted")
    yield from clean_up(scene)


SIGNATURES = (
    Signature("drive_gone", CAUSE, 45, "exit", drive_gone, "nvme missing", (120.0, 900.0)),
    Signature(
        "drive_stops_node", CAUSE, 30, "node_fail", drive_stops_node, "hw check after node failure", (600.0, 2400.0)
    ),
    Signature(
        "drive_unmounted",
        CAUSE,
        25,
        "exit",
        drive_unmounted,
        "NHC: check_fs_mount:  /scratch not mounted",
        (100.0, 500.0),
    ),
)
