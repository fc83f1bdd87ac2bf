"""Failed health checks beyond the golden cases: which log is whose, identity, pieces, and what decides the kind."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.outcome import Context, MissingSettingError
from transforms.parsing.health_checks import EVENT_CLASSES, KINDS, failure
from transforms.registry import all_sources, sniff
from transforms.sources.health_check import parse
from transforms.stream import ExportStream

ROOT = Path(__file__).resolve().parents[2]
CONTEXT = Context(collected_at=datetime(2024, 6, 5, tzinfo=UTC), cluster="c1", zone="UTC")
IB = "check_hw_ib:  No IB port mlx5_0:1 is ACTIVE (LinkUp 400 Gb/sec)."
HELPER = f"20240603 08:00:01 /usr/libexec/nhc/node-mark-offline gn01 Health check failed:  {IB}"


def rows(text: str, context: Context = CONTEXT) -> pl.DataFrame:
    return pl.concat(f for p in parse(ExportStream.of(text.encode()), context) for f in p.frames.values())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Node Health Check starting.\n", ["health_check"]),
        (f"ERROR:  nhc:  Health check failed:  {IB}\n", ["health_check"]),
        (f"Jun  3 08:00:01 gn01 nhc[12]: Health check failed:  {IB}\n", ["health_check"]),
        (f"20240603 08:00:01 [slurm] /usr/libexec/nhc/node-mark-offline gn01 {IB}\n", ["health_check"]),
        # A file that also holds the kernel's lines is a kernel log, which passes over the others by name.
        (
            f"Jun  3 08:00:00 gn01 kernel: NVRM: loading\nJun  3 08:00:01 gn01 nhc[12]: Health check failed:  {IB}\n",
            ["kernel_log"],
        ),
        ("Jun  3 08:00:01 gn01 sshd[12]: a check failed\n", []),
        ("c1|gn01|2024-06-03T08:00:01|NHC: checked\n", []),
        ("", []),
    ],
    ids=str,
)
def test_a_log_is_claimed_by_one_source_at_most(text: str, names: list[str]) -> None:
    assert [s.name for s in sniff(text.encode())] == names


def test_every_kind_has_its_class_of_evidence() -> None:
    """Fatal are the checks that Meta's clusters take a node out for at once; a full disk or a slow link is none."""
    with (ROOT / "warehouse" / "reference" / "event_classes.csv").open(newline="") as file:
        found = {
            (r["event_class"], r["severity"]): (r["evidence_class"], r["is_fatal"])
            for r in csv.DictReader(file)
            if r["event_class"].startswith("health_check_failed_")
        }
    assert {name for name, severity in found if severity == "*"} == set(EVENT_CLASSES.values())
    assert all(found[name, "*"][0] == name for name in EVENT_CLASSES.values())
    fatal = {kind for kind, name in EVENT_CLASSES.items() if found[name, "*"][1] == "true"}
    assert fatal == {"gpu", "gpu_memory", "nvlink", "network_link", "disk", "filesystem"}
    assert found["health_check_failed_gpu_memory", "corrected"][1] == "false"
    assert found["health_check_failed_memory", "uncorrected"][1] == "true"


def test_kinds_are_about_known_devices() -> None:
    assert set(KINDS.values()) <= {"gpu", "nvswitch", "nic", "pcie", "cpu", "memory", "disk", "filesystem", "node"}


@pytest.mark.parametrize(
    ("message", "kind", "device"),
    [
        # The name of a check that runs any command says nothing: its message does.
        ("check_cmd_output:  /opt/checks/links.sh returned 2: InfiniBand link down", "network_link", None),
        ("check_cmd_status:  /opt/checks/site.sh returned 2", "other", None),
        ("GPU-0a1b2c3d-0000-4000-8000-000000000001 has fallen off the bus", "gpu", "GPU-0a1b2c3d-0000-4000-8000-000000000001"),
        ("check_gpu_ecc: GPU 7 has uncorrected errors", "gpu_memory", "7"),
        # Counts and versions are no index, and a vendor's id no address.
        ("check_gpu_count: GPU 8 expected, 7 found", "gpu", None),
        ("check_nvsmi_healthmon:  10de:2330 is missing", "gpu", None),
        ("check_hw_ib:  No IB port hfi1_0:1 is ACTIVE (LinkUp 100 Gb/sec).", "network_link", "hfi1_0"),
        ("check_fs_free:  /scratch has only 1GB free (0.1%), minimum is 2GB", "other", None),
        ('Script timed out while executing "check_fs_mount_rw -f /scratch".', "other", None),
        ("", "other", None),
    ],
)  # fmt: skip
def test_kind_and_device(message: str, kind: str, device: str | None) -> None:
    found = failure(message)
    assert (found.kind, found.device) == (kind, device)


