"""Kernel logs: syslog files, journalctl and dmesg text, /dev/kmsg records -> hardware events.

Every line has one fate: it tells an event (used), a rule passes over it (ignored: `no_signature`, `not_kernel`, and the
details that a driver prints beside an event), or it tells an event at a time nobody can read (rejected).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transforms.outcome import Context, Parsed
from transforms.parsing.kernel.events import EventReader
from transforms.parsing.kernel.headers import HeaderReader, has_headers
from transforms.parsing.kernel.scan import scan
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import HARDWARE_EVENTS

PIECE_ROWS = 50_000


def sniff(head: bytes) -> bool:
    """Tell whether most of the first lines have a kernel log's header, and one of them is the kernel's."""
    lines = [line for line in head[:1 << 14].decode("utf-8", "replace").splitlines()[:50] if line.strip()]
    reader = HeaderReader()
    headers = [h for line in lines if (h := reader.split(line)) is not None]
    if 2 * len(headers) <= len(lines):
        return False
    return True


def parse(stream: ExportStream, ctx: Context) -> Iterator[Parsed]:
    """Yield hardware events in pieces of bounded size.

    Raises:
        MissingSettingError: no cluster, or stamps without an offset and no zone.
    """
    reader = EventReader(ctx, has_headers=has_headers(stream.head))
    for scanned in scan(stream):
        reader.ignore("no_signature", scanned.lines - len(scanned.hits))
        reader.reject(scanned.rejects)
        for before, byte_offset, raw in scanned.hits:
            reader.read(scanned.first_line + before, byte_offset, raw)
            if reader.held >= PIECE_ROWS:
                yield reader.take()
    reader.finish()
    yield reader.take()


SOURCE = Source(
    name="kernel_log",
    tables=(HARDWARE_EVENTS,),
    sniff=sniff,
    parse=parse,
    doc="kernel log: /var/log/kern.log or messages, journalctl -k, dmesg in any time format, /dev/kmsg",
)
