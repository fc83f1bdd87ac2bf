"""`goodput check`: is anything wrong; and what the marts hold, as digests."""

from __future__ import annotations

import hashlib
from typing import Annotated

from cyclopts import Parameter

from flows.cli import beside, facts, labels, landed, pulls
from flows.cli.doubts import doubts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import CommandError, Steps, fail, here, note, say, say_json, warn
from flows.cli.words import counted

NEXT_STEP = (
    "    these rows break a rule that must hold: look at the jobs or nodes they name in marts and exports, then report them "
    "with this message"
)


def check(
    *,
    digest: Annotated[
        bool, Parameter(help="Print a SHA-256 of each mart and of all: same records, same digests.")
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Exit 1 if something is wrong.

    That is: rejected lines, failed or unknown exports, no export of jobs,
    sources without a file, commands that failed, marts that break a rule. What
    only makes verdicts doubtful, such as events that name no node, or an export
    that no source matches, is a warning.
    Of files that are gone, or hold something newer that was read in full,
    rejected lines and failures are only noted.
    """
    settings = facts.configuration(config)
    if digest:
        return _digest(settings, json=json)
    pieces = landed.exports(settings)
    files = landed.by_file(pieces)
    broken, warnings = _mart_problems(settings)
    sources = [*_source_problems(settings), *pulls.problems(settings)]
    present, past = landed.apart(settings, pieces)
    problems = [*landed.without_jobs(files), *_export_problems(present), *_lost_lines(files), *sources, *broken]
    notes = landed.facts_of_past(past)
    warnings = [*_not_built(settings), *beside.warnings(settings), *pulls.overdue(settings), *warnings]
    lines = {name: sum(f[name] for f in files) for name in ("lines", "used", "ignored", "rejected")}
    if json:
        say_json({"problems": problems, "warnings": warnings, "notes": notes, "exports": len(files), **lines})
    else:
        for problem in problems:
            fail(problem)
        for warning in warnings:
            warn(warning)
        for text in notes:
            note(text)
        fates = f"{lines['used']:,} used + {lines['ignored']:,} ignored + {lines['rejected']:,} rejected"
        total = f"{counted(len(files), 'export')}, {fates} = {counted(lines['lines'], 'line')}"
        found = counted(len(problems), "problem") if problems else "no problems"
        doubtful = f", but {counted(len(warnings), 'warning')}" if warnings else ""
        say(f"{total}; {found}{doubtful}")
        if facts.is_published(settings):
            labels.note_waiting(settings)
    return 1 if problems else 0


def _not_built(settings: facts.Config) -> list[str]:
    """Return a warning where the marts were made of less than what was read, or otherwise."""
    from flows import pipeline

    with facts.expected_errors():
        if not facts.is_published(settings) or not pipeline.needs_build(settings):
            return []
    return [f"{facts.NOT_BUILT}: {facts.BUILD_NEXT}"]


def _export_problems(files: list[landed.Row]) -> list[str]:
    found = []
    for file in files:
        if file["status"] != "loaded":
            found.append(f"{here(file['path'])}: {landed.problem(file)}")
        if file["rejected"]:
            rejected = counted(file["rejected"], "line")
            found.append(f'{here(file["path"])}: {rejected} rejected; `goodput sql "from ops.rejects"` says why')
    return found


def _lost_lines(files: list[landed.Row]) -> list[str]:
    return [
        f"{here(file['path'])}: the fates of its lines do not sum to {file['lines']:,}; please report it"
        for file in files
        if file["lines"] != file["used"] + file["ignored"] + file["rejected"]
    ]


def _source_problems(settings: facts.Config) -> list[str]:
    from flows.ingesting import jobs, unmatched

    return [f"{source.path}: {source.message}" for source in unmatched(settings, jobs(settings)[1])]


def _mart_problems(settings: facts.Config) -> tuple[list[str], list[str]]:
    """Return the rules of the marts that are broken, and what makes verdicts doubtful."""
    from warehouse import checks, publish

    try:
        with Steps("checking the marts"):
            broken = [f"check {failed}\n{NEXT_STEP}" for failed in checks.run_published(publish.link_of(settings.data))]
    except publish.NoWarehouseError as error:
        return [str(error)], []
    except checks.CheckError as error:
        return [f"{error}; if the published build is damaged, `goodput build` makes another"], []
    return broken, doubts(settings)


def _digest(settings: facts.Config, *, json: bool) -> int:
    from warehouse import digest, publish

    try:
        with Steps("hashing the marts"):
            found = digest.digest(publish.link_of(settings.data))
    except publish.NoWarehouseError as error:
        raise CommandError(str(error)) from None
    total = hashlib.sha256("".join(f"{name} {value}\n" for name, value in sorted(found.items())).encode()).hexdigest()
    if json:
        say_json({"marts": found, "total": total})
    else:
        for name, value in sorted(found.items()):
            say(f"{value}  {name}")
        say(f"{total}  total")
    return 0
