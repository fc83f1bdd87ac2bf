"""The grammars that Slurm's exports share."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.parsing import durations, sizes, states, text, tres
from transforms.parsing.anchoring import UnsplittableLineError, anchored
from transforms.parsing.nodelist import MAX_HOSTS, BadHostListError, expand
from transforms.parsing.sacct_columns import read_header
from transforms.parsing.sacct_values import pending_tasks


def evaluated(values: list[str | None], reading: Any) -> list[tuple[Any, ...]]:
    frame = pl.DataFrame({"x": values}, schema={"x": pl.String})
    return frame.select(**reading._asdict()).rows()


# --- host lists

HL1 = [
    ("gn[001-003,007],login1,gx[9-11],b04-[09-10]", "gn001 gn002 gn003 gn007 login1 gx9 gx10 gx11 b04-09 b04-10"),
    ("gn[098-102]", "gn098 gn099 gn100 gn101 gn102"),
    ("gn1,gn001", "gn1 gn001"),
    ("gn007", "gn007"),
]


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        *HL1,
        ("cpn-f13-03-[01-02],cpn-f13-04-[01-02]", "cpn-f13-03-01 cpn-f13-03-02 cpn-f13-04-01 cpn-f13-04-02"),
        ("r[1-2]n[08-10]", "r1n08 r1n09 r1n10 r2n08 r2n09 r2n10"),
        ("z9,a1", "z9 a1"),
        ("a,a", "a"),
        ("n[3]", "n3"),
        ("", ""),
        ("None assigned", ""),
        ("(null)", ""),
    ],
)
def test_host_lists(hosts: str, expected: str) -> None:
    """Order is kept; the low end's leading zero is the padding; gn1 and gn001 are two hosts."""
    assert expand(hosts) == expected.split()


def test_the_cases_host_lists(shared: Path) -> None:
    lines = (shared / "cases" / "HL1" / "nodelists.txt").read_text().splitlines()
    assert [expand(line) for line in lines] == [expected.split() for _, expected in HL1]


@pytest.mark.parametrize(
    "hosts",
    [
        "n[1-999999999]",
        f"n[1-{MAX_HOSTS + 1}]",
        "n[1-300][1-300],n[1-300][1-300]",
        "n[" + "0" * 5000 + "1-99999]",
        "n" + "[1]" * 1000,
        ",".join("n[1-9999]" for _ in range(100)),
        "n[1-3",
        "n1]",
        "n[[1]]",
        "n[3-1]",
        "n[a-b]",
        "n[]",
        "two words",
    ],
)
def test_bad_or_hostile_host_lists_are_refused(hosts: str) -> None:
    with pytest.raises(BadHostListError):
        expand(hosts)


@given(st.text("n[]-,0129 a", max_size=30))
@settings(deadline=None)
def test_any_text_is_expanded_or_refused(hosts: str) -> None:
    with contextlib.suppress(BadHostListError):
        assert all(expand(hosts)), "no host has an empty name"


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=20, unique=True), st.integers(1, 6))
@settings(deadline=None)
def test_host_lists_round_trip(numbers: list[int], width: int) -> None:
    """What Slurm compresses comes back: runs of numbers of one width, in brackets."""
    hosts = [f"gpu{n:0{width}d}" for n in sorted(numbers)]
    ranges: list[list[str]] = []
    for host in hosts:
        digits = host[3:]
        if ranges and int(digits) == int(ranges[-1][-1]) + 1 and len(digits) == len(ranges[-1][-1]):
            ranges[-1].append(digits)
        else:
            ranges.append([digits])
    inner = ",".join(r[0] if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in ranges)
    assert expand(f"gpu[{inner}]") == hosts


# --- durations, sizes, counts


