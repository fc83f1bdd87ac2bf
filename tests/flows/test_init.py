"""`goodput init` proposes a configuration that can be used at once, guesses nothing in silence and overwrites nothing."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tomllib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows import config
from flows.init_columns import Words, guess, jobs_without_header
from flows.init_look import Offset
from flows.init_text import quoted
from flows.init_zone import guess as guess_zone
from flows.landing import find

Goodput = Callable[..., Any]

HEADER = "JobID|JobIDRaw|Cluster|JobName|User|State|Submit|Start|End|Elapsed|NNodes|AllocTRES|NodeList"


def job(number: int, name: str, gpus: int, hours: int, cluster: str = "c") -> str:
    nodes = max(gpus // 8, 1)
    times = f"2026-05-04T00:00:0{number}|2026-05-04T01:00:00|2026-05-05T00:00:00|{hours:02}:00:00"
    return (
        f"{number}|{number}|{cluster}|{name}|u|FAILED|{times}|{nodes}|cpu=8,gres/gpu={gpus},node={nodes}|n[1-{nodes}]"
    )


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_real_cluster(goodput: Goodput, at: Path, shared: Path) -> None:
    shutil.copytree(shared / "exports" / "slurm_22_05", at / "exports")
    ran = goodput("init", "exports")
    assert ran.code == 0
    assert "check `zone`" in ran.err
    text = (at / "goodput.toml").read_text()
    found = config.load(at / "goodput.toml")
    assert found.only_cluster == "llm"
    assert found.settings_rows()["clusters"][0]["gpus_per_node"] == 8
    rule = found.settings_rows()["runs"][0]
    assert dict(zip(rule["match_columns"], rule["match_globs"], strict=True)) == {
        "user": "alice",
        "job_name": "llama-pretrain",
    }
    # The kernel log has no offset either: nothing tells the zone, and the file and the message both say so.
    assert 'zone = "UTC" # CHECK: some times carry no zone; a guess: no export says' in text
    assert "a guess: no export says" in ran.err
    assert "# [[runs]] # 11 attempts" not in text
    assert "11 attempts, up to 64 GPUs" in text
    read = {f.path.name for s in found.sources for f in find(s.path)}
    assert read >= {"sacct_all.txt", "sacct_alloc.txt", "sacctmgr_events.txt", "kern.log"}
    assert not read & {"README.md", "truth.jsonl"}
    assert goodput("run").code == 0


def test_the_hard_cases_give_a_configuration_that_parses(goodput: Goodput, at: Path, shared: Path) -> None:
    ran = goodput("init", shared / "cases")
    assert ran.code == 0
    found = config.load(at / "goodput.toml")
    files = [f.path for s in found.sources for f in find(s.path)]
    assert len(files) == len(set(files)), "no file stands in two sources"
    assert any(f.name == "sacct_berlin.txt" for f in files)


def test_nothing_is_overwritten(goodput: Goodput, at: Path) -> None:
    (at / "goodput.toml").write_text("# mine\n")
    ran = goodput("init", at)
    assert (ran.code, (at / "goodput.toml").read_text()) == (2, "# mine\n")
    assert "move it away" in ran.err


def test_exports_nobody_knows_give_no_configuration(goodput: Goodput, at: Path) -> None:
    (at / "x.txt").write_text("hello\n")
    assert goodput("init", "x.txt").code == 1
    assert goodput("init", "missing.txt").code == 2
    assert not (at / "goodput.toml").exists()


def test_the_largest_runs_are_proposed_largest_first(goodput: Goodput, at: Path) -> None:
    rows = [
        job(1, "big", 64, 9),
        job(2, "big", 64, 9),
        job(3, "bigger", 64, 20),
        job(4, "debug", 8, 99),
        job(5, "eval*", 32, 2),
    ]
    (at / "sacct.txt").write_text("\n".join([HEADER, *rows, ""]))
    assert goodput("init", "sacct.txt").code == 0
    rules = config.load().settings_rows()["runs"]
    # debug has more hours than eval but never half the GPUs of the largest; the star in a name is no wildcard.
    assert [rule["match_globs"][1] for rule in rules] == ["bigger", "big", "eval[*]"]
    assert "# 2 attempts, up to 64 GPUs, 1,152.0 GPU-hours" in (at / "goodput.toml").read_text()


def test_further_runs_are_commented_and_can_be_uncommented(goodput: Goodput, at: Path) -> None:
    rows = [job(1, "big", 64, 20), *(job(n, f"small{n}", 8, n) for n in range(2, 8))]
    (at / "sacct.txt").write_text("\n".join([HEADER, *rows, ""]))
    assert goodput("init", "sacct.txt").code == 0
    text = (at / "goodput.toml").read_text()
    assert [r["match_globs"][1] for r in config.load().settings_rows()["runs"]] == ["big"]
    commented = text.partition("# Not tracked")[2].partition("\n\n")[2]
    opened = tomllib.loads("\n".join(line.removeprefix("# ") for line in commented.splitlines()))
    assert [r["match"]["job_name"] for r in opened["runs"]] == ["small7", "small6", "small5", "small4"]


def test_jobs_without_a_header_are_told_how_to_be_read(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    (at / "bare.txt").write_text(job(1, "a", 8, 1) + "\n")
    ran = goodput("init", at)
    assert ran.code == 0
    text = (at / "goodput.toml").read_text()
    assert '# path = "bare.txt"' in text
    assert f"# columns = [{', '.join(map(quoted, HEADER.split('|')[:1]))}" in text
    assert "# CHECK: all 13, guessed from the values" in text
    assert "bare.txt" not in text.partition("# Not read")[2], "a file with a proposal is not called unreadable as well"


def test_of_many_files_that_cannot_be_read_those_that_can_be_helped_are_listed(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    for number in range(50):
        (at / f"notes{number:02}.txt").write_text("hello\n")
    (at / "zzz.txt").write_text(job(1, "a", 8, 1) + "\n")
    assert goodput("init", at).code == 0
    text = (at / "goodput.toml").read_text()
    assert '# path = "zzz.txt"' in text
    assert "# Not read: 20 more files" in text


def test_a_header_is_not_taken_for_a_job() -> None:
    assert jobs_without_header(HEADER) == 0
    assert jobs_without_header("Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User") == 0
    assert jobs_without_header("71500|CANCELLED by 12|2026-05-04T01:00:00") == 3


def test_names_in_exports_cannot_write_configuration(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, 'x" }\\n[warehouse]\\ndata = "/etc', 8, 1, 'c"]'), ""]))
    (at / "odd\n[warehouse]\ndata = 1.txt").write_text("a\r[clusters.evil]\n")
    assert goodput("init", at).code == 0
    raw = tomllib.loads((at / "goodput.toml").read_text())
    assert (raw["warehouse"], list(raw["clusters"])) == ({"data": "data"}, ['c"]'])


@pytest.mark.parametrize(
    "text", ["plain", 'quote"', "back\\slash", "tab\t", "esc\x1b", "\x7f", "模型", "\U0001f600", "\u202e", ""]
)
def test_quoted_texts_are_read_back_as_they_were(text: str) -> None:
    assert tomllib.loads(f"x = {quoted(text)}") == {"x": text}


DMESG = "[Tue May  5 01:02:03 2026] NVRM: Xid (PCI:0000:4e:00): 79, pid=1, GPU has fallen off the bus.\n"
ISO = "2026-05-05T03:02:03+0200 n2 kernel: NVRM: Xid (PCI:0000:4e:00): 79, pid=1, GPU has fallen off the bus.\n"
SYSLOG = "May  5 03:02:03 n1 kernel: NVRM: Xid (PCI:0000:4e:00): 79, pid=1, GPU has fallen off the bus.\n"


def proposed(at: Path) -> tuple[str, list[dict[str, Any]]]:
    text = (at / "goodput.toml").read_text()
    return text, tomllib.loads(text)["sources"]


def test_logs_without_host_names_get_their_node_from_the_path(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    (at / "dmesg").mkdir()
    (at / "dmesg" / "n1.txt").write_text(DMESG)
    (at / "dmesg" / "n77.txt").write_text(DMESG)
    (at / "ring").mkdir()
    (at / "ring" / "dmesg.txt").write_text(DMESG)
    assert goodput("init", "dmesg", "ring", "sacct.txt").code == 0
    text, sources = proposed(at)
    assert [s["path"] for s in sources] == ["dmesg/{node}.txt", "ring/dmesg.txt", "sacct.txt"]
    assert (
        "CHECK: these files do not name their node, the path does: no other export names n77; are these nodes?" in text
    )
    assert text.count("their events will have no node") == 1


def test_stamps_of_several_forms_plain_or_packed_are_one_source(goodput: Goodput, at: Path) -> None:
    (at / "kern").mkdir()
    (at / "kern" / "n1.log").write_text(SYSLOG)
    (at / "kern" / "n2.log").write_text(ISO)
    (at / "kern" / "n3.log.gz").write_bytes(gzip.compress(ISO.replace("n2", "n3").encode()))
    assert goodput("init", "kern").code == 0
    assert [s["path"] for s in proposed(at)[1]] == ["kern/*.log*"]


def test_what_log_rotation_leaves_is_one_source_and_each_file_is_read_once(goodput: Goodput, at: Path) -> None:
    for turn, name in enumerate(("x.log", "x.log.1", "x.log.2.gz")):
        text = ISO.replace("n2", f"n{turn}").encode()
        (at / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (at / "auth.log").write_text("a neighbour of no known format\n" * 3)
    assert goodput("init", at).code == 0
    assert [s["path"] for s in proposed(at)[1]] == ["x.log*"]
    assert goodput("ingest").code == 0
    read = json.loads(goodput("status", "--json").out)["formats"]
    assert [(f["format"], f["files"], f["lines"]) for f in read] == [("kernel_log", 3, 3 * ISO.count("\n"))]
    (at / "x.log.2.gz").rename(at / "x.log.3.gz")
    assert [f.path.name for f in find(str(at / "x.log*"))] == ["x.log", "x.log.1", "x.log.3.gz"], "tomorrow's too"


def test_files_without_a_record_are_one_source_with_their_like(goodput: Goodput, at: Path) -> None:
    """A file that says there is nothing names no cluster, and one without content nothing: both match their series."""
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    window = "StartTime=2026-05-06T08:00:00 EndTime=2026-05-06T12:00:00 Duration=04:00:00"
    told = f"ReservationName=m {window}\n   Nodes=n1 NodeCnt=1 CoreCnt=8 Flags=MAINT\n"
    for day, text in enumerate(
        ("No reservations in the system\n", told, "", told, "No reservations in the system\n"), 1
    ):
        (at / f"scontrol_show_reservation_2026050{day}T070000Z.txt").write_text(text)
    assert goodput("init", at).code == 0
    _, sources = proposed(at)
    found = {s["format"]: (s["path"], s.get("cluster")) for s in sources}
    assert len(sources) == 2
    assert found["slurm_reservations"] == ("scontrol_show_reservation_{collected_at}.txt", "c")
    assert goodput("run").code == 0


def test_the_zone_follows_from_offsets_seen_beside_and_says_so(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    (at / "n2.log").write_text(ISO)
    ran = goodput("init", at)
    text, _ = proposed(at)
    assert 'zone = "Etc/GMT-2" # CHECK' in text
    for told in (text, ran.err):
        assert "seen +0200 in n2.log; likely Europe/Berlin" in told
    # An offset that a zone of the tables prints only in summer still names that zone.
    assert config.load().zones() == {"c": "Etc/GMT-2"}


def stamp(text: str, hours: float) -> Offset:
    return Offset(datetime.fromisoformat(text), timedelta(hours=hours))


@pytest.mark.parametrize(
    ("stamps", "zone", "is_blind"),
    [
        ([("2026-01-05T03:00:00", 1), ("2026-07-05T03:00:00", 2)], "Europe/Berlin", False),
        ([("2026-01-05T03:00:00", -5)], "Etc/GMT+5", False),
        ([("2026-01-05T03:00:00", 5.5)], "Asia/Kolkata", False),
        ([("2026-01-05T03:00:00", 0)], "UTC", False),
        ([("2026-01-05T03:00:00", 1), ("2026-01-05T03:00:00", 9)], "UTC", True),
        ([], "UTC", True),
    ],
)
def test_a_zone_fits_every_offset_or_is_called_a_guess(
    stamps: list[tuple[str, float]], zone: str, is_blind: bool
) -> None:
    found = guess_zone({Path("/x/kern.log"): [stamp(*s) for s in stamps]} if stamps else {})
    assert (found.zone, found.is_blind) == (zone, is_blind)
    assert ("a guess" in found.why) == is_blind
    assert ("kern.log" in found.why) == bool(stamps)


def test_runs_are_proposed_without_a_column_of_elapsed_time(goodput: Goodput, at: Path) -> None:
    names = [n for n in HEADER.split("|") if n != "Elapsed"]
    place = HEADER.split("|").index("Elapsed")
    ended = [f for i, f in enumerate(job(1, "a", 8, 1).split("|")) if i != place]  # ran for 23 hours
    running = [*ended]
    running[0] = running[1] = "2"
    running[5], running[8] = "RUNNING", "Unknown"
    (at / "sacct.txt").write_text("\n".join("|".join(line) for line in (names, ended, running)) + "\n")
    collected = datetime.fromisoformat("2026-05-05T01:00:00+00:00").timestamp()  # 24 hours after the start
    os.utime(at / "sacct.txt", (collected, collected))
    assert goodput("init", "sacct.txt").code == 0
    text, _ = proposed(at)
    assert "2 attempts, up to 8 GPUs, 376.0 GPU-hours" in text  # 8 x (23 + 24)
    assert "No job tells" not in text


def test_jobs_that_do_not_tell_their_gpus_are_measured_in_nodes(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 32, 2).replace("gres/gpu=32,", ""), ""]))
    assert goodput("init", "sacct.txt").code == 0
    text, _ = proposed(at)
    assert "# gpus_per_node = 8 # CHECK: AllocTRES names no GPUs" in text
    assert "since no job tells of GPU-time" in text
    assert "1 attempts, up to 4 nodes, 8.0 node-hours" in text
    # Uncommented, it gives the GPUs: the cluster's Slurm counts none.
    proposal = (at / "goodput.toml").read_text()
    (at / "goodput.toml").write_text(proposal.replace("# gpus_per_node", "gpus_per_node"))
    assert goodput("run").code == 0
    assert json.loads(goodput("sql", "select gpus from marts.attempts", "--format", "json").out) == [{"gpus": 32}]


def test_without_alloctres_the_gpus_of_a_node_are_asked_for(goodput: Goodput, at: Path) -> None:
    text = "\n".join([HEADER, job(1, "a", 32, 2), ""]).replace("AllocTRES", "ReqTRES")
    (at / "sacct.txt").write_text(text)
    assert goodput("init", "sacct.txt").code == 0
    proposal = (at / "goodput.toml").read_text()
    assert "# gpus_per_node = 8 # CHECK: the exports of jobs have no AllocTRES" in proposal
    # Uncommented, it gives the GPUs: the proposal helps as it stands.
    (at / "goodput.toml").write_text(proposal.replace("# gpus_per_node", "gpus_per_node"))
    assert goodput("run").code == 0
    assert json.loads(goodput("sql", "select gpus from marts.attempts", "--format", "json").out) == [{"gpus": 32}]


def test_without_any_job_nothing_is_said_of_their_gpus(goodput: Goodput, at: Path) -> None:
    (at / "n2.log").write_text(ISO)
    assert goodput("init", "n2.log").code == 0
    text, _ = proposed(at)
    assert "CHECK: no export of jobs was found" in text
    assert "No export of jobs was found, so every job is tracked" in text


def test_what_is_binary_is_named_and_not_quoted(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    (at / "core.bin").write_bytes(bytes(range(256)) * 20)
    assert goodput("init", at).code == 0
    text, _ = proposed(at)
    assert "# Not read: core.bin: binary\n" in text
    assert "first line" not in text


OTHER_ORDER = (
    "JobID|JobName|User|Account|Partition|AllocTRES|State|ExitCode|Submit|Start|End|Elapsed|Timelimit|NNodes|NodeList"
)


def test_columns_are_told_by_their_values() -> None:
    def line(number: int, hours: int, state: str) -> str:
        times = f"2026-05-0{number}T00:00:00|2026-05-0{number}T01:00:00|2026-05-0{number}T{hours + 1:02}:00:00"
        tres = f"billing=9,cpu={number},gres/gpu=8,node={number}"
        return f"{70 + number}|llama|ann|ml|h100|{tres}|{state}|1:0|{times}|{hours:02}:00:00|2-00:00:00|{number}|n[1-{number}]"

    lines = [line(1, 3, "FAILED"), line(2, 4, "CANCELLED by 7"), line(3, 5, "COMPLETED"), "79|llama|an"]
    words = {"User": {"ann"}, "Account": {"ml"}, "Partition": {"h100"}, "JobName": {"llama"}}
    known = Words({name: frozenset(values) for name, values in words.items()}, frozenset({"n1"}))
    assert guess(lines, known) == OTHER_ORDER.split("|")
    # Names of people, accounts and partitions look alike: without another export that knows them nothing is guessed.
    blind = guess(lines, Words({}))
    assert [name for name, told in zip(OTHER_ORDER.split("|"), blind, strict=True) if told is None] == [
        "JobName", "User", "Account", "Partition",
    ]  # fmt: skip
    assert [told for told in blind if told] == [n for n in OTHER_ORDER.split("|") if n in blind]


def test_guessed_columns_can_be_used_as_they_stand(goodput: Goodput, at: Path) -> None:
    (at / "sacct.txt").write_text("\n".join([HEADER, job(1, "a", 8, 1), ""]))
    (at / "bare.txt").write_text("".join(job(n, "new", 8, 1) + "\n" for n in (2, 3)))
    assert goodput("init", at).code == 0
    text, _ = proposed(at)
    start = text.index("# [[sources]]")
    block = "\n".join(line.removeprefix("# ") for line in text[start:].split("\n\n")[0].splitlines())
    (at / "goodput.toml").write_text(text + "\n" + block + "\n")
    assert goodput("run").code == 0
    ran = goodput("sql", "select count(*) as jobs from marts.attempts", "--format", "json")
    assert json.loads(ran.out) == [{"jobs": 3}]
