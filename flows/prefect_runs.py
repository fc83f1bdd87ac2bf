"""Have a backfill done by runs of deployments on a Prefect server: one run for each day, then one that builds.

A run's name and idempotency key tell what is asked for, so that asking again finds the runs that are still under way; what a run
did is told by the data folder, not by its state.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.settings import PREFECT_API_URL

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

POLL_SECONDS = 2.0
PATIENCE_SECONDS = 300.0
"""How long a server may be away once runs are under way."""
IDLE_SECONDS = 60.0
"""After so long without any run under way the user is told that there seems to be no worker."""


class ServerError(Exception):
    """The server cannot do it; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of time that one run backfills.

    Attributes:
        start: UTC time.
        end: UTC time, excluded.
        windows: how many windows there are to load.
    """

    start: datetime
    end: datetime
    windows: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run on the server.

    Attributes:
        name: its name.
        part: what it backfills; None = it builds.
        state: name of its state, as the server calls it.
        is_final: it has ended.
        is_completed: it has ended well.
        is_started: a worker has taken it up.
        message: what the server says of its state.
        run_id: its id.
    """

    name: str
    part: Part | None
    state: str
    is_final: bool
    is_completed: bool
    is_started: bool
    message: str
    run_id: UUID


Progress = Callable[[Sequence[Run]], None]
"""Told of all runs that were asked for, whenever their states were looked up."""


