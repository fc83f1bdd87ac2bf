"""`goodput serve`: the schedules on one machine, in one command."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import DEPLOYMENTS, ConfigOption
from flows.cli.terminal import CommandError, note, say

if TYPE_CHECKING:
    from flows.prefect_serve import Served
    from flows.prefect_server import Server

LOCK_NAME = "serve.lock"
PORT, LIMIT, NAME = 4200, 5, DEPLOYMENTS
MAX_PORT, MAX_LIMIT = 65535, 100


def serve(
    *,
    port: Annotated[int, Parameter(help="Port of Prefect's page and server, on 127.0.0.1 only; 1 to 65535.")] = PORT,
    limit: Annotated[
        int, Parameter(help="Runs at a time; one of them writes, the others wait for it. 1 to 100.")
    ] = LIMIT,
    name: Annotated[str, Parameter(help="Name of the deployments, to tell apart several on one server.")] = NAME,
    config: ConfigOption = None,
) -> int:
    """Read, build and report on a schedule, until Ctrl-C or SIGTERM: all that one machine needs.

    Reads at once what is new, then every hour; builds whenever something
    new was read; writes a report every day and tidies up every week.
    Starts a Prefect server of its own, for this machine alone, unless
    PREFECT_API_URL names one. Stop and start it as you like: nothing is
    lost, and what was missed is caught up.
    """
    _in_range("--port", port, MAX_PORT)
    _in_range("--limit", limit, MAX_LIMIT)
    settings = facts.configuration(config)
    with facts.expected_errors(), _only_one(settings, port), _server(settings, port) as server:
        from flows import prefect_serve

        def begun(served: Served) -> None:
            _say(settings, server, served)

        asyncio.run(prefect_serve.serve(settings, name=name, limit=limit, begun=begun))
    note(f"stopped; `goodput serve{_options(port, limit, name)}` goes on where it was")
    return 0


def _in_range(option: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise CommandError(f"{option} is {value}; write 1 to {most}", 2)


def _options(port: int, limit: int, name: str) -> str:
    """Return the options that were given, to be typed again; `--config` is added where it is printed."""
    given = (("--port", port, PORT), ("--limit", limit, LIMIT), ("--name", name, NAME))
    return "".join(f" {option} {shlex.quote(str(value))}" for option, value, usual in given if value != usual)


@contextmanager
def _only_one(settings: facts.Config, port: int) -> Iterator[None]:
    """Keep a second one from the same data folder, as its runs would be the same."""
    from flows import lease

    # Told to whoever asks (`goodput doctor`): the port is that of our own server, if it is ours.
    command = "serve" if os.environ.get("PREFECT_API_URL", "").strip() else f"serve --port {port}"
    try:
        with lease.hold(settings.data, command, name=LOCK_NAME):
            yield
    except lease.BusyError as error:
        raise CommandError(
            f"{error.holder or 'another process'} serves {settings.data} already; stop it first"
        ) from None


@contextmanager
def _server(settings: facts.Config, port: int) -> Iterator[Server]:
    """Give the server that PREFECT_API_URL names, else one of our own."""
    from flows import prefect_server

    try:
        if url := os.environ.get("PREFECT_API_URL", "").strip():
            yield prefect_server.reached(url)
            return
        home = Path(os.environ.get("PREFECT_HOME") or settings.data / "prefect")
        env = prefect_server.environment(home, port, os.environ)
        with prefect_server.running(home, port, env, tell=note) as server:
            os.environ.update(env)  # before prefect is imported, which reads them then
            yield server
    except prefect_server.ServerError as error:
        raise CommandError(str(error)) from None


def _runs(served: Served) -> Iterator[str]:
    """Yield a line for each deployment: when its next run begins. Times are UTC, as those of the schedules are."""
    width = max(map(len, served.deployments))
    for name in served.deployments:
        flow = name.partition("/")[0]
        when = "whenever something new was read" if flow == "build" else "when it is asked for"
        if at := served.next_runs.get(name):
            when = f"next {at:%Y-%m-%d %H:%M} UTC"
        yield f"{name:<{width}}  {'now, ' if flow == 'ingest' else ''}{when}"


def _say(settings: facts.Config, server: Server, served: Served) -> None:
    say(f"serving {settings.path}")
    say(f"  page       {server.page}")
    for label, line in zip_longest(("runs",), _runs(served), fillvalue=""):
        say(f"  {label:<9}  {line}")
    say(f"  start one  PREFECT_API_URL={server.api} prefect deployment run {served.deployments[0]}")
    alerts = "the block goodput-alerts" if served.alerts else "nobody; save a notification block named goodput-alerts"
    say(f"  alerts go to {alerts}")
    if server.log:
        say(f"  log of the server  {server.log}")
    say("  stop with Ctrl-C, or SIGTERM to this process " + str(os.getpid()))
