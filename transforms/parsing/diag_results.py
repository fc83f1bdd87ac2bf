"""The tree of a `dcgmi diag -j` document as a flat list of results: one per test and entity, whatever the version.

DCGM 2 and 3 name GPUs in `gpu_ids` ("0,1,2"), DCGM 4 an entity group and id. Names of tests changed too (`PCIe` and `pcie`,
`Page Retirement/Row Remap` and one part of `software`). Sources: NVIDIA/DCGM, dcgmi and dcgmlib/dcgm_errors.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from transforms.parsing.pci import pci_address

MAX_CODE = 2**31 - 1
"""DCGM keeps its error codes in 32 bits."""
ROOTS = ("DCGM GPU Diagnostic", "DCGM Diagnostic")
SOFTWARE = "software"
_ALIASES = {
    "blacklist": "denylist",
    "environment_variables": "environmental_variables",
    "page_retirement_row_remap": "row_remap",
    "page_retirement": "row_remap",
    "permissions_and_os_related_blocks": "permissions_and_os_blocks",
    "pci_express": "pcie",
    "gpu_memory": "memory",
}
# They look at settings, libraries and processes of the host. A pass says nothing about a GPU's health, nor does a failure.
SOFTWARE_TESTS = frozenset(
    (
        SOFTWARE, "denylist", "nvml_library", "cuda_main_library", "cuda_toolkit_library", "cuda_runtime_library",
        "permissions_and_os_blocks", "persistence_mode", "environmental_variables", "graphics_processes", "fabric_manager",
    )
)  # fmt: skip
# They read what the GPU has recorded: their failure is the GPU's, their pass tests nothing.
READING_TESTS = frozenset(("row_remap", "inforom"))
# Error codes of DCGM: of settings, permissions, libraries and processes; and of tests that could not be run.
SOFTWARE_ERRORS = frozenset((18, 21, 22, 23, 24, 25, 26, 28, 29, 55, 61, 66, 67, 68, 72, 74, 82, 96, 97, 108))
NOT_RUN_ERRORS = frozenset((47, 48, 55, 56, 60, 68, 73, 78, *range(89, 94), 108))
# What checks of the host's software find out about devices.
_ERROR_PARTS = {
    6: "row_remap", 7: "row_remap", 8: "row_remap", 80: "row_remap", 83: "row_remap", 84: "row_remap", 85: "row_remap",
    9: "inforom", 20: "device_count",
}  # fmt: skip
_TEXT_PARTS = (
    ("row_remap", re.compile(r"row.?remap|retired page|page retirement", re.IGNORECASE)),
    ("inforom", re.compile("inforom", re.IGNORECASE)),
)
_STATUSES = {"pass": "pass", "fail": "fail", "warn": "warn", "skip": "skip", "notrun": "skip"}
_KINDS = {
    "gpu": "gpu", "vgpu": "gpu", "switch": "nvswitch", "nvswitch": "nvswitch", "cpu": "cpu", "connectx": "nic",
}  # fmt: skip
_GROUPS = {1: "gpu", 2: "vgpu", 3: "switch", 4: "gpu_i", 5: "gpu_ci", 6: "link", 7: "cpu", 8: "cpu_core", 9: "connectx"}
_PCI_KEYS = ("pci_bus_id", "bus_id", "pci_id")


@dataclass(frozen=True, slots=True)
class Entity:
    """What was tested: `gpu` 2, `cpu` 0; `node` without a device where a result names none."""

    kind: str = "node"
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What one test says of one entity.

    Attributes:
        test: canonical name of the test, lower case: pcie, memory, memtest, diagnostic, targeted_stress, row_remap, ...
        entity: what was tested.
        status: pass, fail, warn or skip; None = a word that DCGM does not document.
        errors: error codes of DCGM told with it.
        text: what it says, as printed.
    """

    test: str
    entity: Entity
    status: str | None
    errors: tuple[int, ...] = field(default=())
    text: str | None = None

    @property
    def is_software(self) -> bool:
        """Whether it speaks of the host's software and settings only, or of a test that these kept from running."""
        if self.test in SOFTWARE_TESTS:
            return self.test != SOFTWARE or SOFTWARE_ERRORS.issuperset(self.errors)
        return bool(self.errors) and NOT_RUN_ERRORS.issuperset(self.errors)

    @property
    def is_exercise(self) -> bool:
        """Whether the test makes the device work, so that a pass says that it can."""
        return self.test not in SOFTWARE_TESTS and self.test not in READING_TESTS


