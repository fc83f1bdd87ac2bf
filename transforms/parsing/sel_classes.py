"""What a record of a system event log means: its class, its severity and the part it speaks of.

The vocabulary is that of the IPMI 2.0 specification (tables 42-2 and 42-3) in the words that ipmitool prints. A record that no
rule below knows is of class `sel_other`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

OTHER = "sel_other"
OEM, PANIC = "OEM record", "Linux kernel panic"
"""What stands in place of a sensor where a record has none."""

INFO, CORRECTED, UNCORRECTED, FATAL, NONFATAL = "info", "corrected", "uncorrected", "fatal", "nonfatal"

# As ipmitool prints them, old and new spellings; the longest that fits comes first.
_TYPES = sorted(
    """
    Temperature|Voltage|Current|Fan|Physical Security|Platform Security|Processor|Power Supply|Power Unit|Cooling Device|Other
    Memory|Drive Slot / Bay|Drive Slot|POST Memory Resize|System Firmwares|System Firmware|Event Logging Disabled|Watchdog1
    Watchdog 1|System Event|Critical Interrupt|Button|Module / Board|Microcontroller|Add-in Card|Chassis|Chip Set|Other FRU
    Cable / Interconnect|Cable/Interconnect|Terminator|System Boot Initiated|Boot Error|OS Boot|OS Critical Stop
    OS Stop/Shutdown|Slot / Connector|Slot/Connector|System ACPI Power State|Watchdog2|Watchdog 2|Platform Alert
    Entity Presence|Monitor ASIC|LAN|Management Subsys Health|Management Subsystem Health|Battery|Session Audit
    Version Change|FRU State|Unknown|OEM|OEM reserved|Reserved
    """.strip().replace("\n", "|").split("|"),
    key=len,
    reverse=True,
)  # fmt: skip
_TYPE = re.compile(rf"({'|'.join(re.escape(t.strip()) for t in _TYPES)})(?:\s+(.*))?", re.IGNORECASE)
_GPU = re.compile(r"(?<![A-Za-z])GPU[ _-]?[0-9]+|(?<![A-Za-z])GPU(?![A-Za-z])", re.IGNORECASE)
_SENSOR_NUMBER = re.compile(r"#0x[0-9a-f]+|#[0-9a-f]+", re.IGNORECASE)

_POWER, _COOLING = r"power (supply|unit)", r"fan|cooling device"
_BOARD = r"slot ?/ ?connector|module / board|add-in card|chassis|chip set|other fru|monitor asic|microcontroller"
_WORSE = r"upper (critical|non-recoverable)|transition to (critical|non-recoverable)|limit exceeded|state asserted"
_LOST = r"redundancy (lost|degraded)|non-redundant|fully redundant"

# Event class, type of sensor, event; the first rule that fits holds. Event texts are matched anywhere in the event.
_RULES: tuple[tuple[str, str, str], ...] = (
    ("sel_processor_error", r"processor", r"uncorrectable|\bierr\b|thermal trip|frb[123]"),
    ("sel_processor_corrected", r"processor", r"correctable"),
    ("sel_memory_uncorrected", r"memory", r"uncorrectable|\bparity\b"),
    ("sel_memory_corrected", r"memory|event logging disabled", r"correctable"),
    ("sel_temperature_critical", r"memory", r"critical overtemperature"),
    ("sel_power_redundancy_lost", _POWER, _LOST),
    ("sel_power_input_lost", _POWER, r"\bac lost|input lost"),
    ("sel_power_off", r"power unit", r"power off|power down|power cycle"),
    ("sel_power_supply_failure", _POWER, r"failure detected|control failure"),
    ("sel_power_supply_warning", _POWER, r"predictive failure|out-of-range|config error|supply inactive"),
    ("sel_power_off", r"system acpi power state", r"soft-off|mechanical off|s5: entered|legacy off"),
    ("sel_cooling_redundancy_lost", _COOLING, _LOST),
    ("sel_fan", _COOLING, rf"lower|{_WORSE}|fail|non-critical|degraded|absent"),
    ("sel_temperature_critical", r"temperature|chip set", rf"{_WORSE}|thermal trip"),
    ("sel_temperature_warning", r"temperature", r"lower|non-critical|predictive failure|limit not exceeded"),
    ("sel_voltage_critical", r"voltage|current", rf"lower (critical|non-recoverable)|{_WORSE}"),
    ("sel_voltage_warning", r"voltage|current", r"non-critical|predictive failure|limit not exceeded"),
    ("sel_critical_interrupt", r"critical interrupt", r"\bperr|\bserr|uncorrectable|fatal|bus timeout|channel check"),
    ("sel_bus_corrected", r"critical interrupt", r"correctable"),
    ("sel_bus_degraded", r"critical interrupt", r"bus degraded"),
    ("sel_drive_predicted", r"drive slot( / bay)?", r"predictive failure"),
    ("sel_drive_fault", r"drive slot( / bay)?", r"fault|failed array|critical array"),
    ("sel_os_shutdown", r"os (critical stop|stop/shutdown)", r"graceful|soft shutdown"),
    ("sel_os_stop", r"os (critical stop|stop/shutdown)", r"critical stop|error during|not responding|panic"),
    ("sel_watchdog", r"watchdog ?[12]", r""),
    ("sel_boot", r"os boot|system boot initiated", r""),
    ("sel_boot", r"system event", r"boot event"),
    ("sel_boot", r"system acpi power state", r"working|legacy on"),
    ("sel_boot_failed", r"boot error", r""),
    ("sel_sensor_unreadable", r"management subsys(tem)? health", r"sensor"),
    ("sel_log_cleared", r"event logging disabled", r"reset/cleared|cleared"),
    ("sel_intrusion", r"physical security", r"intrusion"),
    ("sel_board_fault", _BOARD, rf"fault|{_WORSE}|predictive failure asserted|install error"),
    ("sel_board_fault", r"system event", r"undetermined system hardware failure"),
)  # fmt: skip
_COMPILED = tuple((name, re.compile(kind), re.compile(event)) for name, kind, event in _RULES)
_CATASTROPHE = re.compile(r"(?<![a-z])(caterr|mcerr|ierr|msmierr)(?![a-z])")
EVENT_CLASSES = frozenset((OTHER, *(rule[0] for rule in _RULES)))

_KINDS = {
    "sel_memory": "memory",
    "sel_processor": "cpu",
    "sel_drive": "disk",
    "sel_critical_interrupt": "pcie",
    "sel_bus": "pcie",
}
_PLAIN = frozenset(("sel_boot", "sel_log_cleared", "sel_os_shutdown"))
_NEWS = re.compile(
    r"device (installed|enabled)|clock sync|reconfigured|informational|spare\b|change detected|change success|"
    r"button pressed"
)
# Events that tell the good state: the one asserted is the other's end.
_GOOD = re.compile(
    r"fully redundant|state deasserted|predictive failure deasserted|limit not exceeded|performance met|transition to ok|"
    r"presence detected|(device|drive) present"
)
_SAID = (
    (NONFATAL, re.compile(r"non-?critical|non-?fatal")),
    (UNCORRECTED, re.compile(r"uncorrectable")),
    (CORRECTED, re.compile(r"correctable")),
    (FATAL, re.compile(r"\bfatal")),
)


class Meaning(NamedTuple):
    """What a record tells.

    Attributes:
        event_class: one of `EVENT_CLASSES`.
        severity: `info` for what ends or merely informs; corrected, uncorrected, nonfatal or fatal where it says so.
        device_kind: kind of part.
        device: GPU, DIMM, processor or drive as named; null for other parts.
        unit: sensor's name, or its number where the log gives none; null where there is but a type.
    """

    event_class: str
    severity: str | None
    device_kind: str
    device: str | None
    unit: str | None


@lru_cache(8192)
def meaning(sensor: str, event: str, direction: str | None) -> Meaning:
    """Return what a record tells.

    Args:
        sensor: type of the sensor and, where the tool knows it, its name: `Power Supply PS1 Status`, `Memory #0xd1`.
        event: what it reports, as printed.
        direction: Asserted, Deasserted, or None where the record has none.
    """
    if sensor == PANIC:
        return Meaning("sel_os_stop", None, "node", None, None)
    if sensor.startswith(OEM):
        return Meaning(OTHER, None, "node", None, None)
    found = _TYPE.fullmatch(sensor)
    kind, unit = (found[1].lower(), found[2] or None) if found else ("", sensor)
    said = event.lower()
    event_class = _class_of(kind, said, (unit or "").lower())
    device_kind, device = _device(event_class, unit)
    return Meaning(event_class, _severity(event_class, said, direction), device_kind, device, unit)


def _class_of(kind: str, said: str, unit: str) -> str:
    if _CATASTROPHE.search(said) or (_CATASTROPHE.search(unit) and "predictive" not in said):
        return "sel_processor_error"
    for name, of_kind, of_event in _COMPILED:
        if of_kind.fullmatch(kind) and (of_event.search(said) or _ends_as(name, said)):
            return name
    return OTHER


def _ends_as(name: str, said: str) -> bool:
    """Tell whether the event is the good state that ends a fault of this class."""
    endings = {
        "sel_temperature_critical": ("state deasserted", "transition to ok"),
        "sel_voltage_critical": ("state deasserted", "transition to ok"),
        "sel_fan": ("state deasserted", "transition to ok", "performance met", "limit not exceeded"),
        "sel_board_fault": ("state deasserted", "transition to ok", "predictive failure deasserted"),
    }
    return said.strip() in endings.get(name, ())


def _severity(event_class: str, said: str, direction: str | None) -> str | None:
    is_off = direction == "Deasserted"
    if _GOOD.search(said):
        return None if is_off else INFO
    if is_off or event_class in _PLAIN or (event_class == OTHER and _NEWS.search(said)):
        return INFO
    return next((severity for severity, words in _SAID if words.search(said)), None)


def _device(event_class: str, unit: str | None) -> tuple[str, str | None]:
    gpu = _GPU.search(unit or "")
    if gpu:
        return "gpu", gpu[0]
    if event_class == "sel_temperature_critical" and unit and re.search(r"dimm", unit, re.IGNORECASE):
        return "memory", unit
    kind = next((k for prefix, k in _KINDS.items() if event_class.startswith(prefix)), "node")
    is_named = kind in {"memory", "cpu", "disk"} and unit is not None and not _SENSOR_NUMBER.fullmatch(unit)
    return kind, unit if is_named else None
