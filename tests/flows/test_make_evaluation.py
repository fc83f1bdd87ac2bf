"""The page of docs/evaluation.md: what is measured of a small fleet, and what is said of made-up results."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flows import demo
from flows.config import load
from flows.demo import Replay

DOCS = Path(__file__).resolve().parents[2] / "docs"
SMALL = Replay(seed=4, nodes=16, days=2)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """docs/make_evaluation.py; docs/ is no package."""
    path = sys.path.copy()
    spec = importlib.util.spec_from_file_location("make_evaluation", DOCS / "make_evaluation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


@pytest.fixture(scope="module")
def page() -> Any:
    spec = importlib.util.spec_from_file_location("evaluation_page", DOCS / "evaluation_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page


def test_a_fleet_is_measured_and_without_a_rule(script: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    config = load(demo.prepare_replay(folder, SMALL))
    result = script.measured(folder, config, SMALL)
    total = result["interruptions"]
    assert total >= 6
    assert result["causes"][1] + result["unidentifiable"][1] + result["missed"] <= total
    assert sum(of for *_, of in result["calibration"]) == result["causes"][1]
    assert sum(result["wrong"].values()) == result["causes"][1] - result["causes"][0]
    without = dict(script.without_rules(folder, config))
    assert without[""] == {name: result[name] for name in without[""]}, "a build with all rules says the same"
    assert len(without) > 20
    assert all(w["interruptions"] == total for w in without.values())
    assert any(w["causes"][0] < result["causes"][0] for w in without.values())


def test_what_is_finished_is_kept_until_the_code_changes(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / f"{script.key(SMALL)}.json").write_text('{"code": "old"}')
    assert script._finished(tmp_path, SMALL, False, "old") == {"code": "old"}
    assert script._finished(tmp_path, SMALL, False, "new") is None
    assert script._finished(tmp_path, SMALL, False, None) == {"code": "old"}
    assert script._finished(tmp_path, SMALL, True, None) is None


def result(seed: int, causes: int, **changes: Any) -> dict[str, Any]:
    return {
        "seed": seed,
        "nodes": 2048,
        "days": 54,
        "mix": "llama3",
        "interruptions": 100,
        "missed": 0,
        "invented": 0,
        "planned": [100, 100],
        "causes": [causes, 100],
        "nodes_right": [50, 50],
        "wrong": {"nic": 100 - causes},
        "brier": 0.02,
        "effective_training_time_error": 0.001,
        "by_cause": {"nic": [100, 90, causes, 1], "ssd": [0, 1, 0, 0]},
        "calibration": [[0.9, 0.95, 0.92, 9, 10]],
        **changes,
    }


def test_the_page_says_whether_targets_are_reached_and_the_demo_is_like_the_others(page: Any) -> None:
    rules = {"": result(1, 98), "gpu_lost": result(1, 90, wrong={"gpu_faulty": 8, "nic": 2}), "nic": result(1, 98)}
    seeds = [result(2, 96), result(3, 98, missed=1), result(4, 99, effective_training_time_error=-0.003)]
    text = page(result(1, 97), seeds, [result(1, 99, nodes=256, mix="hbm_heavy")], {"rules": rules})
    rows = text.splitlines()
    assert "| no interruption missed or invented | 3 of 4 | yes |" in rows
    assert "| cause right in at least 97% of identifiable ones | 3 of 4 | yes |" in rows
    assert "| effective training time within 0.2 points | 3 of 4 | yes |" in rows
    assert "| cause right | 97.0% | 96.0% to 99.0% | yes |" in rows
    assert "| nic | 300 | 270 | 293 | 3 |" in rows
    assert "| 90% to 95% | 92.0% | 90.0% | 30 |" in rows
    assert "| `gpu_lost` | 90 of 100 (90.0%) | -8.0 | +0 | gpu_faulty -8 |" in rows
    assert "| `nic` | 98 of 100 (98.0%) | +0.0 | +0 | none |" in rows
    assert any(row.startswith("| 256 nodes, hbm_heavy | 100 |") for row in rows)
    unlucky = page(result(1, 95), seeds, [], {"rules": rules})
    assert "| cause right | 95.0% | 96.0% to 99.0% | no |" in unlucky
    assert "| cause right in at least 97% of identifiable ones | 2 of 3 | no |" in unlucky
