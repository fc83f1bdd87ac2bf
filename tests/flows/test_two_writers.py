"""Two writers of one data folder, both the real command line: one works, the other waits and says for whom.

The one that works is stopped (SIGSTOP) while it holds the right to write, so that the other one really has to wait.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from flows import demo, pipeline
from flows.cli import facts
from flows.config import load
from tests.flows.command_help import Command, stopped, until
from tests.flows.conftest import Goodput
from warehouse.digest import digest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    demo.prepare(tmp_path / "site")
    return tmp_path / "site"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The marts as one undisturbed run makes them."""
    config = load(demo.prepare(tmp_path_factory.mktemp("calm") / "site"))
    pipeline.run(config)
    return digest(config.data / "warehouse.duckdb")


def test_the_second_waits_names_the_first_and_goes_on_by_itself_when_that_is_killed(
    home: Path, expected: dict[str, str]
) -> None:
    with stopped(home, "ingest") as first:
        second = Command(home, "run")
        try:
            message = f"waiting for process {first.process.pid} on "
            until(lambda: message in second.output)
            assert "(`ingest`, since 20" in second.output
            assert second.process.poll() is None, "it says so while it waits"
            first.process.kill()
            assert second.ended() == 0, second.output
        finally:
            second.process.kill()
    assert second.output.count("waiting for") == 1, "once for each holder"
    assert digest(home / "data/warehouse.duckdb") == expected


@pytest.mark.slow
def test_both_complete_when_the_first_goes_on(home: Path, expected: dict[str, str]) -> None:
    with stopped(home, "run") as first:
        second = Command(home, "run")
        try:
            until(lambda: f"waiting for process {first.process.pid} on " in second.output)
            first.process.send_signal(signal.SIGCONT)
            assert first.ended() == 0, first.output
            assert second.ended() == 0, second.output
        finally:
            second.process.kill()
    assert digest(home / "data/warehouse.duckdb") == expected
    assert "Traceback" not in first.output + second.output


@pytest.mark.parametrize("command", ["ingest", "build"])
def test_a_wait_that_is_too_long_ends_with_an_error_that_says_what_to_do(
    home: Path, goodput: Goodput, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(facts, "WAIT_SECONDS", 1.2)
    with stopped(home, "ingest") as first:
        ran = goodput(command, "--config", home / "goodput.toml")
    assert ran.code == 1
    waited, error = ran.err.splitlines()[-2:]
    assert waited.startswith(f"waiting for process {first.process.pid} on ")
    assert error.startswith(f"error: process {first.process.pid} on ")
    assert "wait until it ends, or stop it, and run this again" in error
    assert not (home / "data/warehouse.duckdb").exists()
