"""How a comparison with the truth is counted and printed: right, wrong, and what the exports cannot tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flows.cli.scores import say_score, signed
from flows.evaluate import compare
from flows.truth import Truth

T0 = datetime(2026, 5, 4, tzinfo=UTC)


def truth(minute: float, **kwargs: Any) -> Truth:
    return Truth(**{"cluster": "c", "interrupted_at": T0 + timedelta(minutes=minute), "causes": ("gpu_hbm",), **kwargs})


def verdict(minute: float, **kwargs: Any) -> dict[str, Any]:
    found = {"cluster": "c", "run_id": "r1", "run": "llama", "job_id": "1", "job_id_raw": "1", "cause": "gpu_hbm"}
    found |= {"confidence": 0.8, "is_planned": False, "culprit_node": None, "interruption_id": f"{minute:010}"}
    return {**found, "interrupted_at": T0 + timedelta(minutes=minute), **kwargs}


def test_right_wrong_and_not_tellable_add_up_to_true() -> None:
    """A cause that the exports cannot tell is neither right nor wrong, whatever was answered."""
    truths = [truth(100 * i, is_identifiable=i < 3) for i in range(6)]
    verdicts = [verdict(100 * i, cause="gpu_hbm" if i in (0, 1, 3) else "nic") for i in range(5)]
    [hbm] = [c for c in compare(truths, verdicts).by_cause() if c.cause == "gpu_hbm"]
    assert (hbm.true, hbm.told_right, hbm.wrong, hbm.untold, hbm.untold_right) == (6, 2, 1, 3, 1)
    assert hbm.told_right + hbm.wrong + hbm.untold == hbm.true
    [missed] = compare([truth(0)], []).by_cause()
    assert (missed.told_right, missed.wrong, missed.untold) == (0, 1, 0)


@pytest.mark.parametrize(
    ("value", "said"),
    [(-0.0000001, "0.00"), (0.0, "0.00"), (-0.006, "-0.01"), (0.006, "+0.01"), (-1234.5, "-1,234.50")],
)
def test_a_difference_that_rounds_to_nothing_has_no_sign(value: float, said: str) -> None:
    assert signed(value, 2) == said


def test_errors_are_kept_apart_from_what_the_exports_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    truths = [truth(100 * i, is_identifiable=i < 2, signature="silent") for i in range(4)]
    causes = ("gpu_hbm", "nic", "gpu_hbm", "nic")
    verdicts = [verdict(100 * i, cause=cause) for i, cause in enumerate(causes)]
    say_score(compare(truths, verdicts))
    out = capsys.readouterr().out
    assert "cause right           1 of 2 (50.0%) of those that the exports can tell" in out
    assert "cause not tellable    2 more, which these exports do not show; the verdict on 1 of them is accepted" in out
    sections = {text.splitlines()[0]: text.splitlines()[1:] for text in out.split("\n\n")}
    assert len([line for line in sections["Wrong"] if "gpu_hbm" in line]) == 1
    assert len([line for line in sections["Wrong, where the exports cannot tell the cause"] if "gpu_hbm" in line]) == 1
    assert out.count("signature = ") == 1
