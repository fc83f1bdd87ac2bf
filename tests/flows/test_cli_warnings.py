"""What run, check and status warn of; runs by name; labels; queries."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli import facts
from flows.cli.doubts import doubts
from flows.cli.terminal import CommandError
from warehouse import query

Goodput = Callable[..., Any]

SACCT = "JobID|JobIDRaw|JobName|User|Cluster|State|ExitCode|Submit|Start|End|AllocTRES|NodeList\n"
XID = "2026-10-20T02:00:00+00:00 {host} kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid=1, name=p, GPU has fallen off the bus.\n"


def job(number: int, start: str, end: str, **kwargs: str) -> str:
    row = {"name": "llama", "state": "FAILED", "tres": "gres/gpu=8", "nodes": "n1", **kwargs}
    return (
        f"{number}|{number}|{row['name']}|u|c|{row['state']}|1:0|{start}|{start}|{end}|{row['tres']}|{row['nodes']}\n"
    )


def site(folder: Path, sacct: str, kernel: str = "", *, zone: str = "UTC") -> list[str]:
    """Write exports and a configuration; return the option that names it."""
    (folder / "sacct.txt").write_text(SACCT + sacct)
    sources = '[[sources]]\npath = "sacct.txt"\n'
    if kernel:
        (folder / "kern.log").write_text(kernel)
        sources += '[[sources]]\npath = "kern.log"\ncluster = "c"\n'
    config = folder / "goodput.toml"
    config.write_text(f'[clusters.c]\nzone = "{zone}"\n{sources}')
    return ["--config", str(config)]


FAILED = job(1, "2026-10-20T01:00:00", "2026-10-20T02:00:30")


def test_nodes_that_the_scheduler_does_not_know_are_named(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, FAILED, "".join(XID.format(host=f"h{n}-mgmt") for n in range(7)))
    ran = goodput("run", *config)
    assert ran.code == 0
    expected = (
        "7 nodes in kernel logs are unknown to the scheduler: h0-mgmt, h1-mgmt, h2-mgmt, h3-mgmt, h4-mgmt and 2 more"
    )
    for text in (ran.err, goodput("check", *config).err, goodput("status", *config).err):
        assert expected in text
        assert "Set `node` on the source" in text
    assert expected in json.loads(goodput("check", "--json", *config).out)["warnings"][0]
    assert "scheduler knows no such node" in goodput("node", "h0-mgmt", *config).out


def test_without_jobs_the_next_step_is_named_first_and_no_host_name_is_blamed(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, "", XID.format(host="n1"))
    (tmp_path / "sacct.txt").write_text(FAILED)  # as `sacct --noheader` prints it
    ran = goodput("run", *config)
    first = next(line for line in ran.err.splitlines() if line.startswith("warning: "))
    assert "no export of jobs (sacct) was read" in first
    assert "columns = [...]" in first
    checked = goodput("check", *config)
    assert checked.code == 1
    assert checked.err.split("error: ", 1)[1].startswith("no export of jobs (sacct) was read")
    assert "no export of jobs (sacct) was read" in goodput("status", *config).err
    for text in (ran.err, checked.err):
        assert "unknown to the scheduler" not in text
    (tmp_path / "sacct.txt").write_text(SACCT + FAILED)
    assert "no export of jobs" not in goodput("run", *config).err
    assert "no export of jobs" not in goodput("check", *config).err


def test_names_that_meet_warn_of_nothing(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, FAILED, XID.format(host="n1"))
    assert "warning" not in goodput("run", *config).err
    assert json.loads(goodput("check", "--json", *config).out)["warnings"] == []


def test_events_without_a_node_name_the_key_to_set(goodput: Goodput, tmp_path: Path) -> None:
    line = "[Tue Oct 20 02:00:00 2026] NVRM: Xid (PCI:0000:5d:00): 79, pid=1, name=p, GPU has fallen off the bus.\n"
    config = site(tmp_path, FAILED, line)
    for command in ("run", "check", "status"):
        assert (
            "1 event of kernel_log (c) names no node and can explain nothing; capture {node}"
            in goodput(command, *config).err
        )


def test_ambiguous_times_are_warned_of_and_counted(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, job(1, "2026-10-25T02:30:00", "2026-10-25T08:00:00"), zone="Europe/Berlin")
    assert "1 record of slurm_sacct (c) has a time that came twice" in goodput("run", *config).err
    status = goodput("status", *config)
    assert "came twice" in status.err
    line = next(line for line in status.out.splitlines() if "time_ambiguous" in line)
    assert line.split()[:4] == ["slurm_sacct", "c", "1", "time_ambiguous"]
    flags = json.loads(goodput("status", "--json", *config).out)["flags"]
    assert {"source": "slurm_sacct", "cluster": "c", "flag": "time_ambiguous", "records": 1} in flags


def test_unknown_formats_are_called_the_same_everywhere(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, FAILED)
    (tmp_path / "odd.bin").write_bytes(bytes(range(128, 256)) * 20)
    (tmp_path / "notes.txt").write_text("call vendor about n1 " * 40)
    with Path(config[1]).open("a") as file:
        file.write('[[sources]]\npath = "odd.bin"\n[[sources]]\npath = "notes.txt"\n')
    for command in ("run", "status", "check"):
        lines = [line for line in goodput(command, *config).err.splitlines() if "no parser knows this format" in line]
        told = sorted(line.partition("no parser knows this format; ")[2][:23] for line in lines)
        assert told == ["it begins with 'call ve", "it is binary"]
        assert max(map(len, lines)) < 250


def test_hints_name_the_same_configuration(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, FAILED + "nonsense\n")
    assert f'`goodput sql "from ops.rejects" --config {config[1]}` says why' in goodput("run", *config).err


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three runs, each interrupted once."""
    from flows.cli import execute

    names = ("llama-7b", "llama-70b", "Mixtral")
    rows = [job(n, f"2026-10-2{n}T01:00:00", f"2026-10-2{n}T02:00:00", name=name) for n, name in enumerate(names, 1)]
    config = site(tmp_path_factory.mktemp("runs"), "".join(rows))
    assert execute(["run", *config]) == 0
    return config


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("u/llama-7b", {"u/llama-7b"}),
        ("llama-7", {"u/llama-7b", "u/llama-70b"}),
        ("llama-7b", {"u/llama-7b"}),
        ("*llama*", {"u/llama-7b", "u/llama-70b"}),
        ("u/llama-?b", {"u/llama-7b"}),
        ("mixtral", {"u/Mixtral"}),
        ("7?b*", set()),
    ],
)
def test_runs_are_found_by_name_part_or_pattern(
    goodput: Goodput, three_runs: list[str], wanted: str, expected: set[str]
) -> None:
    ran = goodput("interruptions", "--run", wanted, "--json", *three_runs)
    assert {row["run"] for row in json.loads(ran.out)} == expected


