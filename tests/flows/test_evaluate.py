"""Matching verdicts with the truth, on cases small enough to solve by hand."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.evaluate import Score, Share, compare, own_period
from flows.evaluate_runs import compare_runs
from flows.truth import RunTruth, Truth, TruthError, read, read_truths

Goodput = Callable[..., Any]

T0 = datetime(2026, 5, 4, tzinfo=UTC)


def truth(minute: float, **kwargs: Any) -> Truth:
    return Truth(**{"cluster": "c", "interrupted_at": T0 + timedelta(minutes=minute), "causes": ("gpu_hbm",), **kwargs})


def verdict(minute: float, **kwargs: Any) -> dict[str, Any]:
    row = {"cluster": "c", "run_id": "r1", "run": "llama", "job_id_raw": "1", "cause": "gpu_hbm", "confidence": 0.8}
    return {
        **row,
        "is_planned": False,
        "culprit_node": None,
        "interrupted_at": T0 + timedelta(minutes=minute),
        **kwargs,
    }


def pairs(score: Score) -> list[tuple[float, float]]:
    def minute(moment: datetime) -> float:
        return (moment - T0).total_seconds() / 60

    return [(minute(t.interrupted_at), minute(v["interrupted_at"])) for t, v in score.matched]


def test_nearest_is_not_always_right_the_total_counts() -> None:
    # Greedy by nearest would pair 10 with 9 and leave 0 with 21, or nothing; in order of time both are found.
    assert pairs(compare([truth(0), truth(10)], [verdict(9), verdict(21)])) == [(0, 9), (10, 21)]


def test_of_two_verdicts_for_one_truth_the_nearer_one_is_taken_and_the_other_is_invented() -> None:
    score = compare([truth(10)], [verdict(3), verdict(12)])
    assert pairs(score) == [(10, 12)]
    assert [v["interrupted_at"] for v in score.invented] == [T0 + timedelta(minutes=3)]


def test_nothing_is_matched_beyond_the_distance() -> None:
    score = compare([truth(0)], [verdict(61)])
    assert (score.matched, len(score.missed), len(score.invented)) == ([], 1, 1)
    assert len(compare([truth(0)], [verdict(60)]).matched) == 1
    assert len(compare([truth(0)], [verdict(2)], distance_seconds=60).matched) == 0


def test_a_job_id_must_agree() -> None:
    score = compare([truth(0, job_id_raw="2")], [verdict(0), verdict(30, job_id_raw="2")])
    assert pairs(score) == [(0, 30)]


def test_a_run_is_known_by_name_or_id() -> None:
    verdicts = [verdict(0, run="other", run_id="r2"), verdict(30)]
    assert pairs(compare([truth(0, run="llama")], verdicts)) == [(0, 30)]
    assert pairs(compare([truth(0, run="r1")], verdicts)) == [(0, 30)]
    assert compare([truth(0, run="none")], verdicts).matched == []


def test_runs_do_not_stand_in_each_others_way() -> None:
    # Verdicts come late; across the two runs their order is not the truths' order, within each it is.
    truths = [truth(0, run="a"), truth(1, run="b")]
    verdicts = [verdict(9, run="a", run_id="a"), verdict(3, run="b", run_id="b")]
    assert sorted(pairs(compare(truths, verdicts))) == [(0, 9), (1, 3)]


def test_other_clusters_are_left_alone() -> None:
    score = compare([truth(0)], [verdict(0), verdict(0, cluster="elsewhere")])
    assert (len(score.matched), score.invented) == (1, [])


def test_shares_count_what_can_be_counted() -> None:
    truths = [
        truth(0, is_planned=False, node="n1"),
        truth(100, causes=("nic", "gpu_hbm"), is_planned=True),
        truth(200, causes=("software_bug",), is_identifiable=False),
        truth(300, causes=()),
    ]
    verdicts = [
        verdict(0, culprit_node="n2", confidence=0.6),
        verdict(100, confidence=1.0),
        verdict(200, cause="unknown", confidence=0.3),
        verdict(300),
    ]
    score = compare(truths, verdicts)
    assert (score.causes, score.unidentifiable) == (Share(2, 2), Share(0, 1))
    assert (score.planned, score.nodes) == (Share(1, 2), Share(0, 1))
    assert score.brier == pytest.approx((0.4**2 + 0.0) / 2)
    assert [d for _, _, d in score.wrong()] == [["node"], ["planned"], ["cause"]]
    assert json.loads(json.dumps(score.summary(), default=str))["causes"] == {"right": 2, "of": 2, "share": 1.0}


def test_an_empty_comparison_divides_by_nothing() -> None:
    score = compare([], [verdict(0)])
    assert (score.causes.share, score.brier, str(score.causes)) == (None, None, "0 of 0")


def best_by_trying_all(truths: list[int], verdicts: list[int], bound: int) -> tuple[int, int]:
    """Most pairs, then least total distance, over every one-to-one matching in order of time."""
    best = (0, 0)
    for size in range(1, min(len(truths), len(verdicts)) + 1):
        for ts in itertools.combinations(sorted(truths), size):
            for vs in itertools.combinations(sorted(verdicts), size):
                apart = [abs(t - v) for t, v in zip(ts, vs, strict=True)]
                if max(apart) <= bound:
                    best = max(best, (size, -sum(apart)))
    return best


minutes = st.lists(st.integers(0, 240), max_size=5)


@given(minutes, minutes, st.integers(0, 90))
def test_the_matching_is_the_best_there_is(truths: list[int], verdicts: list[int], bound: int) -> None:
    score = compare([truth(m) for m in truths], [verdict(m) for m in verdicts], bound * 60)
    found = pairs(score)
    assert (len(found), -sum(abs(t - v) for t, v in found)) == best_by_trying_all(truths, verdicts, bound)
    assert len(found) + len(score.missed) == len(truths)
    assert len(found) + len(score.invented) == len(verdicts) if truths else True


def test_truths_are_read_from_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    file.write_text(
        '{"cluster": "c", "interrupted_at": "2026-05-04T02:00:00+02:00", "job_id_raw": 7, "causes": ["nic"], "node": "n1"}\n\n'
        '{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "run": "llama", "is_planned": true, "identifiable": false}\n'
    )
    assert read_truths(file) == [
        Truth("c", T0, job_id_raw="7", causes=("nic",), node="n1"),
        Truth("c", T0, run="llama", is_planned=True, is_identifiable=False),
    ]


def test_a_file_may_tell_of_runs_and_of_signatures(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    file.write_text(
        '{"kind": "run", "cluster": "c", "run": "llama", "ledger": {"productive": 90, "down_planned": 10},'
        ' "effective_training_time": 0.9, "interruptions": 2, "planned": 1, "unexpected": 1, "manual": 0}\n'
        '{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "signature": "row_remap_failed"}\n'
        '{"kind": "interruption", "cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z"}\n'
    )
    ledger = {"productive": 90, "down_planned": 10}
    assert read(file).runs == [RunTruth("c", "llama", None, ledger, 0.9, 2, 1, 1, 0)]
    assert (
        read_truths(file) == read(file).interruptions == [Truth("c", T0, signature="row_remap_failed"), Truth("c", T0)]
    )


def test_each_cause_is_counted_as_it_was_and_as_it_was_found() -> None:
    truths = [
        truth(0, causes=("nic", "network_switch_cable")),
        truth(100, causes=("nic",), is_identifiable=False),
        truth(200, causes=("gpu_hbm",)),
        truth(300, causes=("gpu_hbm",)),
        truth(400, causes=()),
    ]
    verdicts = [
        verdict(0, cause="network_switch_cable"),
        verdict(100, cause="unknown"),
        verdict(200),
        verdict(400),
        verdict(500),
    ]
    counts = {c.cause: (c.true, c.found, c.right, c.untold) for c in compare(truths, verdicts).by_cause()}
    # The truth at 300 is missed; the verdicts at 400 (its truth names no cause) and 500 (invented) name gpu_hbm too.
    assert counts == {
        "gpu_hbm": (2, 3, 1, 0),
        "nic": (2, 0, 1, 1),
        "network_switch_cable": (0, 1, 0, 0),
        "unknown": (0, 1, 0, 0),
    }
    assert next(iter(counts)) == "gpu_hbm"


def test_calibration_counts_verdicts_that_are_about_as_sure() -> None:
    said = [(0.2, False), (0.5, True), (0.6, False), (0.95, True), (0.97, True), (0.9899, False), (1.0, True)]
    truths = [truth(100 * i) for i in range(len(said))]
    verdicts = [
        verdict(100 * i, confidence=c, cause="gpu_hbm" if right else "nic") for i, (c, right) in enumerate(said)
    ]
    truths.append(truth(1000, is_identifiable=False))
    verdicts.append(verdict(1000, confidence=0.2))
    bins = compare(truths, verdicts).calibration()
    assert [(b.lower, b.upper, b.verdicts) for b in bins] == [
        (0.0, 0.5, Share(0, 1)),
        (0.5, 0.7, Share(1, 2)),
        (0.95, 0.99, Share(2, 3)),
        (0.99, 1.0, Share(1, 1)),
    ]
    assert [b.mean for b in bins] == pytest.approx([0.2, 0.55, (0.95 + 0.97 + 0.9899) / 3, 1.0])
    assert sum(b.verdicts.of for b in bins) == compare(truths, verdicts).causes.of


RUN = {"cluster": "c", "run_id": "r1", "run": "llama", "elapsed_seconds": 100, "effective_training_time": 0.85}
COUNTED = {"interruptions": 3, "planned": 1, "unexpected": 2, "manual": 0}


def test_a_run_is_compared_state_by_state() -> None:
    truths = [RunTruth("c", "llama", 100, {"productive": 90, "lost_work": 10}, 0.9, interruptions=3, planned=2)]
    ledger = [{"run_id": "r1", "state": s, "gpu_seconds": n} for s, n in (("productive", 85), ("stalled", 15))]
    [run] = compare_runs(truths, [RUN | COUNTED], ledger)
    assert run.effective_training_time_error == pytest.approx(-0.05)
    assert run.states() == [("productive", 90, 85), ("stalled", 0, 15), ("lost_work", 10, 0)]
    assert run.counts() == [("interruptions", 3, 3), ("planned", 2, 1)]
    told = json.loads(json.dumps(run.summary()))
    assert told["ledger"]["stalled"] == {"true": 0, "found": 15}
    assert compare_runs([RunTruth("c", "r1")], [RUN | COUNTED], [])[0].found is not None


def test_a_run_that_the_warehouse_does_not_hold_is_not_compared() -> None:
    [run] = compare_runs([RunTruth("c", "other", 100, {"productive": 90}, 0.9, 3)], [RUN | COUNTED], [])
    assert (run.found, run.effective_training_time_error, run.states(), run.counts()) == (None, None, [], [])
    [run] = compare_runs([RunTruth("elsewhere", "llama")], [RUN | COUNTED], [])
    assert run.found is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nonsense", "line 1: is not JSON"),
        ("[]", "line 1: is not a JSON object"),
        ('{"cluster": "c"}', "line 1: needs 'interrupted_at'"),
        ('{"cluster": "c", "interrupted_at": "yesterday"}', "'yesterday' is no time"),
        ('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00"}', "has no zone"),
        (
            '{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "cuase": 1}',
            "unknown key 'cuase'; did you mean 'causes'?",
        ),
        ('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "causes": "nic"}', "causes is no list"),
        ('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "causes": [7]}', "causes holds 7"),
        ('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "is_planned": "no"}', "is_planned is neither"),
        ('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "identifiable": null}', "identifiable is neither"),
        ('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "node": 8}', "node is no text"),
        ('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "signature": 8}', "signature is no text"),
        ('{"kind": "node", "cluster": "c"}', "kind is neither of interruption, run"),
        ('{"cluster": "c", "interrupted_at": "9999-12-31T23:59:59-23:59"}', "outside the years 1970 to 2200"),
        ('{"cluster": "c", "interrupted_at": "0001-01-01T00:00:00Z"}', "outside the years 1970 to 2200"),
        ('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "causes": []}', "causes is empty; name a cause"),
        ('{"cluster": ' + "[" * 100_000, "line 1: is no truth; write one flat JSON object a line"),
        ('{"cluster": ' + "9" * 10_000 + "}", "line 1: is no truth; write one flat JSON object a line"),
        ('{"kind": "run", "cluster": "c"}', "needs 'run', a text"),
        ('{"kind": "run", "cluster": "c", "run": "r", "node": "n1"}', "unknown key 'node'"),
        ('{"kind": "run", "cluster": "c", "run": "r", "planned": 1.5}', "planned is no whole number"),
        ('{"kind": "run", "cluster": "c", "run": "r", "manual": true}', "manual is no whole number"),
        ('{"kind": "run", "cluster": "c", "run": "r", "elapsed_seconds": -1}', "elapsed_seconds is no number"),
        ('{"kind": "run", "cluster": "c", "run": "r", "effective_training_time": 91}', "no share between 0 and 1"),
        ('{"kind": "run", "cluster": "c", "run": "r", "ledger": {"down": "1h"}}', "ledger holds no GPU-seconds"),
        ('{"kind": "run", "cluster": "c", "run": "r", "ledger": null}', "ledger holds no GPU-seconds"),
    ],
)
def test_a_line_that_is_no_truth_is_named(tmp_path: Path, line: str, expected: str) -> None:
    file = tmp_path / "truth.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(TruthError) as caught:
        read_truths(file)
    assert expected in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_the_truth(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    file.write_text('{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z"}\n', encoding="utf-8-sig")
    assert read_truths(file) == [Truth("c", T0)]


def test_a_missing_truth_is_named(tmp_path: Path) -> None:
    with pytest.raises(TruthError, match="No such file"):
        read_truths(tmp_path / "none.jsonl")


def test_an_unknown_cause_is_named_with_its_line_and_what_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    line = '{"cluster": "c", "interrupted_at": "2026-05-04T00:00:00Z", "causes": ["%s"]}\n'
    file.write_text(line % "gpu_hbm" + line % "gpu_hmb")
    with pytest.raises(TruthError, match=r"line 2: no cause has the code 'gpu_hmb'; did you mean `gpu_hbm`\?"):
        read_truths(file, ["gpu_hbm", "nic"])
    assert len(read_truths(file)) == 2
    with pytest.raises(TruthError, match="line 1: no cause has the code 'gpu_hbm'"):
        read_truths(file, [])


def test_verdicts_outside_the_period_are_not_invented() -> None:
    truths = [truth(0), truth(100)]
    verdicts = [verdict(-200), verdict(0), verdict(50), verdict(100), verdict(300)]
    score = compare(truths, verdicts, 600, own_period(truths, 600))
    assert len(score.matched) == 2
    assert [v["interrupted_at"] for v in score.invented] == [T0 + timedelta(minutes=50)]
    assert score.outside == 2
    assert len(compare(truths, verdicts, 600).invented) == 3


def test_the_own_period_holds_every_verdict_that_could_match() -> None:
    truths = [truth(0)]
    period = own_period(truths, 600)
    assert compare(truths, [verdict(-10)], 600, period).matched
    assert compare(truths, [verdict(10)], 600, period).matched
    assert len(compare(truths, [verdict(10), verdict(-10)], 600, period).invented) == 1


def test_a_period_leaves_truths_out_but_breaks_no_pair() -> None:
    truths = [truth(0), truth(100), truth(200)]
    period = (T0 + timedelta(minutes=90), T0 + timedelta(minutes=200))
    # The verdict of the first truth stands within the period that the truth is outside of: it is not invented.
    verdicts = [verdict(91), verdict(95, job_id_raw="2")]
    score = compare([truth(0), truth(100, job_id_raw="2"), truth(300)], verdicts, 6000, period)
    assert pairs(score) == [(100, 95)]
    assert (score.missed, score.invented) == ([], [])
    assert pairs(compare([truth(100)], [verdict(85)], 6000, period)) == [(100, 85)]
    assert [t.interrupted_at for t in compare(truths, [], 600, period).missed] == [T0 + timedelta(minutes=100)]
    assert json.loads(json.dumps(score.summary(), default=str))["period"]["since"].startswith("2026-05-04 01:30")


def test_the_command_scores_the_period_asked_for(goodput: Goodput, demo_folder: Path, tmp_path: Path) -> None:
    config = ("--config", demo_folder / "goodput.toml")
    lines = (demo_folder / "truth.jsonl").read_text().splitlines()
    part = tmp_path / "part.jsonl"
    part.write_text("\n".join(lines[:3]))
    ran = goodput("evaluate", part, "--distance", "30s", *config)
    assert "3 of 3; missed 0, invented 0" in ran.out
    assert "not scored: 8 interruptions without a truth outside" in ran.err
    score = json.loads(goodput("evaluate", part, "--distance", "30s", "--json", *config).out)
    assert (score["invented"], score["outside"]) == ([], 8)
    whole = ("--since", "2026-11-30", "--until", "2026-12-01")
    assert "3 of 3; missed 0, invented 8" in goodput("evaluate", part, *whole, *config).out
    for option in (("--distance", "366d"), ("--distance", "9" * 14 + "d"), ("--until", "9999-12-31T23:59:59-23:59")):
        assert goodput("evaluate", part, *option, *config).code == 2, option
    ran = goodput("evaluate", part, "--since", "2026-12-01", "--until", "2026-11-01", *config)
    assert (ran.code, "nothing lies between" in ran.err) == (2, True)
    part.write_text(lines[0].replace("planned_maintenance", "planed_maintenance"))
    ran = goodput("evaluate", part, *config)
    assert (ran.code, ran.out) == (2, "")
    assert (
        "part.jsonl line 1: no cause has the code 'planed_maintenance'; did you mean `planned_maintenance`?" in ran.err
    )
    part.write_text("\n")
    assert "holds no truth" in goodput("evaluate", part, *config).err


def test_the_command_tells_of_runs_causes_and_confidences(goodput: Goodput, demo_folder: Path, tmp_path: Path) -> None:
    config = ("--config", demo_folder / "goodput.toml")
    lines = [json.loads(line) for line in (demo_folder / "truth.jsonl").read_text().splitlines()]
    lines[0] |= {"causes": ["nic"], "signature": "blown_fuse"}
    run = {
        "kind": "run",
        "cluster": "llm",
        "run": "alice/llama-pretrain",
        "ledger": {"productive": 9036, "lost_work": 1},
    }
    file = tmp_path / "truth.jsonl"
    file.write_text("\n".join(map(json.dumps, [*lines, run | {"effective_training_time": 0.3, "planned": 3}])))
    out = goodput("evaluate", file, "--distance", "1m", *config).out
    assert re.search(r"^\S+ \S+ +\S+ +cause +nic +planned_maintenance +\w+ +blown_fuse$", out, re.MULTILINE)
    assert re.search(r"effective training time 2\d\.\d\d%, truly 30\.00% \(-\d\.\d\d points\)", out)
    assert "2 planned, truly 3" in out
    assert "Confidences are calibrated where said and right agree" in out
    assert re.search(r"^gpu_faulty +2 +2 +2 +0 +0$", out, re.MULTILINE)
    assert re.search(r"^productive +2\.51 +2\.51 +0\.00 +[+-]?0\.\d{3}$", out, re.MULTILINE)
    score = json.loads(goodput("evaluate", file, "--json", *config).out)
    assert sum(c["true"] for c in score["by_cause"]) == 11
    assert sum(b["of"] for b in score["calibration"]) == score["causes"]["of"]
    assert score["runs"][0]["truth"]["planned"] == 3
    file.write_text(json.dumps(run))
    ran = goodput("evaluate", file, *config)
    assert (ran.code, "interruptions found" in ran.out, "alice/llama-pretrain" in ran.out) == (0, False, True)
    file.write_text(json.dumps(run | {"run": "bob/other"}))
    assert "the warehouse holds no run bob/other" in goodput("evaluate", file, *config).err


def test_the_documented_file_is_one(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "evaluate.md").read_text()
    file = tmp_path / "truth.jsonl"
    file.write_text(text.partition("```json\n")[2].partition("```")[0])
    known = read(file, ["gpu_hbm", "operator_change", "software_bug", "unknown"])
    assert (len(known.interruptions), len(known.runs)) == (3, 1)
