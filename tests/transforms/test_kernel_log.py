"""The kernel log source beyond its golden cases: real logs, identity, settings, and its parts."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from tests.transforms.kernel_help import CASES, QUIET, ROOT, XID, read
from transforms.outcome import Context, MissingSettingError
from transforms.parsing import health_checks, sel_classes
from transforms.parsing.kernel.headers import HeaderReader
from transforms.parsing.kernel.messages import NEEDLES, read_message
from transforms.parsing.kernel.signatures import SIGNATURES
from transforms.parsing.log_stamps import Instant, StampError, StampReader
from transforms.parsing.pci import pci_address
from transforms.sources import dcgm_diag
from transforms.sources.kernel_log import SOURCE, sniff
from transforms.tables import HARDWARE_EVENTS

# --- real logs of other systems ---


@pytest.mark.parametrize(
    ("name", "xids", "lines"),
    [
        ("gpud/dmesg-time-format-iso.log", 11, 41),
        ("gpud/dmesg-with-xid-119.log", 5, 43),
        ("gpud/dmesg.decode.iso.log", 17, 24),
        ("gpud/dmesg.peermem.log.0", 0, 8),
        ("gpud/kmsg.1.log", 0, 47),
        ("gpud/xid149_154_sequence.log", 9, 9),
        ("gpud/nccl_segfault__dmesg.decode.iso.log", 0, 2),
        ("linuxfabrik_sel/dmesg__error-rcu-stall", 0, 4),
        ("linuxfabrik_sel/dmesg__error-tmpfs-mount-option", 0, 1),
        ("linuxfabrik_sel/dmesg__errors-blk-update-request-two", 0, 7),
    ],
)
def test_public_logs(shared: Path, name: str, xids: int, lines: int) -> None:
    # Xid counts are those of `grep -c "NVRM: Xid"`; every line, also the last without its newline, has one fate.
    data = (shared / "exports" / "public" / name).read_bytes()
    assert sniff(data[: 64 << 10])
    found = read(data)
    assert found.frame.filter(pl.col("event_class") == "xid").height == xids == data.count(b"NVRM: Xid")
    assert found.lines == found.fates() == lines
    assert not found.rejects


def test_public_logs_tell_more_than_xids(shared: Path) -> None:
    public = shared / "exports" / "public"
    names = ["linuxfabrik_sel/dmesg__error-rcu-stall", "linuxfabrik_sel/dmesg__errors-blk-update-request-two"]
    names += ["gpud/nccl_segfault__dmesg.decode.iso.log", "gpud/dmesg.decode.iso.log"]
    told = [
        [r["event_class"] for r in read((public / n).read_bytes()).rows() if r["event_class"] != "xid"] for n in names
    ]
    assert told == [["rcu_stall"], ["block_io"] * 2, ["process_fault"] * 2, ["oom_kill"] * 3]


def test_nothing_else_is_taken_for_a_kernel_log(shared: Path) -> None:
    is_one = ("kern", "dmesg", "kmsg", "xid149", "nccl_segfault", "syslog_interleaved", "with_xid")
    files = [p for p in shared.rglob("*") if p.is_file() and not p.name.startswith(is_one)]
    assert len(files) > 100
    wrong = [p.name for p in files if sniff(p.read_bytes()[: 64 << 10])]
    assert not wrong
    assert not sniff((shared / "exports/public/linuxfabrik_sel/dmesg__lorem-ipsum-with-error-keyword").read_bytes())


def test_no_bytes_are_no_kernel_log() -> None:
    assert not sniff(b"")
    assert not sniff(b"[Sun Feb 23 16:24:18 2025] [core:error] [pid 1] AH00001: a web server's log\n")


# --- identity ---


def test_a_replay_of_the_ring_buffer_adds_no_record() -> None:
    rows = read((CASES / "ring_buffer_replay" / "input.log").read_bytes()).rows()
    assert len(rows) == 4
    assert len({r["record_id"] for r in rows}) == 2
    assert rows[0]["record_id"] == rows[2]["record_id"]


def test_the_same_stamp_soon_after_two_boots_is_two_records() -> None:
    # Drivers load at the same microsecond of each boot: below two minutes of uptime the wall time decides.
    line = "2025-05-0{}T11:00:00+00:00 n1 kernel: [   12.345678] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07\n"
    rows = read((line.format(4) + line.format(5)).encode()).rows()
    assert len({r["record_id"] for r in rows}) == 2


def test_identity_does_not_depend_on_file_or_collection() -> None:
    data = (CASES / "reboots_and_faults" / "input.log").read_bytes()
    later = Context(datetime(2026, 12, 31, tzinfo=UTC), cluster="c1", zone="UTC")
    ids = read(data).frame["record_id"]
    assert read(data, later).frame["record_id"].to_list() == ids.to_list()
    assert read(QUIET * 1000 + data).frame["record_id"].to_list() == ids.to_list()
    assert ids.n_unique() == 20
    other = Context(datetime(2026, 11, 30, 12, tzinfo=UTC), cluster="c2", zone="UTC")
    assert not set(read(data, other).frame["record_id"]) & set(ids)


# --- what must be configured ---


def test_a_missing_zone_is_an_error_that_names_the_key() -> None:
    with pytest.raises(MissingSettingError, match=r"set `zone` under \[clusters.c1\]"):
        read(XID % (1, 2), Context(datetime(2026, 11, 30, tzinfo=UTC), cluster="c1"))


def test_a_zone_is_needed_only_for_stamps_without_one() -> None:
    line = b"2026-11-30T02:00:00Z n1 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=fit\n"
    assert read(line, Context(datetime(2026, 11, 30, tzinfo=UTC), cluster="c1")).used == 1


def test_a_missing_cluster_is_an_error() -> None:
    with pytest.raises(MissingSettingError, match="cluster"):
        read(XID % (1, 2), Context(datetime(2026, 11, 30, tzinfo=UTC), zone="UTC"))


def test_node_comes_from_the_host_field_then_from_the_source() -> None:
    bare = b"[Sun Nov 29 16:24:18 2026] NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=fit\n"
    named = Context(datetime(2026, 11, 30, 12, tzinfo=UTC), cluster="c1", zone="UTC", node="path1")
    found = [r["node"] for r in read(XID % (1, 2) + bare, named).rows()]
    assert found == ["n1", "path1"]
    [_, row] = read(XID % (1, 2) + bare).rows()
    assert (row["node"], row["flags"]) == (None, ["node_missing"])


def test_lines_without_any_header_are_kept_without_time() -> None:
    # `dmesg -t` writes no stamps at all; among stamped lines such a line is broken instead.
    bare = b"NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=fit\n"
    [row] = read(b"usb 1-1: new high-speed USB device\n" + bare).rows()
    assert (row["occurred_at"], row["flags"]) == (None, ["time_missing", "node_missing"])
    [reject] = read(XID % (1, 2) + bare).rejects
    assert (reject.line, reject.text) == (2, bare.decode().rstrip())


# --- parts ---


def test_pci_addresses_have_one_form() -> None:
    forms = ["PCI:0000:3b:00", "0000:3B:00.0", "00000000:3B:00.0", "3b:00.0", "PCI:0000:3b:00.0"]
    assert {pci_address(f) for f in forms} == {"0000:3b:00.0"}
    assert pci_address("00010000:3b:1f.7") == "10000:3b:1f.7"
    assert [pci_address(f) for f in ("10de:2330", "", "0000:3b:20.0", "0000:3b:00.8", "x")] == [None] * 5


def yearless(stamp: str, collected: datetime, zone: str = "UTC") -> Instant:
    return StampReader(Context(collected, cluster="c", zone=zone)).yearless(stamp)


def test_a_year_is_the_latest_that_is_not_after_the_collection() -> None:
    collected = datetime(2026, 1, 2, 6, tzinfo=UTC)

    def at(stamp: str) -> tuple[datetime, tuple[str, ...]]:
        found = yearless(stamp, collected)
        return datetime.fromtimestamp(found.us / 1e6, UTC), found.flags

    assert at("Dec 31 23:59:59") == (datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC), ("year_inferred",))
    assert at("Jan  3 05:59:59")[0].year == 2026  # less than a day ahead: a clock that runs fast
    assert at("Jan  3 06:00:01")[0].year == 2025
    assert at("Jul  6 06:00:01")[1] == ("year_inferred",)
    assert at("Jul  6 05:59:59")[1] == ("year_inferred", "year_old")


def test_a_skipped_local_time_is_not_put_into_another_year() -> None:
    with pytest.raises(StampError, match="does not exist"):
        yearless("Mar 30 02:30:00", datetime(2025, 11, 1, tzinfo=UTC), "Europe/Berlin")


def test_every_signature_is_found_by_its_literals() -> None:
    # Each message of the golden cases that a signature reads must hold a needle, or the scan would never see it.
    seen = set()
    for case in ("host_messages", "gpu_messages"):
        for line in (CASES / case / "input.log").read_bytes().splitlines():
            header = HeaderReader().split(line.decode())
            assert header is not None
            event = read_message(header.message)
            if event is not None:
                assert any(needle in line for needle in NEEDLES)
                seen.add(event if isinstance(event, str) else event.event_class)
    silent = {s.name for s in SIGNATURES} - seen
    assert silent == {"gpu_identity", "gpu_crash_dump"}, "a line for each signature belongs into the golden cases"


def test_every_event_class_has_its_evidence_class() -> None:
    with (ROOT / "warehouse" / "reference" / "event_classes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    keys = [(r["event_class"], r["code"], r["severity"]) for r in rows]
    assert len(set(keys)) == len(keys)
    parts = {"gpu_lost_head", "gpu_lost_tail"}
    events = {s.name for s in SIGNATURES if s.device_kind} - parts | {"xid", "sxid"}
    elsewhere = sel_classes.EVENT_CLASSES | dcgm_diag.EVENT_CLASSES | set(health_checks.EVENT_CLASSES.values())
    assert {k[0] for k in keys if k[1:] == ("*", "*")} == events | elsewhere
    fatal = {r["code"] for r in rows if r["event_class"] == "xid" and r["is_fatal"] == "true"}
    assert not fatal & {"13", "31", "43", "45", "63", "92", "94", "*"}
    assert {"46", "48", "62", "64", "74", "79", "95", "119", "120", "140", "151"} <= fatal
    assert {r["code"] for r in rows if r["is_cleanup"] == "true"} == {"43", "45"}
    assert all(r["source"] for r in rows)


def test_the_source_says_what_it_reads() -> None:
    assert (SOURCE.name, SOURCE.tables) == ("kernel_log", (HARDWARE_EVENTS,))
