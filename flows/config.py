"""The configuration, `goodput.toml`: read, checked, and handed on as plain values."""

from __future__ import annotations

import csv
import glob
import io
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from flows.config_errors import (
    ConfigError,
    ConfigMissingError,
    Loc,
    Problem,
    did_you_mean,
    line_numbers,
    line_of,
)
from flows.config_problems import problems
from flows.config_schema import DAY, HOUR, AttributionEntry, CalendarEntry, Document, RunEntry, SourceEntry
from flows.config_sources import source_names, source_problems, zone_in_environment

__all__ = ["Config", "ConfigError", "ConfigMissingError", "SourceConfig", "format_names", "load"]

FILE_NAME = "goodput.toml"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Exports of one kind.

    Attributes:
        path: absolute path or glob; may capture {cluster}, {node}, {job_id}, {collected_at}. That of a command is where what
            it printed is kept.
        name: what `--source` and the coverage calendar call it; unlike any other source's.
        command: program and arguments that print an export for a window; empty = files that others write.
        window: length of the windows that coverage and backfill count in, seconds.
        delay: a command is asked for a window this long after its end, seconds.
        since: UTC time from which on a command is asked; None = the last whole window when it is first asked.
        timeout: a command that runs longer than this has failed, seconds.
        environment: variables set for the command.
        secrets: names of variables it needs that stand in no file.
        format: name of the export format; None = recognized by content.
        cluster: cluster of exports, and of rows that name none or one that is not configured.
        zone: IANA zone of its times; overrides the cluster's. That of a command is also the `TZ` of its environment.
        node: node of exports that do not name it.
        job_id: job whose training logs these are.
        delimiter: character between columns; None = found from the content.
        columns: column names of exports without a header.
        collected_at: UTC time of collection; None = from the path, else the file's time when first seen.
        where: where it is configured, for messages: "goodput.toml line 12".
    """

    path: str
    name: str = ""
    command: tuple[str, ...] = ()
    window: int = DAY
    delay: int = 0
    since: datetime | None = None
    timeout: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    format: str | None = None
    cluster: str | None = None
    zone: str | None = None
    node: str | None = None
    job_id: str | None = None
    delimiter: str | None = None
    columns: tuple[str, ...] = ()
    collected_at: datetime | None = None
    where: str = FILE_NAME


@dataclass(frozen=True, slots=True)
class Config:
    """A checked configuration.

    Attributes:
        path: the file.
        data: folder of lake and warehouse.
        sources: what to read.
        document: the file's content with defaults filled in.
    """

    path: Path
    data: Path
    sources: list[SourceConfig]
    document: Document

    @property
    def base(self) -> Path:
        """Folder that paths in the file are relative to."""
        return self.path.parent

    @property
    def keep_builds(self) -> int:
        """Published builds kept for rollback."""
        return self.document.warehouse.keep_builds

    @property
    def memory_limit(self) -> str | None:
        """Memory a build may use; None = from the machine's or container's limit."""
        return self.document.warehouse.memory_limit

    @property
    def threads(self) -> int | None:
        """Threads a build may use; None = all."""
        return self.document.warehouse.threads

    @property
    def only_cluster(self) -> str | None:
        """The cluster, if exactly one is configured."""
        names = list(self.document.clusters)
        return names[0] if len(names) == 1 else None

    def zones(self) -> dict[str, str]:
        """Return the IANA zone of each cluster that has one."""
        return {name: c.zone for name, c in self.document.clusters.items() if c.zone is not None}

    def settings_rows(self) -> dict[str, list[Row]]:
        """Return the rows of every table of `warehouse.inputs.SETTINGS`, by table name."""
        document = self.document
        attribution = document.attribution
        rules = document.runs or (RunEntry(),)
        return {
            "clusters": [{"cluster": name, **c.model_dump()} for name, c in document.clusters.items()],
            "runs": [_run_row(number, rule) for number, rule in enumerate(rules, 1)],
            "attribution": [{f"{k}_seconds": v for k, v in attribution.model_dump(exclude={"windows"}).items()}],
            "evidence_windows": _window_rows(attribution),
            "calendars": [
                {
                    "cluster": c.cluster,
                    "name": c.name,
                    "started_at": _utc(c.start, self.zones().get(c.cluster)),
                    "ended_at": _utc(c.end, self.zones().get(c.cluster)),
                    "nodes": list(c.nodes),
                }
                for c in document.calendars
            ],
        }


def load(path: Path | str | None = None) -> Config:
    """Read and check the configuration.

    Args:
        path: the file; None = goodput.toml in the working folder.

    Raises:
        ConfigMissingError: there is no such file.
        ConfigError: it cannot be used; lists every problem with its line.
    """
    file = Path(path or FILE_NAME).absolute()
    try:
        text = file.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigMissingError(file) from None
    except OSError as error:
        raise ConfigError(file, [Problem(None, f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(file, [Problem(line, "is not UTF-8; save the file as UTF-8")]) from None
    return parse(text, file)


def parse(text: str, file: Path) -> Config:
    """Check the content of a configuration file that lies at `file`.

    Raises:
        ConfigError: it cannot be used; lists every problem with its line.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at line ")
        number = place.split(",")[0]
        line = int(number) if number.isdigit() else None
        raise ConfigError(file, [Problem(line, f"is not TOML: {message}")]) from None
    lines = line_numbers(text)
    try:
        document = Document.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(file, problems(error, lines)) from None
    if found := list(_contradictions(document, lines)):
        raise ConfigError(file, found)
    data = file.parent / document.warehouse.data
    names = source_names(document.sources)
    sources = [
        _source(s, name, file, data, f"{file.name} line {line_of(lines, ('sources', i))}")
        for i, (s, name) in enumerate(zip(document.sources, names, strict=True))
    ]
    return Config(file, data, sources, document)


