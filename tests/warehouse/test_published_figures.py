"""The figures of the Llama 3 paper: what is printed, what its own counts give, and where the two differ."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chi2

from tests.warehouse.settings import settings
from warehouse import query, runner
from warehouse.build import build
from warehouse.inputs import Inputs

Figures = dict[str, dict[str, Any]]

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
SETTINGS = settings("user")


def figures(data: Path) -> Figures:
    report = build(data, Inputs(data / "lake", (), SETTINGS), started_at=MARCH, code_version="test")
    assert report.published, report.failed_checks
    assert report.path is not None
    rows = query.rows(report.path, "select * from marts.published_figures order by figure_order")
    return {row["figure"]: row for row in rows}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """The mart over an empty lake: only the paper speaks."""
    return figures(tmp_path_factory.mktemp("data"))


def test_table_5_is_whole(found: Figures) -> None:
    counts = [f["as_printed"] for f in found.values() if f["cause"] and f["unit"] == "interruptions"]
    assert counts == [148, 72, 54, 35, 32, 19, 17, 7, 7, 6, 6, 3, 3, 2, 2, 2, 2, 2]
    shares = [f["as_printed"] for f in found.values() if f["cause"] and f["unit"] == "percent"]
    assert shares == [30.1, 17.2, 12.9, 8.4, 7.6, 4.5, 4.1, 1.7, 1.7, 1.4, 1.4, 0.7, 0.7, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert sum(counts) == found["interruptions_unexpected"]["as_recomputed"] == 419


def test_one_row_of_table_5_is_misprinted(found: Figures) -> None:
    """148 of 419 are 35.3 %, and 30.1 is printed; each other row agrees when rounded."""
    rows = [f for f in found.values() if f["cause"] and f["unit"] == "percent"]
    assert [(f["figure"], f["verdict"]) for f in rows if not f["is_sound"]] == [
        ("table5_gpu_faulty_percent", "misprint")
    ]
    assert {f["verdict"] for f in rows if f["is_sound"]} == {"agrees"}
    wrong = found["table5_gpu_faulty_percent"]
    assert (wrong["as_printed"], round(wrong["as_recomputed"], 2)) == (30.1, 35.32)
    assert wrong["trace"] == "148 of 419"
    assert wrong["meaning"] == "share of Faulty GPU among the unexpected"


def test_the_printed_percentages_do_not_add_up(found: Figures) -> None:
    total = found["table5_percent_total"]
    assert (total["as_printed"], total["as_recomputed"], total["verdict"]) == (94.9, 100, "does not add up")
    assert "Faulty GPU (30.1 printed, 35.3 by its count)" in total["trace"]


def test_the_gpu_share_repeats_the_misprint(found: Figures) -> None:
    share = found["gpu_share_percent"]
    assert (share["as_printed"], round(share["as_recomputed"], 2)) == (58.7, 63.96)
    assert (round(share["lower"], 1), round(share["upper"], 1)) == (59.3, 68.4)
    assert (share["verdict"], share["is_sound"]) == ("repeats the misprint", False)
    assert "58.7 = 30.1 + 17.2 + 4.5 + 4.1 + 1.4 + 1.4;" in share["trace"]


@pytest.mark.parametrize(
    ("figure", "percent", "counted", "is_sound"),
    [
        ("hardware_share_percent", 76.6, "321 of 419", False),
        ("hardware_share_percent_matching", 78.3, "328 of 419", True),
        ("hardware_share_percent_by_cause", 85.0, "356 of 419", False),
    ],
)
def test_the_hardware_share_by_three_definitions(
    found: Figures, figure: str, percent: float, counted: str, is_sound: bool
) -> None:
    row = found[figure]
    assert (row["as_printed"], round(row["as_recomputed"], 1), row["is_sound"]) == (78, percent, is_sound)
    assert row["trace"].startswith(counted)
    assert row["verdict"].startswith("agrees with" if is_sound else "does not follow from")


def test_one_union_of_categories_alone_rounds_to_the_printed_hardware_share(found: Figures) -> None:
    """By trying all 63 here as well."""
    counts: dict[str, float] = {
        c: found[f"category_{c}"]["as_recomputed"]
        for c in ("gpu", "dependency", "network", "unplanned_maintenance", "host", "unknown")
    }
    fitting = [
        {c for i, c in enumerate(counts) if chosen >> i & 1}
        for chosen in range(1, 64)
        if round(100 * sum(n for i, n in enumerate(counts.values()) if chosen >> i & 1) / 419) == 78
    ]
    assert fitting == [{"gpu", "unplanned_maintenance", "host", "unknown"}]
    trace = found["hardware_share_percent"]["trace"]
    assert trace.endswith("these round to 78: GPU + Host + Unknown + Unplanned Maintenance (328, 78.3 %)")


def test_maintenance_every_day_does_not_follow(found: Figures) -> None:
    row = found["maintenance_interruptions_per_day"]
    assert (row["as_printed"], round(row["as_recomputed"], 2), row["is_sound"]) == (1, 0.87, False)
    assert "1.46 with the 32 of Host Maintenance" in row["trace"]


def garwood(n: int) -> tuple[float, float]:
    return chi2.ppf(0.025, 2 * n) / 2, chi2.ppf(0.975, 2 * n + 2) / 2


def test_rates_and_their_exact_intervals(found: Figures) -> None:
    """3.09 h (2.81 to 3.41); 2.78 h for all; 3.79 per 1,000 node-days (3.43 to 4.17)."""
    lower, upper = garwood(419)
    hours, exposure = 54 * 24, 2048 * 54 / 1000

    def near(figure: str) -> tuple[float, float, float]:
        row = found[figure]
        assert row["verdict"] == "not printed"
        return pytest.approx((row["as_recomputed"], row["lower"], row["upper"]), abs=2e-6)

    assert (hours / 419, hours / upper, hours / lower) == near("mtti_unexpected_hours")
    assert (419 / exposure, lower / exposure, upper / exposure) == near("unexpected_per_1000_node_days")
    assert (16384 * hours / 419, 16384 * hours / upper, 16384 * hours / lower) == pytest.approx(
        [found["gpu_hours_per_unexpected"][k] for k in ("as_recomputed", "lower", "upper")], rel=1e-6
    )
    scale = 16384 / 100_000  # the same failures a GPU and hour, on more of them
    assert (hours / 419 * scale, hours / upper * scale, hours / lower * scale) == near(
        "hours_between_unexpected_at_100000_gpus"
    )
    shown = {
        "mtti_hours": 2.78,
        "interruptions_per_day": 8.63,
        "unexpected_per_day": 7.76,
        "planned_per_day": 0.87,
        "longest_mean_loss_minutes": 16.69,
        "longest_mean_loss_unexpected_minutes": 18.56,
    }
    assert {k: round(found[k]["as_recomputed"], 2) for k in shown} == shown


def test_what_cannot_be_recomputed_says_so(found: Figures) -> None:
    for figure in ("effective_training_time_percent", "manual_interventions", "gpus", "days", "gpus_stage_1"):
        assert found[figure]["as_recomputed"] is None
        assert found[figure]["verdict"] == "nothing to recompute it from"


def test_without_a_run_that_compares_the_warehouse_says_nothing(found: Figures) -> None:
    assert {(f["in_warehouse"], f["run_id"], f["is_reproduced"]) for f in found.values()} == {(None, None, None)}


def attempts(gpus: int, days: float) -> list[dict[str, Any]]:
    """A run of ten attempts, each but the last ended by a node failure and resumed at once by the same job."""
    length = timedelta(days=days) / 10
    return [
        {
            "cluster": "c",
            "record_id": f"a{i}",
            "job_id": "7",
            "job_id_raw": "7",
            "job_name": "train",
            "user": "ann",
            "state": "NODE_FAIL" if i < 9 else "COMPLETED",
            "submitted_at": MARCH + i * length,
            "started_at": MARCH + i * length,
            "ended_at": MARCH + (i + 1) * length,
            "elapsed_seconds": int(length.total_seconds()),
            "gpus": gpus,
            "node_count": gpus // 8,
            "collected_at": MARCH + timedelta(days=90),
        }
        for i in range(10)
    ]


def test_a_run_that_compares_is_told_beside_the_paper(data: Path, write_part: Callable[..., Path]) -> None:
    write_part("job_attempts", attempts(16384, 54.5))
    got = figures(data)
    told = {f: got[f]["in_warehouse"] for f in ("interruptions", "interruptions_unexpected", "gpus", "gpus_per_node")}
    assert told == {"interruptions": 9, "interruptions_unexpected": 9, "gpus": 16384, "gpus_per_node": 8}
    assert got["days"]["in_warehouse"] == 54.5
    assert got["mtti_unexpected_hours"]["in_warehouse"] == pytest.approx(54.5 * 24 / 9, abs=1e-6)
    assert got["unexpected_per_1000_node_days"]["in_warehouse"] == pytest.approx(9 / (2.048 * 54.5), abs=1e-6)
    assert got["hours_between_unexpected_at_100000_gpus"]["in_warehouse"] == pytest.approx(
        54.5 * 24 / 9 * 0.16384, abs=1e-6
    )
    assert got["table5_gpu_hbm"]["in_warehouse"] == 0
    assert got["interruptions"]["is_reproduced"] is False
    assert got["gpus"]["is_reproduced"] is True
    assert got["gpus_per_rack"]["in_warehouse"] is None


@pytest.mark.parametrize(("gpus", "days"), [(16384, 56), (16384, 52), (8192, 54)])
def test_a_run_of_another_size_or_length_does_not_compare(
    data: Path, write_part: Callable[..., Path], gpus: int, days: float
) -> None:
    write_part("job_attempts", attempts(gpus, days))
    assert {f["in_warehouse"] for f in figures(data).values()} == {None}


def test_nothing_else_reads_what_the_paper_counted() -> None:
    """Verdicts must not know how many of each cause are expected."""
    private = {"reference.published_figures", "marts.published_figures"}
    readers = {m.name for m in runner.load().values() if m.references & private}
    assert {r for r in readers if not r.startswith("intermediate.published__")} == {"marts.published_figures"}
    chain = {m.name for m in runner.load().values() if any("published__" in r for r in m.references)}
    assert {r for r in chain if not r.startswith("intermediate.published__")} == {"marts.published_figures"}