@pytest.mark.parametrize(
    ("printed", "seconds", "is_unreadable"),
    [
        ("1-02:03:04", 93_784.0, False),
        ("10:00", 600.0, False),
        ("35:45.828", 2145.828, False),
        ("00:00.106", 0.106, False),
        ("1-01:00:00", 90_000.0, False),
        ("100:00:00", 360_000.0, False),
        ("", None, False),
        (None, None, False),
        ("Unknown", None, False),
        ("INVALID", None, True),
        ("-00:01:00", None, True),
        ("5", None, True),
    ],
)
def test_durations(printed: str | None, seconds: float | None, is_unreadable: bool) -> None:
    assert evaluated([printed], durations.exact_seconds("x")) == [(seconds, is_unreadable)]
    whole = None if seconds is None else int(seconds)
    assert evaluated([printed], durations.seconds("x")) == [(whole, is_unreadable)]
    quick = durations.add_seconds(pl.DataFrame({"x": [printed]}, schema={"x": pl.String}), "x", "s", "bad")
    assert quick.select("s", "bad").rows() == [(whole, is_unreadable)]


@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=30))
@settings(deadline=None)
def test_durations_round_trip(values: list[int]) -> None:
    printed = []
    for value in values:
        days, rest = divmod(value, 86_400)
        clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
        printed.append(f"{days}-{clock}" if days else clock)
    frame = pl.DataFrame({"x": printed})
    assert durations.add_seconds(frame, "x", "s", "bad")["s"].to_list() == values
    assert frame.select(durations.seconds("x").value).to_series().to_list() == values


def test_time_limits() -> None:
    """UNLIMITED is a limit, not zero; Partition_Limit says nothing."""
    printed = ["01:30:00", "365-00:00:00", "UNLIMITED", "Partition_Limit", "", None, "1-12", "x"]
    assert evaluated(printed, durations.limit_seconds("x")) == [
        (5_400, False, False),
        (31_536_000, False, False),
        (None, True, False),
        *[(None, None, False)] * 3,
        (129_600, False, False),
        (None, False, True),
    ]
    assert evaluated(["90", "UNLIMITED"], durations.limit_seconds("x", is_minutes=True)) == [
        (5_400, False, False),
        (None, True, False),
    ]


def test_sizes_are_binary() -> None:
    printed = ["13633728K", "2097M", "1.50G", "0", "", None, "16?", "99999999E"]
    assert evaluated(printed, sizes.size_bytes("x")) == [
        (13_960_937_472, False),
        (2_198_863_872, False),
        (1_610_612_736, False),
        (0, False),
        (None, False),
        (None, False),
        (None, True),
        (None, True),
    ]
    assert evaluated(["2K", "2.50K", "17"], sizes.count("x")) == [(2048, False), (2560, False), (17, False)]


def test_requested_memory() -> None:
    gib = 1 << 30
    printed = ["3Gn", "5000Mc", "48G", "0n", "16?", "", "4096"]
    assert evaluated(printed, sizes.requested_memory("x")) == [
        (3 * gib, "node", False),
        (5_242_880_000, "cpu", False),
        (48 * gib, "job", False),
        (0, "node", False),
        (None, None, True),
        (None, None, False),
        (4 * gib, "job", False),
    ]


# --- GPUs


