"""`goodput init`: propose a configuration from the exports it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.options import ConfigOption
from flows.cli.terminal import CommandError, Steps, say, warn
from flows.cli.words import command, config_given, counted


def init(
    paths: Annotated[list[Path], Parameter(help="Exports, or folders of exports.")],
    /,
    *,
    config: ConfigOption = None,
) -> int:
    """Look at exports and write a goodput.toml for them. Never overwrites one."""
    from flows import config as configuration
    from flows import init as looking
    from flows.init_text import text

    config_given.set(config)
    target = Path(config or configuration.FILE_NAME).absolute()
    if target.exists():
        raise CommandError(f"{target} is there already; move it away, or write another with --config FILE", 2)
    try:
        with Steps("looking at the exports"):
            survey = looking.survey([p.absolute() for p in paths])
    except FileNotFoundError as error:
        raise CommandError(str(error), 2) from None
    if not survey.sources:
        raise CommandError(
            f"none of {counted(len(survey.unread), 'file')} is an export that a parser knows; `goodput sources` lists formats"
        )
    written = text(survey, target.parent)
    configuration.parse(written, target)
    with target.open("x", encoding="utf-8") as handle:
        handle.write(written)
    say(
        f"wrote {target}: {counted(len(survey.sources), 'source')} of "
        f"{counted(sum(s.files for s in survey.sources), 'file')}, {counted(len(survey.runs), 'run')}"
    )
    if survey.needs_zone:
        warn(f"some times carry no zone; check `zone` in {target.name}: {survey.zone.zone}, {survey.zone.why}")
    if survey.unread:
        warn(
            f"{counted(len(survey.unread), 'file')} cannot be read; {target.name} lists them at its end, with what to do"
        )
    say(f"next: check the lines marked CHECK in {target.name}, then: {command('run')}")
    return 0
