"""Put what the demo really prints into README.md: `make readme`. With `--check`, fail where it differs.

It is what a terminal of 100 columns shows, without the build's id and seconds; long sections are cut, and say so.
"""

from __future__ import annotations

import difflib
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
COLUMNS = 100
COMMANDS = {
    "demo": (("demo",),),
    "explain": (("demo", "real", "--example", "slurm"), ("explain", "--last", "--config", "real/goodput.toml")),
}
"""By the name of its marks in README.md: commands, of which the last one's output is shown."""
LINES: Mapping[str, int] = MappingProxyType(
    {"Wrong, where the exports cannot tell the cause": 4, "Figures of the paper: by its own counts, and here": 10}
)
"""How many lines of a section are shown, after its title; others are shown whole."""

_BUILT = re.compile(r"built \S+ in [\d.]+ s")
_STYLE = re.compile(r"\x1b\[[\d;]*m")


def printed(folder: Path) -> dict[str, str]:
    """Run the commands in an empty folder; return what the last of each wrote to standard output."""
    return {name: [_on_terminal(words, folder) for words in commands][-1] for name, commands in COMMANDS.items()}


def shortened(output: str) -> str:
    """Return what the demo printed without what varies from run to run, and with long sections cut."""
    text = _BUILT.sub("built ... in ... s", output)
    return "\n\n".join(_cut(section.splitlines()) for section in text.split("\n\n"))


def pasted(text: str, outputs: Mapping[str, str]) -> str:
    """Return `text` with each output between its two marks.

    Raises:
        ValueError: a mark is missing.
    """
    for name, output in outputs.items():
        begin, end = f"<!-- {name} output: begin -->", f"<!-- {name} output: end -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"README.md lacks `{begin}` or `{end}`")
        text = f"{before}{begin}\n```\n{shortened(output)}\n```\n{end}{after}"
    return text


def main() -> None:
    """Write README.md anew, or check it."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = printed(Path(folder))
    old = README.read_text(encoding="utf-8")
    new = pasted(old, outputs)
    if old == new:
        return
    if "--check" in sys.argv:
        difference = difflib.unified_diff(
            old.splitlines(), new.splitlines(), "README.md", "printed now", n=0, lineterm=""
        )
        sys.exit("\n".join(["README.md does not show what the demo prints now: run `make readme`", *difference]))
    README.write_text(new, encoding="utf-8")


def _cut(lines: list[str]) -> str:
    kept = LINES.get(lines[0], len(lines)) + 1
    return "\n".join(lines if len(lines) <= kept + 1 else [*lines[:kept], f"... ({len(lines) - kept} lines more)"])


def _on_terminal(words: tuple[str, ...], folder: Path) -> str:
    """Return what a command writes to a terminal as its standard output, without colours and spaces at line ends.

    Raises:
        CalledProcessError: it failed.
    """
    ours, its = pty.openpty()
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm", "PYTHONPATH": path}
    command = [sys.executable, "-m", "flows.cli", *words]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=its, stderr=subprocess.DEVNULL) as process:
        os.close(its)
        parts = []
        while part := _read(ours):
            parts.append(part)
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    lines = _STYLE.sub("", b"".join(parts).decode()).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so where the other end was closed
        return b""


if __name__ == "__main__":
    main()
