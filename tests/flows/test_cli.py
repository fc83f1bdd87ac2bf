"""The command line: help, exit codes, where things are printed, and what may never reach a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli import COMMANDS, execute
from flows.cli.terminal import clean

ROOT = Path(__file__).resolve().parents[2]
Goodput = Callable[..., Any]

HEAVY = ("prefect", "polars", "duckdb", "scipy", "pyarrow", "pydantic", "prompt_toolkit", "pygments")


def shell(*arguments: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own, as a user does."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, **kwargs)


def test_help_imports_nothing_heavy() -> None:
    ran = shell("-X", "importtime", "-m", "flows.cli", "--help")
    assert ran.returncode == 0
    modules = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")}
    assert "flows.cli" in modules
    assert not [m for m in modules if m.partition(".")[0] in HEAVY]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(goodput: Goodput, name: str) -> None:
    ran = goodput(name, "--help")
    assert ran.code == 0
    assert re.search(rf"^Examples?:\n +goodput {name}\b", ran.out, re.MULTILINE)
    undocumented = [line for line in ran.out.splitlines() if re.fullmatch(r"│ \*? *(--)?[\w-]+ +(STR|PATH)? *│", line)]
    assert not undocumented


def test_version_is_that_of_the_project(goodput: Goodput) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+.*\n", goodput("--version").out)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["explan"], 'Did you mean "explain"?'),
        (["run", "--jsn"], "Did you mean --json?"),
        (["explain"], "say which"),
        (["explain", "abc", "--last"], "say which"),
        (["node"], "NAME"),
        (["sql", "select 1", "--format", "xml"], "table"),
        (["evaluate"], "TRUTH"),
        (["annotate", "abc"], "--cause"),
        (["run", "--config", "/nowhere/goodput.toml"], "goodput init"),
    ],
)
def test_wrong_use_exits_2_says_what_to_do_and_prints_no_fact(
    goodput: Goodput, arguments: list[str], expected: str
) -> None:
    ran = goodput(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert expected in ran.err
    assert "Traceback" not in ran.err


def test_before_the_first_run_commands_say_to_run(goodput: Goodput, tmp_path: Path) -> None:
    config = tmp_path / "goodput.toml"
    config.write_text("")
    for arguments in (
        ["interruptions"],
        ["explain", "--last"],
        ["status"],
        ["check"],
        ["check", "--digest"],
        ["node", "x"],
    ):
        ran = goodput(*arguments, "--config", config)
        assert (ran.code, ran.out) == (1, "")
        assert "goodput run" in ran.err
    assert not (tmp_path / "data").exists()


HOSTILE = [
    "\x1b[2J\x1b]0;title\x07",
    "a\rb",
    "x\u202egpj.exe",
    "\u200b\u2028",
    "[red]bold[/red]",
    "\x9b31m",
    "\x7f\x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_a_terminal_obeys_survives(text: str) -> None:
    assert clean(text).isprintable()


def test_cleaning_keeps_what_is_harmless_and_shows_what_is_not() -> None:
    assert clean("Zürich/模型 é") == "Zürich/模型 é"
    assert clean("\x1b[31m") == "\\x1b[31m"
    assert clean("[red]x[/red]") == "[red]x[/red]"
    assert clean(None) == "-"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse whose names try to take over the terminal."""
    tmp_path = tmp_path_factory.mktemp("hostile")
    name = "[red]\x1b[2J\x1b]0;pwned\x07\u202eevil"
    columns = "JobID|JobIDRaw|Cluster|JobName|User|Account|Partition|State|ExitCode|Submit|Eligible|Start|End|Elapsed|NNodes|AllocTRES|NodeList"
    times = "2026-05-04T01:00:00|2026-05-04T01:00:00|2026-05-04T01:00:00|2026-05-04T02:00:00|01:00:00"
    row = f"7|7|c|{name}|u|a|p|FAILED|1:0|{times}|1|cpu=8,gres/gpu=8,node=1|n1"
    (tmp_path / "sacct.txt").write_text(f"{columns}\n{row}\n", encoding="utf-8")
    (tmp_path / "odd.txt").write_text(f"{name}\n", encoding="utf-8")
    config = tmp_path / "goodput.toml"
    config.write_text('[clusters.c]\nzone = "UTC"\n[[sources]]\npath = "*.txt"\n')
    assert execute(["run", "--config", str(config)]) == 0
    return config


