"""`goodput init` on exports that name neither their node nor their job, and what is said where nobody captured it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flows.test_init import HEADER, job, proposed

Goodput = Callable[..., Any]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


SEL = "{n} | 05/04/26 | 10:00:0{n} UTC | Power Supply PS1 | Failure detected | Asserted\n"
DIAG = json.dumps(
    {
        "DCGM Diagnostic": {
            "test_categories": [
                {
                    "category": "Hardware",
                    "tests": [{"name": "Memory", "results": [{"gpu_id": "0", "status": "Fail", "warnings": "w"}]}],
                }
            ]
        }
    }
)
NHC = "2026-05-04T10:00:00+0000 {node} nhc[1]: ERROR:  nhc:  Health check failed:  check_hw_ib:  no active port\n"
STEP = (
    "2026-05-05T02:00:00Z  iteration        1/ 100000 | consumed samples:          256 | elapsed time per iteration (ms): "
    "10000.0 | learning rate: 1.5E-04 | global batch size:   256 | lm loss: 2.9E+00 |\n"
)


def node_exports(at: Path) -> None:
    """Exports of one or two nodes each; only the checks' log names its node."""
    files = {
        "sacct-20260504T100000Z.txt": "\n".join([HEADER, job(1, "fit", 24, 1), ""]),
        "sel/n2-20260504T100000Z.txt": SEL.format(n=1),
        "sel/n3-20260504T100000Z.txt": "SEL has no entries\n",
        "diag/n3-20260504T100000Z.json": DIAG,
        "nhc/n3-20260504T100000Z.log": NHC.format(node="n3"),
        "train/fit-1.out": STEP,
    }
    for name, content in files.items():
        (at / "exports" / name).parent.mkdir(parents=True, exist_ok=True)
        (at / "exports" / name).write_text(content)


def test_every_export_that_names_no_node_gets_it_from_the_path(goodput: Goodput, at: Path) -> None:
    """A log without entries goes with its like, and what names its node itself fits the files of other nodes too."""
    node_exports(at)
    assert goodput("init", "exports").code == 0
    text, sources = proposed(at)
    assert {s["format"]: s["path"].removeprefix("exports/") for s in sources} == {
        "dcgm_diag": "diag/{node}-{collected_at}.json",
        "health_check": "nhc/*-{collected_at}.log",
        "ipmi_sel": "sel/{node}-{collected_at}.txt",
        "slurm_sacct": "sacct-{collected_at}.txt",
        "training_log": "train/fit-{job_id}.out",
    }
    assert text.count("do not name their node, the path does: all are named by other exports") == 2
    assert text.count("does not name its job, the path does: all are named by other exports") == 1
    assert goodput("run").code == 0
    checked = goodput("check")
    assert (checked.code, checked.err.count("no node")) == (0, 0)
    assert checked.out.endswith("no problems\n")


def test_logs_of_many_nodes_without_an_entry_need_no_node(goodput: Goodput, at: Path) -> None:
    (at / "sel-20260504T100000Z.txt").write_text("n1: SEL has no entries\nn2: SEL has no entries\n")
    assert goodput("init", "sel-20260504T100000Z.txt").code == 0
    assert "their node" not in proposed(at)[0]


def test_events_without_a_node_are_named_by_check_as_by_run(goodput: Goodput, at: Path) -> None:
    node_exports(at)
    (at / "goodput.toml").write_text(
        '[clusters.c]\nzone = "UTC"\n[[sources]]\npath = "exports/sacct-*.txt"\n'
        '[[sources]]\npath = "exports/diag/n3-*.json"\ncluster = "c"\n'
    )
    expected = "warning: 1 event of dcgm_diag (c) names no node and can explain nothing; capture {node} in the path"
    assert expected in goodput("run").err
    checked = goodput("check")
    assert (checked.code, expected in checked.err) == (0, True)
    assert checked.out.endswith("no problems, but 2 warnings\n"), (
        "the other: exports of more kinds that no source matches"
    )


def test_a_lone_file_of_a_node_nobody_names_is_captured_and_marked(goodput: Goodput, at: Path) -> None:
    node_exports(at)
    assert goodput("init", "exports/diag", "exports/train").code == 0
    text, sources = proposed(at)
    assert [s["path"] for s in sources] == ["exports/diag/{node}-{collected_at}.json", "exports/train/fit-1.out"]
    assert "CHECK: these files do not name their node, the path does: no other export names n3" in text
    assert "CHECK: a log does not name its job." in text
