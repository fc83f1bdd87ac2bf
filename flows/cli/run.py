"""`goodput run`: ingest and build."""

from __future__ import annotations

from flows.cli import build as building
from flows.cli import facts, landed
from flows.cli import ingest as ingesting
from flows.cli.doubts import doubts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import say_json, warn


def run(*, json: JsonOption = False, config: ConfigOption = None) -> int:
    """Read what is new in the exports, build the marts, check them, and publish them."""
    return run_all(facts.configuration(config), json=json)


def run_all(settings: facts.Config, *, json: bool = False) -> int:
    """Ingest and build; return the exit code.

    An export or a command that failed fails the run after everything else was published; unknown formats and bad lines only warn.
    """
    read = ingesting.ingested(settings)
    if not json:
        ingesting.say_ingest(read)
    jobless = landed.without_jobs(landed.by_file(landed.exports(settings)))
    for text in jobless:
        warn(text)
    ingesting.warn_ingest(read)
    built = building.built(settings)
    warnings = doubts(settings) if built.published else []
    if json:
        say_json(
            {"ingest": ingesting.as_json(read), "build": building.as_json(built), "warnings": [*jobless, *warnings]}
        )
    else:
        building.say_build(built)
    building.fail_checks(built)
    for text in warnings:
        warn(text)
    return 0 if (built.published or built.is_current) and read.is_complete else 1
