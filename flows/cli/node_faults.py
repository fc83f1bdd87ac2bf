"""The faults of a node, so that few lines tell of many: by class and device, fatal ones first."""

from __future__ import annotations

from flows.cli import facts
from flows.cli.words import counted

NARROW = (("text", 24), ("first_at", 16), ("last_at", 16), ("events", 0), ("text", 0), ("cleared", 0), ("device", 8))

MAX_DEVICES = 3
"""More devices with the same non-fatal class become one line: every core of a hot processor says the same."""

USER, CORRECTED = "user processes", "corrected errors"


def grouped(faults: list[facts.Row]) -> list[facts.Row]:
    """Return lines of a table: fatal faults by class and device, then the others; what harms no machine is one line each.

    Args:
        faults: class, code, device, gpu_index, first_at, last_at, events, cleared_at, text, is_fatal, evidence_class; by first_at.
    """
    groups: dict[tuple[bool, str, str | None], list[facts.Row]] = {}
    for fault in faults:
        groups.setdefault((bool(fault["is_fatal"]), _class(fault), _device(fault)), []).append(fault)
    lines = [_line(*key, members) for key, members in _with_devices_joined(groups).items()]
    return sorted(lines, key=lambda line: (line["fatal"] is None, line["class"] in (USER, CORRECTED), line["first_at"]))


def _class(fault: facts.Row) -> str:
    if not fault["is_fatal"]:
        if fault["class"] == "process_fault":
            return USER
        if str(fault["evidence_class"]).endswith("_corrected"):
            return CORRECTED
    return fault["class"] if fault["code"] is None else f"{fault['class']} {fault['code']}"


def _device(fault: facts.Row) -> str | None:
    """Return the device; a GPU by its index where the inventory tells it: logs call one GPU by several names."""
    if _class(fault) in (USER, CORRECTED):
        return None
    return fault["device"] if fault.get("gpu_index") is None else f"GPU {fault['gpu_index']}"


def _with_devices_joined(
    groups: dict[tuple[bool, str, str | None], list[facts.Row]],
) -> dict[tuple[bool, str, str | None], list[facts.Row]]:
    devices: dict[tuple[bool, str], list[str | None]] = {}
    for is_fatal, name, device in groups:
        devices.setdefault((is_fatal, name), []).append(device)
    joined: dict[tuple[bool, str, str | None], list[facts.Row]] = {}
    for (is_fatal, name, device), members in groups.items():
        count = len(devices[is_fatal, name])
        shown = device if is_fatal or count <= MAX_DEVICES else counted(count, "device")
        joined.setdefault((is_fatal, name, shown), []).extend(members)
    return joined


def _line(is_fatal: bool, name: str, device: str | None, members: list[facts.Row]) -> facts.Row:
    cleared = sum(m["cleared_at"] is not None for m in members)
    if cleared == len(members) == 1:
        how = f"yes, {members[0]['cleared_by']}" if members[0]["cleared_by"] else "yes"
    else:
        how = {0: "no", len(members): "yes"}.get(cleared, f"{cleared} of {len(members)}")
    return {
        "fatal": "fatal" if is_fatal else None,
        "class": name,
        "device": device,
        "faults": len(members),
        "events": sum(m["events"] or 1 for m in members),
        "first_at": min(m["first_at"] for m in members),
        "last_at": max(m["last_at"] or m["first_at"] for m in members),
        "cleared": how,
        "text": members[0]["text"],
    }