def test_one_failure_told_by_two_logs_is_one_record() -> None:
    helper = rows(f"{HELPER}\n")
    syslog = rows(f"2024-06-03T08:00:01+00:00 gn01 nhc[7]: Health check failed:  {IB}\n")
    assert helper["record_id"].to_list() == syslog["record_id"].to_list()
    assert rows(f"{HELPER.replace('08:00:01', '08:05:01')}\n")["record_id"].to_list() != helper["record_id"].to_list()


def test_a_bare_line_is_no_second_event() -> None:
    """NHC writes it before the helper's call, and `ERROR:` after it; another failure between them is another event."""
    bare = f"Health check failed:  {IB}"
    found = rows(f"{bare}\n{HELPER}\nERROR:  nhc:  {bare}\n")
    assert found.select("line", "occurred_at").rows() == [(2, datetime(2024, 6, 3, 8, 0, 1, tzinfo=UTC))]
    found = rows(f"{bare}\nHealth check failed:  check_fs_mount:  /home not mounted\n{HELPER}\n")
    assert found.select("line", "occurred_at").rows() == [
        (1, None),
        (2, None),
        (3, datetime(2024, 6, 3, 8, 0, 1, tzinfo=UTC)),
    ]


def test_a_bare_line_at_the_end_may_still_get_its_stamp() -> None:
    """So the piece is read again together with what comes: whichever way a file grew, the same rows come of it."""
    bare = f"Health check failed:  {IB}\n"
    pieces = list(parse(ExportStream.of(bare.encode()), CONTEXT))
    assert [p.is_open for p in pieces] == [False, True]
    assert sum(p.used for p in pieces) == 1
    assert not any(p.is_open for p in parse(ExportStream.of(f"{bare}{HELPER}\n".encode()), CONTEXT))


def test_what_is_not_told_is_flagged_and_what_is_not_configured_is_asked_for() -> None:
    found = rows(f"ERROR:  nhc:  Health check failed:  {IB}\n")
    assert found.select("node", "occurred_at").rows() == [(None, None)]
    assert found["flags"].to_list() == [["time_missing", "node_missing"]]
    with pytest.raises(MissingSettingError, match="cluster"):
        rows(HELPER, Context(collected_at=CONTEXT.collected_at))
    with pytest.raises(MissingSettingError, match="zone"):
        rows(HELPER, Context(collected_at=CONTEXT.collected_at, cluster="c1"))
    stamped = f"2024-06-03T08:00:01Z gn01 nhc[7]: Health check failed:  {IB}\n"
    assert rows(stamped, Context(collected_at=CONTEXT.collected_at, cluster="c1")).height == 1


def test_long_messages_are_cut_and_long_lines_rejected() -> None:
    found = rows(f"{HELPER} {'x' * 5_000}\n")
    assert found["text"].str.len_chars().to_list() == [2_000]
    stream = ExportStream(io.BytesIO(f"{HELPER} {'x' * 500}\n".encode()), max_line=300)
    pieces = list(all_sources()["health_check"].parse(stream, CONTEXT))
    assert [r.line for p in pieces for r in p.rejects] == [1]


WORDS = [
    "Health check failed: ", "ERROR: ", "nhc: ", "NHC: ", IB, "gn01", "20240603 08:00:01", "Jun  3 08:00:01", "nhc[7]: ",
    "/usr/libexec/nhc/node-mark-offline", "Node Health Check starting.", "20249999 08:00:01", " ", "x", '{"progname":"nhc"',
]  # fmt: skip


@given(lines=st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), max_size=8))
@settings(max_examples=100, deadline=None)
def test_every_line_of_any_log_has_one_fate(lines: list[str]) -> None:
    stream = ExportStream.of("\n".join(lines).encode())
    pieces = list(parse(stream, CONTEXT))
    assert sum(p.used for p in pieces) == sum(f.height for p in pieces for f in p.frames.values())
    assert sum(p.used + p.ignored.total() + len(p.rejects) for p in pieces) == stream.lines


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    text = '{"progname":"nhc","healthy":"false","message":"check_hw_gpu: \\ud800 lost"}\n'
    assert rows(text)["text"].to_list() == ["check_hw_gpu: \ufffd lost"]


@pytest.mark.parametrize("message", ["GPU ٣ is lost", "nvme٣ is lost", "mlx5_٣ is down"])
def test_digits_of_other_scripts_name_no_device(message: str) -> None:
    assert failure(message).device is None


def test_a_stamp_outside_every_calendar_rejects_its_line_only() -> None:
    bad = f"9999-12-31T23:59:59-23:59 gn01 nhc[1]: Health check failed:  {IB}"
    [parsed, *_] = parse(ExportStream.of(f"{bad}\n{HELPER}\n".encode()), CONTEXT)
    assert [r.line for r in parsed.rejects] == [1]
    assert parsed.used == 1
