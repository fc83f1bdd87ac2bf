"""What the flows take from Prefect's server and tell it: the hour a run is for, secrets, and events that automations wait for."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

from prefect import runtime
from prefect.blocks.system import Secret
from prefect.events import emit_event

from flows.config import Config

LAKE_CHANGED = "goodput.lake.changed"
SOURCE_STALE = "goodput.source.stale"


def scheduled_start() -> datetime:
    """Return when the current run was meant to start, in UTC.

    Not when it did: a run that starts late, after its server was down, is still for the hour it was made for. Read from the run and
    never a parameter's default, since a default is evaluated once, when the deployment is made, and would name that day for ever.
    """
    moment: datetime = runtime.flow_run.scheduled_start_time
    return datetime.fromtimestamp(moment.timestamp(), UTC)


def secret(name: str) -> str | None:
    """Return what the Prefect Secret block for the environment variable `name` holds; None without such a block.

    The block is called like the variable in lower case with dashes, since block names have no others: `SITE_TOKEN` is `site-token`.
    """
    try:
        block = Secret.load(name.lower().replace("_", "-"), _sync=True)  # type: ignore[call-arg]
    except ValueError:  # there is none
        return None
    if not isinstance(block, Secret):
        return None
    # Not `block.get()`: it reads the text as JSON, and the token 1e5 would become a number.
    return str(block.value.get_secret_value())


def lake_changed(config: Config) -> None:
    """Say that the published build is not up to date with the lake; the deployment of `build` waits for this."""
    name = warehouse_id(config)
    emit_event(
        LAKE_CHANGED,
        resource={"prefect.resource.id": f"goodput.warehouse.{name}", "prefect.resource.name": name},
        payload={"config": str(config.path)},
    )


def source_stale(config: Config, source: str, text: str) -> None:
    """Say that a source has brought nothing new for longer than it should."""
    name = warehouse_id(config)
    emit_event(
        SOURCE_STALE,
        resource={"prefect.resource.id": f"goodput.source.{name}.{_plain(source)}", "prefect.resource.name": source},
        related=[{"prefect.resource.id": f"goodput.warehouse.{name}", "prefect.resource.role": "warehouse"}],
        payload={"config": str(config.path), "text": text},
    )


def warehouse_id(config: Config) -> str:
    """Return a name for the data folder that is the same for every run: the configuration's folder, and a hash that tells two apart.

    Keys of artifacts may hold nothing but lower-case letters, digits and dashes, so neither does this.
    """
    mark = hashlib.sha256(str(config.data.resolve()).encode()).hexdigest()[:8]
    plain = re.sub(r"[^a-z0-9]+", "-", config.base.name.lower()).strip("-")[:60]
    return f"{plain or 'data'}-{mark}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:60]
