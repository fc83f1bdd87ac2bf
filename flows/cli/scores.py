"""How a comparison with the truth is printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from flows.cli import facts
from flows.cli.tables import Row, Steps, say_table
from flows.cli.terminal import note, say, say_prose, say_wrapped, shown, title
from flows.cli.words import confidence, counted, gpu_hours
from flows.evaluate_runs import RunScore
from flows.score import CauseCount, Score, Verdict
from flows.truth import Truth

Mistake = tuple[Truth, Verdict, list[str]]
"""What is true, what was said, and what differs."""

ADD_UP = (
    "true = right + wrong + not tellable. Right: the verdict is the true cause, or one accepted for it. "
    "Not tellable: the exports do not show the cause. Found counts verdicts, right or wrong: where another cause "
    "was accepted, right may exceed it."
)
SHOWN = 40
"""Rows that a list of mistakes shows at most; `--json` holds all of them."""


def say_score(score: Score) -> None:
    """Print what share is right, and everything that is wrong."""
    if score.matched or score.missed or score.invented:
        _say_shares(score)
    for run in score.runs:
        _say_run(run)
    _say_wrong(score)
    if score.missed:
        title("Missed")
        rows = [
            {
                "interrupted_at": t.interrupted_at,
                "job": t.job_id_raw,
                "run": t.run,
                "truth": " or ".join(t.causes),
                **_signature(t, score.missed),
            }
            for t in score.missed
        ]
        _say_some(rows, (("truth", 20), ("run", 12), ("signature", 0)))
    if score.invented:
        title("Invented")
        rows = [
            {
                "interrupted_at": v["interrupted_at"],
                "job": v["job_id"],
                "verdict": v["cause"],
                "id": v["interruption_id"][: facts.ID_DIGITS],
            }
            for v in score.invented
        ]
        _say_some(rows, (("verdict", 20),))


def say_tables(score: Score) -> None:
    """Print the score by cause, by confidence, and the ledger of each run that the truth tells."""
    if causes := score.by_cause():
        title("By cause")
        rows = [{"cause": c.cause, **cause_numbers(c)} for c in causes]
        _say_some(rows, (("cause", 20), ("cause", 12)))
        say_prose(ADD_UP)
    if bins := score.calibration():
        title("By confidence (over identifiable causes)")
        rows = [
            {
                "said": f"{b.lower:.0%} to {b.upper:.0%}",
                "on average": confidence(b.mean),
                "right": f"{b.verdicts.share:.0%}",
                "verdicts": b.verdicts.of,
            }
            for b in bins
        ]
        say_table(rows, tuple(rows[0]), right=("said", "on average", "right"))
        say_prose("Confidences are calibrated where said and right agree: of verdicts 90% sure, nine in ten are right.")
    for run in score.runs:
        say_ledger(run)


def cause_numbers(count: CauseCount) -> dict[str, int]:
    """Return a cause's columns; `ADD_UP` says what they mean."""
    return {
        "true": count.true,
        "found": count.found,
        "right": count.told_right,
        "wrong": count.wrong,
        "not tellable": count.untold,
    }


def signed(value: float, digits: int) -> str:
    """Return a difference with its sign; without one where it rounds to nothing."""
    text = f"{value:+,.{digits}f}"
    return text if text.strip("+-0.") else text[1:]


def say_ledger(run: RunScore) -> None:
    """Print where a run's GPU-hours went by measurement and in truth; nothing where the truth does not tell."""
    states = run.states()
    if not states:
        return
    title(f"GPU-hours of {run.truth.run} by state")
    total = sum(true for _, true, _ in states) or 1
    rows = [
        {
            "state": state,
            "measured": gpu_hours(found),
            "true": gpu_hours(true),
            "difference": signed((found - true) / 3600, 2),
            "points": signed(100 * (found - true) / total, 3),
        }
        for state, true, found in states
    ]
    say_table(
        rows,
        tuple(rows[0]),
        right=("measured", "true", "difference", "points"),
        narrow=(("difference", 0), ("measured", 0)),
    )


