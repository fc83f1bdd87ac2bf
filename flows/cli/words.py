"""How the command line says numbers and names itself: plurals, durations, confidences, commands to paste."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

WEAK = 0.5
"""A cause, or a class, that is less probable than this has more against it than for it, and is marked."""

config_given: ContextVar[Path | None] = ContextVar("config_given", default=None)
"""The `--config` of the command that runs: a command to paste needs it too."""

_COMMAND = re.compile(r"`goodput( [^`\n]*)`")
_WITHOUT_CONFIG = re.compile(r" (demo\b|[^a-z])|.*--(config|help)\b")


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Return a number and what it counts: 1 line, 2 lines, 1,200 lines; `things` where it is no plain plural."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def spoken(seconds: float | None) -> str:
    """Return seconds as people say them: 48 s, 25 min, 3.1 h, 2.4 d; a dash for None."""
    if seconds is None:
        return "-"
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if abs(seconds) < limit:
            value = seconds / unit
            return f"{value:.0f} {name}" if unit < 3600 else f"{value:.1f} {name}"
    return f"{seconds / 86400:.1f} d"


def gpu_hours(seconds: float | None) -> str:
    """Return GPU-seconds as GPU-hours; a dash for None."""
    return "-" if seconds is None else f"{seconds / 3600:,.2f}"


def confidence(share: float | None) -> str:
    """Return a probability as a whole percentage that is never 0 % or 100 %: nothing here is certain. A dash for None."""
    if share is None:
        return "-"
    percent = round(share * 100)
    return ">99%" if percent >= 100 else "<1%" if percent <= 0 else f"{percent}%"


def sure(row: Mapping[str, Any]) -> str:
    """Return how sure a verdict's cause is; a weak one with a question mark; "label" where an operator set it.

    "Unknown" finds nothing to be sure of: a dash.
    """
    if is_labelled(row):
        return "label"
    if row["cause"] == "unknown" or row["confidence"] is None:
        return "-"
    return confidence(row["confidence"]) + ("?" if is_weak(row) else "")


def is_labelled(row: Mapping[str, Any]) -> bool:
    """Tell whether a verdict is an operator's, who is not a matter of percent."""
    return row.get("rule") == "operator_label"


def is_weak(row: Mapping[str, Any]) -> bool:
    """Tell whether a verdict names a cause that is likelier wrong than right, judged by the percentage that is shown."""
    return row["cause"] != "unknown" and _is_below(row["confidence"])


def is_class_weak(row: Mapping[str, Any]) -> bool:
    """Tell whether another class (planned, unexpected, scheduler) is likelier than the verdict's."""
    return _is_below(row.get("class_confidence"))


def _is_below(share: float | None) -> bool:
    return share is not None and round(share * 100) < round(WEAK * 100)


def program() -> str:
    """Return this program as a shell finds it: its path where it was called by one that is not on PATH, else `goodput`."""
    called = Path(sys.argv[0])
    if called.name != "goodput":
        return "goodput"
    found = shutil.which("goodput")
    if found is not None and Path(found).absolute() == called.absolute():
        return "goodput"
    path = str(called).removeprefix(f"{Path.cwd()}{os.sep}")
    return shlex.quote(path if os.sep in path else f".{os.sep}{path}")


def command(arguments: str) -> str:
    """Return a command of this program that works when it is pasted: the program as it was called, the same configuration."""
    config = config_given.get()
    needs_config = config is not None and not _WITHOUT_CONFIG.match(f" {arguments}")
    return f"{program()} {arguments}" + (f" --config {shlex.quote(str(config))}" if needs_config else "")


def pasteable(text: str) -> str:
    """Return `text` with each command in it, written as `goodput ...` between backticks, as `command` writes it."""
    return _COMMAND.sub(lambda found: f"`{command(found[1].strip())}`", text)
