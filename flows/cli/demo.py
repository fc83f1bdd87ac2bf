"""`goodput demo`: the whole way from exports to verdicts, on a run whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from flows import demo as bundled
from flows.cli import evaluate as scoring
from flows.cli import explain, facts, replay_report
from flows.cli.run import run_all
from flows.cli.scores import say_score
from flows.cli.tables import say_table
from flows.cli.terminal import CommandError, Steps, clean, note, say, title
from flows.cli.words import command, config_given, gpu_hours, program, sure
from flows.evaluate import DEFAULT_DISTANCE_SECONDS
from flows.lease import BusyError

SAID_BYTES = 2_000_000_000
"""Exports larger than this are announced before they are written."""
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
    *,
    seed: Annotated[int, Parameter(help="What chance is drawn from.")] = 1,
    nodes: Annotated[
        int, Parameter(help="Nodes of the run, eight GPUs each: 16 to 32,768; times days, 819,200 at most.")
    ] = 2048,
    days: Annotated[int, Parameter(help="Length of the run; 400 at most.")] = 54,
    mix: Annotated[str, Parameter(help="How often each cause occurs; another word lists them.")] = "llama3",
    example: Annotated[
        Literal["slurm"] | None,
        Parameter(
            help="Instead: exports of a real twelve-node Slurm that was broken on purpose, eleven interruptions."
        ),
    ] = None,
) -> int:
    """Replay the Llama 3 run: the exports of 16,384 GPUs over 54 days, what stopped them, and how much of it is right.

    The same options make the same exports; a folder that holds them is reused.
    """
    replay = bundled.Replay(seed, nodes, days, mix)
    if example is not None and replay != bundled.Replay():
        raise CommandError("--example takes what was printed once: leave --seed, --nodes, --days and --mix out", 2)
    try:
        with bundled.alone(folder):
            return _replay(folder, replay) if example is None else _example(folder, example)
    except (bundled.DemoExistsError, bundled.ReplayError) as error:
        raise CommandError(str(error), 2) from None
    except BusyError as error:
        raise CommandError(str(error)) from None


def _replay(folder: Path, replay: bundled.Replay) -> int:
    with ExitStack() as stack:
        path = bundled.prepare_replay(folder, replay, _steps(stack, replay))
    settings = facts.configuration(path)
    note(f"exports, truth and configuration are in {folder}")
    if code := run_all(settings):
        return code
    score = scoring.score_of(settings, folder / bundled.TRUTH, DEFAULT_DISTANCE_SECONDS)
    replay_report.say_replay(settings, score, is_published=replay.is_published)
    _say_next(path, replay_report.most_blamed(settings))
    return 0


def _steps(stack: ExitStack, replay: bundled.Replay) -> Callable[[str], None]:
    """Return what shows a step of the generator; nothing is said before the first, which options may forbid."""
    begun: list[Steps] = []

    def show(step: str) -> None:
        if not begun:
            if replay.export_bytes > SAID_BYTES:
                note(
                    f"the exports will take about {replay.export_bytes / 1e9:.1f} GB; --nodes and --days make them smaller"
                )
            begun.append(stack.enter_context(Steps("generating exports")))
        begun[0].show(step)

    return show


def _example(folder: Path, example: str) -> int:
    path = bundled.prepare(folder, example)
    settings = facts.configuration(path)
    note(f"exports, truth and configuration are in {folder}")
    if code := run_all(settings):
        return code
    _say_interruptions(settings)
    _say_ledger(settings)
    title("Against the truth")
    say_score(scoring.score_of(settings, folder / bundled.TRUTH, DEFAULT_DISTANCE_SECONDS // 60))
    _say_next(path, "gpu008")
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


def _say_next(path: Path, node: str | None) -> None:
    title("Try next")
    given = config_given.set(path)
    for words in ("explain --last", 'sql "from marts.root_causes"', *([] if node is None else [f"node {clean(node)}"])):
        say(f"  {command(words)}")
    config_given.reset(given)
    say(f"  {program()} init PATHS...   (your own exports)")
