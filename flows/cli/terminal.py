"""What the command line prints. Names from exports pass through `clean` on every way out."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import unicodedata
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TextIO

from flows.cli.words import pasteable

PROSE_WIDTH = 100
"""Columns of a sentence where there is no terminal."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class CommandError(Exception):
    """An expected failure; the message says what to do next.

    Attributes:
        code: exit code: 1 = failed, 2 = wrong use.
    """

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def clean(value: object) -> str:
    r"""Return `value` as one line without anything a terminal would obey.

    Control characters, escape sequences, direction overrides, invisible characters and line separators are written as
    \x1b, \u202e and so on; None is a dash. Nothing here is read as markup: consoles are made with markup off.
    """
    text = "-" if value is None else str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(c) if unicodedata.category(c) in _HIDDEN else c for c in text)


def _visible(char: str) -> str:
    return repr(char)[1:-1] if not char.isprintable() else f"\\u{ord(char):04x}"


def say(text: str = "") -> None:
    """Print a line of facts to standard output; `text` is cleaned, its own line ends stay."""
    _write(sys.stdout, text)


def say_wrapped(text: str, indent: int = 0) -> None:
    """Print a line of facts, on a terminal over as many lines as its width needs, those that follow indented."""
    if sys.stdout.isatty():
        say_prose(text, indent)
    else:
        say(text)


def say_prose(text: str, indent: int = 0) -> None:
    """Print a sentence over as many lines as the terminal's width needs, as COLUMNS says, or 100; no program reads it."""
    width = max(shutil.get_terminal_size((PROSE_WIDTH, 24)).columns, indent + 20)
    lines = textwrap.wrap(
        clean(text), width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    say("\n".join(lines))


def note(text: str) -> None:
    """Print a line about the work itself to standard error; commands named in it can be pasted."""
    _write(sys.stderr, pasteable(text))


def warn(text: str) -> None:
    """Print a warning to standard error; commands named in it can be pasted."""
    _write(sys.stderr, f"warning: {pasteable(text)}", "yellow")


def fail(text: str) -> None:
    """Print an error to standard error; commands named in it can be pasted."""
    _write(sys.stderr, f"error: {pasteable(text)}", "bold red")


def say_wait(holder: object) -> None:
    """Print to standard error who it is that a command waits for."""
    note(f"waiting for {holder}, which writes to the same folder ...")


def title(text: str) -> None:
    """Print a heading to standard output, after an empty line; on a terminal over as many lines as its width needs."""
    if sys.stdout.isatty():
        text = textwrap.fill(clean(text), shutil.get_terminal_size().columns, subsequent_indent="  ")
    _write(sys.stdout, f"\n{text}", "bold")


def say_json(value: object) -> None:
    """Print `value` as JSON, in ASCII, times in ISO 8601."""
    sys.stdout.write(json.dumps(value, default=_plain, indent=2, ensure_ascii=True) + "\n")


def shown(value: object) -> object:
    """Return a value as people read it: times in UTC to the second, fractions with three digits."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return moment.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list | tuple):
        return ", ".join(str(v) for v in value)
    return value


def here(path: str) -> str:
    """Return a path relative to the working folder where it lies below it."""
    return path.removeprefix(f"{Path.cwd()}/")


class Steps:
    """Progress through steps: a line that changes on a terminal; elsewhere only a plain line at the start."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._is_live = sys.stderr.isatty()

    def __enter__(self) -> Steps:
        if self._is_live:
            self._draw(self._label)
        else:
            note(f"{self._label} ...")
        return self

    def show(self, step: str) -> None:
        """Show the step that was just done, or begins."""
        if self._is_live:
            self._draw(f"{self._label}: {step}")

    def show_bytes(self, done: int, total: int, step: str) -> None:
        """Show the step that begins, and what share of the bytes is done."""
        self.show(f"{done / total:.0%} of {total / 1e6:,.0f} MB: {step}" if total else step)

    def wait_for(self, holder: object) -> None:
        """Say in a line that stays whom the work waits for."""
        if self._is_live:
            self._draw("")
        say_wait(holder)

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._draw("")

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[K{clean(text)[:width]}")
        sys.stderr.flush()


def _write(stream: TextIO, text: str, style: str = "") -> None:
    lines = [clean(line) if line else "" for line in text.split("\n")]
    if style and stream.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=True)
        console.print(Text("\n".join(lines), style=style))
        return
    stream.write("\n".join(lines) + "\n")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)
