"""What `goodput doctor` and `goodput check` say of files beside the exports that no source matches."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli import facts
from flows.cli.findings import OK, WARNING, Finding
from flows.cli.terminal import here
from flows.cli.words import counted

if TYPE_CHECKING:
    from flows.beside import Beside

SHOWN = 2


def other_files(settings: facts.Config) -> Iterator[Finding]:
    """Look for exports that nobody reads: a kind that was put beside the others later."""
    if not any(not s.command for s in settings.sources):
        return
    found = _look(settings)
    if found.files:
        text, step = _told(found, settings)
        yield Finding("other files", WARNING, text, step)
        return
    more = "" if found.is_whole else f", of those looked at: there are too many, so {_limit()}"
    yield Finding("other files", OK, f"none beside the exports looks like an export that no source matches{more}")


def warnings(settings: facts.Config) -> list[str]:
    """Return a warning where an export lies beside those that are read, and no source matches it."""
    found = _look(settings)
    return ["; ".join(_told(found, settings))] if found.files else []


def _look(settings: facts.Config) -> Beside:
    from flows.beside import beside
    from flows.ingesting import jobs

    return beside(settings, jobs(settings)[0])


def _told(found: Beside, settings: facts.Config) -> tuple[str, str]:
    """Return what was found, and what to do: `init` never changes a configuration, but proposes entries to copy."""
    from flows.landing import Found

    shown = ", ".join(f"{here(Found(path).name)} ({' or '.join(formats)})" for path, formats in found.files[:SHOWN])
    more = f" and {len(found.files) - SHOWN:,} more" if len(found.files) > SHOWN else ""
    number = len(found.files)
    verb = "looks like an export and is" if number == 1 else "look like exports and are"
    limit = "" if found.is_whole else f" ({_limit()})"
    text = (
        f"{counted(number, 'file')} beside the exports {verb} not read, since no source matches: {shown}{more}{limit}"
    )
    # All of it, not the new files alone: the others tell which nodes, jobs and clusters there are.
    paths = " ".join(shlex.quote(here(str(root))) for root in found.roots)
    target = shlex.quote(here(str(_free(settings.path))))
    step = (
        f"`goodput init {paths} --config {target}` proposes [[sources]] for all: copy what is missing into "
        f"{settings.path.name}, or move away what is not to be read"
    )
    return text, step


def _free(config: Path) -> Path:
    """Return a name beside the configuration that is not taken: `init` overwrites nothing."""
    names = (config.with_name(f"proposed{n or ''}.toml") for n in range(100))
    return next((path for path in names if not path.exists()), config.with_name("proposed.toml"))


def _limit() -> str:
    from flows.beside import MOST_OPENED, MOST_SEEN

    return f"only the first {MOST_SEEN:,} files and folders were seen, {MOST_OPENED:,} of them opened"
