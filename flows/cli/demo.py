"""`goodput demo`: the whole way from exports to verdicts, on a cluster that was broken on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows import demo as bundled
from flows.cli import evaluate as scoring
from flows.cli import explain, facts
from flows.cli.run import run_all
from flows.cli.tables import say_table
from flows.cli.terminal import CommandError, clean, note, say, title
from flows.cli.words import command, config_given, gpu_hours, program, sure
from flows.evaluate import DEFAULT_DISTANCE_SECONDS

LEDGER = """
select l.state, sum(l.gpu_seconds) as gpu_seconds
from marts.ledger as l
group by l.state
order by gpu_seconds desc
"""


def demo(
    folder: Annotated[
        Path, Parameter(help="Folder to make; holds exports, truth, configuration and warehouse.")
    ] = Path("demo"),
    /,
) -> int:
    """Show what this does in a minute: exports of a real Slurm with eleven interruptions, to verdicts and their proof."""
    try:
        path = bundled.prepare(folder)
    except bundled.DemoExistsError as error:
        raise CommandError(str(error), 2) from None
    settings = facts.configuration(path)
    note(f"exports, truth and configuration are in {folder}")
    if code := run_all(settings):
        return code
    _say_interruptions(settings)
    _say_ledger(settings)
    title("Against the truth")
    scoring.say_score(scoring.score_of(settings, folder / bundled.TRUTH, DEFAULT_DISTANCE_SECONDS // 60))
    _say_next(path)
    return 0


def _say_interruptions(settings: facts.Config) -> None:
    title("Interruptions (time is compressed: minutes stand for hours)")
    rows = [
        {
            "id": row["interruption_id"][: facts.ID_DIGITS],
            "at_utc": f"{row['interrupted_at']:%H:%M:%S}",
            "class": row["class"],
            "cause": row["cause"],
            "sure": sure(row),
            "node": row["culprit_node"],
            "because": because(explain.described(settings, row)),
        }
        for row in facts.rows(settings, f"{facts.INTERRUPTIONS} order by i.interrupted_at")
    ]
    narrow = (("because", 30), ("class", 0), ("because", 12), ("because", 0))
    say_table(rows, tuple(rows[0]), narrow=narrow, right=("sure",))


def because(row: facts.Row) -> str | None:
    """Return what an interruption began with, as the evidence says; for an unknown cause why it is unknown."""
    if row["cause"] == "unknown":
        return str(row["unknown_reason"])
    return next((str(e["text"]) for e in row["evidence"] if e["role"] == "initiating"), None)


def _say_ledger(settings: facts.Config) -> None:
    title("Where the run's GPU-hours went")
    states = facts.rows(settings, LEDGER)
    total = sum(row["gpu_seconds"] for row in states) or 1
    for row in states:
        share = row["gpu_seconds"] / total
        say(f"{clean(row['state']):<16} {gpu_hours(row['gpu_seconds']):>10} {share:>7.1%}  {'#' * round(40 * share)}")
    say(f"{'elapsed':<16} {gpu_hours(total):>10} {1:>7.1%}")


def _say_next(path: Path) -> None:
    title("Try next")
    given = config_given.set(path)
    for words in ("explain --last", 'sql "from marts.root_causes"', "node gpu008"):
        say(f"  {command(words)}")
    config_given.reset(given)
    say(f"  {program()} init PATHS...   (your own exports)")