class Runs:
    """Runs of the two deployments on the server that PREFECT_API_URL names.

    Args:
        client: the server.
        deployments: their name, as `goodput serve --name` gives it.
        parameters: parameters of the flow `backfill` besides `start` and `end`; of these, `config` is given to `build` too.
        warehouse: name of the warehouse, to be unlike any other on the server.
        progress: told of the runs.
        warn: told, in a sentence, what hinders the work.
    """

    def __init__(
        self,
        client: SyncPrefectClient,
        deployments: str,
        parameters: dict[str, Any],
        warehouse: str,
        progress: Progress,
        warn: Callable[[str], None],
    ) -> None:
        self._client, self._parameters, self._warehouse = client, parameters, warehouse
        self._progress, self._warn = progress, warn
        self._backfill, self._build = (_deployment(client, f"{flow}/{deployments}") for flow in ("backfill", "build"))

    def backfill(self, parts: Sequence[Part], max_active: int) -> list[Run]:
        """Have each part backfilled, in order, at most `max_active` unfinished at once; return the runs when all have ended."""
        waiting, runs = list(parts), list[Run]()
        idle_since: float | None = time.monotonic()
        while waiting or not all(r.is_final for r in runs):
            while waiting and sum(not r.is_final for r in runs) < max_active:
                runs.append(self._ask(waiting.pop(0)))
            self._progress(runs)
            idle_since = self._idle(runs, idle_since)
            if not all(r.is_final for r in runs):
                time.sleep(POLL_SECONDS)
                runs = self._looked_up(runs)
        self._progress(runs)
        return runs

    def build(self, after: Sequence[Run]) -> Run:
        """Have the warehouse built after these runs; return the run when it has ended."""
        config = {"config": self._parameters["config"]}
        mark = _mark([run.name for run in after])
        run = self._create(self._build, f"build-{self._warehouse}-after-backfill-{mark}", config, None)
        idle_since: float | None = time.monotonic()
        while not run.is_final:
            self._progress([run])
            idle_since = self._idle([run], idle_since)
            time.sleep(POLL_SECONDS)
            (run,) = self._looked_up([run])
        return run

    def _ask(self, part: Part) -> Run:
        limits = {"start": f"{part.start:%Y-%m-%dT%H:%M:%SZ}", "end": f"{part.end:%Y-%m-%dT%H:%M:%SZ}"}
        parameters = self._parameters | limits | {"build": False}
        name = f"backfill-{self._warehouse}-{part.start:%Y-%m-%d}-{_mark(sorted(parameters.items()))}"
        return self._create(self._backfill, name, parameters, part)

    def _create(self, deployment: UUID, name: str, parameters: dict[str, Any], part: Part | None) -> Run:
        """Create a run, or return the one of the same name that has not ended yet. One that has ended is followed by another."""
        number = 1
        while True:
            key = f"{name}-{number}"
            with _answering():
                found = self._client.create_flow_run_from_deployment(
                    deployment, parameters=parameters, name=key, idempotency_key=key
                )
            if not _run(found, part).is_final:
                return _run(found, part)
            number += 1

    def _looked_up(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs with their states as they are now. A server that is away for a while is waited for."""
        open_runs = [r.run_id for r in runs if not r.is_final]
        deadline, is_said = time.monotonic() + PATIENCE_SECONDS, False
        while True:
            try:
                chosen = FlowRunFilter(id=FlowRunFilterId(any_=open_runs))
                found = {f.id: f for f in self._client.read_flow_runs(flow_run_filter=chosen, limit=len(open_runs))}
                break
            except (httpx.HTTPError, PrefectHTTPStatusError) as error:
                if time.monotonic() > deadline:
                    raise ServerError(_unreachable(error)) from None
                if not is_said:
                    self._warn("the Prefect server does not answer; waiting for it ...")
                is_said = True
                time.sleep(POLL_SECONDS)
        return [_run(found[r.run_id], r.part) if r.run_id in found else _removed(r, open_runs) for r in runs]

    def _idle(self, runs: Sequence[Run], since: float | None) -> float | None:
        """Say once that nothing moves where no run is taken up; return since when that is so."""
        if any(r.is_started and not r.is_final for r in runs):
            return time.monotonic()
        if since is not None and time.monotonic() - since > IDLE_SECONDS:
            self._warn(
                "no run was taken up yet: is a worker running (`goodput serve`, or `prefect worker start --pool goodput`)? "
                "The runs stay on the server; Ctrl-C leaves them there, and the same command finds them again"
            )
            return None
        return since


def _mark(value: object) -> str:
    """Return eight characters that tell what is asked for from anything else."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:8]


@contextmanager
def connected() -> Iterator[SyncPrefectClient]:
    """Yield the server that PREFECT_API_URL names.

    Raises:
        ServerError: it does not answer.
    """
    with _answering():
        client = get_client(sync_client=True)
    with client:  # before the first request: a client that was used can no longer be opened
        with _answering():
            client.hello().raise_for_status()
        yield client


@contextmanager
def _answering() -> Iterator[None]:
    """Turn what goes wrong between us and the server into an error that says what to do.

    Raises:
        ServerError: the server does not answer, or refuses.
    """
    try:
        yield
    except (httpx.HTTPError, PrefectHTTPStatusError, RuntimeError) as error:
        raise ServerError(_unreachable(error)) from None


def _unreachable(error: Exception) -> str:
    response = getattr(error, "response", None)
    what = f"answers {response.status_code}" if response is not None else f"cannot be reached ({error})"
    return (
        f"the Prefect server that PREFECT_API_URL names, {PREFECT_API_URL.value()}, {what}; start it or mend the variable, "
        "or do the work in this process with --here"
    )


def _deployment(client: SyncPrefectClient, name: str) -> UUID:
    try:
        with _answering():
            return client.read_deployment_by_name(name).id
    except ObjectNotFound:
        raise ServerError(
            f"the Prefect server that PREFECT_API_URL names, {PREFECT_API_URL.value()}, has no deployment `{name}`; deploy it "
            "(deployments/README.md), name those of `goodput serve --name` with --name, or do the work in this process with --here"
        ) from None


def _run(found: FlowRun, part: Part | None) -> Run:
    state = found.state
    if state is None:
        return Run(found.name, part, "Unknown", False, False, False, "", found.id)
    is_started = state.is_running() or state.is_final() or found.start_time is not None
    return Run(
        found.name, part, state.name or state.type.value, state.is_final(), state.is_completed(), is_started,
        state.message or "", found.id,
    )  # fmt: skip


def _removed(run: Run, asked: Sequence[UUID]) -> Run:
    """Return a run as it was, or as ended where the server no longer knows it."""
    if run.run_id not in asked:
        return run
    return replace(run, state="Deleted", is_final=True, message="somebody deleted it on the server")
