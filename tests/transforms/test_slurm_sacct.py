"""sacct text to job attempts: values, identity, and the fate of every line."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.outcome import Context, MissingSettingError, Parsed, Reject, UnreadableExportError
from transforms.sources.slurm_sacct import SOURCE
from transforms.stream import ExportStream
from transforms.tables import HOST_LISTS, JOB_ATTEMPTS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sources" / "slurm_sacct"
CTX = Context(collected_at=datetime(2026, 1, 1, tzinfo=UTC), cluster="c1", zone="UTC")
HEADER = "JobID|JobName|State|Start|End|Elapsed|Comment\n"
LINE = "7|train|COMPLETED|2025-05-04T08:00:00|2025-05-04T09:00:00|01:00:00|note\n"
FOX = (
    "JobID JobIDRaw User Account State Start End AveCPU AveDiskRead AveDiskWrite AveRSS AveVMSize ElapsedRaw ExitCode Layout "
    "MaxRSS MaxVMSize MinCPU ReqCPUS ReqMem ReqNodes Reservation Submit Suspended SystemCPU TimelimitRaw UserCPU NodeList "
    "Partition AllocTRES Priority JobName"
).split()
XDMOD = (
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end elapsed exitcode state nnodes "
    "ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname"
).split()


class Result:
    """What an export gave, put together."""

    def __init__(self, pieces: list[Parsed], stream: ExportStream) -> None:
        frames = [p.frames[JOB_ATTEMPTS.name] for p in pieces if JOB_ATTEMPTS.name in p.frames]
        hosts = [p.frames[HOST_LISTS.name] for p in pieces if HOST_LISTS.name in p.frames]
        empty = JOB_ATTEMPTS.schema.to_frame().drop("export_id")
        self.jobs: pl.DataFrame = pl.concat([empty, *frames])
        self.hosts = dict(pl.concat(hosts).select("node_list", "nodes").iter_rows()) if hosts else {}
        self.used = sum(p.used for p in pieces)
        self.ignored = sum((p.ignored for p in pieces), start=Counter[str]())
        self.rejects: list[Reject] = [r for p in pieces for r in p.rejects] + stream.long_lines
        self.lines = stream.lines
        assert self.used + self.ignored.total() + len(self.rejects) == self.lines, "a line was lost"

    def column(self, name: str) -> list[Any]:
        return self.jobs.get_column(name).to_list()


def read(data: bytes | str, ctx: Context = CTX, **stream: Any) -> Result:
    raw = data.encode() if isinstance(data, str) else data
    source = ExportStream.of(raw, **stream)
    return Result(list(SOURCE.parse(source, ctx)), source)


def as_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case list():
            return " ".join(value)
        case _:
            return str(value)


@pytest.mark.parametrize("case", sorted(p.name for p in FIXTURES.iterdir()))
def test_fixture(case: str) -> None:
    """Every fixture gives the rows written beside it; `expect.csv` names the columns that matter."""
    folder = FIXTURES / case
    extra = folder / "context.json"
    given_settings = json.loads(extra.read_text()) if extra.exists() else {}
    ctx = Context(**{"collected_at": CTX.collected_at, "cluster": "c1", "zone": "UTC", **given_settings})
    data = (folder / "export.txt").read_bytes()
    assert SOURCE.sniff(data)
    result = read(data, ctx)
    expected = list(csv.DictReader((folder / "expect.csv").read_text(encoding="utf-8").splitlines()))
    found = [
        {k: as_text(v) for k, v in row.items()} for row in result.jobs.select(expected[0].keys()).iter_rows(named=True)
    ]
    assert found == expected
    assert result.rejects == []


def test_rows_have_the_columns_of_the_table() -> None:
    jobs = read(HEADER + LINE).jobs
    assert jobs.schema == {n: t for n, t in JOB_ATTEMPTS.schema.items() if n != "export_id"}


# --- who recognizes what


@pytest.mark.parametrize(
    "head",
    [
        b"JobID|State\n1|COMPLETED\n",
        b"\n\nJobIDRaw,State,Start\n",
        b"\xef\xbb\xbfUser|#JobID|#State|#Planned\n",
        b"JOBID\tSTATE\n",
        b"JobID;|;JobName;|;State;|;\n",
        b"State|Start|JobID\n",
    ],
)
def test_sniff_knows_headers(head: bytes) -> None:
    assert SOURCE.sniff(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n",
        b"JOBID|PARTITION|NAME|USER|ST|TIME|NODES|NODELIST(REASON)\n",
        b"JobID    State    \n-------- ----------\n",
        b"JobId=7 JobName=x UserId=a(1) Priority=1\n",
        b'{"jobs": [{"jobid|state": 1}]}\n',
        b"1|1|user|COMPLETED\n",
        b"\x00\xff\xfe" * 50,
    ],
)
def test_sniff_leaves_other_formats_alone(head: bytes) -> None:
    assert not SOURCE.sniff(head)


# --- delimiters and headers


@pytest.mark.parametrize("mark", ["|", "|#", ";|;", ",", "\t", ";", "^^", "¦", "~~~~"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "mark"])
def test_any_delimiter(mark: str, end: str, tail: str) -> None:
    """-P and -p, Unix and Windows line ends: the same row."""
    last = mark if tail else ""
    text = (HEADER + LINE).replace("|", mark).replace("\n", last + end)
    result = read(text)
    assert result.jobs.equals(read(HEADER + LINE).jobs)
    assert result.ignored == {"header": 1}


@pytest.mark.parametrize("tail", ["", "|"])
def test_configured_columns_stand_in_for_a_header(tail: str) -> None:
    ctx = Context(CTX.collected_at, "c1", zone="UTC", columns=tuple(HEADER.strip().split("|")))
    result = read(LINE.replace("\n", tail + "\n") * 2, ctx)
    assert result.column("comment") == ["note", "note"]
    assert result.used == 2


def test_configured_delimiter() -> None:
    ctx = Context(CTX.collected_at, "c1", zone="UTC", columns=("JobID", "State"), delimiter=";")
    assert read("1;FAILED\n", ctx).column("state") == ["FAILED"]


def test_without_header_or_columns_the_error_says_what_to_set() -> None:
    with pytest.raises(UnreadableExportError, match="set `columns`"):
        read(LINE)
    with pytest.raises(UnreadableExportError, match="neither JobID nor JobIDRaw"):
        read(LINE, Context(CTX.collected_at, "c1", zone="UTC", columns=("User", "State")))


def test_a_later_piece_finds_its_header_in_the_head() -> None:
    data = (HEADER + LINE).encode()
    stream = ExportStream(io.BytesIO(LINE.encode()), head=data, first_line=3, byte_offset=len(data))
    result = Result(list(SOURCE.parse(stream, CTX)), stream)
    assert (result.column("job_id"), result.column("line")) == (["7"], [3])


def test_concatenated_exports_may_differ_in_their_columns() -> None:
    """A header in mid-file holds for what follows, whether it is the same or another."""
    other = "State|JobID|End\nFAILED|9|2025-05-04T10:00:00\n"
    result = read(HEADER + LINE + HEADER + LINE + other + "\n" + HEADER + LINE)
    assert result.column("job_id") == ["7", "7", "9", "7"]
    assert result.column("state") == ["COMPLETED", "COMPLETED", "FAILED", "COMPLETED"]
    assert result.column("line") == [2, 4, 6, 9]
    assert result.ignored == {"header": 4, "blank": 1}


def test_old_and_new_column_names_and_unknown_ones() -> None:
    text = "jobid|NCPUS|AllocGRES|Reserved|ShinyNew|State\n1|96|gpu:h100:8|00:01:00|x y z|RUNNING\n"
    row = read(text).jobs.row(0, named=True)
    assert (row["cpus"], row["gpus"], row["gpu_type"], row["state"]) == (96, 8, "h100", "RUNNING")


# --- lines


def test_blank_lines_keep_line_numbers_right() -> None:
    result = read("\n" + HEADER + "\n\n" + LINE + "   \n" + LINE)
    assert result.column("line") == [5, 7]
    assert result.ignored == {"header": 1, "blank": 4}


def test_a_newline_inside_a_field_is_joined_again() -> None:
    """The record keeps the number of its first line, and all its lines are used."""
    broken = LINE.replace("train", "tr\nai\n\nn")
    result = read(HEADER + LINE + broken + LINE)
    assert result.column("job_name") == ["train", "tr\nai\n\nn", "train"]
    assert result.column("line") == [2, 3, 7]
    assert result.used == 6


def test_a_broken_record_never_swallows_its_neighbours() -> None:
    result = read(HEADER + "5|cut|FAILED\n" + LINE + "|||\n" + LINE)
    assert result.column("job_id") == ["7", "7"]
    assert [(r.line, r.text) for r in result.rejects] == [(2, "5|cut|FAILED"), (4, "|||")]


@pytest.mark.parametrize("chunk", [16, 64, 100, 1 << 20])
def test_chunks_do_not_change_the_answer(chunk: int) -> None:
    broken = LINE.replace("train", "tr\nain").replace("7|", "8|")
    text = HEADER + (LINE + broken + LINE.replace("note", "a|b") + "\n" + "7.batch" + LINE[1:] + "junk\n") * 5
    whole, pieces = read(text), read(text, chunk_bytes=chunk)
    assert pieces.jobs.equals(whole.jobs)
    assert (pieces.ignored, pieces.rejects) == (whole.ignored, whole.rejects)


def test_a_file_cut_in_mid_line_says_so() -> None:
    result = read(HEADER + LINE + "8|half|COMPL")
    assert result.used == 1
    assert "cut" in result.rejects[0].reason
    assert read(HEADER + LINE.rstrip("\n")).column("comment") == ["note"], "a last line with all its fields is whole"


def test_rejects_point_at_the_bytes() -> None:
    data = (HEADER + LINE).encode() + b"\xff junk \r\n" + LINE.encode()
    reject = read(data).rejects[0]
    assert data[reject.byte_offset : reject.byte_offset + reject.byte_length] == b"\xff junk \r"


def test_what_is_no_job_id_is_no_row() -> None:
    result = read(HEADER + LINE.replace("7|", "seven|"))
    assert result.used == 0
    assert "'seven' is no job id" in result.rejects[0].reason


def test_a_line_longer_than_the_limit_is_rejected_alone() -> None:
    result = read(HEADER + LINE + LINE.replace("note", "x" * 3000) + LINE, max_line=2000, chunk_bytes=500)
    assert result.column("line") == [2, 4]
    assert [r.line for r in result.rejects] == [3]


# --- the delimiter in free text


def test_two_free_text_columns_with_typed_ones_between_are_told_apart() -> None:
    """Only one reading puts a state, two times and a duration into their columns."""
    line = LINE.replace("train", "a|b").replace("note", "c|d|e")
    result = read(HEADER + line)
    assert (result.column("job_name"), result.column("comment")) == (["a|b"], ["c|d|e"])
    assert result.column("flags") == [["submit_absent"]]


def test_typed_columns_are_never_guessed() -> None:
    """The user could be b or c: the line is rejected rather than shifted."""
    result = read("JobID|JobName|User|Comment|State\n1|a|b|c|d|FAILED\n")
    assert result.used == 0
    assert "free-text" in result.rejects[0].reason


def test_a_step_with_the_delimiter_in_its_name_is_still_a_step() -> None:
    assert read(HEADER + "7.0|a|b|odd\n" * 1 + "7.1" + LINE[1:].replace("train", "x|y|z")).ignored["job_step"] == 1


def test_commas_in_lists_when_the_comma_is_the_delimiter() -> None:
    """TRES and host lists hold commas themselves: read where the types leave one reading, else rejected."""
    lists = "5,cpu=8,gres/gpu=8,node=2,FAILED,gn[01-02,07],gx9\n"
    row = read("JobID,AllocTRES,State,NodeList\n" + lists).jobs.row(0, named=True)
    assert (row["gpus"], row["node_list"], row["state"]) == (8, "gn[01-02,07],gx9", "FAILED")
    open_end = read("JobID,State,NodeList,JobName\n5,FAILED,gn1,gx9,n,x\n")
    assert "nodelist could be any of 3" in open_end.rejects[0].reason


# --- meaning


def test_steps_of_every_kind_are_ignored() -> None:
    ids = ["7.batch", "7.extern", "7.0", "7_3.12", "7+0.batch", "7.interactive"]
    assert read(HEADER + "".join(i + LINE[1:] for i in ids)).ignored == {"header": 1, "job_step": 6}


def test_requests() -> None:
    """Start there and empty, or no nodes assigned: never ran. No column Start: unknown, and said so."""
    head = "JobID|State|Start|NodeList\n"
    text = (
        head
        + "1|PENDING|Unknown|\n2|CANCELLED|None|None assigned\n3|FAILED|2025-05-04T08:00:00|None assigned\n4|FAILED|x|n1\n"
    )
    result = read(text)
    assert result.column("is_request") == [True, True, True, False]
    assert result.column("node_list") == [None, None, None, "n1"]
    assert result.column("flags")[3] == ["submit_absent", "time_missing", "value_unreadable"]
    bare = read("JobID|State\n1|PENDING\n")
    assert (bare.column("is_request"), bare.column("flags")) == (
        [False],
        [["submit_absent", "start_absent", "time_missing"]],
    )


def test_host_lists_are_expanded_once() -> None:
    head = "JobID|State|NodeList\n"
    result = read(head + "1|FAILED|gn[09-11],b\n" * 50 + "2|FAILED|gn[1-\n")
    assert result.hosts == {"gn[09-11],b": ["gn09", "gn10", "gn11", "b"]}
    assert result.column("flags")[-1][-1] == "value_unreadable"
    assert result.column("node_list")[-1] == "gn[1-", "kept as printed"


def test_heterogeneous_and_array_ids() -> None:
    result = read("JobID|JobIDRaw|State\n100+0|100|FAILED\n100+1|101|FAILED\n5000_3|5003|FAILED\n")
    assert result.column("het_job_id") == ["100", "100", None]
    assert result.column("array_job_id") == [None, None, "5000"]


def test_the_job_id_stands_in_for_an_absent_raw_id() -> None:
    assert read("JobID|State\n5_3|FAILED\n").column("job_id_raw") == ["5_3"]
    assert read("JobIDRaw|State\n5|FAILED\n").column("job_id") == ["5"]


def test_clusters_and_their_zones() -> None:
    """One file, two clusters, two zones: `2 h` apart, in the order of the file."""
    text = "JobID|Cluster|State|Start|Elapsed\n"
    text += "1|a|FAILED|2025-05-04T08:00:00|00:01:00\n2|b|FAILED|2025-05-04T08:00:00|00:01:00\n"
    ctx = Context(CTX.collected_at, zones={"a": "UTC", "b": "Europe/Berlin"})
    result = read(text, ctx)
    assert result.column("cluster") == ["a", "b"]
    assert [t.hour for t in result.column("started_at")] == [8, 6]
    assert read(text).column("cluster") == ["c1", "c1"], "the configured cluster wins"


def test_a_missing_zone_or_cluster_is_refused_not_guessed() -> None:
    with pytest.raises(MissingSettingError, match=r"clusters\.c1"):
        read(HEADER + LINE, Context(CTX.collected_at, "c1"))
    with pytest.raises(MissingSettingError, match="set `cluster`"):
        read(HEADER + LINE, Context(CTX.collected_at, zone="UTC"))


def test_a_row_without_a_cluster_is_rejected() -> None:
    text = "JobID|Cluster|State\n1|a|FAILED\n2||FAILED\n"
    result = read(text, Context(CTX.collected_at, zone="UTC"))
    assert result.column("job_id") == ["1"]
    assert "cluster" in result.rejects[0].reason


def test_an_offset_beats_the_zone() -> None:
    ctx = Context(CTX.collected_at, "c1", zone="Asia/Tokyo")
    text = "JobID|State|Start|End\n1|FAILED|2025-05-04T08:00:00+02:00|2025-05-04T18:00:00\n"
    row = read(text, ctx).jobs.row(0, named=True)
    assert (row["started_at"].hour, row["ended_at"].hour) == (6, 9)


def test_suspended_time_counts_when_a_fold_is_settled() -> None:
    """Start 02:30 could be 00:30 or 01:30 UTC; 40 min of work and 60 of suspension end at 02:10 UTC: the first."""
    ctx = Context(CTX.collected_at, "c1", zone="Europe/Berlin")
    text = "JobID|Start|End|Elapsed|Suspended\n1|2025-10-26T02:30:00|2025-10-26T03:10:00|00:40:00|01:00:00\n"
    row = read(text, ctx).jobs.row(0, named=True)
    assert (row["started_at"].hour, row["started_at"].minute, row["flags"]) == (0, 30, ["submit_absent"])


# --- identity


def test_one_fact_has_one_record_id_whatever_the_columns() -> None:
    few = "JobID|JobIDRaw|State|ExitCode|Submit|Start|End|Elapsed\n"
    row = "9|9|FAILED|1:0|2025-05-04T07:00:00|2025-05-04T08:00:00|2025-05-04T09:00:00|01:00:00"
    small = read(few + row + "\n").jobs
    large = read(few.replace("\n", "|User|Comment\n") + row + "|ann|x\n").jobs
    assert small["record_id"][0] == large["record_id"][0]
    assert small["row_hash"][0] != large["row_hash"][0]
    assert large["filled_columns"][0] == small["filled_columns"][0] + 2


def test_hashes_do_not_depend_on_the_neighbours() -> None:
    """A column that is empty in all other rows, or in none, changes nothing."""
    other = LINE.replace("7|", "8|").replace("note", "")
    alone, together = read(HEADER + other).jobs, read(HEADER + LINE + other).jobs
    for column in ("record_id", "row_hash", "filled_columns"):
        assert alone[column][0] == together[column][1]


# --- real exports


@pytest.mark.parametrize(
    ("path", "columns", "used", "steps"),
    [
        ("gcm_meta/sample-sacct-output-midnight-edge-case.txt", (), 306, 880),
        ("gcm_meta/sample-sacct-output-midnight-edge-case-small.txt", (), 3, 8),
        ("gcm_meta/sample-sacct-output.txt", (), 0, 68),
        ("gcm_meta/sample-sacct-running-output.txt", (), 0, 10),
        ("sonar_fox/sacct-output.txt", FOX, 29, 67),
        ("slurm2sql/test-data1.csv", (), 2, 3),
        ("xdmod/phillips.log", XDMOD, 4285, 0),
        ("xdmod/unit/input__accounting-logs-with-job-arrays.log", XDMOD, 6, 0),
        ("xdmod/unit/input__accounting-logs.log", XDMOD, 4, 0),
        ("xdmod/unit/input__non-ended-job-state.log", XDMOD, 2, 0),
        ("xdmod/unit/input__unknown-job-state.log", XDMOD, 2, 0),
        ("xdmod/unit/input__utf8-multibyte-chars.log", XDMOD, 1, 0),
    ],
)
def test_real_exports_line_by_line(shared: Path, path: str, columns: tuple[str, ...], used: int, steps: int) -> None:
    data = (shared / "exports" / "public" / path).read_bytes()
    result = read(data, Context(CTX.collected_at, "c1", zone="UTC", columns=tuple(columns)))
    assert (result.used, result.ignored["job_step"], result.rejects) == (used, steps, [])
    assert result.jobs.height == used


def test_phillips_agrees_with_an_independent_accounting_system(shared: Path) -> None:
    """XDMoD's own totals, without what never got nodes: jobs, wall, CPU, node, GPU and wait hours."""
    data = (shared / "exports" / "public" / "xdmod" / "phillips.log").read_bytes()
    jobs = read(data, Context(CTX.collected_at, zone="UTC", columns=tuple(XDMOD))).jobs.filter(~pl.col("is_request"))
    wall = pl.col("elapsed_seconds")
    hours = jobs.select(
        wall.sum(),
        (wall * pl.col("cpus")).sum().alias("cpu"),
        (wall * pl.col("node_count")).sum().alias("node"),
        (wall * pl.col("gpus")).sum().alias("gpu"),
        (pl.col("started_at") - pl.col("submitted_at")).dt.total_seconds().sum().alias("wait"),
    )
    assert jobs.height == 4046
    assert [round(v / 3600, 4) for v in hours.row(0)] == [438.8203, 11767.9883, 1344.8686, 506.9128, 18829.9292]
    assert jobs["cluster"].unique().to_list() == ["phillips"]


