"""Compare what the warehouse says of whole runs with the truth: effective training time, ledger, counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from flows.truth import RunTruth

COUNTS = ("interruptions", "planned", "unexpected", "manual")


@dataclass(frozen=True, slots=True)
class RunScore:
    """One run.

    Attributes:
        truth: what is known of it.
        found: what the warehouse says: effective_training_time, elapsed_seconds, and each of COUNTS; None = no such run.
        ledger: GPU-seconds by state that the warehouse says.
    """

    truth: RunTruth
    found: Mapping[str, Any] | None
    ledger: Mapping[str, int]

    @property
    def effective_training_time_error(self) -> float | None:
        """Effective training time measured, less the true one; None where one of them is not told."""
        true = self.truth.effective_training_time
        found = None if self.found is None else self.found["effective_training_time"]
        return None if true is None or found is None else found - true

    def states(self) -> list[tuple[str, float, float]]:
        """Return (state, true, found) in GPU-seconds, the longest first; empty where the truth holds no ledger."""
        if not self.truth.ledger or self.found is None:
            return []
        names = self.truth.ledger.keys() | self.ledger.keys()
        rows = [(name, self.truth.ledger.get(name, 0), self.ledger.get(name, 0)) for name in names]
        return sorted(rows, key=lambda row: (-max(row[1:]), row[0]))

    def counts(self) -> list[tuple[str, int, int]]:
        """Return (what, true, found) of each count that the truth tells."""
        if self.found is None:
            return []
        told = ((name, getattr(self.truth, name), self.found[name]) for name in COUNTS)
        return [(name, int(true), int(found)) for name, true, found in told if true is not None]

    def summary(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "truth": asdict(self.truth),
            "found": None if self.found is None else dict(self.found),
            "effective_training_time_error": self.effective_training_time_error,
            "ledger": {state: {"true": true, "found": found} for state, true, found in self.states()},
        }


def compare_runs(
    truths: Iterable[RunTruth], runs: Iterable[Mapping[str, Any]], ledger: Iterable[Mapping[str, Any]]
) -> list[RunScore]:
    """Put each run's truth beside what the warehouse says of it.

    Args:
        truths: what is known.
        runs: rows with cluster, run_id, run, elapsed_seconds, effective_training_time and each of COUNTS.
        ledger: rows with run_id, state, gpu_seconds.
    """
    by_name: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in runs:
        for column in ("run", "run_id"):
            by_name.setdefault((row["cluster"], row[column]), row)
    states: dict[str, dict[str, int]] = {}
    for row in ledger:
        states.setdefault(row["run_id"], {})[row["state"]] = int(row["gpu_seconds"])
    scores = []
    for truth in truths:
        found = by_name.get((truth.cluster, truth.run))
        scores.append(RunScore(truth, found, {} if found is None else states.get(found["run_id"], {})))
    return scores
