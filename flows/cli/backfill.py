"""`goodput backfill`: load what is missing between two times."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from flows.cli import backfill_text as text
from flows.cli import build as building
from flows.cli import facts, landed, periods
from flows.cli.backfill_shown import Shown
from flows.cli.options import DEPLOYMENTS, ConfigOption, JsonOption
from flows.cli.terminal import CommandError, fail, here, note, say, say_json, warn
from flows.cli.words import counted

if TYPE_CHECKING:
    from flows.backfill import BackfillReport, Outcome, Plan

Reprocess = Literal["none", "failed", "all"]
MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for."""

    start: datetime
    end: datetime
    sources: tuple[str, ...]
    reprocess: Reprocess
    run_backwards: bool
    max_active: int
    name: str = DEPLOYMENTS

    def options(self, reprocess: str) -> str:
        """Return the options that ask for the same, with another `--reprocess`."""
        limits = f"--start {self.start:%Y-%m-%dT%H:%M:%SZ} --end {self.end:%Y-%m-%dT%H:%M:%SZ}"
        name = f" --name {shlex.quote(self.name)}" if self.name != DEPLOYMENTS else ""
        sources = "".join(f" --source {shlex.quote(s)}" for s in self.sources)
        return f"{limits}{sources}{name} --reprocess {reprocess}"


