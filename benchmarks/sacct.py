"""Measure the ingest of a generated `sacct -P` file into the lake, beside DuckDB's bare typed COPY of the same file.

Run: python benchmarks/sacct.py [--rows 5000000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MAX_RATIO = 1.3
MAX_PEAK_BYTES = 1_000_000_000
COLUMNS = (
    "JobID", "JobIDRaw", "Cluster", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode",
    "DerivedExitCode", "Reason", "Submit", "Eligible", "Start", "End", "Elapsed", "Suspended", "Timelimit", "NNodes",
    "AllocCPUS", "AllocTRES", "NodeList", "WorkDir", "Comment",
)  # fmt: skip
_STATES = (
    "COMPLETED",
    "COMPLETED",
    "COMPLETED",
    "FAILED",
    "CANCELLED by 40123",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
)
_EXITS = ("0:0", "0:0", "0:0", "1:0", "0:15", "0:0", "0:0", "0:125")


def _generated(first: int, rows: int) -> pl.DataFrame:
    """Return rows `first` .. `first + rows` of the file; every value is a function of the row number alone."""
    n = pl.int_range(first, first + rows, dtype=pl.Int64)
    mix = (n * 2_654_435_761) % 4_294_967_291
    nodes = pl.lit(2) ** (mix % 6)
    low = (mix // 7) % 1900 + 1
    submit = pl.datetime(2025, 1, 1) + pl.duration(seconds=n * 6)
    start = submit + pl.duration(seconds=mix % 5400 + 1)
    elapsed = (mix // 11) % 172_800 + 30
    end = start + pl.duration(seconds=elapsed)
    iso = "%Y-%m-%dT%H:%M:%S"
    day = pl.when(elapsed >= 86_400).then(pl.format("{}-", elapsed // 86_400)).otherwise(pl.lit(""))
    pad = lambda e: e.cast(pl.String).str.zfill(2)  # noqa: E731
    clock = pl.format("{}{}:{}:{}", day, pad(elapsed % 86_400 // 3600), pad(elapsed % 3600 // 60), pad(elapsed % 60))
    last = pl.col("last").cast(pl.String).str.zfill(4)
    first_node = pl.col("low").cast(pl.String).str.zfill(4)
    return (
        pl.select(
            n.alias("n"), mix.alias("mix"), nodes.cast(pl.Int64).alias("nodes"), low.alias("low"), clock.alias("clock"),
            submit.dt.strftime(iso).alias("submit"), start.dt.strftime(iso).alias("start"), end.dt.strftime(iso).alias("end"),
            (low + nodes.cast(pl.Int64) - 1).alias("last"),
        )
        .select(
            (pl.col("n") + 1_000_000).cast(pl.String).alias("JobID"),
            (pl.col("n") + 1_000_000).cast(pl.String).alias("JobIDRaw"),
            pl.lit("prod").alias("Cluster"),
            pl.format("pretrain-{}b-{}", pl.col("mix") % 70, pl.col("mix") % 997).alias("JobName"),
            pl.format("user{}", pl.col("mix") % 300).alias("User"),
            pl.format("team{}", pl.col("mix") % 40).alias("Account"),
            pl.lit("batch").alias("Partition"),
            pl.lit("normal").alias("QOS"),
            _one_of(_STATES).alias("State"),
            _one_of(_EXITS).alias("ExitCode"),
            pl.lit("0:0").alias("DerivedExitCode"),
            pl.lit("None").alias("Reason"),
            pl.col("submit").alias("Submit"),
            pl.col("submit").alias("Eligible"),
            pl.col("start").alias("Start"),
            pl.col("end").alias("End"),
            pl.col("clock").alias("Elapsed"),
            pl.lit("00:00:00").alias("Suspended"),
            pl.lit("2-00:00:00").alias("Timelimit"),
            pl.col("nodes").alias("NNodes"),
            (pl.col("nodes") * 96).alias("AllocCPUS"),
            pl.format("billing={},cpu={},gres/gpu:h100={},gres/gpu={},node={}", pl.col("nodes") * 96, pl.col("nodes") * 96,
                      pl.col("nodes") * 8, pl.col("nodes") * 8, pl.col("nodes")).alias("AllocTRES"),
            pl.when(pl.col("nodes") == 1).then(pl.format("gpu{}", first_node))
            .otherwise(pl.format("gpu[{}-{}]", first_node, last)).alias("NodeList"),
            pl.format("/scratch/user{}/runs", pl.col("mix") % 300).alias("WorkDir"),
            pl.when(pl.col("mix") % 5 == 0).then(pl.format("ckpt=1800s;run={}", pl.col("mix") % 997)).otherwise(pl.lit("")).alias("Comment"),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _one_of(words: tuple[str, ...]) -> pl.Expr:
    return pl.lit(pl.Series(list(words))).gather(pl.col("mix") // 13 % len(words))


def generate(path: Path, rows: int) -> None:
    """Write the file."""
    with path.open("wb") as out:
        for first in range(0, rows, 500_000):
            frame = _generated(first, min(500_000, rows - first))
            frame.write_csv(out, separator="|", include_header=first == 0, quote_style="never")


DUCKDB_TYPES = {
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), "TIMESTAMP"),
    **dict.fromkeys(("NNodes", "AllocCPUS"), "BIGINT"),
}


def run_duckdb(source: Path, out: Path) -> int:
    """Copy the file to one typed Parquet file, as bare as DuckDB can; return the rows."""
    import duckdb

    columns = {name: DUCKDB_TYPES.get(name, "VARCHAR") for name in COLUMNS}
    con = duckdb.connect(config={"threads": os.cpu_count() or 1})
    con.execute("set enable_progress_bar = false")
    read = "read_csv(?, delim = '|', header = true, quote = '', escape = '', columns = " + repr(columns) + ")"
    target = str(out / "all.parquet").replace("'", "''")
    con.execute(f"copy (select * from {read}) to '{target}' (format parquet, compression zstd)", [str(source)])
    return int(con.execute("select count(*) from read_parquet(?)", [target]).fetchall()[0][0])


CONFIG = """
[clusters.prod]
zone = "Europe/Berlin"
[[sources]]
path = "{path}"
format = "slurm_sacct"
collected_at = 2026-06-01T00:00:00Z
"""


def run_ours(source: Path, out: Path) -> int:
    """Ingest the file as the pipeline does: parts by table, cluster and day, every line accounted for; return the rows."""
    from flows.config import parse
    from flows.pipeline import ingest

    report = ingest(parse(CONFIG.format(path=source), out / "goodput.toml"))
    export = report.exports[0]
    if export.rejected or not export.used:
        raise SystemExit(f"{export.path}: {export.message or export}")
    return export.used


RUNS = {"duckdb": run_duckdb, "ours": run_ours}


def measure(name: str, source: Path, folder: Path) -> dict[str, float]:
    """Run one way in its own process; return seconds, CPU seconds, peak bytes and rows."""
    out = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
    command = [sys.executable, __file__, "--one", name, "--file", str(source), "--out", str(out)]
    begin = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    rows, cpu, peak = (float(part) for part in done.stdout.split())
    shutil.rmtree(out)
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "rows": rows}


def report(source: Path, folder: Path, rounds: int) -> int:
    """Measure both ways in turn and print the medians beside the limits; 0 = both limits hold."""
    size = source.stat().st_size
    results: dict[str, list[dict[str, float]]] = {name: [] for name in RUNS}
    for _ in range(rounds):
        for name in RUNS:
            results[name].append(measure(name, source, folder))
    middle = {n: {k: median(r[k] for r in rs) for k in rs[0]} for n, rs in results.items()}
    print(f"{size / 1e6:,.0f} MB, {middle['ours']['rows']:,.0f} rows, {rounds} rounds")
    for name, found in middle.items():
        print(f"{name:8s} {found['seconds']:7.1f} s  {found['cpu']:7.1f} CPU s  peak {found['peak'] / 1e6:6,.0f} MB")
    ratio, cpu = (middle["ours"][k] / middle["duckdb"][k] for k in ("seconds", "cpu"))
    print(
        f"ratio {ratio:.2f} (limit {MAX_RATIO}), of CPU {cpu:.2f}; peak {middle['ours']['peak'] / 1e6:,.0f} MB (limit {MAX_PEAK_BYTES / 1e6:,.0f})"
    )
    return int(ratio > MAX_RATIO or middle["ours"]["peak"] > MAX_PEAK_BYTES)


def main() -> int:
    """Generate the file, measure, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=sorted(RUNS), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help="use this file instead of a generated one")
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        rows = RUNS[args.one](args.file, args.out)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(rows, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
        return 0
    with tempfile.TemporaryDirectory(prefix="sacct-") as name:
        source = args.file or Path(name) / "sacct.txt"
        if args.file is None:
            generate(source, args.rows)
        return report(source, Path(name), args.rounds)


if __name__ == "__main__":
    raise SystemExit(main())
