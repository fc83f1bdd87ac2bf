"""What a kernel message says, apart from when and where."""

from __future__ import annotations

from typing import NamedTuple

FATAL, NONFATAL, UNCORRECTED, CORRECTED, INFO = "fatal", "nonfatal", "uncorrected", "corrected", "info"


class Event(NamedTuple):
    """The columns of `hardware_events` that the message alone decides; see transforms.tables."""

    event_class: str
    device_kind: str
    code: int | None = None
    device: str | None = None
    severity: str | None = None
    unit: str | None = None
    pid: int | None = None
    process: str | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None
    flags: tuple[str, ...] = ()