@pytest.mark.parametrize(
    ("printed", "count", "kind"),
    [
        ("billing=64,cpu=64,gres/gpu:h100=64,gres/gpu=64,node=8", 64, "h100"),
        ("cpu=96,gres/gpu=8,node=1", 8, None),
        ("gres/gpu:h100=8", 8, "h100"),
        ("gres/gpu:h100=8,gres/gpu:a100=4", 12, "h100,a100"),
        ("gres/gpu:1g.10gb=2,gres/gpu:a100_3g.20gb=1", 3, "1g.10gb,a100_3g.20gb"),
        ("cpu=12,mem=62.50G,node=1", 0, None),
        ("cpu=1,gres/gpumem=80G,gres/gpuutil=3", 0, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_gpus_in_tres(printed: str | None, count: int | None, kind: str | None) -> None:
    assert evaluated([printed], tres.allocated_gpus("x")) == [(count, kind, False)]


def test_a_gpu_count_that_is_no_number_is_unreadable() -> None:
    assert evaluated(["gres/gpu=?"], tres.allocated_gpus("x")) == [(None, None, True)]


@pytest.mark.parametrize(
    ("printed", "count", "kind"),
    [
        ("gpu:8", 8, None),
        ("gpu", 1, None),
        ("gpu:h100:8(S:0-1)", 8, "h100"),
        ("gpu:tesla:2,gpu:k80:1", 3, "tesla,k80"),
        ("7696487:2", 2, None),
        ("craynetwork:1", 0, None),
        ("", None, None),
    ],
)
def test_gpus_in_gres(printed: str, count: int | None, kind: str | None) -> None:
    assert evaluated([printed], tres.allocated_gres("x")) == [(count, kind, False)]


# --- states, exit codes, arrays


@pytest.mark.parametrize("state", states.STATES)
def test_every_state_is_read_from_its_whole_and_its_cut_name(state: str) -> None:
    assert states.read_state(state.lower()).state == state
    cut = states.read_state(state[:9] + "+")
    alone = [s for s in states.STATES if s.startswith(state[:9])]
    assert cut.is_cut
    if len(alone) == 1 or len(state) <= 9:
        assert cut.state == state


@pytest.mark.parametrize("unknown", ["LAUNCH_FAILED", "RE+", "NODE_FAIL*", "12", "FAILED by", "🙂"])
def test_unknown_states_are_kept_as_printed(unknown: str) -> None:
    read = states.read_state(unknown)
    assert (read.state, read.is_known) == (unknown, False)


def test_a_cut_uid_is_no_uid() -> None:
    assert states.read_state("CANCELLED by 5012+") == states.State("CANCELLED", None, True, True)


def test_exit_codes() -> None:
    printed = ["0:0", "137:0", "0:15", "", None, "x"]
    expected = [
        (0, 0, False),
        (137, 0, False),
        (0, 15, False),
        (None, None, False),
        (None, None, False),
        (None, None, True),
    ]
    assert evaluated(printed, states.exit_code("x")) == expected


@pytest.mark.parametrize(
    ("job", "tasks"),
    [
        ("5000_[3-10%2]", 8),
        ("5000_[1,5]", 2),
        ("5000_[0-10:5]", 3),
        ("5000_[12,14,...]", None),
        ("5000_[1-999999999]", None),
        ("5000_[5-1]", None),
        ("5000_[", None),
    ],
)
def test_pending_array_tasks(job: str, tasks: int | None) -> None:
    assert pending_tasks(job) == tasks


# --- bytes, lines, columns


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_repaired_bytes_are_utf8_with_as_many_lines(data: bytes) -> None:
    clean, bad = text.repaired(data)
    assert clean.decode("utf-8").count("\n") == data.count(b"\n")
    assert [i for i, line in enumerate(data.split(b"\n")) if not is_utf8(line)] == bad


def is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def test_by_shape_equals_the_plain_way() -> None:
    frame = pl.DataFrame({"x": ["a", None, "b", "a"] * 50 + ["", "c"]})
    outputs = {"n": pl.col("x").str.len_bytes()}
    plain = frame.with_columns(**outputs)
    assert (
        text.by_shape(frame, "x", pl.col("x") == "a", {"n": pl.lit(1, pl.UInt32)}, outputs)
        .filter(pl.col("x").is_not_null())
        .equals(plain.filter(pl.col("x").is_not_null()))
    )


@given(st.lists(st.sampled_from(["7", "FAILED", "", "x", "2025-05-04T08:00:00"]), min_size=5, max_size=9))
@settings(deadline=None)
def test_anchoring_never_moves_or_loses_text(parts: list[str]) -> None:
    """Whatever is handed out is a run of the line's own parts, and types hold."""
    layout = read_header("JobID|JobName|State|Start|Comment")
    assert layout is not None
    try:
        fields, is_lost = anchored(parts, layout)
    except UnsplittableLineError:
        return
    line = "|".join(parts)
    assert all(value is None or value in line for value in fields.values())
    assert fields["state"] in ("", "FAILED")
    assert fields["start"] in ("", "7") or str(fields["start"]).startswith("2025")
    if not is_lost:
        assert "|".join(str(fields[n]) for n in ("job_id", "job_name", "state", "start", "comment")) == line