def canonical(name: str) -> str:
    """Return the name of a test in the one form used everywhere."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return _ALIASES.get(plain, plain)


def is_document(found: object) -> bool:
    """Tell whether a JSON value is the answer of `dcgmi diag -j`."""
    return isinstance(found, dict) and any(isinstance(found.get(root), dict) for root in ROOTS)


def results(document: dict[str, Any]) -> Iterator[Result]:
    """Yield what the tests of a document say, skipping members that are null or of another type."""
    for root in ROOTS:
        for category in _dicts(_dict(document.get(root)).get("test_categories")):
            for test in _dicts(category.get("tests")):
                yield from _of_test(test)


def _of_test(test: dict[str, Any]) -> Iterator[Result]:
    """Yield the results of one test, and its summary where that says more than any of them."""
    name = canonical(str(test.get("name") or "unnamed"))
    worst = set()
    for told in _dicts(test.get("results")):
        status = _status(told.get("status"))
        worst.add(status)
        yield from (_result(name, entity, status, told) for entity in _entities(told))
    summary = _dict(test.get("test_summary"))
    status = _status(summary.get("status"))
    if summary and status in {"fail", "warn"} and status not in worst:
        yield _result(name, Entity(), status, summary)


def _result(name: str, entity: Entity, status: str | None, told: dict[str, Any]) -> Result:
    warnings = list(_warnings(told.get("warnings")))
    errors = tuple(code for code, _ in warnings if code is not None)
    text = "; ".join(text for _, text in warnings if text) or None
    return Result(_part(name, errors, text), entity, status, errors, text)


def _part(name: str, errors: tuple[int, ...], text: str | None) -> str:
    """Return the part of a check of the host's software that a result is about; other tests have no parts."""
    if name not in SOFTWARE_TESTS:
        return name
    by_code = next((_ERROR_PARTS[e] for e in errors if e in _ERROR_PARTS), None)
    by_text = None if errors else next((part for part, words in _TEXT_PARTS if words.search(text or "")), None)
    if by_code or by_text or name != SOFTWARE:
        return by_code or by_text or name
    named = canonical((text or "").partition(":")[0])
    return named if named in SOFTWARE_TESTS | READING_TESTS else name


def _warnings(found: object) -> Iterator[tuple[int | None, str | None]]:
    """Yield error code and text; one text, a list of texts or a list of objects, by version."""
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, dict):
            code, text = item.get("error_id"), item.get("warning")
            is_code = isinstance(code, int) and not isinstance(code, bool) and abs(code) <= MAX_CODE
            yield (code if is_code else None), (text.strip() if isinstance(text, str) else None)
        elif isinstance(item, str) and item.strip():
            yield None, item.strip()


def _entities(told: dict[str, Any]) -> list[Entity]:
    pci = next((address for key in _PCI_KEYS if (address := pci_address(str(told.get(key) or "")))), None)
    if "entity_group" in told or "entity_group_id" in told:
        return [_entity(told, pci)]
    ids = told.get("gpu_ids", told.get("gpu_id"))
    listed = [part.strip() for part in str("" if ids is None else ids).split(",")]
    found = [Entity("gpu", part) for part in listed if part.isascii() and part.isdecimal()]
    if pci and len(found) <= 1:
        return [Entity("gpu", pci)]
    return found or [Entity()]


def _entity(told: dict[str, Any], pci: str | None) -> Entity:
    named, number = told.get("entity_group"), told.get("entity_group_id")
    group = (
        named.lower() if isinstance(named, str) and named else _GROUPS.get(number) if isinstance(number, int) else None
    )
    device = told.get("entity_id")
    if group in _KINDS:
        return Entity(_KINDS[group], pci or (None if device is None else str(device)))
    return Entity("node", f"{group}:{device}" if group and device is not None else None)


def _status(found: object) -> str | None:
    return _STATUSES.get(re.sub(r"[^a-z]", "", found.lower())) if isinstance(found, str) else None


def _dict(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _dicts(found: object) -> list[dict[str, Any]]:
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
