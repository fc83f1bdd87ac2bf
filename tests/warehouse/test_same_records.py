"""The same records make the same marts: whatever parts they lie in, whatever their order, however many threads build."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.warehouse.settings import settings
from warehouse import query
from warehouse.build import build
from warehouse.digest import digest
from warehouse.inputs import Inputs

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
NODES = [f"n{i}" for i in range(8)]
SETTINGS = settings("user", "job_name")


def attempts() -> list[dict[str, Any]]:
    """Forty attempts of one run, two hours each, that end in several ways."""
    states = ["FAILED", "NODE_FAIL", "CANCELLED", "COMPLETED", "PREEMPTED"]
    return [
        {
            "cluster": "c",
            "record_id": f"a{i}",
            "job_id": str(i),
            "job_id_raw": str(i),
            "job_name": "train",
            "user": "ann",
            "state": states[i % 5],
            "submitted_at": MARCH + timedelta(hours=3 * i),
            "eligible_at": MARCH + timedelta(hours=3 * i),
            "started_at": MARCH + timedelta(hours=3 * i, minutes=5),
            "ended_at": MARCH + timedelta(hours=3 * i + 2, seconds=7 * i),
            "node_count": 8,
            "node_list": "n[0-7]",
            "gpus": 64,
            "collected_at": MARCH + timedelta(days=30),
            "export_id": "e1",
            "line": i,
            "filled_columns": 14,
            "is_request": False,
            "flags": [],
        }
        for i in range(40)
    ]


def events() -> list[dict[str, Any]]:
    """Xids near and far from the ends, several in the same second on several nodes."""
    return [
        {
            "cluster": "c",
            "record_id": f"x{i}",
            "node": NODES[i % 8],
            "occurred_at": MARCH + timedelta(hours=3 * (i // 4) + 2, seconds=-(i % 3) * 60),
            "event_class": "xid",
            "code": [79, 45, 13, 48, 63][i % 5],
            "device_kind": "gpu",
            "device": f"0000:{i % 4}b:00.0",
            "text": f"Xid line {i}",
            "collected_at": MARCH + timedelta(days=30),
            "export_id": "e2",
            "line": i,
            "flags": [],
        }
        for i in range(160)
    ]


@pytest.fixture
def lay(data: Path, write_part: Callable[..., Path]) -> Callable[[int], Inputs]:
    def write(parts: int, *, shuffled: bool = False, twice: bool = False) -> Inputs:
        rows = {"job_attempts": attempts(), "hardware_events": events()}
        for table, all_rows in rows.items():
            told = all_rows * 2 if twice else all_rows
            if shuffled:
                random.Random(7).shuffle(told)
            for part in range(parts):
                write_part(table, told[part::parts], f"part-{part}")
        write_part("host_lists", [{"cluster": "c", "node_list": "n[0-7]", "nodes": NODES, "export_id": "e1"}])
        exports = [
            {"export_id": "e1", "path": "sacct.txt", "source": "slurm_sacct", "status": "loaded"},
            {"export_id": "e2", "path": "kern.log", "source": "kernel_log", "status": "loaded"},
        ]
        counts = {"lines": 0, "lines_used": 0, "lines_ignored": 0, "lines_rejected": 0}
        return Inputs(lake=data / "lake", exports=[e | counts for e in exports], settings=SETTINGS)

    return write


def test_layout_order_repetition_and_threads_do_not_matter(data: Path, lay: Callable[..., Inputs]) -> None:
    layouts: list[tuple[dict[str, Any], int]] = [
        ({"parts": 1}, 1),
        ({"parts": 7, "shuffled": True}, 2),
        ({"parts": 7, "shuffled": True, "twice": True}, 4),
    ]
    digests = []
    for n, (layout, threads) in enumerate(layouts):
        inputs = lay(**layout)
        began = MARCH + timedelta(days=40 + n)
        report = build(data, inputs, started_at=began, code_version="test", threads=threads)
        assert report.published, report.failed_checks
        assert report.path is not None
        digests.append(digest(report.path))
        counted = query.rows(
            report.path, "select count(*) as n, count(distinct cause) as causes from marts.interruptions"
        )
        assert counted[0]["n"] >= 30, "the premise: there is something to compare"
        assert counted[0]["causes"] > 2
    for other in digests[1:]:
        assert {mart for mart in other if other[mart] != digests[0][mart]} == set()