def test_a_run_is_found_by_its_id_and_a_wrong_name_lists_those_there_are(
    goodput: Goodput, three_runs: list[str]
) -> None:
    rows = json.loads(goodput("interruptions", "--json", *three_runs).out)
    found = json.loads(goodput("interruptions", "--run", rows[1]["run_id"], "--json", *three_runs).out)
    assert [row["run"] for row in found] == [rows[1]["run"]]
    ran = goodput("interruptions", "--run", "gpt", *three_runs)
    assert ran.code == 0
    assert "no run is called gpt; there are u/Mixtral, u/llama-70b, u/llama-7b" in ran.err


def test_interruptions_since_a_day(goodput: Goodput, three_runs: list[str]) -> None:
    rows = json.loads(goodput("interruptions", "--since", "2026-10-22", "--json", *three_runs).out)
    assert [row["run"] for row in rows] == ["u/llama-70b", "u/Mixtral"]
    assert (
        "1 interruption: 0 planned, 1 unexpected"
        in goodput("interruptions", "--since", "2026-10-23T00:00Z", *three_runs).out
    )


def test_a_label_can_name_the_node_to_blame(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, job(1, "2026-10-20T01:00:00", "2026-10-20T02:00:00", nodes="gpu[001-002]"))
    assert goodput("run", *config).code == 0
    wanted = json.loads(goodput("interruptions", "--json", *config).out)[0]["interruption_id"]
    wrong = goodput("annotate", wanted, "--cause", "nic", "--node", "gpu02", "--why", "x", *config)
    assert (wrong.code, wrong.out) == (2, "")
    assert "c has no node 'gpu02'; did you mean `gpu002`?" in wrong.err
    assert not (tmp_path / "data" / "annotations.jsonl").exists()
    right = goodput("annotate", wanted, "--cause", "nic", "--node", "gpu002", "--why", "replaced", "--run", *config)
    assert right.code == 0
    assert "annotations.jsonl" in right.err
    label = json.loads((tmp_path / "data" / "annotations.jsonl").read_text())
    assert (label["node"], label["cause"]) == ("gpu002", "nic")
    after = json.loads(goodput("interruptions", "--json", *config).out)[0]
    assert (after["cause"], after["culprit_node"]) == ("nic", "gpu002")


