"""How each cause shows itself: small files by family, each with its `SIGNATURES`."""

from __future__ import annotations

from flows.replay.model import Signature
from flows.replay.signatures import (
    drives,
    gpu,
    gpu_late,
    gpu_lockup,
    gpu_memory,
    gpu_nvlink,
    gpu_processor,
    gpu_sram,
    host_parts,
    host_power,
    maintenance,
    network,
    nic,
    services,
    software,
)

_FAMILIES = (
    gpu,
    gpu_nvlink,
    gpu_lockup,
    gpu_memory,
    gpu_sram,
    gpu_processor,
    gpu_late,
    network,
    nic,
    host_power,
    host_parts,
    drives,
    software,
    services,
    maintenance,
)

SIGNATURES: tuple[Signature, ...] = tuple(signature for family in _FAMILIES for signature in family.SIGNATURES)
"""Every signature of every cause."""
