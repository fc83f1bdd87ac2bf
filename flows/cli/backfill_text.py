"""What `goodput backfill` prints: the plan, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from flows.cli.tables import say_table
from flows.cli.terminal import say, title
from flows.cli.words import counted

if TYPE_CHECKING:
    from flows.backfill import Outcome, Plan, Step
    from flows.config import Config
    from flows.prefect_runs import Run

Row = dict[str, Any]
_NARROW = (("why", 12), ("none", 0), ("done", 0), ("open", 0), ("why", 0))


def span(start: datetime, end: datetime) -> str:
    """Return a period as people write it: whole days as days, else times."""
    from flows.windows import Window

    return str(Window(start, end))


def say_plan(plan: Plan, *, run_backwards: bool) -> None:
    """Print the plan: a line for each source with how many of its windows are in which state, and why some are to be loaded."""
    from flows.coverage import STATES

    order = "newest first" if run_backwards else "oldest first"
    title(f"Plan for {span(plan.start, plan.end)}, {order}, --reprocess {plan.reprocess}")
    states = [s for s in STATES if s in plan.states()]
    rows = []
    for source in dict.fromkeys(s.state.source for s in plan.steps):
        steps = [s for s in plan.steps if s.state.source == source]
        todo = [s for s in steps if s.is_todo]
        counts = plan.states(source)
        row: Row = {"source": source, "windows": len(steps), "to_load": len(todo)}
        rows.append(row | {s: counts.get(s, 0) for s in states} | {"why": _why(steps)})
    say_table(rows, ("source", "windows", "to_load", *states, "why"), narrow=_NARROW)
    say()


def _why(steps: Iterable[Step]) -> str:
    """Return why windows are loaded, or cannot be, each with how many; a window counts once, for the worst that is the matter."""
    from flows.coverage import STATES
    from flows.coverage_pulls import BEFORE_SINCE

    reasons: Counter[str] = Counter()
    for step in steps:
        found = [(step.state.state, step.state.reason)] if step.needs_pull else []
        found += [(f.state, f.reason) for f in step.files]
        if found:
            reasons[_reason(*min(found, key=lambda one: STATES.index(one[0])))] += 1
        elif step.state.reason == BEFORE_SINCE:
            reasons[BEFORE_SINCE] += 1
    return ", ".join(f"{number:,} {reason}" for reason, number in reasons.most_common())


def _reason(state: str, reason: str) -> str:
    from flows.coverage_pulls import UNREADABLE

    if state == "failed":
        return UNREADABLE if reason.startswith(UNREADABLE) else "failed before"
    return "to be loaded again" if state == "done" else reason


def before_since(settings: Config, plan: Plan) -> Iterator[str]:
    """Yield, for each source with windows before its `since`, which line keeps them from being loaded."""
    from flows.config_errors import line_numbers, line_of
    from flows.coverage_pulls import BEFORE_SINCE

    early = Counter(s.state.source for s in plan.steps if s.state.reason == BEFORE_SINCE)
    lines = line_numbers(settings.path.read_text(encoding="utf-8")) if early else {}
    for position, source in enumerate(settings.sources):
        if number := early[source.name]:
            place = f"{settings.path.name} line {line_of(lines, ('sources', position, 'since'))}"
            yield f"{counted(number, 'window')} before `since` of {source.name} ({place}); set it earlier to ask for them"


def say_windows(steps: Iterable[Step]) -> None:
    """Print the windows that are to be loaded, neighbours that are alike in one line: a month of hours is one, not hundreds."""
    columns = ("window", "source", "state", "windows", "files", "command", "why")
    rows = [_together(group) for group in neighbours(steps)]
    say_table(rows, columns, narrow=(("why", 16), ("command", 0)))


def neighbours(steps: Iterable[Step]) -> list[list[Step]]:
    """Return the steps in groups: windows of one source that follow each other, in the same state, for the same reason."""
    groups: list[list[Step]] = []
    last: dict[str, list[Step]] = {}
    for step in steps:
        group = last.get(step.state.source)
        if group is None or not _continues(group[-1], step):
            group = last[step.state.source] = []
            groups.append(group)
        group.append(step)
    return groups


def _continues(one: Step, other: Step) -> bool:
    """Tell whether a step is for the window after (newest first: before) that of the one before, and like it."""
    a, b = one.state, other.state
    is_beside = a.window.end == b.window.start or b.window.end == a.window.start
    return is_beside and (a.state, a.reason, one.needs_pull) == (b.state, b.reason, other.needs_pull)


def _together(group: Sequence[Step]) -> Row:
    one = group[0]
    return {
        "window": span(min(s.state.window.start for s in group), max(s.state.window.end for s in group)),
        "source": one.state.source,
        "state": one.state.state,
        "windows": len(group),
        "files": len({f.path for s in group for f in s.files}),
        "command": "asked" if one.needs_pull else "-",
        "why": one.state.reason or "to be loaded again",
    }


def plan_json(plan: Plan) -> Row:
    """Return a plan as plain values."""
    return {
        "start": plan.start,
        "end": plan.end,
        "reprocess": plan.reprocess,
        "windows": [
            {
                "source": step.state.source,
                "start": step.state.window.start,
                "end": step.state.window.end,
                "state": step.state.state,
                "reason": step.state.reason,
                "to_load": step.is_todo,
                "files": [f.path for f in step.files],
                "asks_command": step.needs_pull,
            }
            for step in plan.steps
        ],
    }


def outcome_json(outcome: Outcome) -> Row:
    """Return what became of a window as plain values."""
    return {
        "source": outcome.source,
        "start": outcome.window.start,
        "end": outcome.window.end,
        "status": outcome.status,
        "message": outcome.message,
        "files": len(outcome.exports),
        "lines": sum(e.lines for e in outcome.exports),
    }


def say_outcomes(outcomes: list[Outcome]) -> None:
    """Print what was loaded, in one line."""
    exports = [e for o in outcomes for e in o.exports]
    loaded = [o for o in outcomes if o.status == "loaded"]
    lines = sum(e.lines for e in exports)
    say(
        f"loaded {len(loaded):,} of {counted(len(outcomes), 'window')}: {counted(len(exports), 'file')}, "
        f"{counted(lines, 'line')}, {sum(e.rejected for e in exports):,} rejected"
    )


def say_runs(runs: Sequence[Run], build: Run | None) -> None:
    """Print what became of the runs on the server."""
    completed = sum(r.is_completed for r in runs)
    say(f"{completed:,} of {counted(len(runs), 'run')} completed" if runs else "nothing to do")
    if build is not None:
        say(f"build: run {build.name} {build.state}")


def run_json(run: Run) -> Row:
    """Return a run on the server as plain values."""
    limits = {"start": run.part.start, "end": run.part.end, "windows": run.part.windows} if run.part else {}
    return {"name": run.name, "id": str(run.run_id), "state": run.state, "message": run.message, **limits}
