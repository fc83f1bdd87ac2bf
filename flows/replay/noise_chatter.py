"""Kernel chatter that has nothing to do with any fault, in the kernel's and drivers' own forms."""

from __future__ import annotations

import random
from collections.abc import Callable

Episode = list[tuple[float, str]]
"""Lines of one occasion: seconds after its begin, text."""

Make = Callable[[random.Random], Episode]

STORMS = (
    ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing", 0.0111),
    ("nfs: server nfs02 OK", 0.004),
    ("TCP: request_sock_TCP: Possible SYN flooding on port 29500. Sending cookies.  Check SNMP counters.", 1.1),
)
"""Lines that repeat by the hundred: text, seconds between two."""


_SECOND = "SECOND"
"""Stands for a second of the day in an audit stamp until the day is known."""


def _hex(rng: random.Random, digits: int) -> str:
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def _veth(rng: random.Random) -> Episode:
    name, port, bridge = f"veth{_hex(rng, 7)}", rng.randint(1, 9), rng.choice(("docker0", f"br-{_hex(rng, 12)}"))
    texts = (
        f"{bridge}: port {port}({name}) entered blocking state",
        f"{bridge}: port {port}({name}) entered disabled state",
        f"device {name} entered promiscuous mode",
        f"IPv6: ADDRCONF(NETDEV_CHANGE): {name}: link becomes ready",
        f"{bridge}: port {port}({name}) entered blocking state",
        f"{bridge}: port {port}({name}) entered forwarding state",
    )
    return [(0.0003 * n, text) for n, text in enumerate(texts)]


def _veth_left(rng: random.Random) -> Episode:
    name, port = f"veth{_hex(rng, 7)}", rng.randint(1, 9)
    return [
        (0.0, f"docker0: port {port}({name}) entered disabled state"),
        (0.01, f"device {name} left promiscuous mode"),
        (0.011, f"docker0: port {port}({name}) entered disabled state"),
    ]


def _calico(rng: random.Random) -> Episode:
    texts = (
        "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
        f"IPv6: ADDRCONF(NETDEV_CHANGE): cali{_hex(rng, 11)}: link becomes ready",
    )
    return [(0.00005 * n, text) for n, text in enumerate(texts)]


def _nvswitch(rng: random.Random) -> Episode:
    return [(0.000003 * n, f"nvidia-nvswitch{n // 2}: open (major=510)") for n in range(rng.choice((4, 8)))]


def _perf(rng: random.Random) -> Episode:
    took = rng.randint(2501, 9800)
    limit = int(took * rng.uniform(0.75, 0.999))
    rate = rng.choice((79500, 63500, 50250, 39750, 27750, 21000))
    return [
        (0.0, f"perf: interrupt took too long ({took} > {limit}), lowering kernel.perf_event_max_sample_rate to {rate}")
    ]


def _audit(rng: random.Random) -> Episode:
    pid, profile = (
        rng.randrange(900, 4_000_000),
        rng.choice(("docker-default", "cri-containerd.apparmor.d", "snap.lxd.daemon")),
    )
    stamp = f"{_SECOND}.{rng.randrange(1000):03d}:{rng.randrange(100, 99999)}"
    head = (
        f'audit: type=1400 audit({stamp}): apparmor="{rng.choice(("STATUS", "ALLOWED"))}" operation="profile_replace"'
    )
    said = f'info="same as current profile, skipping" profile="unconfined" name="{profile}"'
    return [(0.0, f'{head} {said} pid={pid} comm="apparmor_parser"')]


def _audit_backlog(_: random.Random) -> Episode:
    return [(0.0, "audit: backlog limit exceeded"), (0.01, "kauditd_printk_skb: 42 callbacks suppressed")]


def _suppressed(rng: random.Random) -> Episode:
    return [(0.0, f"kauditd_printk_skb: {rng.randint(2, 90)} callbacks suppressed")]


