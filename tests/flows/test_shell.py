"""The shell of `goodput sql`, driven on a terminal: statements, words, completion, history, Ctrl-C, and builds meanwhile."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.flows.terminal_help import ROOT, Terminal

pytestmark = pytest.mark.slow

ENDLESS = "select count(*) from range(100000000000) as a, range(1000) as b;"


def shell(folder: Path, state: Path, *arguments: str | Path, **environment: str) -> Terminal:
    state.mkdir(exist_ok=True)
    opened = Terminal("sql", *arguments, "--config", folder / "goodput.toml", state=state, **environment)
    opened.wait("goodput>")
    return opened


def test_statements_over_lines_and_the_shells_own_words(demo_folder: Path, tmp_path: Path) -> None:
    with shell(demo_folder, tmp_path / "home") as at:
        at.type("select count(*) as stops\r", r"\.\.>")
        answer = at.ask("from marts.interruptions where label <> ';';")
        assert re.search(r"stops\s*\n\s*11\b", answer)
        assert "1 row; " in answer
        two = at.ask("select 1 as first_one; select 2 as second_one;", r"second_one(.|\n)*1 row; \d")
        assert "first_one" in two
        assert "tells what its columns mean" in at.ask("tables", "tells what")
        described = at.ask("describe runs;", "assumed_gpu_seconds")
        assert re.search(r"marts\.runs: One row per tracked run", described)
        assert re.search(r"mtti_hours_lower +double +\S+", described)  # each column with its meaning
        assert "poisson_interval(events, exposure)" in at.ask("macros", r"wilson_upper\(n, total\)(.|\n)*select")
        assert "Which nodes should I take out?" in at.ask(".questions", "Does the step time swing")
        asked = at.ask("questions 1")
        assert "'llm'" in asked  # the cluster that is there, in the place of the documents'
        assert "Faulty GPU" in asked
        assert at.leave() == 0
        assert "Traceback" not in at.raw


def test_mistakes_are_told_in_short_and_the_shell_goes_on(demo_folder: Path, tmp_path: Path) -> None:
    with shell(demo_folder, tmp_path / "home") as at:
        assert "Did you mean marts.runs?" in at.ask("from runs;", "error: ")
        assert "Did you mean marts.interruptions?" in at.ask("from marts.interuptions;", "error: ")
        assert "Did you mean mtti" in at.ask("select mttii(1, 2);", "error: ")
        assert "`describe TABLE`" in at.ask("select label_ from marts.interruptions;", "error: ")
        assert "--allow-files FOLDER" in at.ask("from read_csv('/etc/passwd');", "error: ")
        assert "no table runz; did you mean marts.runs or settings.runs?" in at.ask("describe runz", "no table")
        assert "describe what?" in at.ask("describe", "error: ")
        assert "no such word: descibe; `describe`?" in at.ask(".descibe runs", "error: ")
        assert re.search(r"five\s*\n\s*5\b", at.ask("select 5 as five;"))
        assert "Traceback" not in at.raw


def test_a_byte_that_is_no_text_is_told_and_the_shell_goes_on(demo_folder: Path, tmp_path: Path) -> None:
    """A terminal or a paste in Latin-1: what was typed stays, to be mended or dropped with Ctrl-C."""
    with shell(demo_folder, tmp_path / "home") as at:
        at.type(b"select 'caf\xe9' as place;\r", r"bytes that are no UTF-8 are shown as \N{REPLACEMENT CHARACTER}")
        at.type("\x03", "goodput>")
        assert re.search(r"five\s*\n\s*5\b", at.ask("select 5 as five;"))
        assert at.leave() == 0
        assert "Traceback" not in at.raw
        assert "Unhandled" not in at.raw


def test_tab_completes_tables_columns_and_values(demo_folder: Path, tmp_path: Path) -> None:
    with shell(demo_folder, tmp_path / "home") as at:
        for part in ("from interruptions\t", " select culprit_n\t", " where cause = 'network_\t"):
            at.settle(part)
        assert re.search(r"culprit_node\s*\n\s*gpu\d+", at.ask(" limit 1;"))  # what was typed alone would be no query


def test_history_is_kept_for_its_user_only_and_outside_the_data(demo_folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with shell(demo_folder, home) as at:
        at.ask("select 4711 as kept;")
        assert at.leave() == 0
    (file,) = [p for p in home.rglob("*") if p.is_file()]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "select 4711 as kept;" in file.read_text()
    with shell(demo_folder, home) as at:
        at.type("\x1b[A", "select 4711 as kept;")
        assert re.search(r"kept\s*\n\s*4711\b", at.ask(""))
    with shell(demo_folder, tmp_path / "other", XDG_STATE_HOME=str(demo_folder / "data")) as at:
        assert "the history of this session is not kept" in at.raw
    assert not (demo_folder / "data" / "goodput").exists()


def test_ctrl_c_stops_a_query_and_not_the_shell(demo_folder: Path, tmp_path: Path) -> None:
    with shell(demo_folder, tmp_path / "home") as at:
        at.type(f"{ENDLESS}\r", "as b;")
        time.sleep(1)
        began = time.monotonic()
        at.type("\x03", r"interrupted(.|\n)*goodput>")
        assert time.monotonic() - began < 10
        assert re.search(r"after_it\s*\n\s*6\b", at.ask("select 6 as after_it;"))
        at.type("select typed and dropped\x03", "goodput>")
        assert re.search(r"\b7\b", at.ask("select 7 as seven;"))
        assert at.leave() == 0
        assert "Traceback" not in at.raw


def test_an_answer_is_written_whole_to_a_file(demo_folder: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "answer.csv"
    with shell(demo_folder, tmp_path / "home") as at:
        at.ask(f"output {wanted}", "the next answer goes to")
        at.ask("select range as n from range(1234);", "written to")
        assert wanted.read_text().split() == ["n", *map(str, range(1234))]
        assert "overwrite" in at.ask(f"output {wanted}", "error: ")
        at.ask(f"output {wanted} overwrite", "the next answer goes to")
        at.ask("select error('no') as n;", "error: ")
        assert wanted.read_text().startswith("n\n0\n")  # a failed query leaves what was there
        at.ask("select 1 as n;", "written to")
        assert wanted.read_text() == "n\n1\n"
        assert "warehouse's folder" in at.ask(f"output {demo_folder}/data/a.csv", "error: ")
        assert "first 50 shown" in at.ask("from range(1234);")
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["answer.csv"]


def test_hostile_texts_reach_the_terminal_as_text(demo_folder: Path, tmp_path: Path) -> None:
    with shell(demo_folder, tmp_path / "home") as at:
        for form in ("table", "record", "csv", "json"):
            at.ask(f"format {form}", "format")
            answer = at.ask("select chr(27) || ']0;owned' || chr(7) || chr(8238) as x;")
            assert "owned" in answer
            assert "\x1b]0;" not in at.raw
            assert "\x07" not in at.raw
            assert "\u202e" not in at.raw
        names = at.ask("format table", "format") + at.ask(
            "pivot (select chr(27) || '[2J' as k, 1 as v) on k using sum(v);"
        )
        assert r"\x1b[2J" in names  # a column may be named by what an export holds


@pytest.fixture
def own_folder(demo_folder: Path, tmp_path: Path) -> Path:
    """The demo, to be built anew."""
    folder = tmp_path / "own"
    shutil.copytree(demo_folder, folder, symlinks=True)
    return folder


def test_two_shells_stay_at_their_build_while_another_is_published(own_folder: Path, tmp_path: Path) -> None:
    which = "select build_id from ops.builds;"
    with shell(own_folder, tmp_path / "a") as one, shell(own_folder, tmp_path / "b") as two:
        (old,) = re.findall(r"\d{8}T\d+Z", one.ask(which).rpartition("build_id")[2])
        command = [sys.executable, "-m", "flows.cli", "build", "--force", "--config", str(own_folder / "goodput.toml")]
        building = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        asked = 0
        while building.poll() is None:  # readers are never in the way, nor held up
            for at in (one, two):
                assert old in at.ask(which)
                asked += 1
        output = building.communicate()
        assert building.returncode == 0, output
        assert asked >= 2
        (new,) = [p.stem for p in (own_folder / "data" / "builds").glob("*.duckdb") if p.stem != old]
        assert old in one.ask(which)
        told = f"build {new} was published"
        one.ask("select 1 as a;")
        assert one.raw.count(told) == 1  # said once, not at every prompt
        assert f"now at build {new}" in one.ask("refresh", "now at build")
        assert new in one.ask(which)
        assert old in two.ask(which)
        assert (one.leave(), two.leave()) == (0, 0)
