"""What Prefect's server does by itself: build after an ingest, end runs whose process died, tell people of failures and silence.

`python -m flows.prefect_automations` makes the automations on the server that PREFECT_API_URL names, or brings them up to date; it
may run again and again. `deployments/automations.yaml` has the same ones for `prefect automation create`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.events import DeploymentEventTrigger
from prefect.events.schemas.automations import AutomationCore

from flows.prefect_events import LAKE_CHANGED, SOURCE_STALE

TAG = "goodput"
"""On every deployment and so on every run and event of theirs: on a server with others' runs, only ours are meant."""
ALERTS_BLOCK = "goodput-alerts"
"""Name of the notification block, of any type, that failures and stale sources are sent to."""
HEARTBEAT_SECONDS = 30
DEAD_SECONDS = 3 * HEARTBEAT_SECONDS
LOST_SECONDS = 600

_ALIVE = [
    "prefect.flow-run.Running",
    "prefect.flow-run.heartbeat",
]  # a run may be killed before its first heartbeat is sent
_ENDED = [f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")]
_OURS = {"prefect.resource.id": f"prefect.tag.{TAG}", "prefect.resource.role": "tag"}
_CRASHED = {"type": "change-flow-run-state", "state": "CRASHED", "name": "Crashed"}


def declared() -> list[dict[str, Any]]:
    """Return the automations as `prefect automation create` reads them; who is told of something does nothing yet."""
    return [
        {
            "name": "goodput ends runs whose process died",
            "description": "A run whose process was killed together with its worker cannot say so: without a sign of life for "
            f"{DEAD_SECONDS} s it is Crashed. It holds nothing that others wait for, and the next run completes its work.",
            "trigger": _silence(_ALIVE, [_ALIVE[1], *_ENDED], DEAD_SECONDS),
            "actions": [{**_CRASHED, "message": f"no sign of life for {DEAD_SECONDS} s: its process was killed"}],
        },
        {
            "name": "goodput ends runs that never began",
            "description": "A worker that was killed while it started a run leaves it Pending.",
            "trigger": _silence(["prefect.flow-run.Pending"], ["prefect.flow-run.Running", *_ENDED], LOST_SECONDS),
            "actions": [{**_CRASHED, "message": f"did not begin within {LOST_SECONDS} s: its worker was killed"}],
        },
        {
            "name": "goodput tells of failed runs",
            "description": "An ingest that could not read an export, a build that was not published, and whatever else failed.",
            "trigger": {
                "type": "event",
                "posture": "Reactive",
                "match": {"prefect.resource.id": "prefect.flow-run.*"},
                "match_related": _OURS,
                "for_each": ["prefect.resource.id"],
                "expect": ["prefect.flow-run.Failed", "prefect.flow-run.Crashed"],
                "threshold": 1,
                "within": 0,
            },
            "actions": [{"type": "do-nothing"}],
        },
        {
            "name": "goodput tells of stale sources",
            "description": "A source has brought nothing new for three times its usual interval; said once a day, by the report.",
            "trigger": {
                "type": "event",
                "posture": "Reactive",
                "match": {"prefect.resource.id": "goodput.source.*"},
                "match_related": {},
                "for_each": ["prefect.resource.id"],
                "expect": [SOURCE_STALE],
                "threshold": 1,
                "within": 0,
            },
            "actions": [{"type": "do-nothing"}],
        },
    ]  # fmt: skip


def _silence(after: list[str], expect: list[str], seconds: int) -> dict[str, Any]:
    return {
        "type": "event",
        "posture": "Proactive",
        "match": {"prefect.resource.id": "prefect.flow-run.*"},
        "match_related": _OURS,
        "for_each": ["prefect.resource.id"],
        "after": after,
        "expect": expect,
        "threshold": 1,
        "within": seconds,
    }


_WORDS = {
    "goodput tells of failed runs": {
        "subject": "goodput: {{ flow.name }} {{ flow_run.state.name }}",
        "body": "Run {{ flow_run.name }} of {{ flow.name }}: {{ flow_run.state.message }}\n{{ flow_run|ui_url }}",
    },
    "goodput tells of stale sources": {
        "subject": "goodput: {{ event.resource.name }} brings nothing new",
        "body": "{{ event.payload.text }}",
    },
}


def build_trigger(warehouse: str = "*") -> DeploymentEventTrigger:
    """Return the trigger of the deployment of `build`: an ingest said that the published build is not up to date."""
    return DeploymentEventTrigger(
        name="goodput builds what was ingested",
        match={"prefect.resource.id": f"goodput.warehouse.{warehouse}"},
        for_each={"prefect.resource.id"},
        expect={LAKE_CHANGED},
        parameters={"config": "{{ event.payload.config }}"},
    )


async def ensure(client: PrefectClient) -> dict[str, bool]:
    """Make the automations, or bring those of the same names up to date.

    Where a notification block is called `goodput-alerts`, failures and stale sources are sent to it.

    Returns:
        For each automation, whether somebody is told.
    """
    block = await _alerts(client)
    told = {}
    for values in declared():
        name = values["name"]
        if block and name in _WORDS:
            values["actions"] = [{"type": "send-notification", "block_document_id": block, **_WORDS[name]}]
        wanted = AutomationCore.model_validate(values)
        found = await client.read_automations_by_name(name)
        for extra in found[1:]:  # made twice by `prefect automation create`
            await client.delete_automation(extra.id)
        if found:
            await client.update_automation(found[0].id, wanted)
        else:
            await client.create_automation(wanted)
        told[name] = wanted.actions[0].type == "send-notification"
    return told


async def _alerts(client: PrefectClient) -> str | None:
    blocks = await client.read_block_documents()
    return next((str(block.id) for block in blocks if block.name == ALERTS_BLOCK), None)


async def _main() -> None:
    async with get_client() as client:
        for name, is_told in (await ensure(client)).items():
            told = f": sends to the block {ALERTS_BLOCK}" if is_told else ""
            logging.getLogger("flows").info("%s%s", name, told)


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    asyncio.run(_main())
