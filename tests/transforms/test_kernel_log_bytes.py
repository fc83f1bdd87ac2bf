"""The kernel log source on hostile bytes: compression, damage, any cut, any content, any size."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import random
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.kernel_help import CASES, CONTEXT, ROOT, XID, mixed, read
from transforms.compressed import DamagedError
from transforms.outcome import Context, UnreadableExportError
from transforms.parsing.kernel import scan
from transforms.parsing.kernel.headers import HeaderReader
from transforms.parsing.kernel.messages import NEEDLES
from transforms.sources.kernel_log import PIECE_ROWS, parse, sniff
from transforms.stream import HEAD_BYTES, ExportStream, opened

# --- compression and damage ---


def compressed(data: bytes, kind: str) -> bytes:
    if kind == "gz":
        return gzip.compress(data)
    if kind == "gz in members":
        half = data[: len(data) // 2]
        return gzip.compress(half) + gzip.compress(data[len(half) :]) + b"\0" * 512
    if kind == "zst":
        return zstandard.compress(data)
    if kind == "zst in frames":
        half = data[: len(data) // 2]
        return zstandard.compress(half) + zstandard.compress(data[len(half) :])
    return lzma.compress(data) if kind == "xz" else data


KINDS = ["gz", "gz in members", "zst", "zst in frames", "xz"]


@pytest.mark.parametrize("kind", KINDS)
def test_compressed_equals_plain(kind: str) -> None:
    data = mixed(8_000)
    plain, packed = read(data), read(compressed(data, kind))
    assert packed.rows() == plain.rows()
    assert (packed.lines, packed.fates(), packed.ignored) == (8_000, 8_000, plain.ignored)


@pytest.mark.parametrize("kind", ["gz", "zst", "xz"])
def test_a_file_that_breaks_off_keeps_the_lines_before(kind: str) -> None:
    rng = random.Random(3)
    data = b"".join(XID % (i % 60, rng.randrange(10**9)) for i in range(60_000))
    packed = compressed(data, kind)
    found = read(packed[: len(packed) * 2 // 3])
    whole = read(data).rows()
    assert 10_000 < found.used < 60_000
    assert found.rows() == whole[: found.used]
    [reject] = found.rejects
    assert "copy the file again" in reject.reason
    assert reject.line == found.used + 1 == found.lines == found.fates()
    assert data[reject.byte_offset :].startswith(reject.text.encode())


@pytest.mark.parametrize("kind", ["gz", "zst", "xz"])
def test_the_head_of_a_file_that_breaks_off_can_be_seen(kind: str) -> None:
    # Formats are told by the first bytes: a short file that breaks off must still be known.
    packed = compressed(b"".join(XID % (i % 60, i * 7919) for i in range(6_000)), kind)
    raw = opened(io.BytesIO(packed[: len(packed) * 2 // 3]))
    assert sniff(raw.read(HEAD_BYTES))
    with pytest.raises(DamagedError):
        list(iter(lambda: raw.read(1 << 20), b""))


@pytest.mark.parametrize("kind", ["gz", "zst", "xz"])
def test_a_file_that_breaks_off_at_once_is_an_error_that_says_what_to_do(kind: str) -> None:
    with pytest.raises(UnreadableExportError, match="copy the file again"):
        read(compressed(mixed(1000), kind)[:20])


def test_corrupt_gzip_is_noticed() -> None:
    packed = bytearray(compressed(mixed(20_000), "gz"))
    packed[-6] ^= 0xFF  # the checksum
    found = read(bytes(packed))
    assert "corrupt" in found.rejects[-1].reason
    assert found.lines == found.fates()


def test_what_follows_gzip_data_is_not_lost_in_silence() -> None:
    found = read(compressed(mixed(100), "gz") + b"and more")
    assert (found.lines, "bytes follow" in found.rejects[0].reason) == (101, True)


# --- any cut, any bytes ---


@settings(max_examples=25, deadline=None)
@given(chunk=st.integers(9, 3000), block=st.integers(9, 3000), max_line=st.sampled_from([40, 200, 1 << 20]))
def test_any_cut_gives_the_same_rows(chunk: int, block: int, max_line: int) -> None:
    data = b"".join((CASES / n / "input.log").read_bytes() for n in ("xid_headers", "gpu_messages", "latin1"))
    whole = read(data, max_line=max_line)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "BLOCK_BYTES", block)
        cut = read(data, chunk_bytes=chunk, max_line=max_line)
    assert cut.rows() == whole.rows()
    assert (cut.lines, cut.used, cut.ignored, cut.rejects) == (whole.lines, whole.used, whole.ignored, whole.rejects)
    assert cut.fates() == cut.lines == len(data.splitlines())


PARTS = [
    b"\n", b"\r\n", b" ", b"\0", b"\xff\xfe", b"[", b"]", b": ", b"kernel: ", b"NVRM: Xid (", b"PCI:0000:3b:00", b"): 79, ", b"pid=", b"name=",
    b"GPU has fallen off the bus", b"NVRM: The NVIDIA GPU 0000:b3:00.0", b"NVRM: (PCI ID: 10de:2330) installed in this system has",
    b"Nov 30 02:00:00 n1 kernel: ", b"Feb 29 02:00:00 n1 kernel: ", b"2025-05-04T11:00:00Z n1 kernel: ", b"9999-12-31T23:59:60-12:00 n1 kernel: ",
    b"0001-01-01T00:00:00+14:00 n1 kernel: ", b"[99999999999999999999.000000] ", b"[ 1.000000] ", b"6,1,99999999999999999999,-;", b"6,1,5,-;",
    b"[  +0.000001] ", b"[Feb13 04:56] ", b"9999999999.9 n1 kernel: ", b"kern  :warn  : ", b"GPU-I:99999999999 ", b"99999999999", "٣".encode(),
    *(n for n in NEEDLES),
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    data=st.lists(st.one_of(st.sampled_from(PARTS), st.binary(max_size=8))).map(b"".join),
    node=st.sampled_from([None, "n9"]),
)
def test_any_bytes_are_read_without_an_error_and_no_line_is_lost(data: bytes, node: str | None) -> None:
    ctx = Context(datetime(2026, 11, 30, tzinfo=UTC), cluster="c1", zone="Europe/Berlin", node=node)
    if data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00")):
        return
    sniff(data)
    found = read(data, ctx)
    assert found.fates() == found.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    for reject in found.rejects:
        assert data[reject.byte_offset :][: reject.byte_length].decode("utf-8", "replace") == reject.text


@settings(max_examples=100, deadline=None)
@given(data=st.lists(st.one_of(st.sampled_from(PARTS), st.binary(max_size=8))).map(b"".join))
def test_both_matchers_find_the_same_lines(data: bytes) -> None:
    found = [
        [scan.search(block, match) for block in ExportStream(io.BytesIO(data)).blocks()]
        for match in (scan.re_matcher(), scan.hyperscan_matcher())
    ]
    assert found[0] == found[1]


def test_without_hyperscan_the_rows_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join((CASES / n / "input.log").read_bytes() for n in ("host_messages", "gpu_messages", "stamp_forms"))
    fast = read(data)
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    scan.best_matcher.cache_clear()
    try:
        slow = read(data)
    finally:
        scan.best_matcher.cache_clear()
    assert slow.rows() == fast.rows()
    assert slow.ignored == fast.ignored
    assert slow.used > 100


@settings(max_examples=150, deadline=None)
@given(
    stamp=st.sampled_from(
        ["May  4 13:00:01", "May 14 13:00:01", "2025-05-04T11:00:00Z", "2025-05-04T11:00:00.1+02:00", "[ 1.000000]"]
    ),
    host=st.sampled_from(["n1", "n-1.x", "kernel:", "::1", ""]),
    tag=st.sampled_from(["kernel: ", "kernel:", "app: ", "app[1]: ", ""]),
    mono=st.sampled_from(["", "[12345.678901] ", "[    1.000001] ", "[12.1] ", "[1.000000][ T1] "]),
    message=st.one_of(st.text(max_size=20), st.sampled_from(["NVRM: x", "message repeated 2 times: [ a b]", " a "])),
)
def test_the_short_way_through_a_header_gives_what_the_long_one_gives(
    stamp: str, host: str, tag: str, mono: str, message: str
) -> None:
    line = f"{stamp} {host} {tag}{mono}{message}"
    assert HeaderReader().split(line) == HeaderReader().split_any(line)


# --- size ---


def test_a_storm_comes_in_pieces_of_bounded_size() -> None:
    data = b"".join(XID % (i % 60, i) for i in range(2 * PIECE_ROWS + 1))
    pieces = [p.frames["hardware_events"].height for p in parse(ExportStream.of(data), CONTEXT)]
    assert pieces == [PIECE_ROWS, PIECE_ROWS, 1]


class OneLine(io.RawIOBase):
    """Two hundred megabytes without a newline, between two ordinary lines, made as they are read."""

    def __init__(self) -> None:
        self._rest = 200 << 20
        self._ends = [XID % (2, 2), XID % (1, 1)]

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if len(self._ends) == 2 or (self._rest == 0 and self._ends):
            data = self._ends.pop() if self._rest else b"\n" + self._ends.pop()
        else:
            data = b"x" * min(self._rest, len(buffer))
            self._rest -= len(data)
        buffer[: len(data)] = data
        return len(data)


_LONG_LINE = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from tests.transforms.kernel_help import read_stream
from tests.transforms.test_kernel_log_bytes import OneLine
from transforms.stream import ExportStream
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = read_stream(ExportStream(OneLine()))
[reject] = found.rejects
assert [r["line"] for r in found.rows()] == [1, 3]
assert (reject.line, reject.byte_length, found.lines, found.fates()) == (2, 200 << 20, 3, 3)
assert len(reject.text) == 64 << 10
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_a_line_of_200_mb_takes_no_memory() -> None:
    command = [sys.executable, "-c", _LONG_LINE, str(ROOT)]
    grown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ})
    assert int(grown.stdout) < 100
