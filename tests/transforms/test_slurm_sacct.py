"""sacct text to job attempts: columns, delimiters, and the fate of every line."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.transforms.sacct_reading import CTX, HEADER, LINE, Result, read
from transforms.outcome import Context, UnreadableExportError
from transforms.sources.slurm_sacct import SOURCE
from transforms.stream import ExportStream
from transforms.tables import JOB_ATTEMPTS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sources" / "slurm_sacct"


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
        b"jobid\tstate\n",
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
        b"JOBID|STATE|USER|NODELIST\n",
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


@pytest.mark.parametrize("mark", ["|", "|#", ";|;", ",", "\t", ";", "^^", "¦", "~~~~", "\x1f", "\x1f\x1e"])
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


def test_what_stands_in_the_place_of_a_header_is_shown() -> None:
    """A collector that failed leaves the message of sacct in the file: who reads it knows what to mend."""
    with pytest.raises(UnreadableExportError, match="it begins with 'slurm_load_jobs error: Unable to contact slurm"):
        read("\nslurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    with pytest.raises(UnreadableExportError, match=r"it begins with 'x{120}'\.\.\.: ") as told:
        read("x" * 5_000 + "\n")
    assert len(str(told.value)) < 600


@pytest.mark.parametrize(
    "text", ['{\n  "jobs": [\n    {', '{"meta": {"plugin": {}}, "jobs": []}\n', '\n{ "jobs" : []}']
)
def test_json_of_sacct_is_called_so(text: str) -> None:
    with pytest.raises(
        UnreadableExportError, match=r"JSON of sacct, which is not read: export with `sacct --parsable2`"
    ):
        read(text)


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


def test_a_byte_order_mark_is_no_part_of_the_first_field() -> None:
    ctx = Context(CTX.collected_at, "c1", zone="UTC", columns=("JobID", "JobName", "State"))
    assert read(b"\xef\xbb\xbf1|a|FAILED\n2|a|b|FAILED\n", ctx).column("job_id") == ["1", "2"]


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
