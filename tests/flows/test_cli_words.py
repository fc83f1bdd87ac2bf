"""How numbers, confidences and commands are said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli import landed, serve
from flows.cli.words import command, confidence, config_given, counted, is_class_weak, is_weak, pasteable, program, sure
from tests.flows.conftest import Goodput

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_counted_agrees_with_its_number() -> None:
    assert [counted(n, "line") for n in (0, 1, 2, 1200)] == ["0 lines", "1 line", "2 lines", "1,200 lines"]
    assert counted(2, "analysis", "analyses") == "2 analyses"


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (1.0, ">99%"),
        (0.995, ">99%"),
        (0.994, "99%"),
        (0.5, "50%"),
        (0.006, "1%"),
        (0.005, "<1%"),
        (0.0, "<1%"),
        (None, "-"),
    ],
)
def test_nothing_is_certain(share: float | None, expected: str) -> None:
    assert confidence(share) == expected


def test_a_weak_verdict_is_marked_and_an_unknown_one_is_no_finding() -> None:
    assert sure({"cause": "nic", "confidence": 0.89}) == "89%"
    assert sure({"cause": "nic", "confidence": 0.29}) == "29%?"
    assert sure({"cause": "nic", "confidence": 0.5}) == "50%"
    assert sure({"cause": "nic", "confidence": None}) == "-"
    assert sure({"cause": "unknown", "confidence": 0.68}) == "-"
    assert not is_weak({"cause": "unknown", "confidence": 0.3})


@pytest.mark.parametrize(("share", "expected"), [(0.496, "50%"), (0.494, "49%?")])
def test_what_is_marked_agrees_with_what_is_shown(share: float, expected: str) -> None:
    assert sure({"cause": "nic", "confidence": share}) == expected


def test_a_class_may_be_sure_where_the_cause_is_not() -> None:
    row = {"cause": "operator_change", "confidence": 0.49, "class_confidence": 0.99}
    assert (is_weak(row), is_class_weak(row)) == (True, False)
    assert is_class_weak({**row, "class_confidence": 0.45})
    assert not is_class_weak({"cause": "nic", "confidence": 0.3})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program in `bin`, which is not on PATH."""
    script = tmp_path / "bin" / "goodput"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path


def called(monkeypatch: pytest.MonkeyPatch, name: str) -> str:
    monkeypatch.setattr(sys, "argv", [name])
    return program()


def test_the_program_is_named_as_a_shell_finds_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, "bin/goodput") == "bin/goodput"
    assert called(monkeypatch, str(folder / "bin" / "goodput")) == "bin/goodput"
    assert called(monkeypatch, "./goodput") == "./goodput"
    assert called(monkeypatch, "/else where/goodput") == "'/else where/goodput'"
    monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin")
    assert called(monkeypatch, str(folder / "bin" / "goodput")) == "goodput"
    assert called(monkeypatch, "/opt/other/goodput") == "/opt/other/goodput"
    assert called(monkeypatch, "/lib/flows/cli/__main__.py") == "goodput"


def test_commands_in_hints_work_when_pasted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(folder / "bin" / "goodput")])
    assert pasteable("run `goodput run` first, not goodput") == "run `bin/goodput run` first, not goodput"
    given = config_given.set(Path("a b/goodput.toml"))
    try:
        assert command("run") == "bin/goodput run --config 'a b/goodput.toml'"
        assert pasteable('`goodput sql "from ops.rejects"`').endswith(
            "\"from ops.rejects\" --config 'a b/goodput.toml'`"
        )
        for alone in ("demo DIR", "--help", "COMMAND --help", "check --config x.toml", "run --help"):
            assert command(alone) == f"bin/goodput {alone}"
    finally:
        config_given.reset(given)


def test_unknown_formats_are_named_in_few_words() -> None:
    assert (
        landed.unknown_format("it begins with 'call vendor'")
        == "no parser knows this format; it begins with 'call vendor'"
    )
    long = landed.unknown_format(f"it begins with '{'x' * 400}'")
    assert long.endswith("xxx...'")
    assert len(long) < 120
    assert (
        landed.unknown_format("it begins with '\\x02\\x9f\\x8d\ufffd\ufffd'")
        == "no parser knows this format; it is binary"
    )
    assert landed.unknown_format("it begins with '\\x1b[31mred\\x1b[0m'").endswith("begins with '\\x1b[31mred\\x1b[0m'")
    assert landed.unknown_format(None) == "no parser knows this format; it is empty"
    failed = {"status": "failed", "message": "the file shrank"}
    assert landed.problem(failed) == "the file shrank"


def test_output_in_a_file_stands_in_the_order_in_which_it_was_said(tmp_path: Path) -> None:
    code = (
        "import sys; from flows import cli\n"
        "def say(*_, **__):\n"
        "    for n in range(6): print(n, file=(sys.stdout, sys.stderr)[n % 2])\n"
        "cli.make_app = lambda _: say; cli.main()"
    )
    env = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    with (tmp_path / "log").open("wb") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, stderr=log, env=env, cwd=ROOT, check=True)
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("option", "value", "limits"),
    [("--limit", "0", "1 to 100"), ("--port", "99999", "1 to 65535"), ("--port", "0", "1 to 65535")],
)
def test_serve_refuses_numbers_that_cannot_be_used(goodput: Goodput, option: str, value: str, limits: str) -> None:
    ran = goodput("serve", option, value)
    assert (ran.code, ran.err) == (2, f"error: {option} is {value}; write {limits}\n")


def test_serve_names_the_options_to_type_again() -> None:
    assert serve._options(4200, 5, "goodput") == ""
    assert serve._options(4311, 5, "two words") == " --port 4311 --name 'two words'"