def _usb(rng: random.Random) -> Episode:
    port, number = f"1-{rng.randint(1, 14)}", rng.randint(2, 120)
    texts = (
        f"usb {port}: USB disconnect, device number {number}",
        f"usb {port}: new high-speed USB device number {number + 1} using xhci_hcd",
        f"usb {port}: New USB device found, idVendor=046b, idProduct=ff01, bcdDevice= 1.00",
        f"usb {port}: New USB device strings: Mfr=1, Product=2, SerialNumber=3",
        f"usb {port}: Product: Virtual Hub",
        f"hub {port}:1.0: USB hub found",
        f"hub {port}:1.0: 5 ports detected",
    )
    return [(0.12 * n, text) for n, text in enumerate(texts)]


def _nfs(rng: random.Random) -> Episode:
    server = f"nfs{rng.randint(1, 4):02d}"
    return [
        (0.0, f"nfs: server {server} not responding, still trying"),
        (rng.uniform(1, 40), f"nfs: server {server} OK"),
    ]


def _lustre(rng: random.Random) -> Episode:
    target = f"data-OST{rng.randrange(64):04x}-osc-ffff9d{_hex(rng, 10)}"
    server = f"10.40.{rng.randrange(4)}.{rng.randrange(1, 60)}@o2ib"
    short = target.split("-osc")[0]
    return [
        (
            0.0,
            f"Lustre: {target}: Connection to {short} (at {server}) was lost; in progress operations using this service will wait for recovery to complete",
        ),
        (rng.uniform(2, 30), f"Lustre: {target}: Connection restored to {server} (at {server})"),
    ]


def _uvm(rng: random.Random) -> Episode:
    return rng.choice(
        (
            [(0.0, "nvidia-uvm: Loaded the UVM driver, major device number 508.")],
            [
                (
                    0.0,
                    "nvidia_uvm: module uses symbols nvUvmInterfaceDisableAccessCntr from proprietary module nvidia, inheriting taint.",
                )
            ],
            [(0.0, "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  550.90.07")],
        )
    )


def _systemd(rng: random.Random) -> Episode:
    return rng.choice(
        (
            [(0.0, f"systemd-journald[{rng.randrange(600, 2000)}]: /dev/kmsg buffer overrun, some messages lost.")],
            [(0.0, "systemd[1]: systemd-journald.service: Watchdog timeout (limit 3min)!")],
            [
                (
                    0.0,
                    f"systemd-journald[{rng.randrange(600, 2000)}]: File /var/log/journal/{_hex(rng, 32)}/system.journal corrupted or uncleanly shut down, renaming and replacing.",
                )
            ],
            [
                (
                    0.0,
                    "systemd[1]: Configuration file /run/systemd/system/netplan-ovs-cleanup.service is marked world-inaccessible.",
                )
            ],
        )
    )


def _files(rng: random.Random) -> Episode:
    drive = f"XFS (nvme{rng.randrange(1, 4)}n1p1)"
    return rng.choice(
        (
            [(0.0, f"loop{rng.randrange(30)}: detected capacity change from 0 to {rng.randrange(8, 4_000_000)}")],
            [
                (
                    0.0,
                    f"EXT4-fs (dm-{rng.randrange(4)}): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none.",
                )
            ],
            [(0.0, f"{drive}: Mounting V5 Filesystem"), (0.02, f"{drive}: Ending clean mount")],
            [
                (
                    0.0,
                    "overlayfs: upperdir is in-use as upperdir/workdir of another mount, accessing files from both mounts will result in undefined behavior.",
                )
            ],
            [(0.0, "squashfs: version 4.0 (2009/01/31) Phillip Lougher")],
        )
    )


def _mlx5(rng: random.Random) -> Episode:
    bus = rng.choice(("18", "40", "4f", "5e", "9a", "c0", "ce", "dc"))
    return rng.choice(
        (
            [
                (
                    0.0,
                    f"mlx5_core 0000:{bus}:00.0: mlx5_pcie_event:299:(pid {rng.randrange(9, 9000)}): Detected insufficient power on the PCIe slot (27W).",
                )
            ],
            [
                (
                    0.0,
                    f"mlx5_core 0000:{bus}:00.0: E-Switch: Unload vfs: mode(LEGACY), nvfs(0), necvfs(0), active vports(0)",
                )
            ],
            [
                (
                    0.0,
                    f"infiniband mlx5_{rng.randrange(8)}: create_qp:3206:(pid {rng.randrange(9000, 4_000_000)}): Create QP type 2 failed",
                )
            ],
        )
    )


