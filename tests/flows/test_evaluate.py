"""Matching verdicts with the truth, on cases small enough to solve by hand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.evaluate import Score, Share, compare, own_period
from flows.truth import Truth, TruthError, read_truths

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
    ],
)
def test_a_line_that_is_no_truth_is_named(tmp_path: Path, line: str, expected: str) -> None:
    file = tmp_path / "truth.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(TruthError) as caught:
        read_truths(file)
    assert expected in str(caught.value)
    assert str(file) in str(caught.value)


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


def test_the_documented_file_is_one(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "evaluate.md").read_text()
    file = tmp_path / "truth.jsonl"
    file.write_text(text.partition("```json\n")[2].partition("```")[0])
    assert len(read_truths(file, ["gpu_hbm", "operator_change", "software_bug", "unknown"])) == 3
