"""`goodput evaluate`: verdicts against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows import evaluate as scoring
from flows import truth as truths
from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import CommandError, say, say_json, say_table, title


def evaluate(
    truth: Annotated[
        Path,
        Parameter(
            help="The truth, one JSON object a line: cluster, run or job_id_raw, interrupted_at, "
            "causes, is_planned, node, identifiable."
        ),
    ],
    /,
    *,
    distance: Annotated[str, Parameter(help="How far apart a truth and its verdict may lie: 90s, 30m, 1h.")] = "1h",
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Compare the warehouse's verdicts with what is known to have happened."""
    settings = facts.configuration(config)
    score = score_of(settings, truth, int(facts.duration(distance).total_seconds()))
    if json:
        say_json(score.summary())
    else:
        say_score(score)
    return 0


def score_of(settings: facts.Config, truth: Path, distance_seconds: int) -> scoring.Score:
    """Return how the published verdicts compare with the truth in a file.

    Raises:
        CommandError: the file cannot be used, or nothing has been published.
    """
    try:
        known = truths.read_truths(truth)
    except truths.TruthError as error:
        raise CommandError(str(error), 2) from None
    return scoring.compare(known, facts.rows(settings, facts.INTERRUPTIONS), distance_seconds)


def say_score(score: scoring.Score) -> None:
    """Print a score and everything that is wrong."""
    total = len(score.matched) + len(score.missed)
    say(
        f"interruptions found   {len(score.matched)} of {total}; missed {len(score.missed)}, invented {len(score.invented)}"
    )
    say(f"cause right           {score.causes}" + ("" if score.brier is None else f"; Brier score {score.brier:.3f}"))
    if score.unidentifiable.of:
        say(f"cause not in exports  {score.unidentifiable} answered as accepted")
    say(f"planned or not right  {score.planned}")
    say(f"node right            {score.nodes}")
    rows = [
        {
            "interrupted_at": t.interrupted_at,
            "job": v["job_id"],
            "wrong": ", ".join(differences),
            "truth": _shown(" or ".join(t.causes), t.is_planned, t.node),
            "verdict": _shown(v["cause"], v["is_planned"], v["culprit_node"]),
            "id": v["interruption_id"][: facts.ID_DIGITS],
        }
        for t, v, differences in score.wrong()
    ]
    if rows:
        title("Wrong")
        say_table(rows, tuple(rows[0]))
    if score.missed:
        title("Missed")
        say_table(
            [
                {"interrupted_at": t.interrupted_at, "job": t.job_id_raw, "run": t.run, "truth": " or ".join(t.causes)}
                for t in score.missed
            ],
            ("interrupted_at", "job", "run", "truth"),
        )
    if score.invented:
        title("Invented")
        say_table(
            [
                {
                    "interrupted_at": v["interrupted_at"],
                    "job": v["job_id"],
                    "verdict": v["cause"],
                    "id": v["interruption_id"][: facts.ID_DIGITS],
                }
                for v in score.invented
            ],
            ("interrupted_at", "job", "verdict", "id"),
        )


def _shown(cause: str, is_planned: bool | None, node: str | None) -> str:
    parts = [cause, None if is_planned is None else ("planned" if is_planned else "not planned"), node]
    return ", ".join(p for p in parts if p)
