"""System event logs beyond their golden cases: real logs, what each event means, identity, settings."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from transforms.outcome import Context, MissingSettingError, Parsed
from transforms.parsing.sel_classes import EVENT_CLASSES, meaning
from transforms.parsing.sel_times import SelTimes
from transforms.sources.ipmi_sel import parse, sniff
from transforms.stream import ExportStream
from transforms.tables import HARDWARE_EVENTS

ROOT = Path(__file__).resolve().parents[2]
COLLECTED = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = Context(COLLECTED, cluster="c1", zone="UTC", node="gn01")


def read(data: bytes, context: Context = CONTEXT) -> tuple[pl.DataFrame, list[Parsed]]:
    parsed = list(parse(ExportStream.of(data), context))
    frames = [p.frames[HARDWARE_EVENTS.name] for p in parsed if p.frames]
    return (pl.concat(frames) if frames else HARDWARE_EVENTS.schema.to_frame()), parsed


def record(sensor: str, event: str, direction: str = "Asserted", number: str = "1") -> bytes:
    return f"{number:>4} | 06/03/2024 | 08:00:00 | {sensor} | {event} | {direction}\n".encode()


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        (
            "ipmi-sel__chassis-intrusion",
            {"sel_intrusion": 5, "sel_boot": 7, "sel_power_supply_failure": 4, "sel_other": 7},
        ),
        ("ipmi-sel__sel-log-cleared", {"sel_log_cleared": 1}),
    ],
)
def test_real_logs_are_read_whole(shared: Path, name: str, classes: dict[str, int]) -> None:
    """23 and 1 records; the failing power supply came back within seconds, twice."""
    data = (shared / "exports/public/linuxfabrik_sel" / name).read_bytes()
    assert sniff(data)
    rows, parsed = read(data)
    assert dict(Counter(rows["event_class"])) == classes
    assert sum(p.used for p in parsed) == rows.height == sum(classes.values())
    assert not any(p.rejects for p in parsed)
    assert rows["record_id"].n_unique() == rows.height
    assert rows["occurred_at"].null_count() == 0
    supply = rows.filter(pl.col("event_class") == "sel_power_supply_failure").sort("line")
    assert supply["severity"].to_list() in ([], [None, "info"] * 2)
    assert set(supply["unit"]) <= {"PS1 Status"}


# Sensor, event, direction -> class, severity, kind of device, device, unit.
MEANINGS = [
    ("Power Supply PS1 Status | Failure detected () | Asserted", "sel_power_supply_failure - node - PS1 Status"),
    ("Power Supply PS1 Status | Failure detected () | Deasserted", "sel_power_supply_failure info node - PS1 Status"),
    ("Power Supply PSU2 | Power Supply AC lost | Asserted", "sel_power_input_lost - node - PSU2"),
    ("Power Supply PSU2 | Predictive failure | Asserted", "sel_power_supply_warning - node - PSU2"),
    ("Power Supply PSU2 | Presence detected | Deasserted", "sel_other - node - PSU2"),
    ("Power Supply PS Redundancy | Redundancy Lost | Asserted", "sel_power_redundancy_lost - node - PS Redundancy"),
    ("Power Unit PSRedundancy | Fully Redundant | Asserted", "sel_power_redundancy_lost info node - PSRedundancy"),
    ("Power Unit Pwr | Non-Redundant: Insufficient Resources | Asserted", "sel_power_redundancy_lost - node - Pwr"),
    ("Power Unit #0x01 | Power off/down | Asserted", "sel_power_off - node - #0x01"),
    ("System ACPI Power State ACPI | S5/G2: soft-off | Asserted", "sel_power_off - node - ACPI"),
    ("System ACPI Power State ACPI | S0/G0: working | Asserted", "sel_boot info node - ACPI"),
    ("Fan FAN3 | Lower Critical going low  | Asserted", "sel_fan - node - FAN3"),
    ("Fan FAN3 | Lower Non-critical going low  | Asserted", "sel_fan nonfatal node - FAN3"),
    ("Fan FAN3 | Lower Critical going low  | Deasserted", "sel_fan info node - FAN3"),
    ("Fan Fan Redundancy | Redundancy Lost | Asserted", "sel_cooling_redundancy_lost - node - Fan Redundancy"),
    ("Cooling Device Cooling | Fully Redundant | Asserted", "sel_cooling_redundancy_lost info node - Cooling"),
    ("Memory CPU1_DIMM_A1 | Uncorrectable ECC | Asserted", "sel_memory_uncorrected uncorrected memory CPU1_DIMM_A1 ="),
    ("Memory CPU1_DIMM_A1 | Correctable ECC | Asserted", "sel_memory_corrected corrected memory CPU1_DIMM_A1 ="),
    ("Memory #0xd1 | Correctable ECC logging limit reached | Asserted", "sel_memory_corrected corrected memory - #0xd1"),
    ("Event Logging Disabled | Correctable memory error logging disabled | Asserted", "sel_memory_corrected corrected memory - -"),
    ("Memory DIMM_B2 | Critical Overtemperature | Asserted", "sel_temperature_critical - memory DIMM_B2 ="),
    ("Processor CPU0_Status | IERR | Asserted", "sel_processor_error - cpu CPU0_Status ="),
    ("Processor CPU0_Status | Thermal Trip | Asserted", "sel_processor_error - cpu CPU0_Status ="),
    ("Processor #0x88 | Uncorrectable machine check exception | Asserted", "sel_processor_error uncorrected cpu - #0x88"),
    ("Processor #0x88 | Correctable machine check error | Asserted", "sel_processor_corrected corrected cpu - #0x88"),
    ("Processor #0x88 | Presence detected | Asserted", "sel_other info node - #0x88"),
    ("Processor CATERR | State Asserted | Asserted", "sel_processor_error - cpu CATERR ="),
    ("Unknown CPU_CATERR | State Asserted | Asserted", "sel_processor_error - cpu CPU_CATERR ="),
    ("Processor CATERR | State Deasserted | Asserted", "sel_processor_error info cpu CATERR ="),
    ("Critical Interrupt PCIe Slot3 | PCI PERR | Asserted", "sel_critical_interrupt - pcie - PCIe Slot3"),
    ("Critical Interrupt #0x17 | PCI SERR | Asserted", "sel_critical_interrupt - pcie - #0x17"),
    ("Critical Interrupt #0x17 | Bus Fatal Error | Asserted", "sel_critical_interrupt fatal pcie - #0x17"),
    ("Critical Interrupt #0x17 | Bus Uncorrectable error | Asserted", "sel_critical_interrupt uncorrected pcie - #0x17"),
    ("Critical Interrupt #0x17 | Bus Correctable error | Asserted", "sel_bus_corrected corrected pcie - #0x17"),
    ("Critical Interrupt #0x17 | Bus Degraded | Asserted", "sel_bus_degraded - pcie - #0x17"),
    ("Critical Interrupt GPU2 | PCI SERR | Asserted", "sel_critical_interrupt - gpu GPU2 ="),
    ("Temperature GPU3 | Upper Critical going high | Asserted", "sel_temperature_critical - gpu GPU3 ="),
    ("Temperature TEMP_GPU_3 | Upper Non-critical going high | Asserted", "sel_temperature_warning nonfatal gpu GPU_3 TEMP_GPU_3"),
    ("Temperature GPU3 | Upper Non-recoverable going high | Asserted", "sel_temperature_critical - gpu GPU3 ="),
    ("Temperature Inlet Temp | Upper Critical going high | Deasserted", "sel_temperature_critical info node - Inlet Temp"),
    ("Temperature GPU3 | Lower Critical going low | Asserted", "sel_temperature_warning - gpu GPU3 ="),
    ("Temperature GPU3 | Transition to OK | Asserted", "sel_temperature_critical info gpu GPU3 ="),
    ("Voltage P12V | Lower Critical going low | Asserted", "sel_voltage_critical - node - P12V"),
    ("Voltage P12V | Lower Non-critical going low | Asserted", "sel_voltage_warning nonfatal node - P12V"),
    ("Drive Slot / Bay Drive 0 | Drive Fault () | Asserted", "sel_drive_fault - disk Drive_0 Drive 0"),
    ("Drive Slot / Bay #0x44 | Predictive Failure | Asserted", "sel_drive_predicted - disk - #0x44"),
    ("Drive Slot #0x44 | Drive Present | Asserted", "sel_other info node - #0x44"),
    ("OS Critical Stop | Run-time critical stop | Asserted", "sel_os_stop - node - -"),
    ("OS Stop/Shutdown | OS graceful shutdown | Asserted", "sel_os_shutdown info node - -"),
    ("Watchdog2 Watchdog | Hard reset | Asserted", "sel_watchdog - node - Watchdog"),
    ("System Boot Initiated | Initiated by power up | Asserted", "sel_boot info node - -"),
    ("System Event | OEM System boot event | Asserted", "sel_boot info node - -"),
    ("Boot Error #0x1 | No bootable media | Asserted", "sel_boot_failed - node - #0x1"),
    ("Management Subsys Health GPU3 Temp | Sensor failure | Asserted", "sel_sensor_unreadable - gpu GPU3 GPU3 Temp"),
    ("Management Subsystem Health BMC | Management controller off-line | Asserted", "sel_other - node - BMC"),
    ("Slot / Connector Riser1 | Fault Status | Asserted", "sel_board_fault - node - Riser1"),
    ("Module / Board PEX Switch 0 | Transition to Critical from less severe | Asserted", "sel_board_fault - node - PEX Switch 0"),
    ("Physical Security Chassis Intru | General Chassis intrusion () | Asserted", "sel_intrusion - node - Chassis Intru"),
    ("Version Change #0x1 | Firmware or software change detected | Asserted", "sel_other info node - #0x1"),
    ("Button Power Button | Power Button pressed | Asserted", "sel_other info node - Power Button"),
    ("Unknown #0xff |  | Asserted", "sel_other - node - #0xff"),
    ("Frobnicator X1 | Reticulated | Asserted", "sel_other - node - Frobnicator X1"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "expected"), MEANINGS, ids=[told for told, _ in MEANINGS])
def test_every_event_has_its_meaning(told: str, expected: str) -> None:
    """`-` is null, `=` the same as the device, `_` in a device a blank where the unit has one."""
    sensor, event, direction = (part.strip() for part in told.split("|"))
    name, severity, kind, device, unit = expected.split(" ", 4)
    found = meaning(sensor, event, direction)
    wanted_unit = device if unit == "=" else unit
    assert found.event_class in EVENT_CLASSES
    assert (found.event_class, found.severity or "-", found.device_kind) == (name, severity, kind)
    assert (found.device or "-").replace(" ", "_") == device
    assert (found.unit or "-") == wanted_unit


def test_every_class_has_its_evidence_class_and_what_ended_is_never_fatal() -> None:
    with (ROOT / "warehouse" / "reference" / "event_classes.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["event_class"].startswith("sel_")]
    assert {r["event_class"] for r in rows if r["severity"] == "*"} == EVENT_CLASSES
    assert {r["event_class"] for r in rows if r["is_fatal"] == "true"} == {
        "sel_memory_uncorrected", "sel_processor_error", "sel_critical_interrupt", "sel_os_stop",
    }  # fmt: skip
    ended = [r for r in rows if r["severity"] == "info"]
    assert all(r["evidence_class"] == f"{r['event_class']}_ended" and r["is_fatal"] == "false" for r in ended)
    plain = EVENT_CLASSES - {r["event_class"] for r in ended}
    assert plain == {"sel_boot", "sel_log_cleared", "sel_os_shutdown"}  # they end nothing and are ended by nothing


def test_an_assertion_and_its_end_have_the_same_node_class_and_unit() -> None:
    """Whatever the event: the pair is found by these three."""
    for told, _ in MEANINGS:
        sensor, event, _ = (part.strip() for part in told.split("|"))
        on, off = meaning(sensor, event, "Asserted"), meaning(sensor, event, "Deasserted")
        assert (on.event_class, on.unit, on.device) == (off.event_class, off.unit, off.device)


def test_a_record_is_the_same_from_either_export_of_it() -> None:
    """A node's own log and the same through pdsh; blanks that only pad; upper-case ids."""
    alone, _ = read(b"   a | 06/03/2024 | 08:00:00 | Fan FAN1 | Lower Critical going low  | Asserted\n")
    prefixed = b"gn01: A | 06/03/2024 | 08:00:00 | Fan FAN1 | Lower Critical going low | Asserted\r\n"
    through, _ = read(prefixed, Context(COLLECTED, cluster="c1", zone="UTC"))
    assert alone["record_id"].to_list() == through["record_id"].to_list()
    assert through["node"].to_list() == ["gn01"]


