"""A process that has imported everything and forks a child for each command line, so that dying costs no start of Python.

Reads a job a line from standard input and answers each with a line, both JSON; `tests.flows.kill_help` talks to it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from flows import cli
from tests.flows.kill_steps import Steps

WARM = (
    "flows.pipeline",
    "warehouse.build",
    "warehouse.query",
    *(f"flows.cli.{c}" for c in cli.COMMANDS if c != "serve"),
)
"""What commands import when they are called."""


def main() -> None:
    """Answer until standard input ends."""
    for name in WARM:
        importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(json.loads(line))) + "\n")
        sys.stdout.flush()


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job's command. It dies at the step, or, if `seconds` are given, so long after the step (None = its begin)."""
    began = time.monotonic()
    met, meet = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(met)
        _child(job, meet)
    os.close(meet)
    if job["seconds"] is not None and os.read(met, 1):
        time.sleep(job["seconds"])
        os.kill(pid, signal.SIGKILL)  # one that is done already is a zombie, to which nothing happens
    os.close(met)
    _, status = os.waitpid(pid, 0)
    return {"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - began}


def _child(job: dict[str, Any], meet: int) -> None:
    code = 99
    try:
        output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

        def act() -> None:
            if job["seconds"] is None:
                os.kill(os.getpid(), signal.SIGKILL)
            os.write(meet, b".")

        name, count = job["step"] or (None, 0)
        Steps(Path(job["data"]), Path(job["trace"]), name, count, act).watch()
        if job["seconds"] is not None and name is None:
            act()
        code = cli.execute(job["command"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
