"""Verdicts with one rule left out, on the bundled example: as published with all, and one cause less without a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows import pipeline
from flows.config import load
from flows.manifest import opened
from warehouse import ablation, publish, query
from warehouse.inputs import Inputs

Rows = list[dict[str, Any]]


@pytest.fixture
def inputs(demo_folder: Path) -> Inputs:
    config = load(demo_folder / "goodput.toml")
    with opened(config.data) as manifest:
        return pipeline.inputs_of(config, manifest)


def causes(rows: Rows) -> dict[str, str]:
    return {row["interruption_id"]: row["cause"] for row in rows}


def test_a_rule_that_is_left_out_says_nothing(demo_folder: Path, inputs: Inputs, tmp_path: Path) -> None:
    left_out = ["operator_change", "planned_rollout", "time_limit"]
    found = dict(ablation.without_each_rule(tmp_path, inputs, left_out))
    sql = "select * from marts.interruptions order by interruption_id"
    published = query.rows(publish.link_of(demo_folder / "data"), sql)
    assert found[None] == published
    assert found["time_limit"] == published, "it speaks of none of these, and what was left out before is back"

    def lost(rule: str) -> set[str]:
        before, after = causes(published), causes(found[rule])
        assert before.keys() == after.keys()
        return {before[i] for i in before if before[i] != after[i]}

    assert lost("operator_change") == {"operator_change"}, "no other rule speaks of it"
    assert "operator_change" not in causes(found["operator_change"]).values()
    assert lost("planned_rollout") <= {"planned_maintenance"}, "and it has been put back"
    assert "planned_rollout" not in {row["rule"] for row in found["planned_rollout"]}
    assert not list(tmp_path.glob("*.duckdb*"))


def test_every_rule_has_a_name_and_others_are_refused(inputs: Inputs, tmp_path: Path) -> None:
    assert {"gpu_lost", "planned_window", "operator_change"} <= set(ablation.rules())
    with pytest.raises(KeyError, match="no rule is called gpu_gone"):
        next(ablation.without_each_rule(tmp_path, inputs, ["gpu_gone"]))