def assert_harmless(text: str) -> None:
    assert not [c for c in text if c != "\n" and not c.isprintable()]


@pytest.mark.parametrize(
    "arguments",
    [
        ["interruptions"],
        ["interruptions", "--json"],
        ["explain", "--last"],
        ["explain", "--job", "7", "--json"],
        ["node", "n1"],
        ["sql", "select job_name from marts.attempts"],
        ["sql", "select error(job_name) from marts.attempts"],
        ["status"],
        ["check"],
        ["run"],
    ],
)
def test_names_from_exports_are_escaped_wherever_shown(goodput: Goodput, hostile: Path, arguments: list[str]) -> None:
    ran = goodput(*arguments, "--config", hostile)
    assert "evil" in ran.out + ran.err
    assert_harmless(ran.out + ran.err)


def test_check_exits_1_and_names_what_is_wrong(goodput: Goodput, hostile: Path) -> None:
    ran = goodput("check", "--config", hostile)
    assert ran.code == 1
    assert "odd.txt: no parser knows this format" in ran.err
    assert "1 used + 1 ignored + 0 rejected = 2 lines; 1 problem\n" in ran.out


def test_rejects_warn_in_run_and_fail_in_check(goodput: Goodput, tmp_path: Path) -> None:
    header = "JobID|JobIDRaw|Cluster|State|Submit|Start|End|NodeList"
    good = "1|1|c|COMPLETED|2026-05-04T01:00:00|2026-05-04T01:00:00|2026-05-04T02:00:00|n1"
    (tmp_path / "sacct.txt").write_text(f"{header}\n{good}\nnonsense|x\n")
    config = tmp_path / "goodput.toml"
    config.write_text('[clusters.c]\nzone = "UTC"\n[[sources]]\npath = "sacct.txt"\n')
    ran = goodput("run", "--config", config)
    assert ran.code == 0
    assert "1 line rejected" in ran.err
    ran = goodput("check", "--config", config)
    assert ran.code == 1
    assert "1 line rejected" in ran.err
    rejects = json.loads(
        goodput("sql", "select line, text from ops.rejects", "--format", "json", "--config", config).out
    )
    assert rejects == [{"line": 3, "text": "nonsense|x"}]


