"""`goodput report`: the tables of the daily report."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flows.cli import facts
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.tables import say_table
from flows.cli.terminal import CommandError, say, say_json, say_prose, title
from flows.cli.words import confidence, counted, spoken

if TYPE_CHECKING:
    from flows.summary import Row, Section, Value

_NARROW = {
    "runs": (("run", 14), ("is_running", 0), ("lost_gpu_hours", 0), ("cluster", 0), ("mtti_unexpected_hours", 0),
             ("planned", 0), ("elapsed_hours", 0), ("run", 8), ("unexpected", 0)),
    "root-causes": (("label", 0), ("cluster", 0), ("share_of_unexpected", 0), ("cause", 16), ("lost_gpu_hours", 0)),
    "freshness": (("files_failed", 0), ("collected_at", 16), ("format", 12), ("usual", 0), ("collected_at", 0),
                  ("format", 0), ("source", 20), ("files", 0)),
    "changes": (("cluster", 0), ("interrupted_at", 16), ("run", 12), ("job_id", 0), ("run", 0), ("was", 16), ("now", 16),
                ("interrupted_at", 11)),
    "builds": (("code_version", 0), ("started_at", 16), ("size_mb", 0), ("started_at", 0)),
}  # fmt: skip
_PLAIN = ("added", "gone")


def report(
    *,
    since: Annotated[
        str | None,
        Parameter(help="Only the time since: 24h, 30d, a day or time; the last day, week and all if not given."),
    ] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Print the report of the day: stops and training time, causes, freshness, what changed, last builds. Times are UTC."""
    from flows import manifest, summary
    from warehouse import publish, query

    settings = facts.configuration(config)
    over = None if since is None else (summary.Period(f"since {since}", facts.moment(since)),)
    try:
        sections = summary.summary(settings, now=datetime.now(UTC), over=over)
    except query.QueryError as error:
        reason = str(error).splitlines()[0]
        raise CommandError(f"the published build lacks what this needs ({reason}); run `goodput build`") from error
    except (publish.NoWarehouseError, manifest.ManifestError) as error:
        raise CommandError(str(error)) from None
    if json:
        say_json({"sections": [asdict(s) for s in sections]})
        return 0
    for section in sections:
        say_section(section)
    return 0


def say_section(section: Section) -> None:
    """Print a section: heading, explanation, table."""
    title(section.title)
    say_prose(section.explanation)
    if not section.rows:
        say("none")
        return
    rows = [_brief(section.key, row) for row in section.rows]
    say_table(rows, tuple(rows[0]), narrow=_NARROW.get(section.key, ()))


def _brief(key: str, row: Row) -> dict[str, Value]:
    """Return a row as people read it: durations in words, old and new verdict side by side."""
    if key == "changes":
        return change(row)
    told = {name: value for name, value in row.items() if value is not None or name != "problem"}
    for name in ("age", "usual"):
        if f"{name}_seconds" in told:
            seconds = told[f"{name}_seconds"]
            told = {name if k == f"{name}_seconds" else k: v for k, v in told.items()}
            told[name] = spoken(seconds if isinstance(seconds, int | float) else None)
    if isinstance(size := told.pop("size_bytes", None), int):
        told["size_mb"] = round(size / 1e6, 1)
    return told


def change(row: Row) -> dict[str, Value]:
    """Return a changed interruption as one line of a table."""
    return {
        "change": row["change"],
        "id": str(row["interruption_id"])[: facts.ID_DIGITS],
        "interrupted_at": row["interrupted_at"],
        "cluster": row["cluster"],
        "run": row["run"],
        "job_id": row["job_id"],
        "was": None if row["change"] == "added" else verdict(row, "old"),
        "now": None if row["change"] == "gone" else verdict(row, "new"),
    }


def verdict(row: Row, side: str) -> str:
    """Return the old or the new verdict in a few words: cause, how sure, class, the blamed node."""
    share = row[f"{side}_confidence"]
    sure = confidence(share if isinstance(share, float) else None)
    node = f", {row[f'{side}_culprit_node']}" if row[f"{side}_culprit_node"] else ""
    return f"{row[f'{side}_cause'] or '-'} {sure}, {row[f'{side}_class'] or '-'}{node}"


def counts(rows: list[Row]) -> str:
    """Return how many interruptions came, went and changed."""
    number = {kind: sum(row["change"] == kind for row in rows) for kind in ("added", "gone", "changed")}
    told = f"{number['added']:,} new, {number['gone']:,} gone, {number['changed']:,} judged otherwise"
    return f"{counted(len(rows), 'interruption differs', 'interruptions differ')}: {told}"
