"""`goodput diff`: which interruptions two builds tell differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.report import change, counts
from flows.cli.tables import say_table
from flows.cli.terminal import CommandError, clean, note, say, say_json, say_wrapped
from flows.cli.words import counted, gpu_hours

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.publish import Build

_NARROW = (("cluster", 0), ("interrupted_at", 16), ("run", 12), ("job_id", 0), ("run", 0), ("was", 16), ("now", 16),
           ("interrupted_at", 11))  # fmt: skip

MOST_RUNS = 10
"""Runs whose training time is told; the rest are counted."""


def diff(
    old: Annotated[str | None, Parameter(help="The earlier build; the one before the later one if not given.")] = None,
    new: Annotated[str | None, Parameter(help="The later build; the published one if not given.")] = None,
    /,
    *,
    every: Annotated[
        bool, Parameter(name="--all", negative="", help="Also those of which only the confidence moved.")
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Show how the interruptions of two builds differ: new ones, vanished ones, other verdicts, other costs. See `goodput builds`."""
    from warehouse import changes, costs, publish

    kept = publish.builds(facts.configuration(config).data)
    later = _named(kept, new) if new else _published(kept)
    earlier = _named(kept, old) if old else _before(kept, later)
    try:
        found = changes.compare(earlier.path, later.path)
        cost = costs.compare(earlier.path, later.path)
    except publish.NoWarehouseError as error:
        raise CommandError(str(error)) from None
    shown = [row for row in found if every or changes.is_verdict(row)]
    if json:
        say_json({"old": earlier.build_id, "new": later.build_id, "interruptions": found, "cost": cost})
        return 0
    note(f"from build {earlier.build_id} to {later.build_id}")
    if shown:
        rows = [change({**row, "run": row["run"] or row["run_id"]}) for row in shown]
        say_table(rows, tuple(rows[0]), narrow=_NARROW)
        say(counts(list(shown)))
    else:
        say("both tell the same interruptions, with the same verdicts")
    for line in priced(cost):
        say_wrapped(line, 2)
    if hidden := len(found) - len(shown):
        note(f"{hidden:,} more kept their verdict with another confidence; --all shows them")
    return 0


def priced(cost: facts.Row) -> list[str]:
    """Return what the interruptions cost before and now, and the training time of runs, where they differ."""
    lost, held = (_moved(cost, f"{part}_gpu_seconds", gpu_hours) for part in ("lost", "held"))
    parts = [f"GPU-hours lost: {lost}"] if lost else []
    if held:
        parts.append(f"on GPUs held: {held}")
    shares = [(row, _moved(row, "effective_training_time", "{:.2%}".format)) for row in cost["runs"]]
    if cost["number_of_runs"] == 1:
        parts += [f"effective training time: {share}" for _, share in shares]
        shares = []
    lines = [clean(f"effective training time of {row['run'] or row['run_id']}: {share}") for row, share in shares]
    if (more := len(lines) - MOST_RUNS) > 0:
        lines = [*lines[:MOST_RUNS], f"and of {counted(more, 'more run')}, which --json has"]
    return ["; ".join(parts), *lines] if parts else lines


def _moved(row: facts.Row, name: str, text: Callable[[float], str]) -> str | None:
    """Return a figure before and now as it is shown; None where it is the same, or one build does not tell it."""
    was, now = row[f"old_{name}"], row[f"new_{name}"]
    if was is None or now is None or text(was) == text(now):
        return None
    return f"{text(was)} before, {text(now)} now"


def _named(kept: list[Build], build_id: str) -> Build:
    """Return the build with this id, or the only one whose id begins so."""
    fits = [b for b in kept if b.build_id == build_id] or [b for b in kept if b.build_id.startswith(build_id)]
    if len(fits) != 1 or not build_id:
        which = "several builds have ids that begin with" if fits else "there is no build"
        raise CommandError(f"{which} {build_id!r}; see `goodput builds`")
    return fits[0]


def _published(kept: list[Build]) -> Build:
    found = next((b for b in kept if b.is_published), None)
    if found is None:
        raise CommandError("nothing is published; `goodput builds` lists what is kept, name two of them")
    return found


def _before(kept: list[Build], later: Build) -> Build:
    position = kept.index(later)
    if position == 0:
        raise CommandError(f"no build before {later.build_id} is kept; see `goodput builds`")
    return kept[position - 1]
