"""`dcgmi diag -j` of one node: DCGM 4's tree, and DCGM 3's on the nodes that still run it."""

from __future__ import annotations

import json
import zlib

from flows.replay.model import Line, Scene

NAMES = {
    "software": ("Deployment", "NVML Library"),
    "memory": ("Hardware", "GPU Memory"),
    "diagnostic": ("Hardware", "Diagnostic"),
    "pcie": ("Integration", "PCIe"),
    "memory_bandwidth": ("Stress", "Memory Bandwidth"),
    "targeted_stress": ("Stress", "Targeted Stress"),
    "targeted_power": ("Stress", "Targeted Power"),
    "memtest": ("Stress", "Memtest"),
}
"""DCGM 4's test name: category, DCGM 3's name."""

WARNINGS = {
    "memory": (52, "Found %d faulty memory elements on GPU %d"),
    "mismatch": (58, "A memory mismatch was detected on GPU %d, but no error was reported by CUDA or NVML."),
    "row_remap_failure": (80, "GPU %d had uncorrectable memory errors and row remapping failed."),
    "row_remap_pending": (85, "GPU %d had memory errors and row remappings are pending"),
    "context": (66, "GPU %d failed to create a CUDA context: unknown error"),
    "stress": (50, "Max stress level of %.1f did not reach desired stress level of %.1f for GPU %d"),
    "thermal": (40, "There were thermal violations totaling %.1f seconds for GPU %d"),
    "l1": (79, "Detected a miscompare failure in the L1 cache."),
    "dbe": (103, "Detected %d dbe_volatile_sm for GPU %d"),
}
"""DCGM's error number and message (dcgm_errors.h)."""


def _results_4(gpus: int, culprit: int, failed: bool, error: int, warning: str) -> list[dict[str, object]]:
    results = []
    for gpu in range(gpus):
        result: dict[str, object] = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": "Pass"}
        if failed and gpu == culprit:
            result |= {
                "status": "Fail",
                "warnings": [{"error_category": 10, "error_id": error, "error_severity": 2, "warning": warning}],
            }
        results.append(result)
    return results


def _results_3(gpus: int, culprit: int, failed: bool, warning: str) -> list[dict[str, object]]:
    results: list[dict[str, object]] = [{"gpu_ids": str(gpu), "status": "Pass"} for gpu in range(gpus)]
    if failed:
        results[culprit] |= {"status": "Fail", "warnings": warning}
    return results


def report(node: str, gpus: int, failing: str = "", culprit: int = 0, error: int = 0, warning: str = "") -> str:
    """The document of a level-3 run; `failing` is the one test that fails on the culprit, empty if all pass."""
    old = zlib.crc32(node.encode()) % 6 == 0
    categories: dict[str, list[dict[str, object]]] = {}
    for name, (category, name_3) in NAMES.items():
        failed = name == failing
        test: dict[str, object] = {"name": name_3 if old else name}
        test["results"] = (
            _results_3(gpus, culprit, failed, warning) if old else _results_4(gpus, culprit, failed, error, warning)
        )
        if not old:
            test["test_summary"] = {"status": "Fail" if failed else "Pass"}
        categories.setdefault(category, []).append(test)
    tree: dict[str, object] = (
        {"version": "3.3.8"} if old else {"metadata": {"version": "4.2.3", "Driver Version Detected": "550.90.07"}}
    )
    tree["test_categories"] = [{"category": category, "tests": tests} for category, tests in categories.items()]
    return json.dumps({"DCGM GPU Diagnostic" if old else "DCGM Diagnostic": tree})


def diagnosed(scene: Scene, at: float, test: str, warning: str, *values: float) -> Line:
    """A diagnostic of the scene's node that fails on the scene's GPU; `values` fill the message before the GPU."""
    error, message = WARNINGS[warning]
    told = message % (*values, scene.gpu) if "%" in message else message
    return Line(at, scene.node, "diagnostic", report(scene.node, scene.fleet.gpus, test, scene.gpu, error, told))
