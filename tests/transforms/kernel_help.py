"""Reading kernel logs in tests."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from transforms.outcome import Context, Reject
from transforms.sources.kernel_log import parse
from transforms.stream import ExportStream
from transforms.tables import HARDWARE_EVENTS

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "sources" / "kernel_log"
CONTEXT = Context(datetime(2026, 11, 30, 12, tzinfo=UTC), cluster="c1", zone="UTC")
XID = b"Nov 30 02:00:%02d n1 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=%d, name=fit, Ch 00000008\n"
QUIET = b"Nov 30 02:00:00 n1 kernel: usb 1-1: new high-speed USB device number 2 using xhci_hcd\n"


@dataclass
class Read:
    """All pieces of an answer together."""

    lines: int
    frame: pl.DataFrame
    used: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejects: list[Reject] = field(default_factory=list)
    pieces: int = 0

    def rows(self) -> list[dict[str, object]]:
        return self.frame.to_dicts()

    def fates(self) -> int:
        return self.used + self.ignored.total() + len(self.rejects)


def read_stream(stream: ExportStream, ctx: Context = CONTEXT) -> Read:
    pieces = list(parse(stream, ctx))
    frames = [HARDWARE_EVENTS.enforce(p.frames["hardware_events"]) for p in pieces if p.frames]
    read = Read(stream.lines, pl.concat(frames) if frames else HARDWARE_EVENTS.schema.to_frame(), pieces=len(pieces))
    for piece in pieces:
        read.used += piece.used
        read.ignored += piece.ignored
        read.rejects += piece.rejects
    return read


def read(data: bytes, ctx: Context = CONTEXT, **stream: int) -> Read:
    return read_stream(ExportStream.of(data, **stream), ctx)


def mixed(lines: int, seed: int = 1) -> bytes:
    rng = random.Random(seed)
    return b"".join(XID % (i % 60, i) if rng.random() < 0.1 else QUIET for i in range(lines))
