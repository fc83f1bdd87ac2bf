"""Commands of the real command line in processes of their own, which may be stopped while they write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flows import lease

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60.0


class Command:
    """A command of the real command line in a process of its own."""

    def __init__(self, home: Path, *words: str) -> None:
        self._log = home / f"{'-'.join(words)}-{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", "flows.cli", *words, "--config", str(home / "goodput.toml")]
        environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def output(self) -> str:
        return self._log.read_text()

    def ended(self) -> int:
        return self.process.wait(timeout=PATIENCE_SECONDS)


def until(what: Callable[[], bool]) -> None:
    """Wait until something holds; it is an error if it does not come."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


@contextmanager
def stopped(home: Path, *words: str) -> Iterator[Command]:
    """Start a command and stop it once it holds the right to write."""
    command = Command(home, *words)
    try:
        until(lambda: (held := lease.holder(home / "data")) is not None and held.pid == command.process.pid)
        command.process.send_signal(signal.SIGSTOP)
        yield command
    finally:
        command.process.kill()
        command.process.wait()
