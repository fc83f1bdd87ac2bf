"""Labels of operators that the published build does not hold yet."""

from __future__ import annotations

import json
from datetime import datetime

from flows.cli import facts
from flows.cli.terminal import note
from flows.cli.words import counted

FILE_NAME = "annotations.jsonl"

BUILT = """
select i.interruption_id, max(e.occurred_at) as made_at
from marts.interruptions as i
left join marts.interruption_evidence as e on i.interruption_id = e.interruption_id and e.kind = 'operator label'
group by i.interruption_id
"""


def waiting(settings: facts.Config) -> int:
    """Return how many interruptions have a label newer than the one that the published build shows, or one it does not show."""
    latest = _latest(settings)
    if not latest:
        return 0
    built = {row["interruption_id"]: row["made_at"] for row in facts.rows(settings, BUILT)}
    return sum(which in built and (built[which] is None or built[which] < made_at) for which, made_at in latest.items())


def note_waiting(settings: facts.Config) -> None:
    """Say so where labels wait for the next build."""
    if number := waiting(settings):
        verb = "is" if number == 1 else "are"
        note(
            f"{counted(number, 'label')} of `goodput annotate` {verb} not in this build yet; `goodput run` lets them count"
        )


def _latest(settings: facts.Config) -> dict[str, datetime]:
    """Return when the latest label of each interruption was made; lines that are no label are told of by the next run."""
    try:
        lines = (settings.data / FILE_NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    latest: dict[str, datetime] = {}
    for line in lines:
        try:
            label = json.loads(line)
            which, made_at = str(label["interruption_id"]), datetime.fromisoformat(label["made_at"])
        except (ValueError, KeyError, TypeError):
            continue
        if made_at.tzinfo is not None:
            latest[which] = max(made_at, latest.get(which, made_at))
    return latest
