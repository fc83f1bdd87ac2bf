"""A program on a terminal of its own, driven as a person would: type, and wait for what it says."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 30.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Terminal:
    """Runs the command line of this checkout on a pseudo-terminal."""

    def __init__(self, *arguments: str | Path, state: Path, columns: int = 120, **environment: str) -> None:
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        kept = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}}
        own = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *map(str, arguments)],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**kept, **own, **environment},
            cwd=state,
            preexec_fn=_own_terminal,
        )
        os.close(follower)
        self.raw = ""
        self._read_until = 0

    def type(self, text: str | bytes, wanted: str) -> str:
        """Type, wait until what is written from then on matches, and return that."""
        os.write(self.leader, text if isinstance(text, bytes) else text.encode())
        return self.wait(wanted)

    def ask(self, line: str, wanted: str = r"\d\.\d\d s") -> str:
        """Type a line, wait for the answer and the next prompt; return what came between."""
        return self.type(f"{line}\r", rf"(?s){wanted}.*goodput>")

    def settle(self, text: str, quiet_seconds: float = 1.5) -> None:
        """Type, and wait until nothing more is drawn: what a menu puts in is written in pieces that no pattern matches."""
        os.write(self.leader, text.encode())
        while select.select([self.leader], [], [], quiet_seconds)[0]:
            self.raw += os.read(self.leader, 1 << 16).decode("utf-8", "replace")

    def wait(self, wanted: str) -> str:
        """Wait until what was not seen yet matches a pattern; return all of it, without escape sequences."""
        until = time.monotonic() + WAIT_SECONDS
        while not re.search(wanted, text := plain(self.raw[self._read_until :])):
            assert time.monotonic() < until, f"no {wanted!r} in {text!r}"
            ready, _, _ = select.select([self.leader], [], [], 0.1)
            if ready:
                try:
                    self.raw += os.read(self.leader, 1 << 16).decode("utf-8", "replace")
                except OSError:  # how Linux says that the program left
                    assert re.search(wanted, plain(self.raw[self._read_until :])), (
                        f"it left without {wanted!r}: {text!r}"
                    )
        self._read_until = len(self.raw)
        return text

    def leave(self) -> int:
        """Press Ctrl-D; return the program's exit code."""
        os.write(self.leader, b"\x04")
        return self.process.wait(WAIT_SECONDS)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self.leader)


def plain(text: str) -> str:
    return _ESCAPES.sub("", text).replace("\r", "")


def _own_terminal() -> None:
    """Make the pseudo-terminal the one whose Ctrl-C reaches the program."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
