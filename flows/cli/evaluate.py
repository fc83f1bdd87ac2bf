"""`goodput evaluate`: verdicts against the truth."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows import evaluate as scoring
from flows import truth as truths
from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.tables import say_table
from flows.cli.terminal import CommandError, note, say, say_json, shown, title
from flows.cli.words import counted


def evaluate(
    truth: Annotated[Path, Parameter(help="File that holds the truth, one JSON object a line.")],
    /,
    *,
    since: Annotated[
        str | None,
        Parameter(help="Score from this day or time on, UTC; else from the first truth on, less the distance."),
    ] = None,
    until: Annotated[
        str | None, Parameter(help="Score before this day or time, UTC; else up to the last truth, plus the distance.")
    ] = None,
    distance: Annotated[str, Parameter(help="How far apart a truth and its verdict may lie: 90s, 30m, 1h.")] = "1h",
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Compare the warehouse's verdicts with what is known to have happened.

    A line of the file is a JSON object; what it does not tell is not scored:

    - cluster, interrupted_at (with a zone): always needed

    - run (name or id) or job_id_raw: which run or job

    - causes: codes of the causes that are right, any of them

    - is_planned: true or false

    - node: the one to blame

    - identifiable: false where the exports cannot tell the cause

    Such as:
    {"cluster": "alpha", "job_id_raw": "71500",
    "interrupted_at": "2026-05-04T13:30:00Z", "causes": ["gpu_hbm"]}

    Verdicts without a truth count as invented, but only within the period
    that the truths span; --since and --until set another one.
    """
    settings = facts.configuration(config)
    ends = tuple(None if text is None else facts.moment(text) for text in (since, until))
    score = score_of(settings, truth, int(facts.duration(distance).total_seconds()), *ends)
    if json:
        say_json(score.summary())
    else:
        say_score(score)
    return 0


def score_of(
    settings: facts.Config,
    truth: Path,
    distance_seconds: int,
    since: datetime | None = None,
    until: datetime | None = None,
) -> scoring.Score:
    """Return how the published verdicts compare with the truth in a file.

    Args:
        settings: configuration.
        truth: the file.
        distance_seconds: how far apart a truth and its verdict may lie.
        since: UTC begin of what is scored; None = the first truth, less the distance.
        until: UTC end of it, itself not included; None = the last truth, plus the distance.

    Raises:
        CommandError: the file cannot be used, or nothing has been published.
    """
    causes = [row["code"] for row in facts.rows(settings, "select code from reference.causes")]
    try:
        known = truths.read_truths(truth, causes)
    except truths.TruthError as error:
        raise CommandError(str(error), 2) from None
    if not known:
        raise CommandError(f"{truth}: holds no truth; write one JSON object a line, see `goodput evaluate --help`", 2)
    first, last = scoring.own_period(known, distance_seconds)
    period = (since or first, until or last)
    if period[0] >= period[1]:
        raise CommandError(f"nothing lies between {shown(period[0])} and {shown(period[1])} UTC", 2)
    return scoring.compare(known, facts.rows(settings, facts.INTERRUPTIONS), distance_seconds, period)


def say_score(score: scoring.Score) -> None:
    """Print a score and everything that is wrong."""
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
        say_table(rows, tuple(rows[0]), narrow=(("truth", 20), ("verdict", 20), ("interrupted_at", 16), ("wrong", 5)))
    if score.missed:
        title("Missed")
        say_table(
            [
                {"interrupted_at": t.interrupted_at, "job": t.job_id_raw, "run": t.run, "truth": " or ".join(t.causes)}
                for t in score.missed
            ],
            ("interrupted_at", "job", "run", "truth"),
            narrow=(("truth", 20), ("run", 12)),
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
            narrow=(("verdict", 20),),
        )


def _shown(cause: str, is_planned: bool | None, node: str | None) -> str:
    parts = [cause, None if is_planned is None else ("planned" if is_planned else "not planned"), node]
    return ", ".join(p for p in parts if p)
