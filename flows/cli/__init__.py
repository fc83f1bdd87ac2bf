"""The command line. Every command is one module here, imported when it is asked for; none imports anything heavy before it is called."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path

from cyclopts import App, CycloptsError, Parameter

from flows.cli import ending
from flows.cli.terminal import CommandError, fail
from flows.cli.words import config_given

COMMANDS: dict[str, tuple[str, ...]] = {
    "demo": (
        "goodput demo",
        "goodput demo ./small --nodes 256 --days 14 --seed 7",
        "goodput demo ./real --example slurm",
    ),
    "init": ("goodput init /var/exports",),
    "sources": ("goodput sources", "goodput sources --json"),
    "run": ("goodput run", "goodput run --config /etc/goodput.toml"),
    "ingest": ("goodput ingest",),
    "build": ("goodput build",),
    "serve": ("goodput serve", "goodput serve --config /etc/goodput.toml --port 4300"),
    "backfill": (
        "goodput backfill --start 2026-05-01 --end 2026-05-31 --dry-run",
        "goodput backfill --start 30d --source sacct --reprocess failed",
    ),
    "status": ("goodput status", "goodput status --coverage --since 30d"),
    "check": ("goodput check", "goodput check --digest"),
    "interruptions": ("goodput interruptions --since 24h", "goodput interruptions --run 'llama-*' --json"),
    "report": ("goodput report", "goodput report --since 30d --json"),
    "explain": ("goodput explain --last", "goodput explain 3f9c2a", "goodput explain --job 71500"),
    "node": ("goodput node gpu008",),
    "annotate": (
        'goodput annotate 3f9c2a --cause gpu_hbm --why "vendor found a bad HBM stack"',
        'goodput annotate 3f9c2a --cause nic --node gpu008 --why "replaced mlx5_3" --run',
    ),
    "sql": (
        'goodput sql "select cause, count(*) from marts.interruptions group by all"',
        "goodput sql --file lemons.sql --format csv > lemons.csv",
        "goodput sql",
    ),
    "evaluate": ("goodput evaluate truth.jsonl", "goodput evaluate truth.jsonl --since 2026-05-01 --until 2026-06-01"),
    "builds": ("goodput builds",),
    "diff": ("goodput diff", "goodput diff 20260504T130000 --all"),
    "rollback": ("goodput rollback",),
    "maintain": ("goodput maintain --dry-run", "goodput maintain"),
    "doctor": ("goodput doctor", "goodput doctor --config /etc/goodput.toml --json"),
}
"""Commands in the order of the help, with examples."""


ENDED_IN_ORDER = frozenset({"annotate", "backfill", "build", "demo", "ingest", "maintain", "rollback", "run"})
"""Commands that write, and end on SIGTERM as on Ctrl-C. `serve` has its own way; those that read may just die."""
_AGO = re.compile(r"-\d+[smhdw]")
_INTERRUPTED = "Query interrupted"  # what DuckDB makes of Ctrl-C
_READER_LEFT = 141
"""What a shell calls a program that a closed pipe ended: 128 + SIGPIPE."""


def version() -> str:
    """Return the version of the installed package, or of the checkout it runs from."""
    try:
        return metadata.version("goodput-warehouse")
    except metadata.PackageNotFoundError:
        import tomllib

        project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return f"{project['version']} (checkout)"


def make_app(asked: str | None = None) -> App:
    """Return the command line.

    Args:
        asked: the command that will be called: only its module is imported. None, or no command = all of them are, as the help
            that lists them says what each does.
    """
    app = App(
        name="goodput",
        help="Why did the training run stop, and what did it cost?",
        help_epilogue="Start with `goodput demo`, then `goodput init PATHS...` on your own exports.",
        version=version,
        help_format="plaintext",
        default_parameter=Parameter(negative=()),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for position, (name, examples) in enumerate(COMMANDS.items()):
        epilogue = "\n".join(["Example:" if len(examples) == 1 else "Examples:", *(f"    {e}" for e in examples)])
        where = f"flows.cli.{name}:{name}"
        app.command(where, name=name, help_epilogue=epilogue, help_format="plaintext", sort_key=position)
        if asked not in COMMANDS:
            app[name]  # imports it
    return app


def execute(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 = fine, 1 = failed, 2 = wrong use, 128 + n = ended by signal n."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    with ending.in_order() if next(iter(given), None) in ENDED_IN_ORDER else nullcontext(ending.Asked()) as asked:
        return _execute(given, asked)


def _execute(given: list[str], asked: ending.Asked) -> int:
    _prepare_streams()
    try:
        code = make_app(next(iter(given), None))(given, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as error:
        signed = [a for a in given if _AGO.fullmatch(a)]
        hint = f"\n{signed[0]}: write a time ago without the sign, {signed[0][1:]}." if signed else ""
        fail(f"{error}{hint}\nSee `goodput --help`, or `goodput COMMAND --help` for an example.")
        return 2
    except CommandError as error:
        if asked.number is not None:  # what failed is what the signal came upon
            return _stopped(asked)
        fail(str(error))
        return error.code
    except BrokenPipeError:  # the reader left (`| head`)
        _silence()
        return _READER_LEFT
    except OSError as error:  # commands turn those they expect into CommandError: what is left is mostly the output
        _silence()
        what = f"{error.filename}: {error.strerror}; may this user read and write it?"
        fail(what if error.filename else f"cannot write the output: {error.strerror or error}; is the disk full?")
        return 1
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != _INTERRUPTED:
            raise
        return _stopped(asked)
    finally:
        config_given.set(None)
    return code if isinstance(code, int) else 0


def _prepare_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if hasattr(sys.stdout, "reconfigure") and not sys.stdout.isatty():
        # In a file or journal, lines stand when and where they were said, between those of standard error. What is printed
        # in bulk (`goodput sql --format csv`) goes to the buffer below and is as fast as before.
        sys.stdout.reconfigure(line_buffering=True)


def _stopped(asked: ending.Asked) -> int:
    fail("stopped; nothing published is touched, run the command again to go on")
    return asked.code


def _silence() -> None:
    """Point standard output elsewhere, so that the interpreter's last flush of what could not be written is silent."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # there is no such descriptor, as in tests
        return


def main() -> None:
    """Entry point of the `goodput` command."""
    sys.exit(execute())
