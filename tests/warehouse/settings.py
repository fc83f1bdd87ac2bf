"""Settings of a build as plain rows, for tests that make a lake themselves."""

from __future__ import annotations

from typing import Any


def settings(*key_columns: str) -> dict[str, list[dict[str, Any]]]:
    """Return settings that track user ann's jobs, by the given columns as run key; all else as configured by default."""
    return {
        "clusters": [{"cluster": "c", "zone": "UTC", "gpus_per_node": 8}],
        "attribution": [
            {
                "before_seconds": 2700,
                "progress_before_seconds": 600,
                "after_seconds": 900,
                "coalesce_gap_seconds": 20,
                "maintenance_before_seconds": 300,
                "maintenance_after_seconds": 900,
                "fault_free_seconds": 86400,
            }
        ],
        "runs": [
            {
                "run_rule": 1,
                "match_columns": ["user"],
                "match_globs": ["ann"],
                "key_columns": list(key_columns),
                "key_patterns": [None] * len(key_columns),
                "max_gap_seconds": 86400,
                "resume_window_seconds": 3600,
                "checkpoint_interval_seconds": 1800,
                "restart_overhead_seconds": 300,
            }
        ],
    }
