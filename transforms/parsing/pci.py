"""PCI addresses in the one form used everywhere: `dddd:bb:dd.f`, lower case."""

from __future__ import annotations

import re
from functools import lru_cache

# Domain of 4 or 8 digits (nvidia-smi prints 8), bus, device, and a function that NVRM's own messages leave out.
ADDRESS = r"(?:[0-9a-fA-F]{4}|[0-9a-fA-F]{8}):[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_PARTS = re.compile(
    r"(?:PCI:)?(?:(?P<domain>[0-9a-f]{4}|[0-9a-f]{8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})(?:\.(?P<function>[0-7]))?",
    re.IGNORECASE,
)
_DEVICES_PER_BUS = 32


@lru_cache(4096)
def pci_address(text: str) -> str | None:
    """Return a PCI address as `dddd:bb:dd.f` in lower case, or None where `text` is none.

    A missing domain is 0000, a missing function 0; a domain of eight digits is cut to four where it fits.
    A vendor and device id (`10de:2330`) is no address.
    """
    found = _PARTS.fullmatch(text.strip())
    if found is None or int(found["device"], 16) >= _DEVICES_PER_BUS:
        return None
    domain = int(found["domain"] or "0", 16)
    return f"{domain:04x}:{found['bus']}:{found['device']}.{found['function'] or '0'}".lower()
