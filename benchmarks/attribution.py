"""Attribution join: the whole candidate index of hardware events, against loading and exploding its inputs alone.

    python benchmarks/attribution.py [--attempts 1000000] [--events 5000000] [--nodes 2048]

A naive range join of events with attempt windows does not end at this size, so the models join on 15-minute buckets.
Both sides run in one process each, on the same Parquet, and the ratio is what counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 2.6
MODELS = ("attribution__event_windows", "attribution__events")

MAKE = """
copy (
    select
        'c' as cluster,
        md5(i::varchar)[:16] as interruption_id,
        md5('a' || i::varchar) as record_id,
        timestamptz '2026-01-01 00:00:00+00' + to_seconds((hash(i) % 31536000)::bigint) as started_at,
        started_at + to_seconds((600 + hash(i + 7) % 36000)::bigint) as ended_at,
        (hash(i + 3) % {nodes})::bigint as first_node,
        case when hash(i + 5) % 100 < 90 then 1 + hash(i) % 4 else 8 + hash(i) % 64 end::bigint as width
    from range({attempts}) as t(i)
) to '{folder}/attempts.parquet';
copy (
    select
        'c' as cluster,
        md5('e' || i::varchar) as record_id,
        printf('n%05d', (hash(i + 11) % {nodes})::bigint) as node,
        timestamptz '2026-01-01 00:00:00+00' + to_microseconds((hash(i + 13) % 31536000000000)::bigint) as occurred_at,
        'xid' as event_class,
        [31, 13, 43, 45, 63, 79, 48, 94, 119, 74][1 + (hash(i) % 10)::bigint]::bigint as code,
        printf('0000:%02x:00.0', (hash(i + 17) % 8)::bigint) as device
    from range({events}) as t(i)
) to '{folder}/events.parquet';
"""

LOAD = """
create schema intermediate; create schema settings; create schema reference;
create table settings.attribution as
select 600::bigint as before_seconds, 300::bigint as after_seconds, 300::bigint as coalesce_gap_seconds;
create table intermediate.attribution__own_windows(
    evidence_class varchar, before_seconds bigint, after_seconds bigint
);
create table intermediate.attribution__absent(interruption_id varchar, left_out varchar[], nodes bigint);
create table reference.evidence_timing as select 21600::bigint as left_out_seconds;
create table intermediate.attribution__stops as
select
    interruption_id, record_id, cluster, started_at, ended_at,
    greatest(started_at, ended_at - interval 10 minute) as opens_at
from '{folder}/attempts.parquet';
create table intermediate.runs__attempt_nodes as
select
    cluster, record_id, started_at, ended_at, ended_at as observed_until,
    printf('n%05d', unnest(range(first_node, first_node + width)) % {nodes}) as node,
    null::timestamptz as owned_until
from '{folder}/attempts.parquet';
create table intermediate.hardware__events as
select
    *, 'gpu' as device_kind, 'xid_' || code as evidence_class, false as is_fatal, false as is_cleanup,
    true as is_fault,
    null::varchar as unit, 'NVRM: Xid' as text
from '{folder}/events.parquet';
"""


def child(folder: str, nodes: int, whole: bool) -> None:
    """Load, and where `whole` run the models; print seconds and peak memory as JSON."""
    con = duckdb.connect()
    con.execute("set enable_progress_bar = false; set TimeZone = 'UTC'; set preserve_insertion_order = false")
    began = time.perf_counter()
    con.execute(LOAD.format(folder=folder, nodes=nodes))
    rows = None
    if whole:
        for name in MODELS:
            path = ROOT / "warehouse/models/intermediate/attribution" / f"{name}.sql"
            con.execute(f"create table intermediate.{name} as {path.read_text(encoding='utf-8')}")
        rows = con.execute("select count(*) from intermediate.attribution__events").fetchone()
    seconds = time.perf_counter() - began
    exploded = con.execute("select count(*) from intermediate.runs__attempt_nodes").fetchone()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {"seconds": seconds, "peak_mib": peak, "rows": rows and rows[0], "exploded": exploded and exploded[0]}
        )
    )


def run(folder: str, nodes: int, whole: bool) -> dict[str, float]:
    """Run one side in a process of its own."""
    command = [sys.executable, __file__, "--child", folder, "--nodes", str(nodes), *(["--whole"] if whole else [])]
    answer: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def main() -> None:
    """Make the inputs, run both sides three times, report the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--nodes", type=int, default=2048)
    parser.add_argument("--child")
    parser.add_argument("--whole", action="store_true")
    args = parser.parse_args()
    if args.child:
        child(args.child, args.nodes, args.whole)
        return
    with tempfile.TemporaryDirectory() as folder:
        duckdb.connect().execute(
            MAKE.format(folder=folder, nodes=args.nodes, attempts=args.attempts, events=args.events)
        )
        runs = {
            w: sorted((run(folder, args.nodes, w) for _ in range(3)), key=lambda r: r["seconds"])[1]
            for w in (False, True)
        }
    alone, index = runs[False], runs[True]
    print(
        f"load and explode alone   {alone['seconds']:.2f} s  {alone['peak_mib']:.0f} MiB  {alone['exploded']:,} node rows"
    )
    print(
        f"with candidate index     {index['seconds']:.2f} s  {index['peak_mib']:.0f} MiB  {index['rows']:,} candidates"
    )
    print(f"ratio                    {index['seconds'] / alone['seconds']:.2f} (limit {LIMIT})")


if __name__ == "__main__":
    main()
