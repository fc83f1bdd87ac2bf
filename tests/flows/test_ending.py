"""Signals that end a command: which exit code, and that others' handling of signals is left as it was."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from flows import pipeline
from flows.cli import COMMANDS, ENDED_IN_ORDER, ending
from flows.pipeline import BuildError
from tests.flows.conftest import Goodput
from tests.flows.ingest_help import TOML


def test_a_signal_is_told_even_where_a_library_made_an_error_of_it(
    goodput: Goodput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB makes an error of its own of what interrupts a callback; that the build failed is then not the news."""
    (tmp_path / "goodput.toml").write_text(TOML)

    def build(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 1)
        except KeyboardInterrupt:
            raise BuildError("it broke") from None

    monkeypatch.setattr(pipeline, "build", build)
    ran = goodput("build", "--config", tmp_path / "goodput.toml")
    assert ran.code == 143
    assert "stopped; nothing published is touched" in ran.err
    assert "it broke" not in ran.err
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "as before"


def test_a_signal_that_is_ignored_or_handled_stays_so() -> None:
    """`nohup` lets a command outlive its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending.in_order():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_serve_ends_in_its_own_way() -> None:
    assert set(COMMANDS) > ENDED_IN_ORDER
    assert "serve" not in ENDED_IN_ORDER
