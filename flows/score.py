"""How verdicts compare with the truth, in numbers: shares, causes, calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from flows.evaluate_runs import RunScore
from flows.truth import Truth

Verdict = Mapping[str, Any]
Period = tuple[datetime, datetime]
"""UTC begin, and the first instant after it."""
Pair = tuple[Truth, Verdict]

CONFIDENCES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Edges between which verdicts of like confidence are counted together."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of those counted are right; `share` is None where there are none."""

    right: int
    of: int

    @property
    def share(self) -> float | None:
        """Right answers as a share of all."""
        return self.right / self.of if self.of else None

    def __str__(self) -> str:
        return f"{self.right} of {self.of}" + (f" ({self.right / self.of:.1%})" if self.of else "")


@dataclass(frozen=True, slots=True)
class CauseCount:
    """One cause's row.

    Attributes:
        cause: cause code.
        true: interruptions whose cause it was: the first that the truth names.
        found: verdicts that name it, invented ones too.
        right: of `true`, those whose verdict is accepted.
        untold: of `true`, those whose cause the exports cannot tell.
        untold_right: of `untold`, those whose verdict is accepted all the same.
    """

    cause: str
    true: int
    found: int
    right: int
    untold: int
    untold_right: int = 0

    @property
    def told_right(self) -> int:
        """Those the exports can tell, and whose verdict is accepted; with `wrong` and `untold` they add up to `true`."""
        return self.right - self.untold_right

    @property
    def wrong(self) -> int:
        """Those the exports can tell, with another verdict or none."""
        return self.true - self.told_right - self.untold


@dataclass(frozen=True, slots=True)
class Bin:
    """Verdicts of like confidence: from `lower` on, below `upper`; the last bin holds 1 too.

    Attributes:
        lower: least confidence.
        upper: where the next bin begins.
        mean: their mean confidence.
        verdicts: how many are right, of how many.
    """

    lower: float
    upper: float
    mean: float
    verdicts: Share


@dataclass(frozen=True, slots=True)
class Score:
    """The comparison.

    Attributes:
        matched: pairs of truth and verdict, in order of time.
        missed: truths without a verdict.
        invented: verdicts without a truth, in the clusters that the truths speak of, within the period.
        runs: what is known of whole runs, beside what the warehouse says of them.
        period: what was compared; None = all.
        outside: how many verdicts without a truth lie in those clusters outside the period; they are not scored.
    """

    matched: list[Pair]
    missed: list[Truth]
    invented: list[Verdict]
    runs: list[RunScore] = field(default_factory=list)
    period: Period | None = None
    outside: int = 0

    @property
    def causes(self) -> Share:
        """Right causes, over matched, identifiable truths that name causes."""
        return self._share(_tells_cause, is_cause_right)

    @property
    def unidentifiable(self) -> Share:
        """The same over those whose cause the exports cannot tell."""
        return self._share(lambda t: bool(t.causes) and not t.is_identifiable, is_cause_right)

    @property
    def planned(self) -> Share:
        """Planned or not, over matched truths that tell it."""
        return self._share(lambda t: t.is_planned is not None, lambda t, v: t.is_planned == v["is_planned"])

    @property
    def nodes(self) -> Share:
        """Right nodes, over matched truths that name one."""
        return self._share(lambda t: t.node is not None, lambda t, v: t.node == v["culprit_node"])

    @property
    def brier(self) -> float | None:
        """Mean squared error of the confidences in the cause, over those in `causes`; None without any."""
        errors = [(v["confidence"] - is_cause_right(t, v)) ** 2 for t, v in self.matched if _tells_cause(t)]
        return sum(errors) / len(errors) if errors else None

    def by_cause(self) -> list[CauseCount]:
        """Return each cause that was true or found, the most frequent first."""
        truths = [(t, v) for t, v in self.matched if t.causes] + [(t, None) for t in self.missed if t.causes]
        true = Counter(t.causes[0] for t, _ in truths)
        untold = Counter(t.causes[0] for t, _ in truths if not t.is_identifiable)
        accepted = [t for t, v in truths if v is not None and is_cause_right(t, v)]
        right = Counter(t.causes[0] for t in accepted)
        untold_right = Counter(t.causes[0] for t in accepted if not t.is_identifiable)
        found = Counter(v["cause"] for v in [*(v for _, v in self.matched), *self.invented])
        order = sorted(true.keys() | found.keys(), key=lambda c: (-true[c], -found[c], c))
        return [CauseCount(c, true[c], found[c], right[c], untold[c], untold_right[c]) for c in order]

    def calibration(self) -> list[Bin]:
        """Return what share of verdicts is right where they are about as sure; over those in `causes`, no empty bins."""
        told = [(v["confidence"], is_cause_right(t, v)) for t, v in self.matched if _tells_cause(t)]
        bins = []
        for lower, upper in pairwise(CONFIDENCES):
            within = [(c, right) for c, right in told if lower <= c < upper or c == upper == CONFIDENCES[-1]]
            if within:
                mean = sum(c for c, _ in within) / len(within)
                bins.append(Bin(lower, upper, mean, Share(sum(right for _, right in within), len(within))))
        return bins

    def wrong(self) -> list[tuple[Truth, Verdict, list[str]]]:
        """Return matched pairs that differ, each with what differs: cause, planned, node."""
        found = ((t, v, _differences(t, v)) for t, v in self.matched)
        return [(t, v, d) for t, v, d in found if d]

    def summary(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "matched": len(self.matched),
            "missed": [asdict(t) for t in self.missed],
            "invented": [dict(v) for v in self.invented],
            **{name: _plain(getattr(self, name)) for name in ("causes", "unidentifiable", "planned", "nodes")},
            "brier": self.brier,
            "by_cause": [asdict(c) for c in self.by_cause()],
            "calibration": [
                {"lower": b.lower, "upper": b.upper, "mean": b.mean, **_plain(b.verdicts)} for b in self.calibration()
            ],
            "runs": [run.summary() for run in self.runs],
            "period": None if self.period is None else dict(zip(("since", "until"), self.period, strict=True)),
            "outside": self.outside,
            "wrong": [{"truth": asdict(t), "verdict": dict(v), "differs_in": d} for t, v, d in self.wrong()],
        }

    def _share(self, counted: Callable[[Truth], bool], is_right: Callable[[Truth, Verdict], bool]) -> Share:
        pairs = [(t, v) for t, v in self.matched if counted(t)]
        return Share(sum(is_right(t, v) for t, v in pairs), len(pairs))


def is_cause_right(truth: Truth, verdict: Verdict) -> bool:
    """Tell whether a verdict names one of the causes that are right."""
    return verdict["cause"] in truth.causes


def _tells_cause(truth: Truth) -> bool:
    return bool(truth.causes) and truth.is_identifiable


def _plain(share: Share) -> dict[str, int | float | None]:
    return {"right": share.right, "of": share.of, "share": share.share}


def _differences(truth: Truth, verdict: Verdict) -> list[str]:
    found = []
    if truth.causes and not is_cause_right(truth, verdict):
        found.append("cause")
    if truth.is_planned is not None and truth.is_planned != verdict["is_planned"]:
        found.append("planned")
    if truth.node is not None and truth.node != verdict["culprit_node"]:
        found.append("node")
    return found