def backfill(
    *,
    start: Annotated[str, Parameter(help="First day or time, UTC; or how long ago: 7d.")],
    end: Annotated[
        str | None, Parameter(help="Last day, which is included, or a time, which is not; now if not given.")
    ] = None,
    source: periods.SourceOption = (),
    reprocess: Annotated[
        Reprocess,
        Parameter(
            help="What is done besides what was never loaded and what is out of date: nothing, what failed, or everything again."
        ),
    ] = "none",
    max_active: Annotated[int, Parameter(help="Commands, or runs on a Prefect server, at once; 1 to 32.")] = 2,
    run_backwards: Annotated[bool, Parameter(help="Newest windows first.")] = False,
    dry_run: Annotated[bool, Parameter(help="Print the plan and which windows are in it, and do nothing.")] = False,
    no_build: Annotated[
        bool, Parameter(help="Load only; leave the build to the schedule or to `goodput build`.")
    ] = False,
    in_process: Annotated[
        bool, Parameter(name="--here", help="Do the work in this process even if PREFECT_API_URL is set.")
    ] = False,
    name: Annotated[
        str, Parameter(help="Name of the deployments on the server, as `goodput serve --name` gives it.")
    ] = DEPLOYMENTS,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Load what is missing between two times, window by window, and build. Says first what it is going to do, and why.

    It may be stopped at any moment: the same command does the rest.
    """
    settings = facts.configuration(config)
    limits = periods.period(start, end)
    periods.check(settings, source, *limits)
    if not 1 <= max_active <= 32:
        raise CommandError(f"--max-active is {max_active}; write 1 to 32", 2)
    request = Request(*limits, source, reprocess, run_backwards, max_active, name)
    plan = planned(settings, request)
    if not json:
        text.say_plan(plan, run_backwards=run_backwards)
        _say_left(plan, request)
        for line in text.before_since(settings, plan):
            note(line)
    if dry_run:
        return _dry(settings, plan, json=json)
    if os.environ.get("PREFECT_API_URL") and not in_process:
        return _on_server(settings, request, plan, build=not no_build, json=json)
    return _here(settings, request, plan, build=not no_build, json=json)


def planned(settings: facts.Config, request: Request) -> Plan:
    """Return the plan; nothing is changed, and nobody is waited for."""
    from flows.backfill import plan
    from flows.manifest import opened_to_read

    with facts.expected_errors(), opened_to_read(settings.data) as manifest:
        return plan(
            settings, manifest, start=request.start, end=request.end, now=datetime.now(UTC), sources=request.sources,
            reprocess=request.reprocess, run_backwards=request.run_backwards,
        )  # fmt: skip


def _say_left(plan: Plan, request: Request) -> None:
    """Say which failed windows the plan leaves alone."""
    left = [s for s in plan.steps if s.state.state == "failed" and not s.is_todo]
    if left and plan.reprocess == "none":
        again = request.options("failed")
        note(f"{counted(len(left), 'window')} failed before and will be left; to try again: `goodput backfill {again}`")


def _dry(settings: facts.Config, plan: Plan, *, json: bool) -> int:
    from flows import pipeline

    with facts.expected_errors():
        is_behind = pipeline.needs_build(settings)
    if json:
        say_json(text.plan_json(plan) | {"needs_build": is_behind})
    elif plan.todo:
        text.say_windows(plan.todo)
    else:
        say("nothing to do")
    if is_behind and not plan.todo:
        note("what was loaded is not in the published build yet: `goodput build`")
    return 0


def _here(settings: facts.Config, request: Request, plan: Plan, *, build: bool, json: bool) -> int:
    """Do the work in this process."""
    from flows.backfill import PATIENCE_SECONDS, carry_out

    with facts.expected_errors(), Shown(len(plan.todo), "window") as shown:
        report = carry_out(
            settings, start=request.start, end=request.end, sources=request.sources, reprocess=request.reprocess,
            run_backwards=request.run_backwards, max_active=request.max_active, build=False, progress=shown.step,
            wait_seconds=facts.WAIT_SECONDS, on_wait=shown.wait_for,
        )  # fmt: skip
    if not json:
        text.say_outcomes(report.outcomes) if report.outcomes else say("nothing to do")
    # Long enough for a build that a schedule began between the last window and this.
    built = building.built(settings, wait_seconds=PATIENCE_SECONDS) if build else None
    if json:
        outcomes = [text.outcome_json(o) for o in report.outcomes]
        made = building.as_json(built) if built else None
        say_json(text.plan_json(plan) | {"outcomes": outcomes, "notes": report.notes, "build": made})
    elif built:
        building.say_build(built)
    if built:
        building.fail_checks(built)
    _complain(report, request)
    is_built = built is None or built.published or built.is_current
    return 0 if is_built and not report.failed else 1


def _on_server(settings: facts.Config, request: Request, plan: Plan, *, build: bool, json: bool) -> int:
    """Have the work done by runs on the Prefect server, a day each, and wait for them."""
    from flows import pipeline, prefect_events, prefect_runs
    from flows.backfill import by_day

    parts = [prefect_runs.Part(*day) for day in by_day(plan)]
    parameters = {
        "config": str(settings.path), "sources": list(request.sources), "reprocess": request.reprocess,
        "run_backwards": request.run_backwards, "max_active": 1,
    }  # fmt: skip
    built = None
    try:
        with facts.expected_errors(), prefect_runs.connected() as client, Shown(len(parts), "run") as shown:
            warehouse = prefect_events.warehouse_id(settings)
            runs = prefect_runs.Runs(client, request.name, parameters, warehouse, shown.runs, note)
            ended = runs.backfill(parts, request.max_active)
            if build and (ended or pipeline.needs_build(settings)):
                built = runs.build(ended)
    except prefect_runs.ServerError as error:
        raise CommandError(str(error)) from None
    except KeyboardInterrupt:
        note(
            "runs that the server has begun go on: `prefect flow-run ls` shows them, `prefect flow-run cancel ID` ends one"
        )
        raise
    left = _left_of(settings, request, plan)
    bad = [run for run in (*ended, built) if run is not None and not run.is_completed]
    if json:
        say_json(text.plan_json(plan) | {"runs": [text.run_json(r) for r in (*ended, built) if r], "left": left})
    else:
        text.say_runs(ended, built)
    for run in bad[:MAX_LISTED]:
        fail(": ".join(filter(None, (f"run {run.name}", run.state, run.message.partition("\n")[0]))))
    for one in left[:MAX_LISTED]:
        fail(one)
    if left:
        fail(f"{_not_loaded(len(left))}; mend what is wrong, then {_again(request)}")
    elif bad:
        fail(f"every window is loaded, but {counted(len(bad), 'run')} did not complete: see above")
    return 1 if bad or left else 0


def _left_of(settings: facts.Config, request: Request, plan: Plan) -> list[str]:
    """Return the windows of a plan that are still not loaded, each with the reason: the data folder knows, not the server."""
    after = planned(settings, replace(request, reprocess="failed"))
    asked = {s.key for s in plan.todo}
    return [f"{s.state.source} {s.state.window}: {here(s.state.reason)}" for s in after.todo if s.key in asked]


def _complain(report: BackfillReport, request: Request) -> None:
    for one in report.notes:
        warn(one)
    for export in report.unknown[:MAX_LISTED]:
        warn(f"{here(export.path)}: {landed.unknown_format(export.message)}")
    for outcome in report.failed[:MAX_LISTED]:
        fail(_failure(outcome))
    if report.failed:
        fail(f"{_not_loaded(len(report.failed))}; mend what is wrong, then {_again(request)}")


def _not_loaded(number: int) -> str:
    more = f" ({number - MAX_LISTED:,} more than listed here)" if number > MAX_LISTED else ""
    return f"{counted(number, 'window')} could not be loaded{more}"


def _again(request: Request) -> str:
    return f"`goodput backfill {request.options('failed')}` does only what is left"


def _failure(outcome: Outcome) -> str:
    return f"{outcome.source} {outcome.window}: {here(outcome.message)}"
