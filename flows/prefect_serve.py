"""`goodput serve`: deployments, automations, and the one process that runs them. Import it when PREFECT_API_URL is set."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from prefect import get_client
from prefect.deployments.runner import RunnerDeployment
from prefect.flows import Flow
from prefect.runner import Runner
from prefect.types.entrypoint import EntrypointType

from flows import prefect_automations, prefect_events, prefect_flows, same_folder
from flows.config import Config

NAME = "goodput"
SCHEDULES = {"ingest": "12 * * * *", "report": "37 6 * * *", "maintain": "17 5 * * 0"}
"""When runs are scheduled, in UTC; builds follow ingests, backfills are asked for.

Twelve minutes past the hour, as a command is asked for an hour ten minutes after its end (the default `delay`): any earlier,
and the hour that has just ended would always be loaded an hour late.
"""


@dataclass(frozen=True, slots=True)
class Served:
    """What is being served.

    Attributes:
        deployments: their full names, `ingest/goodput`.
        alerts: whether failures and stale sources are sent to somebody.
        next_runs: UTC time of the next scheduled run, of those that have a schedule.
    """

    deployments: tuple[str, ...]
    alerts: bool
    next_runs: Mapping[str, datetime]


def flows() -> list[Flow[Any, Any]]:
    """Return the flows that have a deployment."""
    f = prefect_flows
    return [f.ingest, f.build, f.report, f.maintain, f.backfill]


async def deployments(config: Config, name: str = NAME) -> list[RunnerDeployment]:
    """Return the deployments of this configuration, as prefect.yaml declares them for workers.

    Their only stored parameter is the configuration's path: nothing that depends on the day on which they are made.
    """
    warehouse = prefect_events.warehouse_id(config)
    return [
        await flow.ato_deployment(
            name=name,
            cron=SCHEDULES.get(flow.name),
            parameters={"config": str(config.path)},
            tags=[prefect_automations.TAG],
            triggers=[prefect_automations.build_trigger(warehouse)] if flow.name == "build" else None,
            description=(flow.description or "").partition("\n")[0],
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        for flow in flows()
    ]  # fmt: skip


async def next_runs(name: str, after: datetime) -> dict[str, datetime]:
    """Return when each deployment of `name` that has a schedule runs next after a UTC time, by its full name."""
    from prefect.server.schemas.schedules import CronSchedule  # what Prefect's own scheduler works the times out with

    dates = {
        flow: await CronSchedule(cron=cron, timezone="UTC").get_dates(1, after) for flow, cron in SCHEDULES.items()
    }
    return {f"{flow}/{name}": found[0].astimezone(UTC) for flow, found in dates.items()}


async def serve(config: Config, *, name: str, limit: int, begun: Callable[[Served], None]) -> None:
    """Make the deployments and automations, read at once what is new, and run what is scheduled until SIGTERM or Ctrl-C.

    Runs fail where the data folder is gone, or no longer the one it is now: see `flows.same_folder`.
    Runs that are under way then are stopped: what they committed stays, and the next one completes their work.

    Args:
        config: the configuration.
        name: name of the deployments.
        limit: runs at a time. Counted in this process, so that a killed one leaves no place taken.
        begun: told what is served, once it is.
    """
    same_folder.remember(config.data)
    runner = Runner(
        name=name, limit=limit, pause_on_shutdown=False, heartbeat_seconds=prefect_automations.HEARTBEAT_SECONDS
    )
    made = {d.full_name: await runner.aadd_deployment(d) for d in await deployments(config, name)}
    async with get_client() as client:
        told = await prefect_automations.ensure(client)
        await client.create_flow_run_from_deployment(made[f"ingest/{name}"], parameters={})
    begun(Served(tuple(made), any(told.values()), await next_runs(name, datetime.now(UTC))))
    running = asyncio.create_task(runner.start())
    await _until_asked(running)
    if not running.done():
        await runner.astop()
    await running


async def _until_asked(running: asyncio.Task[None]) -> None:
    """Wait for a signal to stop, or for the end of `running`."""
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    await asyncio.sleep(0)  # the runner takes SIGTERM when it starts; this is to come after
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    try:
        waiting = asyncio.create_task(asked.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
