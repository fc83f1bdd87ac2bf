"""A Prefect server of our own on this machine: started as a child, waited for, stopped by its process id. Imports no prefect."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

HOST = "127.0.0.1"
START_SECONDS = 300.0
"""How long a server may take until it answers: 10 to 20 s warm, a minute and more on a cold and busy machine."""
STOP_SECONDS = 20.0
LOG_NAME = "server.log"
_LOG_LINES = 5
_POLL_SECONDS = 0.5
_TELL_SECONDS = 15.0
_PR_SET_PDEATHSIG = 1


class ServerError(Exception):
    """There is no server to work with; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers.

    Attributes:
        api: address of its API, for PREFECT_API_URL.
        page: address of its pages for people.
        log: file with its log; None = it is somebody else's.
    """

    api: str
    page: str
    log: Path | None = None


def environment(home: Path, port: int, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the server and for all who talk to it.

    Args:
        home: folder of its database.
        port: its port.
        given: the environment so far; what it says of Prefect holds, save the server's own address.
    """
    api = f"http://{HOST}:{port}/api"
    no_proxy = given.get("NO_PROXY") or given.get("no_proxy") or ""
    return {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        **given,
        "PREFECT_API_URL": api,
        "PREFECT_UI_URL": f"http://{HOST}:{port}",
        # A page served on another port than 4200 asks for the API there.
        "PREFECT_SERVER_UI_API_URL": api,
        # A proxy cannot reach this machine's loopback.
        "NO_PROXY": f"{no_proxy},{HOST}".lstrip(","),
        "no_proxy": f"{no_proxy},{HOST}".lstrip(","),
    }


def command(port: int) -> list[str]:
    """Return the command that starts a server in the foreground."""
    return [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]


@contextmanager
def running(
    home: Path,
    port: int,
    env: Mapping[str, str],
    *,
    start: Sequence[str] | None = None,
    seconds: float = START_SECONDS,
    tell: Callable[[str], None] = lambda _text: None,
) -> Iterator[Server]:
    """Start a server, wait until it answers, and stop it in the end. It dies with this process, however that ends.

    Args:
        home: folder of its database and log.
        port: port on the loopback interface.
        env: its environment, see `environment`.
        start: command to start it; None = Prefect's.
        seconds: how long it may take to answer.
        tell: told that it is started, and from time to time that it is still waited for.

    Raises:
        ServerError: the port is taken, the server ended, or did not answer in time.
    """
    _be_free(port)
    tell("starting Prefect's server; on a new data folder or a cold machine that takes a minute ...")
    home.mkdir(parents=True, exist_ok=True)
    log = home / LOG_NAME
    with log.open("wb") as output:
        child = subprocess.Popen(
            list(start or command(port)), env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,  # Ctrl-C goes to us; the server is stopped after the runs that report to it
            preexec_fn=_die_with(os.getpid()),
        )  # fmt: skip
    try:
        server = Server(f"http://{HOST}:{port}/api", f"http://{HOST}:{port}", log)
        _wait(server, child, seconds, tell)
        yield server
    finally:
        stop(child)


def reached(api: str, *, seconds: float = 30.0) -> Server:
    """Return the server that is configured, once it answers.

    Raises:
        ServerError: it does not in time.
    """
    api = api.rstrip("/")
    deadline = time.monotonic() + seconds
    while not answers(api):
        if time.monotonic() > deadline:
            raise ServerError(
                f"PREFECT_API_URL: no Prefect server answered within {seconds:g} s; `goodput doctor` shows why. Start it, correct "
                "the variable, or unset it: `goodput serve` then starts a server of its own. Nothing was read or built"
            )
        time.sleep(_POLL_SECONDS)
    return Server(api, api.removesuffix("/api"))


def answers(api: str) -> bool:
    """Tell whether a server says that it is well; one that wants a password first is there."""
    is_local = f"//{HOST}" in api or "//localhost" in api
    opener = build_opener(*([ProxyHandler({})] if is_local else []))
    try:
        with opener.open(f"{api}/health", timeout=5) as response:
            return bool(response.status == 200)
    except HTTPError as error:
        error.close()
        return error.code in (401, 403)
    except (OSError, HTTPException, ValueError):  # URLError is an OSError
        return False


def stop(child: subprocess.Popen[bytes], seconds: float = STOP_SECONDS) -> None:
    """Ask a process to end, and end it if it does not."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
    child.wait()


def _be_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as the server does: a closed connection is no obstacle
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ServerError(
                f"port {port} on {HOST} cannot be had: {error.strerror}. Take another with `--port`; if a Prefect server listens "
                f"there, use it with PREFECT_API_URL=http://{HOST}:{port}/api"
            ) from None


def _wait(server: Server, child: subprocess.Popen[bytes], seconds: float, tell: Callable[[str], None]) -> None:
    began = told = time.monotonic()
    while not answers(server.api):
        now = time.monotonic()
        if child.poll() is not None:
            raise ServerError(f"Prefect's server ended with exit code {child.returncode}; {_last(server.log)}")
        if now - began > seconds:
            raise ServerError(
                f"Prefect's server did not answer within {seconds:g} s; is this machine busy, or its disk slow? Try again: what was "
                f"set up stays. Nothing was read or built; {_last(server.log)}"
            )
        if now - told > _TELL_SECONDS:
            tell(f"still waiting for Prefect's server ({now - began:.0f} s of at most {seconds:.0f} s)")
            told = now
        time.sleep(_POLL_SECONDS)


def _last(log: Path | None) -> str:
    lines = log.read_text("utf-8", "replace").splitlines() if log else []
    said = " / ".join([line.strip() for line in lines if line.strip()][-_LOG_LINES:])
    return f"its log {log} ends: {said}" if said else f"its log {log} is empty"


def _die_with(parent: int) -> Callable[[], None]:
    """Return what a child does before it starts: on Linux, ask for SIGTERM when its parent dies, also of kill -9."""
    if sys.platform != "linux":
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died in between
            with contextlib.suppress(ProcessLookupError):
                os.kill(os.getpid(), signal.SIGTERM)

    return ask
