"""Speed of the kernel log source beside what the machine can do: grep on plain text, igzip and zstd on compressed.

Run: python benchmarks/kernel_log.py [--megabytes 1000] [--folder DIR] [--runs 3]

Every figure is the whole job (each line counted, all signatures, rows written to Parquet), in its own process so that
peak memory is its own; it stands beside its limit, measured in the same run on the same file. Imports (0.3 s) are not
counted: a process that reads one log reads a thousand. On a machine with other work the CPU seconds say more.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from transforms.outcome import Context
from transforms.sources.kernel_log import SOURCE
from transforms.stream import ExportStream, opened

BLOCK_LINES = 280_000
LINES_PER_XID = 5_150
# Command that sets the limit, and the most times its duration that the job may take; a storm has no such limit.
RATIOS = {
    "plain": ("grep -cF NVRM", 1.5),
    "gz": ("igzip -dc", 1.25),
    "zst": ("zstd -dc", 1.5),
    "storm": ("grep -cF NVRM", None),
}


def ordinary_lines(rng: random.Random, count: int) -> list[str]:
    """Lines of the kind that fill a GPU node's kernel log, none of which tells an event."""
    makers: list[Callable[[], str]] = [
        lambda: (
            f'audit: type=1400 audit(1764471224.{rng.randrange(1000):03d}:{rng.randrange(10**6)}): apparmor="ALLOWED" operation="open" pid={rng.randrange(10**6)}'
        ),
        lambda: f"IPv6: ADDRCONF(NETDEV_CHANGE): cali{rng.getrandbits(44):011x}: link becomes ready",
        lambda: (
            f"usb {rng.randrange(9)}-{rng.randrange(9)}: new high-speed USB device number {rng.randrange(99)} using xhci_hcd"
        ),
        lambda: (
            f"nvidia-peermem nv_get_p2p_free_callback:{rng.randrange(999)} ERROR detected invalid context, skipping further processing"
        ),
        lambda: (
            f"perf: interrupt took too long ({rng.randrange(9999)} > {rng.randrange(9999)}), lowering kernel.perf_event_max_sample_rate to {rng.randrange(99999)}"
        ),
        lambda: f"docker0: port {rng.randrange(99)}(veth{rng.getrandbits(28):07x}) entered blocking state",
        lambda: (
            f"mlx5_core 0000:{rng.randrange(256):02x}:00.0: mlx5_cmd_out_err:{rng.randrange(999)}:(pid {rng.randrange(10**6)}): ACCESS_REG(0x805) op_mod(0x1) failed, status bad parameter(0x3), syndrome (0x{rng.getrandbits(24):06x}), err(-22)"
        ),
        lambda: (
            f"TCP: request_sock_TCP: Possible SYN flooding on port {rng.randrange(65536)}. Sending cookies.  Check SNMP counters."
        ),
        lambda: (
            f"EXT4-fs (nvme{rng.randrange(8)}n1p{rng.randrange(4)}): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none."
        ),
        lambda: f"nfs: server nas{rng.randrange(99)} OK",
    ]
    lines = []
    for i in range(count):
        second = i * 60 // count
        head = f"Nov 30 02:{second:02d}:{i % 60:02d} gpu{rng.randrange(2048):04d} kernel: [{4_211_068 + i // 100}.{rng.randrange(10**6):06d}] "
        lines.append(head + rng.choice(makers)())
    return lines


def xid_line(rng: random.Random) -> str:
    """One line that tells an Xid."""
    stamp = f"Nov 30 02:{rng.randrange(60):02d}:{rng.randrange(60):02d} gpu{rng.randrange(2048):04d}"
    mono = f"{rng.randrange(10**6, 10**7)}.{rng.randrange(10**6):06d}"
    code = rng.choice((13, 31, 43, 45, 48, 63, 79, 94, 119))
    return f"{stamp} kernel: [{mono}] NVRM: Xid (PCI:0000:{rng.randrange(256):02x}:00): {code}, pid={rng.randrange(10**6)}, name=python3, Ch {rng.getrandbits(16):08x}"


