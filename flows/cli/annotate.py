"""`goodput annotate`: an operator's own verdict on an interruption."""

from __future__ import annotations

import getpass
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli import facts, names
from flows.cli.labels import FILE_NAME
from flows.cli.options import ConfigOption
from flows.cli.terminal import CommandError, here, note, say


def annotate(
    interruption: Annotated[str, Parameter(help="Id of the interruption, or its beginning.")],
    /,
    *,
    cause: Annotated[str, Parameter(help='Code of the cause; see `goodput sql "from reference.causes"`.')],
    why: Annotated[str, Parameter(help="How you know. Shown as evidence.")],
    node: Annotated[str | None, Parameter(help='Node to blame; see `goodput sql "from marts.nodes"`.')] = None,
    author: Annotated[str | None, Parameter(help="Who says so; your user name if not given.")] = None,
    run: Annotated[bool, Parameter(help="Ingest and build at once, so that the label counts.")] = False,
    config: ConfigOption = None,
) -> int:
    """Label an interruption with its cause, and the node to blame.

    A label wins over every rule from the next build on, and is shown as
    evidence; of several labels of one interruption the latest wins.

    Labels are kept in annotations.jsonl in the data folder of the
    warehouse. Back it up: no export holds what it says.
    """
    settings = facts.configuration(config)
    row = facts.one_interruption(settings, interruption)
    known_cause(settings, cause)
    if node is not None:
        node = known_node(settings, row["cluster"], node)
    if not why.strip():
        raise CommandError("--why is empty; say how you know, in a sentence", 2)
    label = {
        "cluster": row["cluster"],
        "interruption_id": row["interruption_id"],
        "cause": cause,
        **({} if node is None else {"node": node}),
        "why": why,
        "author": author or getpass.getuser(),
        "made_at": datetime.now(UTC).isoformat(timespec="microseconds"),
    }
    try:
        append(settings.data / FILE_NAME, label)
    except OSError as error:
        raise CommandError(
            f"{settings.data / FILE_NAME} cannot be written ({error.strerror}): nothing was labelled; run it as the user who owns "
            "the data folder, where there is room"
        ) from None
    blamed = "" if node is None else f", {node} to blame"
    say(f"{row['interruption_id'][: facts.ID_DIGITS]}: {row['cause']} -> {cause}{blamed}, by {label['author']}")
    note(f"kept in {here(str(settings.data / FILE_NAME))}")
    if run:
        from flows.cli.run import run_all

        return run_all(settings)
    note("run `goodput run` to let it count")
    return 0


def known_cause(settings: facts.Config, cause: str) -> None:
    """Check the code of a cause.

    Raises:
        CommandError: there is no such cause (exit 2).
    """
    known = {row["code"]: row["label"] for row in facts.rows(settings, "select code, label from reference.causes")}
    if cause not in known:
        hint = names.meant_cause(cause, known) or '; `goodput sql "from reference.causes"` lists them'
        raise CommandError(f"no cause has the code {cause!r}{hint}", 2)


def known_node(settings: facts.Config, cluster: str, node: str) -> str:
    """Return the name of a node of a cluster as the scheduler writes it; what logs print is understood.

    Raises:
        CommandError: no mart speaks of it (exit 2).
    """
    sql = "select node from marts.nodes where cluster = ?"
    known = [row["node"] for row in facts.rows(settings, sql, [cluster])]
    if (found := names.resolved(node, known)) is None:
        hint = names.meant_node(node, known) or '; `goodput sql "from marts.nodes"` lists them'
        raise CommandError(f"{cluster} has no node {node!r}{hint}", 2)
    return found


def append(path: Path, label: dict[str, str]) -> None:
    """Append a label as one line, in one write that is safe on disk before this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(label, ensure_ascii=False) + "\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if (size := os.fstat(handle).st_size) and os.pread(handle, 1, size - 1) != b"\n":
            line = "\n" + line  # a label that was cut off by a crash stays a line of its own, and is rejected alone
        os.write(handle, line.encode("utf-8", "replace"))
        os.fsync(handle)
    finally:
        os.close(handle)