def _say_shares(score: Score) -> None:
    total = len(score.matched) + len(score.missed)
    say(
        f"interruptions found   {len(score.matched)} of {total}; missed {len(score.missed)}, invented {len(score.invented)}"
    )
    if score.period is not None and score.outside:
        since, until = (shown(moment) for moment in score.period)
        outside = counted(score.outside, "interruption")
        note(
            f"not scored: {outside} without a truth outside {since} to {until} UTC; --since and --until set the period"
        )
    untold = score.unidentifiable
    of = " of those that the exports can tell" if untold.of else ""
    brier = "" if score.brier is None else f"; Brier score {score.brier:.3f}"
    say_wrapped(f"cause right           {score.causes}{of}{brier}", 22)
    if untold.of:
        say_wrapped(
            f"cause not tellable    {untold.of:,} more, which these exports do not show; "
            f"the verdict on {untold.right or 'none'} of them is accepted all the same",
            22,
        )
    say(f"planned or not right  {score.planned}")
    say(f"node right            {score.nodes}")


def _say_run(run: RunScore) -> None:
    if run.found is None:
        note(f"not compared: the warehouse holds no run {run.truth.run} of cluster {run.truth.cluster}")
        return
    parts = []
    if (error := run.effective_training_time_error) is not None:
        measured = run.found["effective_training_time"]
        parts.append(
            f"effective training time {measured:.2%}, truly {run.truth.effective_training_time:.2%} ({signed(100 * error, 2)} points)"
        )
    parts += [
        f"{found:,} {name}" + ("" if found == true else f", truly {true:,}") for name, true, found in run.counts()
    ]
    say_wrapped(f"run                   {run.truth.run}: {'; '.join(parts)}", 22)


def _say_wrong(score: Score) -> None:
    """Print what is wrong: first what could have been known, then what the exports cannot tell."""
    wrong = score.wrong()
    told = [found for found in wrong if found[0].is_identifiable]
    untold = [found for found in wrong if not found[0].is_identifiable]
    if told:
        _say_mistakes("Wrong", told)
    if untold:
        _say_mistakes("Wrong, where the exports cannot tell the cause", untold)
    if any(t.signature for t, _, _ in wrong):
        say_prose("signature = how the cause showed itself, in the words of the file of truths")


def _say_mistakes(heading: str, wrong: Sequence[Mistake]) -> None:
    title(heading)
    rows = [
        {
            "interrupted_at": t.interrupted_at,
            "job": v["job_id"],
            "wrong": ", ".join(differences),
            "truth": _shown(" or ".join(t.causes), t.is_planned, t.node, differences),
            "verdict": _shown(v["cause"], v["is_planned"], v["culprit_node"], differences),
            "id": v["interruption_id"][: facts.ID_DIGITS],
            **_signature(t, (truth for truth, _, _ in wrong)),
        }
        for t, v, differences in wrong
    ]
    narrow = (
        ("job", 0),
        ("signature", 16),
        ("interrupted_at", 16),
        ("truth", 20),
        ("verdict", 20),
        ("signature", 0),
        ("interrupted_at", 11),
        ("wrong", 5),
        ("truth", 14),
        ("verdict", 14),
        ("wrong", 0),
    )
    _say_some(rows, narrow)


def _signature(truth: Truth, beside: Iterable[Truth]) -> dict[str, str | None]:
    """Return the column that tells how the cause showed itself, where any truth of the list tells it."""
    return {"signature": truth.signature} if any(t.signature for t in beside) else {}


def _say_some(rows: Sequence[Row], narrow: Steps) -> None:
    say_table(list(islice(rows, SHOWN)), tuple(rows[0]), narrow=narrow)
    if len(rows) > SHOWN:
        note(f"{len(rows) - SHOWN:,} more are not shown; --json lists all")


def _shown(cause: str, is_planned: bool | None, node: str | None, differences: Sequence[str]) -> str:
    """Return a cause, and of the rest what differs."""
    planned = None if is_planned is None else "planned" if is_planned else "not planned"
    parts = [cause, planned if "planned" in differences else None]
    if "node" in differences:
        parts.append(node or "no node")
    return ", ".join(p for p in parts if p)
