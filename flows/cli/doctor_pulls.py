"""What `goodput doctor` sees of the sources that are commands: their programs, their secrets, and whether they still bring anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flows.cli import facts, pulls
from flows.cli.findings import OK, PROBLEM, WARNING, Finding
from flows.cli.words import counted
from flows.secret_values import block_name

if TYPE_CHECKING:
    from flows.config import SourceConfig


def commands(settings: facts.Config) -> Iterator[Finding]:
    """Look whether each command can be started here, what the last try brought, and whether that is long ago.

    Raises:
        CommandError: the manifest cannot be used.
    """
    known = pulls.asked(settings)
    fine = 0
    for one in known:
        found = [*_startable(settings, one.source), *_brought(one)]
        fine += not found
        yield from found
    if fine:
        yield Finding(
            "commands", OK, f"{fine:,} of {counted(len(known), 'command')} can be asked and bring what is due"
        )


def _startable(settings: facts.Config, source: SourceConfig) -> Iterator[Finding]:
    program = source.command[0]
    path = source.environment.get("PATH", os.environ.get("PATH"))
    if shutil.which(str(settings.base / program) if "/" in program else program, path=path) is None:
        step = "install it, give its full path, or ask another host by ssh"
        yield Finding("commands", PROBLEM, f"{source.name}: the program `{program}` is not found here", step)
    for name in source.secrets:
        if not os.environ.get(name):
            step = f"set it where `goodput ingest` runs; runs of a deployment may have the Secret block `{block_name(name)}`"
            yield Finding("commands", WARNING, f"{source.name}: the secret {name} is not in this environment", step)


def _brought(one: pulls.Asked) -> Iterator[Finding]:
    name = one.source.name
    if one.last is None:
        yield Finding("commands", WARNING, f"{name}: not asked yet", "`goodput ingest` asks, best on a schedule")
    elif one.failing:
        last = one.failing[-1]
        text = f"{name}: {counted(len(one.failing), 'window')} failed, the last {pulls.window_of(last)}: {last.message}"
        yield Finding("commands", PROBLEM, text, "once the command works, `goodput ingest` asks again")
    elif one.is_overdue:
        yield Finding("commands", WARNING, f"{name}: {pulls.late(one)}", pulls.step(one))