def test_records_that_differ_are_two() -> None:
    """Each part of the identity counts: after a log is cleared ids begin anew."""
    lines = [
        record("Fan FAN1", "Lower Critical going low"),
        record("Fan FAN1", "Lower Critical going low", "Deasserted"),
        record("Fan FAN2", "Lower Critical going low"),
        record("Fan FAN1", "Lower Non-critical going low"),
        record("Fan FAN1", "Lower Critical going low", number="2"),
        record("Fan FAN1", "Lower Critical going low").replace(b"08:00", b"08:01"),
        record("Fan FAN1", "Lower Critical going low").replace(b"2024", b"2025"),
    ]
    rows, _ = read(b"".join(lines))
    assert rows["record_id"].n_unique() == len(lines)


def test_times_need_a_zone_unless_they_bring_one() -> None:
    bare = Context(COLLECTED, cluster="c1", node="gn01")
    with pytest.raises(MissingSettingError, match="zone"):
        read(record("Fan FAN1", "Lower Critical going low"), bare)
    rows, _ = read(b"1 | 06/03/2024 | 08:00:00 AM UTC | Fan FAN1 | Lower Critical going low | Asserted\n", bare)
    assert rows["occurred_at"].to_list() == [datetime(2024, 6, 3, 8, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("zone", "word", "hour"),
    [
        ("Asia/Kolkata", "IST", 2),
        ("Asia/Shanghai", "CST", 0),
        ("America/Chicago", "CDT", 13),
        ("Europe/London", "BST", 7),
    ],
)
def test_a_zone_word_with_several_meanings_is_that_of_the_configured_zone(zone: str, word: str, hour: int) -> None:
    """08:00 on 3 June: CST is 00:00Z in Shanghai; IST is 02:30Z."""
    found = SelTimes(Context(COLLECTED, cluster="c1", zone=zone)).read("06/03/2024", f"08:00:00 AM {word}")
    assert found.us is not None
    assert datetime.fromtimestamp(found.us / 1e6, UTC).hour == hour


def test_a_controller_that_does_not_name_its_node_is_flagged() -> None:
    rows, _ = read(record("Fan FAN1", "Lower Critical going low"), Context(COLLECTED, cluster="c1", zone="UTC"))
    assert rows["node"].to_list() == [None]
    assert rows["flags"].to_list() == [["node_missing"]]


def test_logs_without_entries_are_recognized_and_others_are_not() -> None:
    assert sniff(b"SEL has no entries\n")
    assert sniff(b"gpu0001: SEL has no entries\ngpu0002: Unable to establish IPMI v2 / RMCP+ session\n")
    assert not sniff(b"Unable to establish IPMI v2 / RMCP+ session\n")
    assert not sniff(b"JobID|State|Start\n1|COMPLETED|2024-06-03T08:00:00\n")
    assert not sniff(b"1|COMPLETED|2024-06-03T08:00:00\n2|FAILED|2024-06-03T08:00:00\n")
    assert not sniff(b"")