def _processes(rng: random.Random) -> Episode:
    pid, name = (
        rng.randrange(900, 4_000_000),
        rng.choice(("node_exporter", "telegraf", "dcgm-exporter", "fluent-bit", "python3")),
    )
    return rng.choice(
        (
            [
                (
                    0.0,
                    f"process '{rng.choice(('/usr/bin/enroot', '/opt/tools/run', '/opt/agent/check'))}' started with executable stack",
                )
            ],
            [
                (
                    0.0,
                    f"{name}[{pid}]: segfault at {_hex(rng, 8)} ip 00007f{_hex(rng, 10)} sp 00007f{_hex(rng, 10)} error 4 in libc.so.6[7f{_hex(rng, 10)}+195000]",
                )
            ],
            [
                (
                    0.0,
                    f"Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:{rng.randrange(10**5, 10**7)}kB, anon-rss:{rng.randrange(10**4, 10**6)}kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:{rng.randrange(100, 9000)}kB oom_score_adj:999",
                ),
                (0.03, f"oom_reaper: reaped process {pid} ({name}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"),
            ],
        )
    )


def _network(rng: random.Random) -> Episode:
    return rng.choice(
        (
            [
                (
                    0.0,
                    f"TCP: request_sock_TCP: Possible SYN flooding on port {rng.choice((29500, 8080, 6817))}. Sending cookies.  Check SNMP counters.",
                )
            ],
            [(0.0, "neighbour: arp_cache: neighbor table overflow!")],
            [(0.0, f"IPv6: MLD: clamping QRV from {rng.randint(3, 7)} to 2!")],
            [(0.0, "Initializing XFRM netlink socket")],
            [(0.0, "IPVS: ftp: loaded support on port[0] = 21")],
            [(0.0, "wireguard: WireGuard 1.0.0 loaded. See www.wireguard.com for information.")],
        )
    )


def _clock(rng: random.Random) -> Episode:
    return rng.choice(
        (
            [(0.0, f"hrtimer: interrupt took {rng.randrange(5000, 90000)} ns")],
            [
                (
                    0.0,
                    f"clocksource: timekeeping watchdog on CPU{rng.randrange(224)}: hpet wd-wd read-back delay of {rng.randrange(50000, 200000)}ns",
                )
            ],
            [
                (
                    0.0,
                    f"workqueue: drm_fb_helper_damage_work hogged CPU for >10000us {rng.choice((4, 8, 16, 32))} times, consider switching to WQ_UNBOUND",
                )
            ],
            [(0.0, "sched: RT throttling activated")],
        )
    )


KINDS: tuple[tuple[Make, float], ...] = (
    (_veth, 6),
    (_veth_left, 6),
    (_calico, 12),
    (_nvswitch, 3),
    (_perf, 7),
    (_audit, 20),
    (_audit_backlog, 2),
    (_suppressed, 8),
    (_usb, 2),
    (_nfs, 3),
    (_lustre, 5),
    (_uvm, 4),
    (_systemd, 6),
    (_files, 9),
    (_mlx5, 2),
    (_processes, 5),
    (_network, 6),
    (_clock, 4),
)
"""What is said, and how often among the occasions."""


def episodes(rng: random.Random, count: int, start: float, seconds: float) -> list[Episode]:
    """Make occasions of all kinds by their weights, for lines of a given stretch of time."""
    makers = rng.choices([make for make, _ in KINDS], [weight for _, weight in KINDS], k=count)
    made = [make(rng) for make in makers]
    for place, make in enumerate(makers):
        if make is _audit:
            second = str(int(start + rng.random() * seconds))
            made[place] = [(after, text.replace(_SECOND, second)) for after, text in made[place]]
    return made
