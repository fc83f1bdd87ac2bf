"""PCI Express errors as Linux's AER driver prints them (drivers/pci/pcie/aer.c, err.c of 5.15)."""

from __future__ import annotations

ROOT_PORT = "8086:352a"
SWITCH_PORT = "1000:c030"
GPU = "10de:2330"
ADAPTER = "15b3:1021"

UNCORRECTED = {
    "DLP": (4, "Data Link Layer"),
    "SDES": (5, "Transaction Layer"),
    "CmpltTO": (14, "Transaction Layer"),
    "MalfTLP": (18, "Transaction Layer"),
    "UnsupReq": (20, "Transaction Layer"),
}
"""Uncorrected errors: short name, bit, layer."""

CORRECTED = {
    "RxErr": (0, "Physical Layer"),
    "BadTLP": (6, "Data Link Layer"),
    "BadDLLP": (7, "Data Link Layer"),
    "Rollover": (8, "Data Link Layer"),
    "Timeout": (12, "Data Link Layer"),
}
"""Corrected errors: short name, bit, layer."""


def port_above(address: str, below: int = 6) -> str:
    """The root port above a device: on these boards six buses before a GPU, three before the adapter beside it."""
    domain, bus = address.split(":")[:2]
    return f"{domain}:{int(bus, 16) - below:02x}:01.0"


def _agent(name: str) -> str:
    return "(Requester ID)" if name == "CmpltTO" else "(Receiver ID)"


def uncorrected(reporter: str, device: str, device_id: str, name: str, driver: str, fatal: bool = True) -> list[str]:
    """An uncorrected error that a root port received from a device below it.

    Args:
        reporter: address of the root port.
        device: address of the device that signals, with function; the port itself where the link is gone.
        device_id: vendor and device number.
        name: short name of the error.
        driver: driver of the device.
        fatal: whether it is fatal.
    """
    bit, layer = UNCORRECTED[name]
    severity = "Uncorrected (Fatal)" if fatal else "Uncorrected (Non-Fatal)"
    return [
        f"pcieport {reporter}: AER: {severity} error received: {device}",
        f"{driver} {device}: PCIe Bus Error: severity={severity}, type={layer}, {_agent(name)}",
        f"{driver} {device}:   device [{device_id}] error status/mask={1 << bit:08x}/00100000",
        f"{driver} {device}:    [{bit:2d}] {name:<22} (First)",
    ]


def unrecovered(reporter: str, *victims: str) -> list[str]:
    """Recovery given up: NVIDIA's driver has no handler; `victims` are "driver address" pairs."""
    told = [f"{victim}: AER: can't recover (no error_detected callback)" for victim in victims]
    return [*told, f"pcieport {reporter}: AER: device recovery failed"]


def corrected(reporter: str, device: str, device_id: str, name: str, driver: str) -> list[str]:
    """A corrected error: the link repeated what was garbled."""
    bit, layer = CORRECTED[name]
    agent = "(Transmitter ID)" if name in ("Rollover", "Timeout") else "(Receiver ID)"
    return [
        f"pcieport {reporter}: AER: Corrected error received: {device}",
        f"{driver} {device}: PCIe Bus Error: severity=Corrected, type={layer}, {agent}",
        f"{driver} {device}:   device [{device_id}] error status/mask={1 << bit:08x}/0000e000",
        f"{driver} {device}:    [{bit:2d}] {name:<22} (First)",
    ]