def test_pending_arrays_agree_with_xdmod(shared: Path) -> None:
    folder = shared / "exports" / "public" / "xdmod" / "unit"
    data = (folder / "input__accounting-logs-with-job-arrays.log").read_bytes()
    expected = [
        len(tasks) for tasks in json.loads((folder / "output__accounting-logs-with-job-arrays.json").read_text())
    ]
    jobs = read(data, Context(CTX.collected_at, "c1", zone="UTC", columns=tuple(XDMOD))).jobs
    assert [1 if n is None else n for n in jobs["array_tasks_pending"]] == expected


def test_fox_agrees_with_another_parser(shared: Path) -> None:
    """The same rows as JSON from the daemon that read them; values are equal, job by job."""
    folder = shared / "exports" / "public" / "sonar_fox"
    ctx = Context(CTX.collected_at, "fox", zone="Europe/Oslo", columns=tuple(FOX))
    jobs = read((folder / "sacct-output.txt").read_bytes(), ctx).jobs
    found = {row["job_id"]: row for row in jobs.iter_rows(named=True)}
    told = [
        dict(f.split("=", 1) for f in row)
        for row in csv.reader((folder / "sacctd-output.txt").read_text().splitlines())
    ]
    told = [row for row in told if "." not in row["JobID"]]
    assert {row["JobID"] for row in told} == set(found)
    texts = {
        "JobName": "job_name",
        "User": "user",
        "Account": "account",
        "Partition": "partition",
        "NodeList": "node_list",
    }
    times = {"Submit": "submitted_at", "Start": "started_at", "End": "ended_at"}
    for row in told:
        ours = found[row["JobID"]]
        assert ours["state_raw"] == row["State"]
        assert ours["elapsed_seconds"] == int(row.get("ElapsedRaw", 0))
        assert ours["time_limit_seconds"] == int(row["TimelimitRaw"]) * 60
        assert {ours[n]: None for n in texts.values()} == {row[n]: None for n in texts}
        assert [ours[n] for n in times.values()] == [
            datetime.fromisoformat(row[n]) if n in row else None for n in times
        ]


