"""`goodput evaluate`: verdicts against the truth."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows import evaluate as scoring
from flows import truth as truths
from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.scores import say_score, say_tables
from flows.cli.terminal import CommandError, say_json, shown
from flows.evaluate_runs import compare_runs

RUNS = """
select r.cluster, r.run_id, r.run, r.gpus, round(r.elapsed_hours * 3600)::bigint as elapsed_seconds,
    r.effective_training_time, r.interruptions, r.planned, r.unexpected, count(i.interruption_id) as manual
from marts.runs as r
left join marts.interruptions as i on r.run_id = i.run_id and i.recovery = 'manual'
group by all
"""
MOST_DISTANCE = timedelta(days=365)
LEDGER = "select l.run_id, l.state, sum(l.gpu_seconds)::bigint as gpu_seconds from marts.ledger as l group by all"


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

    - signature: how the cause showed itself; shown beside a wrong verdict

    Such as:
    {"cluster": "alpha", "job_id_raw": "71500",
    "interrupted_at": "2026-05-04T13:30:00Z", "causes": ["gpu_hbm"]}

    Verdicts without a truth count as invented, but only within the period
    that the truths span; --since and --until set another one.

    A line with "kind": "run" tells of a whole run instead: run, and any of
    effective_training_time, ledger (GPU-seconds by state), interruptions,
    planned, unexpected, manual.
    """
    settings = facts.configuration(config)
    ends = tuple(None if text is None else facts.moment(text) for text in (since, until))
    score = score_of(settings, truth, _distance_seconds(distance), *ends)
    if json:
        say_json(score.summary())
    else:
        say_score(score)
        say_tables(score)
    return 0


def _distance_seconds(text: str) -> int:
    """Return the distance, seconds; more than a year around a truth is none, and soon no date.

    Raises:
        CommandError: it is no duration, or too long (exit 2).
    """
    try:
        distance = facts.duration(text)
    except OverflowError:
        distance = timedelta.max
    if distance > MOST_DISTANCE:
        raise CommandError(
            f"--distance {text} is too far for a truth and its verdict; give {MOST_DISTANCE.days}d at most", 2
        )
    return int(distance.total_seconds())


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
        known = truths.read(truth, causes)
    except truths.TruthError as error:
        raise CommandError(str(error), 2) from None
    if not known.interruptions and not known.runs:
        raise CommandError(f"{truth}: holds no truth; write one JSON object a line, see `goodput evaluate --help`", 2)
    runs = compare_runs(known.runs, facts.rows(settings, RUNS), facts.rows(settings, LEDGER)) if known.runs else []
    if not known.interruptions:
        return scoring.Score([], [], [], runs)
    first, last = scoring.own_period(known.interruptions, distance_seconds)
    period = (since or first, until or last)
    if period[0] >= period[1]:
        raise CommandError(f"nothing lies between {shown(period[0])} and {shown(period[1])} UTC", 2)
    verdicts = facts.rows(settings, facts.INTERRUPTIONS)
    return replace(scoring.compare(known.interruptions, verdicts, distance_seconds, period), runs=runs)
