"""The docs cannot lie about what can be called, and their links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli import COMMANDS, make_app

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deployments/*.md"), *ROOT.glob("benchmarks/*.md")]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(goodput [^`]+)`")
PLACEHOLDER = re.compile(r"[A-Z]{2,}|\.\.\.|\|")


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def typed(line: str) -> list[str]:
    """The `goodput ...` commands in a line, without prompt and path of the program."""
    matches = [re.match(r"\s*(?:\$ )?(?:\S*/)?(goodput [a-z].*)", part) for part in re.split(r"&&|;", line)]
    return [match[1] for match in matches if match]


def fenced(text: str) -> list[str]:
    """Every command in a block of a document: a reader will copy it as it stands."""
    return [command for _, block in FENCE.findall(text) for line in block.splitlines() for command in typed(line)]


def inline(text: str) -> list[str]:
    """Every command named within a sentence; it may lack its arguments."""
    return [command for line in INLINE.findall(FENCE.sub("", text)) for command in typed(line)]


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def names(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", DOCS, ids=names)
def test_links_lead_to_files_and_headings(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text_of(path))):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        assert linked.is_file(), f"{target} does not exist"
        assert linked.is_relative_to(ROOT), f"{target} leads out of the project"
        assert not anchor or anchor in anchors(text_of(linked)), f"{target}: no such heading"


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached or path.suffix != ".md":
            continue
        reached.add(path)
        targets = re.findall(r"\]\(([^)#\s]+)", FENCE.sub("", text_of(path)))
        waiting += [(path.parent / t).resolve() for t in targets if "://" not in t]
    assert set(DOCS) <= reached


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_is_in_the_docs(command: str) -> None:
    told = [line for path in DOCS for line in [*fenced(text_of(path)), *inline(text_of(path))]]
    assert any(re.match(rf"goodput {command}\b", line) for line in told), f"no document tells of `goodput {command}`"


def test_commands_in_the_docs_parse() -> None:
    app = make_app()
    checked = set()
    for path in DOCS:
        text = text_of(path)
        for line in [*fenced(text), *(c for c in inline(text) if len(c.split()) > 2)]:
            words = shlex.split(line, comments=True)
            words = words[: words.index(">")] if ">" in words else words
            assert words[1] in COMMANDS, f"{names(path)}: `{line}`: no such command"
            if not any(PLACEHOLDER.fullmatch(word) for word in words):
                app.parse_args(words[1:], exit_on_error=False, print_error=False)
                checked.add(words[1])
    assert {"init", "run", "interruptions", "explain", "sql"} <= checked


def test_commands_named_in_the_docs_exist() -> None:
    for path in DOCS:
        for line in inline(text_of(path)):
            assert line.split()[1] in COMMANDS, f"{names(path)}: `{line}`: no such command"


def test_configuration_in_the_docs_is_valid() -> None:
    from flows.config import parse

    examples = [block for path in DOCS for kind, block in FENCE.findall(text_of(path)) if kind == "toml"]
    assert examples
    for block in examples:
        # An example may show one part: the cluster it names is then configured elsewhere.
        part = block if "[clusters." in block else block + '\n[clusters.alpha]\nzone = "UTC"\n'
        parse(part, ROOT / "goodput.toml")  # raises ConfigError with the line and what was meant


def test_make_targets_in_the_docs_exist() -> None:
    makefile = text_of(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE))
    told = {
        target
        for path in DOCS
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", text_of(path), re.MULTILINE)
    }  # fmt: skip
    assert told
    assert told <= targets


def test_readme_lists_every_mart_and_no_other() -> None:
    _, _, rest = text_of(ROOT / "README.md").partition("| table in schema `marts` |")
    rows = rest.partition("\n\n")[0].splitlines()[1:]
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert told == {path.stem for path in (ROOT / "warehouse" / "models" / "marts").glob("*.sql")}


@pytest.mark.slow
def test_readme_shows_what_the_demo_prints() -> None:
    command = [sys.executable, str(ROOT / "docs" / "paste_demo.py"), "--check"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