def test_nodes_are_found_as_logs_print_them(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, job(1, "2026-10-20T01:00:00", "2026-10-20T02:00:00", nodes="hgx-a[017-018]"))
    assert goodput("run", *config).code == 0
    for name in ("hgx-a017", "hgx-a017.dc2.example", "HGX-A017"):
        assert json.loads(goodput("node", name, "--json", *config).out)["node"] == "hgx-a017"
    wrong = goodput("node", "a017", *config)
    assert (wrong.code, wrong.out) == (1, "")
    assert "did you mean `hgx-a017`?" in wrong.err
    wanted = json.loads(goodput("interruptions", "--json", *config).out)[0]["interruption_id"]
    label = ["annotate", wanted, "--cause", "nic", "--why", "x"]
    assert "did you mean `hgx-a017`?" in goodput(*label, "--node", "a017", *config).err
    assert goodput(*label, "--node", "HGX-A017.dc2.example", *config).code == 0
    assert json.loads((tmp_path / "data" / "annotations.jsonl").read_text())["node"] == "hgx-a017"


def test_labels_that_no_build_holds_yet_are_told_of(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, FAILED)
    assert goodput("run", *config).code == 0
    wanted = json.loads(goodput("interruptions", "--json", *config).out)[0]["interruption_id"]
    told = "1 label of `goodput annotate"
    assert told not in goodput("status", *config).err
    for cause in ("nic", "cpu"):  # the first label, and a newer one of the same interruption
        assert goodput("annotate", wanted, "--cause", cause, "--why", "x", *config).code == 0
        for command in ("status", "check"):
            ran = goodput(command, *config)
            assert ran.code == 0
            assert told in ran.err
        assert goodput("run", *config).code == 0
        for command in ("status", "check"):
            assert told not in goodput(command, *config).err


def test_a_label_without_a_node_has_no_such_key(goodput: Goodput, tmp_path: Path) -> None:
    config = site(tmp_path, FAILED)
    assert goodput("run", *config).code == 0
    wanted = json.loads(goodput("interruptions", "--json", *config).out)[0]["interruption_id"]
    assert goodput("annotate", wanted, "--cause", "nic", "--why", "x", *config).code == 0
    assert "node" not in json.loads((tmp_path / "data" / "annotations.jsonl").read_text())


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_several_statements_are_refused_and_none_is_dropped(goodput: Goodput, demo_folder: Path, form: str) -> None:
    config = ["--config", str(demo_folder / "goodput.toml")]
    ran = goodput("sql", "select 1 as a; select 2 as b", "--format", form, *config)
    assert (ran.code, ran.out) == (1, "")
    assert "several statements in one query; give one at a time" in ran.err
    ran = goodput("sql", "select ';模' as a -- é\n; -- the only one\n;", "--format", form, *config)
    assert ran.code == 0
    assert ";模" in (json.loads(ran.out)[0]["a"] if form == "json" else ran.out)


def test_an_empty_query_says_how_to_pass_one(goodput: Goodput, demo_folder: Path) -> None:
    ran = goodput("sql", " ", "--config", demo_folder / "goodput.toml")
    assert ran.code == 2
    for text in ("the query is empty", "`goodput sql ", "--file", "standard input"):
        assert text in ran.err