def test_a_missing_zone_fails_that_export_and_names_the_key(goodput: Goodput, tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text("JobID|Cluster|State|Start\n1|c|COMPLETED|2026-05-04T01:00:00\n")
    config = tmp_path / "goodput.toml"
    config.write_text('[[sources]]\npath = "sacct.txt"\n')
    ran = goodput("run", "--config", config)
    assert ran.code == 1
    assert "`zone`" in ran.err


def test_a_source_that_matches_nothing_fails_after_the_others_were_published(goodput: Goodput, tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(
        "JobID|Cluster|State|Submit|Start|End|NodeList\n"
        "1|c|FAILED|2026-05-04T01:00:00|2026-05-04T01:00:00|2026-05-04T02:00:00|n1\n"
    )
    config = tmp_path / "goodput.toml"
    config.write_text(
        '[clusters.c]\nzone = "UTC"\n[[sources]]\npath = "sacct-*.txt"\n[[sources]]\npath = "sacct.txt"\n'
    )
    ran = goodput("run", "--config", config)
    assert ran.code == 1
    assert "error: sacct-*.txt: goodput.toml line 3: no file matches this path; did you mean sacct.txt?" in ran.err
    found = json.loads(goodput("sql", "from marts.attempts", "--format", "json", "--config", config).out)
    assert [row["job_id"] for row in found] == ["1"]
    ran = goodput("check", "--config", config)
    assert ran.code == 1
    assert "sacct-*.txt: goodput.toml line 3: no file matches" in ran.err


def config_of(folder: Path) -> list[str]:
    return ["--config", str(folder / "goodput.toml")]


def test_explain_reads_like_a_report_with_the_lines_that_prove_it(goodput: Goodput, demo_folder: Path) -> None:
    ran = goodput("explain", "--job", "14", *config_of(demo_folder))
    assert ran.code == 0
    assert "alice/llama-pretrain on llm was interrupted at 2026-11-30 02:56:44 UTC" in ran.out
    assert "64 GPUs on 8 nodes" in ran.out
    # The record stands in the final export only: line 17 of `sacct -X` tells it.
    assert re.search(r"export_final/sacct_alloc\.txt:17$", ran.out, re.MULTILINE)
    assert "(assumed)" in ran.out
    assert "a training log" in ran.out


def test_explain_takes_a_prefix_and_refuses_one_that_is_not_unique(goodput: Goodput, demo_folder: Path) -> None:
    ids = [
        row["interruption_id"] for row in json.loads(goodput("interruptions", "--json", *config_of(demo_folder)).out)
    ]
    assert len(ids) == 11
    found = json.loads(goodput("explain", ids[3][:10], "--json", *config_of(demo_folder)).out)
    assert found["interruption_id"] == ids[3]
    assert all(e["places"] for e in found["evidence"] if e["record_id"])
    assert goodput("explain", "", *config_of(demo_folder)).code == 2
    assert goodput("explain", "zzz", *config_of(demo_folder)).code == 1


def test_interruptions_can_be_narrowed(goodput: Goodput, demo_folder: Path) -> None:
    def count(*arguments: str) -> int:
        return len(json.loads(goodput("interruptions", "--json", *arguments, *config_of(demo_folder)).out))

    assert count("--run", "alice/llama-pretrain") == 11
    assert count("--run", "other") == 0
    assert count("--since", "9999w") == 11
    assert goodput("interruptions", "--since", "yesterday", *config_of(demo_folder)).code == 2


def test_tables_elsewhere_are_plain_lines_and_never_cut(goodput: Goodput, demo_folder: Path) -> None:
    ran = goodput("sql", "select repeat('x', 500) as long, 1 as n", *config_of(demo_folder))
    assert ran.out == f"{'long':<500}  n\n{'x' * 500}  1\n"


@pytest.mark.parametrize(("form", "start"), [("csv", "a"), ("json", "["), ("table", "a")])
def test_sql_prints_in_the_form_asked_for(goodput: Goodput, demo_folder: Path, form: str, start: str) -> None:
    ran = goodput("sql", "select 1 as a", "--format", form, *config_of(demo_folder))
    assert (ran.code, ran.out[:1]) == (0, start)


def test_sql_reads_a_file_or_standard_input_and_cannot_write(
    demo_folder: Path, goodput: Goodput, tmp_path: Path
) -> None:
    file = tmp_path / "q.sql"
    file.write_text("select 42 as answer")
    assert "42" in goodput("sql", "--file", file, *config_of(demo_folder)).out
    ran = shell("-m", "flows.cli", "sql", "--format", "csv", *config_of(demo_folder), input="select 7 as x")
    assert (ran.returncode, ran.stdout.split()) == (0, ["x", "7"])
    for statement in (
        "drop table marts.runs",
        f"copy marts.runs to '{tmp_path}/out.csv'",
        "select * from '/etc/passwd'",
    ):
        assert goodput("sql", statement, *config_of(demo_folder)).code == 1
    assert not (tmp_path / "out.csv").exists()


def test_a_reader_that_leaves_early_is_no_error_message(demo_folder: Path) -> None:
    query = "select repeat('x', 1000) as x from range(100000)"
    command = [sys.executable, "-m", "flows.cli", "sql", query, "--format", "csv", *config_of(demo_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        error = process.stderr.read().decode()
    assert "Traceback" not in error
    assert "BrokenPipe" not in error


def on_terminal(*arguments: str, **environment: str) -> str:
    """Return what a command writes to a terminal of 120 columns."""
    leader, follower = pty.openpty()
    kept = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}
    env = {**kept, "TERM": "xterm", "COLUMNS": "120", **environment}
    command = [sys.executable, "-m", "flows.cli", *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, cwd=ROOT, env=env):
        os.close(follower)
        written = b""
        try:
            while block := os.read(leader, 1 << 16):
                written += block
        except OSError:  # how Linux says that the last writer closed the terminal
            pass
    os.close(leader)
    return written.decode()


def test_no_color_is_respected() -> None:
    assert re.search(r"\x1b\[[\d;]*31m", on_terminal("explan"))
    assert "\x1b[" not in on_terminal("explan", NO_COLOR="1").replace("\x1b[1m", "").replace("\x1b[0m", "")


def test_on_a_terminal_names_are_escaped_too(hostile: Path) -> None:
    for arguments in (
        ["interruptions"],
        ["explain", "--last"],
        ["sql", "select job_name from marts.attempts"],
        ["run"],
    ):
        for form in ([], ["--format", "csv"], ["--format", "json"]) if arguments[0] == "sql" else ([],):
            written = on_terminal(*arguments, *form, "--config", str(hostile), NO_COLOR="1", COLUMNS="200")
            assert "[red]" in written  # a long name may be cut, at its end
            own = re.sub(r"\x1b\[(0|1|K|0m|1m)|[\r\n]", "", re.sub(r"\x1b\[[01]m", "", written))
            assert_harmless(own)


def test_node_shows_its_history(goodput: Goodput, demo_folder: Path) -> None:
    found = json.loads(goodput("node", "gpu008", "--json", *config_of(demo_folder)).out)
    assert {row["state"] for row in found["states"]} == {"DOWN", "DRAIN"}
    assert {row["job_id"] for row in found["attempts"]} >= {"1", "14", "43"}
    assert goodput("node", "gpu999", *config_of(demo_folder)).code == 1


def test_check_digest_prints_a_line_per_mart_and_a_total(goodput: Goodput, demo_folder: Path) -> None:
    ran = goodput("check", "--digest", *config_of(demo_folder))
    lines = ran.out.splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  \w+", line) for line in lines)
    assert {line.split()[1] for line in lines} >= {"attempts", "interruptions", "ledger", "total"}
    assert goodput("check", *config_of(demo_folder)).code == 0


def test_status_and_sources_tell_formats(goodput: Goodput, demo_folder: Path) -> None:
    found = json.loads(goodput("status", "--json", *config_of(demo_folder)).out)
    assert {row["format"] for row in found["formats"]} >= {"slurm_sacct", "kernel_log"}
    assert all(row["lines"] == row["used"] + row["ignored"] + row["rejected"] for row in found["formats"])
    found = json.loads(goodput("sources", "--json", *config_of(demo_folder)).out)
    assert {f["format"] for s in found["sources"] for f in s["files"]} >= {"slurm_sacct", "kernel_log"}


def test_an_annotation_wins_after_the_next_run(goodput: Goodput, tmp_path: Path) -> None:
    from flows import demo

    config = ["--config", str(demo.prepare(tmp_path / "d"))]
    assert goodput("run", *config).code == 0
    before = json.loads(goodput("explain", "--job", "14", "--json", *config).out)[0]
    ran = goodput("annotate", before["interruption_id"][:10], "--cause", "gpu_hmb", "--why", "x", *config)
    assert ran.code == 2
    assert "did you mean `gpu_hbm`?" in ran.err
    why = "vendor found a bad stack; \u202e\x1b[31m"
    ran = goodput(
        "annotate",
        before["interruption_id"][:10],
        "--cause",
        "gpu_hbm",
        "--why",
        why,
        "--author",
        "bo",
        "--run",
        *config,
    )
    assert ran.code == 0
    after = json.loads(goodput("explain", "--job", "14", "--json", *config).out)[0]
    assert (before["cause"] != "gpu_hbm", after["cause"]) == (True, "gpu_hbm")
    assert any("vendor found a bad stack" in e["text"] for e in after["evidence"])
    assert_harmless(goodput("explain", "--job", "14", *config).out)


def test_builds_can_be_rolled_back(goodput: Goodput, tmp_path: Path) -> None:
    from flows import demo

    config = ["--config", str(demo.prepare(tmp_path / "d"))]
    assert goodput("run", *config).code == 0
    assert goodput("rollback", *config).code == 1
    assert goodput("build", "--force", *config).code == 0
    first, second = json.loads(goodput("builds", "--json", *config).out)
    assert (first["published"], second["published"]) == (False, True)
    assert goodput("rollback", *config).code == 0
    first, second = json.loads(goodput("builds", "--json", *config).out)
    assert (first["published"], second["published"]) == (True, False)
    assert goodput("rollback", "nonsense", *config).code == 1
