"""Put what the demo really prints into README.md: `make readme`. With `--check`, fail where it differs.

Only the build's id and its seconds may differ from run to run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
COMMANDS = {"demo": ("demo", "demo"), "explain": ("explain", "--last", "--config", "demo/goodput.toml")}
_VARIES = re.compile(r"built \S+ in [\d.]+ s")


def printed(folder: Path) -> dict[str, str]:
    """Run the commands in an empty folder; return what each wrote to standard output."""
    return {
        name: subprocess.run(
            [sys.executable, "-m", "flows.cli", *words], cwd=folder, check=True, capture_output=True, text=True
        ).stdout.strip()
        for name, words in COMMANDS.items()
    }


def pasted(text: str, outputs: dict[str, str]) -> str:
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
        text = f"{before}{begin}\n```\n{output}\n```\n{end}{after}"
    return text


def main() -> None:
    """Write README.md anew, or check it."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = printed(Path(folder))
    old = README.read_text(encoding="utf-8")
    new = pasted(old, outputs)
    if _VARIES.sub("built", old) == _VARIES.sub("built", new):
        return
    if "--check" in sys.argv:
        sys.exit("README.md does not show what the demo prints now: run `make readme`, and read the difference")
    README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