def _source(entry: SourceEntry, name: str, file: Path, data: Path, where: str) -> SourceConfig:
    path = glob.escape(str(landing_of(data, name))) + "/*_{collected_at}.zst"
    if entry.path is not None:
        path = str(Path(glob.escape(str(file.parent))) / entry.path)
    window = entry.window or (HOUR if entry.command else DAY)
    zone = entry.zone or zone_in_environment(entry)
    return SourceConfig(
        **{**entry.model_dump(), "path": path, "name": name, "window": window, "zone": zone}, where=where
    )


def landing_of(data: Path, name: str) -> Path:
    """Return the folder that keeps what the command of a source printed."""
    return data / "landing" / name


def format_names() -> list[str]:
    """Return the names of the known export formats, without importing their parsers."""
    from transforms import sources

    return sorted(info.name for info in pkgutil.iter_modules(sources.__path__))


def _contradictions(document: Document, lines: dict[Loc, int]) -> Iterator[Problem]:
    """Find what is wrong between entries that are each right."""
    formats, clusters = format_names(), document.clusters
    yield from source_problems(document.sources, lines)
    for i, source in enumerate(document.sources):
        if source.format is not None and source.format not in formats:
            text = f'`format`: no export format is named "{source.format}"' + did_you_mean(source.format, formats)
            yield Problem(line_of(lines, ("sources", i, "format")), text)
        if source.cluster is not None and clusters and source.cluster not in clusters:
            yield Problem(line_of(lines, ("sources", i, "cluster")), _no_cluster(source.cluster, document))
    if windows := document.attribution.windows:
        known = _evidence_classes()
        for name in sorted(set(windows) - set(known)):
            text = f"no evidence has the class `{name}`" + did_you_mean(name, known)
            yield Problem(line_of(lines, ("attribution", "windows", name)), text)
    for i, entry in enumerate(document.calendars):
        if clusters and entry.cluster not in clusters:
            yield Problem(line_of(lines, ("calendars", i, "cluster")), _no_cluster(entry.cluster, document))
            continue
        cluster = clusters.get(entry.cluster)
        yield from _calendar_problems(entry, cluster.zone if cluster else None, lines, ("calendars", i))


def _evidence_classes() -> dict[str, set[str]]:
    """Return what a window may be named for, with the classes of evidence it then holds for.

    A class of evidence stands for itself; a class of event (`xid`) for those of all its codes (`xid_13`, `xid_31`, ...).
    """
    text = (resources.files("warehouse") / "reference" / "event_classes.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["event_class"], set()).add(row["evidence_class"])
    return found | {row["evidence_class"]: {row["evidence_class"]} for row in rows}


def _window_rows(attribution: AttributionEntry) -> list[Row]:
    """Return a row for each class of evidence with its own window; the narrower of two names wins."""
    known, rows = _evidence_classes() if attribution.windows else {}, {}
    for name, window in sorted(attribution.windows.items(), key=lambda item: -len(known[item[0]])):
        for evidence_class in sorted(known[name]):
            rows[evidence_class] = {
                "evidence_class": evidence_class,
                "before_seconds": attribution.before if window.before is None else window.before,
                "after_seconds": attribution.after if window.after is None else window.after,
            }
    return list(rows.values())


def _no_cluster(name: str, document: Document) -> str:
    hint = did_you_mean(name, document.clusters, quote='"')
    return f'`cluster`: "{name}" is not configured{hint or "; add [clusters." + name + "]"}'


def _calendar_problems(entry: CalendarEntry, zone: str | None, lines: dict[Loc, int], loc: Loc) -> Iterator[Problem]:
    naive = [key for key in ("start", "end") if getattr(entry, key).tzinfo is None]
    if naive and zone is None:
        text = f"`{naive[0]}` has no zone; end it with Z, or set `zone` under [clusters.{entry.cluster}]"
        yield Problem(line_of(lines, (*loc, naive[0])), text)
    elif _utc(entry.end, zone) <= _utc(entry.start, zone):
        yield Problem(line_of(lines, (*loc, "end")), "`end` is not after `start`")


def _utc(moment: datetime, zone: str | None) -> datetime:
    """Return UTC; a time without a zone is local to `zone`, the earlier of two where the clock was set back."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(zone or "UTC"))
    return moment.astimezone(UTC)


def _run_row(number: int, rule: RunEntry) -> Row:
    keys = [item.partition(":") for item in rule.key]
    return {
        "run_rule": number,
        "name": rule.name,
        "match_columns": list(rule.match),
        "match_globs": list(rule.match.values()),
        "min_gpus": rule.min_gpus,
        "key_columns": [column for column, _, _ in keys],
        "key_patterns": [pattern for _, _, pattern in keys],
        "max_gap_seconds": rule.max_gap,
        "resume_window_seconds": rule.resume_window,
        "checkpoint_interval_seconds": rule.checkpoint_interval,
        "restart_overhead_seconds": rule.restart_overhead,
    }
