"""Kernel logs: syslog files, journalctl and dmesg text, /dev/kmsg records -> hardware events.

Every line has one fate: it tells an event (used), a rule passes over it (ignored: `no_signature`, `not_kernel`, and the
details that a driver prints beside an event), or it tells an event at a time nobody can read (rejected).
"""

from __future__ import annotations

from collections.abc import Iterator

from transforms.outcome import Context, Parsed
from transforms.parsing.kernel.events import EventReader
from transforms.parsing.kernel.headers import HeaderReader, has_headers
from transforms.parsing.kernel.scan import scan
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import HARDWARE_EVENTS

PIECE_ROWS = 20_000
SNIFF_LINES = 500


def sniff(head: bytes) -> bool:
    """Tell whether most lines have a header of a kernel log, and at least one of them is the kernel's own."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines()[:SNIFF_LINES] if line.strip()]
    reader = HeaderReader()
    headers = [h for line in lines if (h := reader.split(line)) is not None]
    if 2 * len(headers) <= len(lines):
        return False
    # Without a tag only dmesg and /dev/kmsg remain; other programs put their level in brackets after such a stamp.
    return any(h.is_kernel and (h.host or not h.message.startswith("[")) for h in headers)


def parse(stream: ExportStream, ctx: Context) -> Iterator[Parsed]:
    """Yield hardware events in pieces of bounded size.

    Raises:
        MissingSettingError: no cluster, or stamps without an offset and no zone.
    """
    reader = EventReader(ctx, has_headers=has_headers(stream.head))
    end_line = stream.first_line
    for scanned in scan(stream):
        end_line = scanned.first_line + scanned.lines
        reader.ignore("no_signature", scanned.lines - len(scanned.hits))
        reader.reject(scanned.rejects)
        for before, byte_offset, raw in scanned.hits:
            reader.read(scanned.first_line + before, byte_offset, raw)
            if reader.held >= PIECE_ROWS:
                yield reader.take()
    yield reader.finish(end_line)


SOURCE = Source(
    name="kernel_log",
    tables=(HARDWARE_EVENTS,),
    sniff=sniff,
    parse=parse,
    doc="kernel log: /var/log/kern.log or messages, journalctl -k, dmesg in any time format, /dev/kmsg",
    version=3,
)
