"""What a build is made from: the lake's parts, the list of exports, and the settings, all as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from transforms.tables import TEXTS, UTC, Column, Table

_s, _i, _b, _f = pl.String(), pl.Int64(), pl.Boolean(), pl.Float64()

CLUSTERS = Table(
    "clusters",
    "One row per configured cluster.",
    (
        Column("cluster", _s, "cluster name"),
        Column("zone", _s, "IANA zone in which its exports print times"),
        Column("gpus_per_node", _i, "GPUs a node has; used where a scheduler record names none; null = unknown"),
        Column("capacity_gpus", _i, "GPUs the cluster has; null = unknown"),
    ),
)

RUNS = Table(
    "runs",
    "One row per [[runs]] entry of the configuration, in its order; the first that matches an attempt holds.",
    (
        Column("run_rule", _i, "position of the entry, from 1"),
        Column("name", _s, "name given to the entry; null = the run key names the run"),
        Column("match_columns", TEXTS, "job columns that must match; empty = every job"),
        Column("match_globs", TEXTS, "glob for each of match_columns"),
        Column("min_gpus", _i, "attempts with fewer GPUs are not tracked; null = no limit"),
        Column("key_columns", TEXTS, "job columns whose values make the run key"),
        Column(
            "key_patterns", TEXTS, "regular expression whose first group is taken from the column; empty = all of it"
        ),
        Column("max_gap_seconds", _i, "longest wait between two attempts of one run, seconds"),
        Column("resume_window_seconds", _i, "an orderly stop resumed within it is planned, seconds"),
        Column("checkpoint_interval_seconds", _i, "assumed where no training log tells, seconds"),
        Column("restart_overhead_seconds", _i, "assumed where no training log tells, seconds"),
    ),
)

ATTRIBUTION = Table(
    "attribution",
    "One row: windows and thresholds of attribution.",
    (
        Column("before_seconds", _i, "without a step log, evidence counts from this long before the end, seconds"),
        Column("progress_before_seconds", _i, "with one, from this long before the last progress, seconds"),
        Column("after_seconds", _i, "evidence counts until this long after the end, seconds"),
        Column(
            "coalesce_gap_seconds", _i, "events of one kind on one device at most this far apart are one fault, seconds"
        ),
        Column("maintenance_before_seconds", _i, "a person's drain counts from this long before the end, seconds"),
        Column("maintenance_after_seconds", _i, "and until this long after it, seconds"),
        Column(
            "fault_free_seconds", _i, "a rollout is planned only if its node had no fault this long before, seconds"
        ),
    ),
)

EVIDENCE_WINDOWS = Table(
    "evidence_windows",
    "One row per evidence class that has its own window.",
    (
        Column("evidence_class", _s, "evidence class; see reference.evidence_weights"),
        Column("before_seconds", _i, "from this long before the end, seconds"),
        Column("after_seconds", _i, "until this long after it, seconds"),
    ),
)

CALENDARS = Table(
    "calendars",
    "One row per [[calendars]] entry: planned maintenance known beforehand.",
    (
        Column("cluster", _s, "cluster"),
        Column("name", _s, "what is planned"),
        Column("started_at", UTC, "UTC begin"),
        Column("ended_at", UTC, "UTC end"),
        Column("nodes", TEXTS, "nodes it concerns; empty = all"),
    ),
)

EXPORTS = Table(
    "exports",
    "One row per piece of an export that was seen, with the fate of its lines.",
    (
        Column("export_id", _s, "identity of the piece: hash of path, offset, length and content"),
        Column("path", _s, "file it was read from"),
        Column("source", _s, "format; null = no parser knows it"),
        Column("cluster", _s, "cluster the source is configured for"),
        Column("byte_offset", _i, "where the piece begins in its file"),
        Column("byte_length", _i, "bytes of the piece"),
        Column("sha256", _s, "SHA-256 of its bytes"),
        Column("collected_at", UTC, "UTC time at which it was collected"),
        Column("first_line", _i, "number of its first line"),
        Column("lines", _i, "lines in it"),
        Column("lines_used", _i, "lines that made rows"),
        Column("lines_ignored", _i, "lines passed over by a rule of the format"),
        Column("lines_rejected", _i, "lines that could not be read"),
        Column("ignored_by", _s, "JSON object: lines by the name of the rule"),
        Column("status", _s, "loaded, failed or unknown_format"),
        Column("message", _s, "what went wrong, or the first line of an unknown format"),
    ),
)

SETTINGS: dict[str, Table] = {t.name: t for t in (CLUSTERS, RUNS, ATTRIBUTION, EVIDENCE_WINDOWS, CALENDARS)}

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything a build reads.

    Attributes:
        lake: folder of the lake; holds `<table>/cluster=<c>/date=<d>/*.parquet`.
        exports: rows of EXPORTS.
        settings: rows of each table of SETTINGS, by name; an absent one is empty.
        parts: paths of the lake's parts, each with the batches its rows come from; None = whatever lies there.
        batches: batch of each piece of an export, by its id.
        content: stands for what the lake and `exports` hold; None = unknown, so that every build is made.
    """

    lake: Path
    exports: Rows = ()
    settings: Mapping[str, Rows] = field(default_factory=dict)
    parts: Mapping[str, frozenset[str]] | None = None
    batches: Mapping[str, str] = field(default_factory=dict)
    content: str | None = None