def test_what_failed_and_is_gone_is_a_fact_and_no_problem(goodput: Goodput, tmp_path: Path) -> None:
    """Nothing of it can be mended or read again: its lines stay counted and listed, and a monitor is left in peace."""
    row = "1|1|c|a|u|COMPLETED|2026-05-04T01:00:00|2026-05-04T01:00:00|2026-05-04T02:00:00|n1"
    header = "JobID|JobIDRaw|Cluster|JobName|User|State|Submit|Start|End|NodeList"
    files = {
        "whole.txt": f"{header}\n{row}\n",
        "broken.txt": f"{header}\nnonsense|x\n",
        "odd.txt": "what is this\n" * 3,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    config = tmp_path / "goodput.toml"
    config.write_text('[clusters.c]\nzone = "UTC"\n[[sources]]\npath = "*.txt"\n')
    site = ["--config", str(config)]
    goodput("run", *site)
    ran = goodput("check", *site)
    assert (ran.code, ran.out.endswith("; 2 problems\n")) == (1, True)
    assert goodput("doctor", *site).code == 1
    assert "odd.txt: no parser knows this format" in goodput("status", *site).err
    assert [Path(f["path"]).name for f in json.loads(goodput("status", "--json", *site).out)["not_loaded"]] == [
        "odd.txt"
    ]

    (tmp_path / "odd.txt").unlink()
    (tmp_path / "broken.txt").unlink()
    ran = goodput("check", *site)
    assert (ran.code, "1 rejected = " in ran.out, ran.out.endswith("; no problems\n")) == (0, True, True)
    assert (
        "1 unreadable export and 1 rejected line are of files that are gone, hold something newer, or are matched by no source"
        in ran.err
    )
    (told,) = json.loads(goodput("check", "--json", *site).out)["notes"]
    assert told in ran.err.replace("\n", " ")
    ran = goodput("status", *site)
    assert told in ran.err.replace("\n", " ")
    assert "odd.txt" not in ran.err
    status = json.loads(goodput("status", "--json", *site).out)
    assert (status["not_loaded"], status["notes"]) == ([], [told])
    assert sum(f["files"] for f in status["formats"]) == 3, "what is gone stays counted"
    ran = goodput("doctor", *site)
    assert (ran.code, "2 of 2 files read; 1 more that could not be read is gone since" in ran.out) == (0, True)
    rejects = json.loads(goodput("sql", "select line, text from ops.rejects", "--format", "json", *site).out)
    assert rejects == [{"line": 2, "text": "nonsense|x"}]


def test_what_a_newer_file_of_the_same_name_took_the_place_of_is_a_fact(goodput: Goodput, tmp_path: Path) -> None:
    """Names come again as logs rotate: what the path holds now counts, and only once all of it was read."""
    header = "JobID|JobIDRaw|Cluster|JobName|User|State|Submit|Start|End|NodeList\n"
    row = "{0}|{0}|c|a|u|COMPLETED|2026-05-04T01:00:00|2026-05-04T01:00:00|2026-05-04T02:00:00|n1\n"
    export = tmp_path / "sacct.4.gz"
    config = tmp_path / "goodput.toml"
    config.write_text('[clusters.c]\nzone = "UTC"\n[[sources]]\npath = "*.gz"\n')
    site = ["--config", str(config)]

    def holds(data: bytes) -> tuple[int, str, str]:
        export.write_bytes(data)
        goodput("run", *site)
        ran = goodput("check", *site)
        return ran.code, ran.out, ran.err

    code, out, err = holds(gzip.compress((header + "nonsense|x\n").encode()))
    assert (code, "1 line rejected" in err) == (1, True)

    whole = gzip.compress((header + row.format(2) + row.format(3)).encode())
    code, out, err = holds(whole[:-12])
    assert code == 1, "the newer one could not be read in full: nothing is settled"

    code, out, err = holds(whole)
    assert (code, "1 rejected = " in out, out.endswith("; no problems\n")) == (0, True, True), "counted, and no problem"
    assert "1 rejected line is of a file that is gone, holds something newer" in err
    assert "no problem now" in goodput("status", *site).err
    ran = goodput("doctor", *site)
    assert (ran.code, "1 of 1 file read" in ran.out) == (0, True), "one file, whatever it held"
    rejects = json.loads(goodput("sql", "select text from ops.rejects", "--format", "json", *site).out)
    assert rejects == [{"text": "nonsense|x"}]

    code, out, err = holds(gzip.compress((header + row.format(4) + "worse|y\n").encode()))
    assert (code, err.count("sacct.4.gz: 1 line rejected")) == (1, 1), (
        "its own rejected line counts, the old one does not"
    )


def test_what_run_warns_of_is_asked_in_one_session(demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To open the build takes longer than any of the questions; an hourly run with nothing new is mostly that."""
    opened = []
    real = query.reading
    monkeypatch.setattr(query, "reading", lambda *args, **kwargs: opened.append(args) or real(*args, **kwargs))
    settings = facts.configuration(demo_folder / "goodput.toml")
    doubts(settings)
    assert len(opened) == 1
    assert facts.rows(settings, "select 1 as n") == [{"n": 1}]
    assert len(opened) == 2, "the session ends with what it was opened for: a later build is seen"


def test_doubts_where_nothing_is_published_say_what_to_do(tmp_path: Path) -> None:
    site(tmp_path, job(1, "2026-10-20T01:00:00", "2026-10-20T02:00:00"))
    with pytest.raises(CommandError, match="goodput"):
        doubts(facts.configuration(tmp_path / "goodput.toml"))


def test_a_query_file_that_cannot_be_read_is_told_in_a_sentence(
    goodput: Goodput, demo_folder: Path, tmp_path: Path
) -> None:
    config = ["--config", str(demo_folder / "goodput.toml")]
    (tmp_path / "odd.sql").write_bytes(b"\xff\xfe")
    for name, said in {"nope.sql": "there is no such file", "odd.sql": "is no text in UTF-8"}.items():
        ran = goodput("sql", "--file", tmp_path / name, *config)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
        assert "Errno" not in ran.err
    assert "cannot be read: Is a directory" in goodput("sql", "--file", tmp_path, *config).err


def test_a_time_that_is_none_names_every_form(goodput: Goodput, demo_folder: Path) -> None:
    ran = goodput("interruptions", "--since", "7x", "--config", demo_folder / "goodput.toml")
    assert (ran.code, ran.out) == (2, "")
    assert "'7x' is no time; write 45m, 24h, 7d, 2w, 2026-05-04 or 2026-05-04T13:30:00Z" in ran.err
