"""Ingest of a file that grows: what a half-written line said, or hid, leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows import pipeline
from tests.flows.ingest_help import ROOT, append, check_balance, config, ids, labels, report_of, rows, write
from transforms import lake

TOML = """
[clusters.c1]
zone = "UTC"
[[sources]]
path = "exports/**"
cluster = "c1"
node = "gpu0009"
collected_at = 2024-06-05T00:00:00Z
"""
CHECKS = (ROOT / "tests/fixtures/sources/health_check/json_and_sge/input.log").read_bytes()
HALF_MESSAGE, HALF_WORD = 474, 525
"""Where the fixture is cut: in the message of a failed check, and where its last line hides what the file is."""
XID = (
    "Jun  3 08:00:02 gpu0001 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "exports").mkdir()
    return tmp_path


def texts(home: Path) -> list[str]:
    frame = lake.scan(home / "data/lake", "hardware_events").collect()
    return sorted(frame["text"].to_list())


WHOLE = [
    "Can't write /var/log/nhc.log as root (uid 0) -- Read-only filesystem/device failure?",
    "check_fs_mount: \"/scratch\" not mounted",
    "check_hw_swap: Actual SWAP size (1 kB) less than minimum allowed (2 kB).",
]  # fmt: skip


def test_a_file_that_only_grew_keeps_its_format_where_its_head_tells_none(home: Path) -> None:
    path = write(home, "nhc.log", CHECKS[:HALF_MESSAGE])
    pipeline.ingest(config(home, TOML))
    assert texts(home) == [WHOLE[1], "check_hw_swap: Actual SWAP size (1 kB)"]
    path.write_bytes(CHECKS[:HALF_WORD])
    assert report_of(pipeline.ingest(config(home, TOML)), "nhc.log").status == "loaded"
    path.write_bytes(CHECKS)
    pipeline.ingest(config(home, TOML))
    assert texts(home) == WHOLE, "the record that was cut short is gone, and none is there twice"
    check_balance(home)


def test_the_same_bytes_at_first_sight_are_unknown(home: Path) -> None:
    """Only what was read before helps: otherwise the test above would show nothing."""
    path = write(home, "nhc.log", CHECKS[:HALF_WORD])
    assert report_of(pipeline.ingest(config(home, TOML)), "nhc.log").status == "unknown_format"
    path.write_bytes(CHECKS)
    pipeline.ingest(config(home, TOML))
    assert texts(home) == WHOLE
    check_balance(home)


def test_a_longer_head_that_tells_one_other_format_is_believed(home: Path) -> None:
    """The first line of a system log may be a health check's; the kernel's lines after it must not be lost."""
    path = write(home, "messages", CHECKS.splitlines(keepends=True)[0])
    assert report_of(pipeline.ingest(config(home, TOML)), "messages").source == "health_check"
    append(path, XID)
    assert report_of(pipeline.ingest(config(home, TOML)), "messages").source == "kernel_log"
    [text] = texts(home)
    assert "Xid" in text
    check_balance(home)


@pytest.mark.parametrize("between", ["no export at all\n", labels(7)[:30], labels(7), ""])
def test_a_cut_record_goes_when_its_file_comes_back_longer(home: Path, between: str) -> None:
    """Whatever stood in the file in between, unknown, cut short or read well: its first version is held again."""
    path = write(home, "nhc.log", CHECKS[:HALF_MESSAGE])
    pipeline.ingest(config(home, TOML))
    path.write_text(between)
    pipeline.ingest(config(home, TOML))
    path.write_bytes(CHECKS)
    pipeline.ingest(config(home, TOML))
    assert texts(home) == WHOLE
    assert ids(home) == (["i7"] if between == labels(7) else [])
    check_balance(home)


@pytest.mark.parametrize("back", [100, 390, 400, 473])
def test_a_cut_record_goes_when_its_file_was_shorter_for_a_while(home: Path, back: int) -> None:
    """A copy caught while it is written again is shorter at first, and then grows past where it was."""
    path = write(home, "nhc.log", CHECKS[:HALF_MESSAGE])
    for size in (HALF_MESSAGE, back, HALF_WORD, len(CHECKS)):
        path.write_bytes(CHECKS[:size])
        pipeline.ingest(config(home, TOML))
    assert set(texts(home)) == set(WHOLE)
    check_balance(home)


def test_what_another_version_said_stays(home: Path) -> None:
    """Only bytes that are held again are read a second time; a log that was rotated away keeps its half line."""
    path = write(home, "nhc.log", CHECKS[:HALF_MESSAGE])
    pipeline.ingest(config(home, TOML))
    path.write_bytes(CHECKS[HALF_MESSAGE - 84 :])
    pipeline.ingest(config(home, TOML))
    assert texts(home) == sorted([*WHOLE, "check_hw_swap: Actual SWAP size (1 kB)"])
    assert sum(rows(home, "hardware_events").values()) == 4
    check_balance(home)
