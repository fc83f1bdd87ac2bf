"""Ask the command of a source for a window: which windows are due, what the command printed, and what became of the try.

What a command prints is kept compressed in `landing/` of the data folder, where ingest reads it like any other file. A try
is recorded in the manifest only once its file stands there whole; a process killed between the two leaves a file that is
read, and a window that is asked for again, and the records that are then there twice are deduplicated by their content.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from flows import programs, secret_values
from flows.config import Config, SourceConfig, landing_of
from flows.due_windows import PullError, due, gone, is_snapshot, settings_of, words
from flows.manifest import FAILED, LOADED, Manifest, Pull
from flows.printed import NotKeptError, Printed, keep, sweep, unfinished
from flows.secret_values import Secrets
from flows.superseding import name_of
from flows.windows import Window

__all__ = ["MAX_FAILURES", "due", "gone", "is_snapshot", "pull", "settings_of", "store", "sweep"]

MAX_FAILURES = 3
"""Failures in a row after which a source is left alone for this time: its system is down."""
_SHOWN_LINES, _SHOWN_CHARACTERS = 6, 600


def pull(
    config: Config,
    source: SourceConfig,
    window: Window,
    *,
    secrets: Secrets | None = None,
    now: datetime | None = None,
    stop: Event | None = None,
) -> Pull:
    """Ask a source's command for one window, and return what became of it; nothing is recorded.

    Args:
        config: the configuration.
        source: a source with a command.
        window: the window.
        secrets: returns the value of a secret that the environment does not hold.
        now: UTC time of the try; None = as it is.
        stop: once set, the command is stopped.

    Raises:
        OSError: the data folder cannot be written, or the disk is full.
        programs.StoppedError: `stop` was set.
    """
    pulled_at = now or datetime.now(UTC)
    tried = Pull(source.name, window.start, window.end, FAILED, pulled_at, settings=settings_of(config, source))
    folder = landing_of(config.data, source.name)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        mask = secret_values.Mask(hidden := secret_values.values(source.secrets, secrets))
        command = words(config, source, window)
        with unfinished(folder) as (path, handle):
            printed = Printed(handle, mask)
            ended = _ended_well(config, source, command, hidden, printed, stop or Event())
            printed.finish()
            kept = keep(path, folder, name_of(window), pulled_at)
    except (PullError, secret_values.MissingSecretError) as error:
        return replace(tried, message=str(error))
    said = _said(ended, mask)
    message = f"printed nothing, and said on standard error: {said}" if said and not printed.length else None
    return replace(
        tried, status=LOADED, path=str(kept), sha256=printed.sha256, byte_length=printed.length, message=message
    )


def _ended_well(
    config: Config, source: SourceConfig, command: list[str], hidden: dict[str, str], printed: Printed, stop: Event
) -> programs.Ended:
    """Run a command and return how it ended.

    Raises:
        PullError: it cannot be started, failed, ran too long, or printed a secret.
    """
    name = f"`{source.command[0]}`"
    environment = {**os.environ, **source.environment, **hidden}
    try:
        ended = programs.run(
            command, folder=config.base, environment=environment, timeout=source.timeout, write=printed.write, stop=stop
        )
    except NotKeptError as error:
        raise error.cause from None
    except FileNotFoundError:
        raise PullError(f"{name} was not found: install it, give its full path, or ask another host by ssh") from None
    except (OSError, ValueError) as error:
        raise PullError(f"{name} cannot be started: {getattr(error, 'strerror', None) or error}") from None
    said = _said(ended, printed.mask)
    rest = f": {said}" if said else ", and said nothing on standard error"
    if ended.code is None:
        raise PullError(f"{name} ran longer than {source.timeout} s (`timeout`) and was stopped{rest}")
    if ended.code:
        raise PullError(f"{name} {_how(ended.code)}{rest}")
    return ended


def _how(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _said(ended: programs.Ended, mask: secret_values.Mask) -> str:
    """Return the last lines of standard error as one line: readable, without secrets, not long."""
    text = mask.hidden(ended.stderr, is_cut=ended.is_cut).decode("utf-8", "backslashreplace")
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    lines = ["".join(c if c.isprintable() else " " for c in line).strip() for line in text.splitlines()]
    last = " / ".join([line for line in lines if line][-_SHOWN_LINES:])
    return last if len(last) <= _SHOWN_CHARACTERS else "..." + last[-_SHOWN_CHARACTERS:]


def store(manifest: Manifest, found: Pull, seen: Pull | None = None) -> Pull:
    """Record a try and return what then holds for its window. The caller holds the writer's lease.

    Where another process loaded the window meanwhile its output is kept, and ours dropped unless it was read already. A try
    that failed never takes the place of one that succeeded. Output that is the same as before stays in the file it has.

    Args:
        manifest: the manifest.
        found: what `pull` returned.
        seen: what the manifest told of this window before; given, a window that is loaded is replaced.
    """
    held = manifest.pull(found.source, found.window_start, found.window_end)
    if held is not None and held.status == LOADED:
        is_new = found.status == LOADED and held == seen
        if not is_new or (held.sha256 == found.sha256 and _is_there(held.path)):
            _drop(manifest, found)
            if not is_new:
                return held
            found = replace(found, path=held.path)
    found = replace(found, tries=held.tries + 1 if held else 1)
    manifest.store_pull(found)
    return found


def _is_there(path: str | None) -> bool:
    return path is not None and Path(path).exists()


def _drop(manifest: Manifest, found: Pull) -> None:
    if found.path is not None and not manifest.pieces(found.path):
        Path(found.path).unlink(missing_ok=True)