@pytest.mark.parametrize("when", ["export_2", "export_final"])
def test_all_columns_and_few_columns_tell_the_same_facts(shared: Path, when: str) -> None:
    """`--format=ALL` with steps and a short list without: the same attempts under the same ids."""
    folder = shared / "exports" / "slurm_22_05" / when
    ctx = Context(CTX.collected_at, zone="UTC")
    every, few = (read((folder / name).read_bytes(), ctx).jobs for name in ("sacct_all.txt", "sacct_alloc.txt"))
    assert every.height == few.height == {"export_2": 6, "export_final": 49}[when]
    ended = [frame.filter(pl.col("ended_at").is_not_null())["record_id"].sort().to_list() for frame in (every, few)]
    assert ended[0] == ended[1]


# --- hostile input

TEXT = st.text(st.characters(exclude_characters="\n|", exclude_categories=("Cs",)), max_size=12)


@given(st.binary(max_size=400), st.sampled_from([7, 64, 4096]))
@settings(max_examples=300, deadline=None)
def test_any_bytes_after_a_header_keep_the_balance(data: bytes, chunk: int) -> None:
    read(HEADER.encode() + data, chunk_bytes=chunk)


FIELD = st.sampled_from(
    ["7", "7.batch", "x", "", "FAILED", "2025-05-04T08:00:00", "Unknown", "|", "\n", "\r\n", '"', "é", "\xff"]
)


@given(
    st.lists(st.lists(FIELD, min_size=1, max_size=10).map("|".join), max_size=12).map("\n".join),
    st.sampled_from([9, 4096]),
)
@settings(max_examples=300, deadline=None)
def test_nearly_right_lines_keep_the_balance(text: str, chunk: int) -> None:
    read((HEADER + text).encode("latin-1"), chunk_bytes=chunk)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_free_text_comes_back_as_it_was(names: list[tuple[str, str]]) -> None:
    text = HEADER + "".join(LINE.replace("train", n).replace("note", c) for n, c in names)
    result = read(text)
    assert result.column("job_name") == [n or None for n, _ in names]
    assert [c.rstrip("\r") or None for _, c in names] == [
        (c or "").rstrip("\r") or None for c in result.column("comment")
    ]
