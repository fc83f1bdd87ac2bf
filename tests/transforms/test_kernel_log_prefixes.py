"""What loggers put before a message hides no Xid: each is read, or rejected, wherever it stands in its line."""

from __future__ import annotations

import pytest

from tests.transforms.kernel_help import read

HEADER = "2026-03-02T10:59:00+00:00 n01 kernel: "
XID = "NVRM: Xid (PCI:0000:5d:00): 79, pid=1, name=fit, GPU has fallen off the bus."


@pytest.mark.parametrize(
    "before",
    [
        "",
        "kernel: ",
        "kernel[0]: ",
        "<3>",
        "<3>kernel: ",
        "nvidia: ",
        "[4.0] ",
        "[ 4123.456789][ T1234] ",
        "[ 4123.456789] [   T1234] ",
        "[Mon Mar  2 10:59:04 2026] ",
        "[ 4123.456789] kernel: [   T1234] ",
        "something else, then ",
    ],
)
def test_an_xid_is_read_whatever_stands_before_it(before: str) -> None:
    found = read(f"{HEADER}{before}{XID}\n".encode())
    assert not found.ignored
    [row] = found.rows()
    assert (row["event_class"], row["code"], row["device"], row["node"]) == ("xid", 79, "0000:5d:00.0", "n01")
    assert row["text"] == XID, "the same event in another export has the same text, and so the same identity"


@pytest.mark.parametrize("text", ["NVRM: xid (pci:", "nvrm: xid (PCI:", "NVRM: XID (PCI:"])
def test_letters_of_either_case(text: str) -> None:
    found = read(f"{HEADER}{XID.replace('NVRM: Xid (PCI:', text)}\n".encode())
    assert [r["code"] for r in found.rows()] == [79]


@pytest.mark.parametrize("text", ["NVRM: Xid (PCI:0000:5d:00): none", "a: NVRM: Xid (PCI:0000:5d", "NVRM: Xid ("])
def test_an_xid_that_cannot_be_read_is_rejected(text: str) -> None:
    found = read(f"{HEADER}{text}\n".encode())
    assert (found.used, dict(found.ignored)) == (0, {})
    assert [r.reason for r in found.rejects] == ["an Xid message without a code that can be read"]


def test_a_caller_after_the_stamp_leaves_the_stamp_readable() -> None:
    # printk prints the caller right after the stamp (CONFIG_PRINTK_CALLER); some loggers put a blank between.
    lines = [f"[ 4123.456789]{gap}[   T1234] {XID}\n" for gap in ("", " ")]
    assert [r["monotonic_us"] for r in read("".join(lines).encode()).rows()] == [4_123_456_789] * 2


def test_other_messages_are_read_behind_a_second_tag() -> None:
    found = read(f"{HEADER}kernel: <6>Linux version 6.8.0 (gcc)\n".encode())
    assert [r["event_class"] for r in found.rows()] == ["boot"]


@pytest.mark.parametrize("tag", ["logger", "user", "sudo"])
def test_what_another_program_says_of_an_xid_is_none(tag: str) -> None:
    found = read(f"{HEADER}{XID}\n2026-03-02T10:59:20+00:00 n01 {tag}: {XID}\n".encode())
    assert (found.used, dict(found.ignored)) == (1, {"not_kernel": 1})