def write_log(path: Path, megabytes: int) -> None:
    """Write an ordinary log: one Xid in 5,150 lines, no stretch repeated within the reach of gzip or zstd."""
    rng = random.Random(7)  # noqa: S311 -- repeatable, not secret
    parts = ["\n".join(ordinary_lines(rng, LINES_PER_XID)) for _ in range(BLOCK_LINES // LINES_PER_XID)]
    with path.open("w") as file:
        while file.tell() < megabytes * 1_000_000:
            for part in parts:
                file.write(f"{part}\n{xid_line(rng)}\n")


def write_storm(path: Path, lines: int) -> None:
    """Write a log of nothing but Xid lines."""
    rng = random.Random(8)  # noqa: S311
    with path.open("w") as file:
        for _ in range(lines):
            file.write(xid_line(rng) + "\n")


def job(log: Path, out: Path) -> tuple[int, int]:
    """Read `log` whole and write its rows to Parquet; return lines and rows."""
    ctx = Context(datetime(2026, 11, 30, 12, tzinfo=UTC), cluster="bench", zone="UTC")
    lines = rows = 0
    with log.open("rb") as raw:
        for i, parsed in enumerate(SOURCE.parse(ExportStream(opened(raw)), ctx)):
            for name, frame in parsed.frames.items():
                frame.write_parquet(out / f"{name}-{i}.parquet", compression="zstd")
                rows += frame.height
            lines += parsed.used + sum(parsed.ignored.values()) + len(parsed.rejects)
    return lines, rows


def limit_of(command: list[str]) -> tuple[float, float]:
    """Return wall and CPU seconds of a command whose output goes nowhere."""
    begun, before = time.perf_counter(), os.times()
    # grep stops at the first match where its output is the null device.
    output = subprocess.PIPE if command[0] == "grep" else subprocess.DEVNULL
    subprocess.run(command, check=True, stdout=output)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begun, cpu


def ours(log: Path) -> tuple[float, float, int, int, int]:
    """Return wall and CPU seconds, lines, rows and peak memory (MB) of the job in a process of its own."""
    command = [sys.executable, __file__, "--job", str(log)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(told[0]), float(told[1]), int(told[2]), int(told[3]), int(told[4])


def measure(kind: str, log: Path, plain: Path, runs: int) -> None:
    """Print one line of the report: medians of `runs` pairs, each pair one after the other."""
    name, most = RATIOS[kind]
    pairs = [(limit_of([*name.split(), str(log)]), ours(log)) for _ in range(runs)]
    (wall, cpu), (seconds, work, lines, rows, _) = sorted(pairs, key=lambda p: p[1][0] / p[0][0])[runs // 2]
    peak = max(p[1][4] for p in pairs)
    size = plain.stat().st_size / 1e6
    ratio = seconds / wall
    verdict = "" if most is None else f"limit {most:.2f} {'ok' if ratio <= most else 'OVER'}"
    print(
        f"{kind:6}{seconds:7.2f} s (CPU {work:5.2f} s) {size / seconds:6.0f} MB/s  peak {peak} MB  {lines:,} lines "
        f"{rows:,} rows | {name} {wall:.2f} s (CPU {cpu:.2f} s) | ratio {ratio:.2f} {verdict}",
        flush=True,
    )


def main() -> None:
    """Write the files, measure, report."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=1000)
    arguments.add_argument("--storm-lines", type=int, default=800_000)
    arguments.add_argument("--folder", type=Path, help="keep the files here and use them again")
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.job:
        with tempfile.TemporaryDirectory() as out:
            begun, work = time.perf_counter(), time.process_time()
            lines, rows = job(given.job, Path(out))
            seconds, work = time.perf_counter() - begun, time.process_time() - work
        print(seconds, work, lines, rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
        return
    folder = given.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        plain, storm = folder / f"kern-{given.megabytes}.log", folder / f"storm-{given.storm_lines}.log"
        gz, zst = plain.with_suffix(".log.gz"), plain.with_suffix(".log.zst")
        if not zst.exists():
            write_log(plain, given.megabytes)
            with gz.open("wb") as file:
                subprocess.run(["igzip", "-c", str(plain)], check=True, stdout=file)
            subprocess.run(["zstd", "-q", "-f", str(plain), "-o", str(zst)], check=True)
        if not storm.exists():
            write_storm(storm, given.storm_lines)
        print(f"{plain.stat().st_size / 1e6:.0f} MB, {os.cpu_count()} cores")
        for kind, log in (("plain", plain), ("gz", gz), ("zst", zst)):
            measure(kind, log, plain, given.runs)
        measure("storm", storm, storm, given.runs)
    finally:
        if given.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
