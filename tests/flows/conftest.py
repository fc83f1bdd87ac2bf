"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from flows import demo
from flows.cli import execute


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Goodput = Callable[..., Ran]


@pytest.fixture
def goodput(capsys: pytest.CaptureFixture[str]) -> Goodput:
    """Run a command in this process."""

    def call(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        code = execute([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, ingested and built once; tests may read it and must not change it."""
    folder = tmp_path_factory.mktemp("demo") / "d"
    config = demo.prepare(folder)
    assert execute(["run", "--config", str(config)]) == 0
    return folder
