"""Compare verdicts with the truth: match interruptions one to one, then count what is right. The only reader of truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from flows.score import Period, Score, Share, Verdict
from flows.truth import Truth

__all__ = ["DEFAULT_DISTANCE_SECONDS", "Period", "Score", "Share", "Verdict", "compare", "match", "own_period"]

DEFAULT_DISTANCE_SECONDS = 3600


def own_period(truths: Iterable[Truth], distance_seconds: int = DEFAULT_DISTANCE_SECONDS) -> Period:
    """Return the period that truths speak of: from the first to the last, wider by the distance.

    Raises:
        ValueError: there are no truths.
    """
    times = [t.interrupted_at for t in truths]
    wider = timedelta(seconds=distance_seconds)
    return min(times) - wider, max(times) + wider + timedelta(microseconds=1)


def compare(
    truths: Iterable[Truth],
    verdicts: Iterable[Verdict],
    distance_seconds: int = DEFAULT_DISTANCE_SECONDS,
    period: Period | None = None,
) -> Score:
    """Match truths with verdicts and score them.

    Within one run of one cluster, pairs keep the order of time and lie at most `distance_seconds` apart; as many as
    possible are made, and among those matchings the one with the least total distance is taken.

    Args:
        truths: what happened.
        verdicts: rows with cluster, run_id, run, job_id_raw, interrupted_at, cause, confidence, is_planned, culprit_node.
        distance_seconds: longest distance in time between a truth and its verdict.
        period: what is scored: truths in it, and verdicts that belong to one of them or lie in it; None = all. All are
            matched first, so that a pair across the period's edge stays a pair.
    """
    groups = _groups(list(truths), list(verdicts))
    score = Score([], [], [])
    for group_truths, group_verdicts in groups:
        pairs = match(group_truths, group_verdicts, distance_seconds)
        score.matched.extend((group_truths[i], group_verdicts[j]) for i, j in pairs)
        taken_truths, taken_verdicts = {i for i, _ in pairs}, {j for _, j in pairs}
        score.missed.extend(t for i, t in enumerate(group_truths) if i not in taken_truths)
        score.invented.extend(v for j, v in enumerate(group_verdicts) if j not in taken_verdicts)
    score.matched.sort(key=lambda pair: pair[0].interrupted_at)
    return score if period is None else _within(score, period)


def _within(score: Score, period: Period) -> Score:
    since, until = period

    def is_in(moment: datetime) -> bool:
        return since <= moment < until

    invented = [v for v in score.invented if is_in(v["interrupted_at"])]
    return replace(
        score,
        matched=[(t, v) for t, v in score.matched if is_in(t.interrupted_at)],
        missed=[t for t in score.missed if is_in(t.interrupted_at)],
        invented=invented,
        period=period,
        outside=len(score.invented) - len(invented),
    )


def match(truths: Sequence[Truth], verdicts: Sequence[Verdict], distance_seconds: int) -> list[tuple[int, int]]:
    """Return pairs of positions in `truths` and `verdicts`, both sorted by time: most pairs, then least distance."""
    pairs: list[tuple[int, int]] = []
    for first_truth, last_truth, first_verdict, last_verdict in _stretches(truths, verdicts, distance_seconds):
        part = _match_stretch(truths[first_truth:last_truth], verdicts[first_verdict:last_verdict], distance_seconds)
        pairs.extend((i + first_truth, j + first_verdict) for i, j in part)
    return pairs


def _match_stretch(
    truths: Sequence[Truth], verdicts: Sequence[Verdict], distance_seconds: int
) -> list[tuple[int, int]]:
    """Align two sorted sequences by dynamic programming over (pairs made, minus total distance)."""
    best = [[(0, 0.0)] * (len(verdicts) + 1) for _ in range(len(truths) + 1)]
    for i, truth in enumerate(truths, 1):
        for j, verdict in enumerate(verdicts, 1):
            options = [best[i - 1][j], best[i][j - 1]]
            if (apart := _apart(truth, verdict, distance_seconds)) is not None:
                count, minus = best[i - 1][j - 1]
                options.append((count + 1, minus - apart))
            best[i][j] = max(options)
    pairs = []
    i, j = len(truths), len(verdicts)
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def _stretches(
    truths: Sequence[Truth], verdicts: Sequence[Verdict], distance_seconds: int
) -> Iterable[tuple[int, int, int, int]]:
    """Cut where nothing happened for longer than the distance: no pair can reach across."""
    times = sorted([(t.interrupted_at, 0) for t in truths] + [(v["interrupted_at"], 1) for v in verdicts])
    i = j = first_i = first_j = 0
    cuts = [(b[0] - a[0]).total_seconds() > distance_seconds for a, b in pairwise(times)]
    for (_, side), is_cut in zip(times, [*cuts, True][: len(times)], strict=True):
        i, j = (i + 1, j) if side == 0 else (i, j + 1)
        if is_cut:
            yield first_i, i, first_j, j
            first_i, first_j = i, j


def _apart(truth: Truth, verdict: Verdict, distance_seconds: int) -> float | None:
    """Return how far apart they are in seconds; None = they cannot be the same interruption."""
    if truth.job_id_raw not in (None, verdict["job_id_raw"]) or truth.run not in (
        None,
        verdict["run"],
        verdict["run_id"],
    ):
        return None
    apart = abs((truth.interrupted_at - verdict["interrupted_at"]).total_seconds())
    return float(apart) if apart <= distance_seconds else None


def _groups(truths: list[Truth], verdicts: list[Verdict]) -> list[tuple[list[Truth], list[Verdict]]]:
    """Put truths and verdicts of one run together, sorted by time.

    A truth is known by its job or run. In a cluster where one truth names neither, all are matched together.
    """
    pooled = {t.cluster for t in truths if t.run is None and t.job_id_raw is None}
    run_of = {
        (v["cluster"], kind, v[column]): v["run"]
        for v in verdicts
        for kind, column in (("run", "run_id"), ("run", "run"), ("job", "job_id_raw"))
    }
    groups: dict[tuple[str, str | None], tuple[list[Truth], list[Verdict]]] = defaultdict(lambda: ([], []))
    for t in truths:
        run = run_of.get((t.cluster, "job", t.job_id_raw)) or run_of.get((t.cluster, "run", t.run)) or t.run
        groups[t.cluster, None if t.cluster in pooled else run][0].append(t)
    clusters = {t.cluster for t in truths}
    for v in verdicts:
        if v["cluster"] in clusters:
            groups[v["cluster"], None if v["cluster"] in pooled else v["run"]][1].append(v)
    by_truth, by_verdict = (lambda t: t.interrupted_at), (lambda v: v["interrupted_at"])
    return [(sorted(ts, key=by_truth), sorted(vs, key=by_verdict)) for ts, vs in groups.values()]
