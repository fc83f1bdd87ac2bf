"""The docs cannot lie about what can be called, and their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
import yaml

from flows.cli import COMMANDS, make_app
from tests.test_deployments import parse_command

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deployments/*.md"), *ROOT.glob("benchmarks/*.md")]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(goodput [^`]+)`")
PLACEHOLDER = re.compile(r"[A-Z]{2,}|\.\.\.|\|")


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


BEFORE = re.compile(
    r"""\s*(?: \$\s
      | (?:[\d*]+\s+){5}                                         # when cron runs it
      | sudo\s+(?:-u\s+\S+\s+)?
      | (?:export\s+)?[A-Z_]+="?[^"\s]*"?\s+(?=\S)
      | docker\s+compose\s+--file\s+\S+\s+exec\s+\w+\s+ )""",
    re.VERBOSE,
)
"""What may stand before a command: prompt, variables, the user or container it runs as."""


def typed(line: str, programs: str = "goodput") -> list[str]:
    """The `goodput ...` commands in a line, without what stands before them and the path of the program."""
    found = []
    for part in re.split(r"&&|;", line):
        while before := BEFORE.match(part):
            part = part[before.end() :]
        if match := re.match(rf"\s*(?:\S*/)?((?:{programs}) -*[a-z].*)", part):
            found.append(match[1])
    return found


def fenced(text: str, programs: str = "goodput") -> list[str]:
    """Every command in a block of a document: a reader will copy it as it stands."""
    lines = [line for _, block in FENCE.findall(text) for line in block.splitlines()]
    return [command for line in lines for command in typed(line, programs)]


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


DEPLOYMENTS = sorted(ROOT.glob("deployments/*.md"))


def test_commands_behind_other_words_are_found() -> None:
    """A command that is not found is not checked."""
    for line in (
        "sudo -u goodput /opt/goodput/bin/goodput run",
        "7 * * * *  /opt/goodput/bin/goodput run",
        "cd /srv/goodput && PREFECT_HOME=x goodput run",
        "docker compose --file deployments/compose.yaml exec worker goodput run",
    ):
        assert typed(line) == ["goodput run"], line
    assert typed("sudo useradd goodput") == []


def test_prefect_commands_in_the_docs_parse() -> None:
    checked = set()
    for path in DEPLOYMENTS:
        for line in fenced(text_of(path), "prefect"):
            words = shlex.split(line, comments=True)
            parse_command(words)
            checked.add(words[1])
    assert {"server", "work-pool", "deployment"} <= checked


def test_files_units_and_services_in_the_docs_exist() -> None:
    """What is copied, started or called by name is there under that name."""
    units = {path.name for path in (ROOT / "deployments" / "systemd").iterdir()}
    services = yaml.safe_load(text_of(ROOT / "deployments" / "compose.yaml"))["services"]
    for path in DEPLOYMENTS:
        blocks = "\n".join(block for _, block in FENCE.findall(text_of(path)))
        for file in re.findall(r"(?<=[ /])deployments/[\w./*-]+", blocks):
            assert file == "deployments/.env" or list(ROOT.glob(file)), f"{names(path)}: no {file}"
        for unit in re.findall(r"\b(goodput[\w-]*\.(?:service|timer))\b", text_of(path)):
            assert unit in units, f"{names(path)}: no {unit}"
        for service in re.findall(r"compose .*exec (\S+)", blocks):
            assert service in services, f"{names(path)}: no service {service}"
        for profile in re.findall(r"--profile (\S+)", blocks):
            assert any(profile in s.get("profiles", []) for s in services.values()), profile


def test_commands_named_in_the_docs_exist() -> None:
    for path in DOCS:
        for line in inline(text_of(path)):
            assert line.split()[1] in COMMANDS, f"{names(path)}: `{line}`: no such command"


def test_the_ledger_is_described_as_its_queries_make_it() -> None:
    """docs/ledger.md has every state that the models can give, the dictionary's list, and each foreign type once."""
    text = text_of(ROOT / "docs" / "ledger.md")
    told = set(re.findall(r"^\| `(\w+)` \|", text.partition("## The states")[2].partition("\n## ")[0], re.MULTILINE))
    columns = tomllib.loads(text_of(ROOT / "warehouse" / "columns.toml"))
    assert told == set(re.findall(r"\w+", columns["tables"]["ledger"]["state"])) - {"or"}
    models = [text_of(p) for p in (ROOT / "warehouse" / "models" / "intermediate").glob("ledger__*.sql")]
    given = re.compile(r"(?:then|else|state :=) '([a-z_]+)'|if\([^,]+, '([a-z_]+)', '([a-z_]+)'\)")
    assert {state for sql in models for found in given.findall(sql) for state in found if state} == told
    runs = columns["columns"] | columns["tables"]["runs"]
    assert {f"{state}_gpu_seconds" for state in told} <= runs.keys()
    foreign = re.findall(r"`([A-Z][A-Z_]+)`", text.partition("## Beside ml-goodput-measurement")[2])
    assert (len(foreign), len(set(foreign))) == (14, 14)


def test_configuration_in_the_docs_is_valid() -> None:
    from flows.config import parse

    examples = [block for path in DOCS for kind, block in FENCE.findall(text_of(path)) if kind == "toml"]
    assert examples
    for block in examples:
        # An example may show one part: the cluster it names is then configured elsewhere.
        part = block if "[clusters." in block else block + '\n[clusters.alpha]\nzone = "UTC"\n'
        parse(part, ROOT / "goodput.toml")  # raises ConfigError with the line and what was meant


def headed_keys(text: str) -> dict[str, dict[str, tuple[str, str]]]:
    """The keys of each table of docs/configuration.md: type and default, by the table's heading."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", body, re.MULTILINE)
        found[heading.strip("`")] = {key: (kind, default) for key, kind, default in rows}
    return found


def test_the_reference_of_the_configuration_is_complete() -> None:
    """Every table, key, type and default stands in docs/configuration.md as flows/config_schema.py has it."""
    from flows import config_schema as schema
    from flows.config_types import JOB_COLUMNS, seconds

    text = text_of(ROOT / "docs" / "configuration.md")
    told = headed_keys(text)
    tables = {
        "[warehouse]": schema.WarehouseEntry,
        "[clusters.NAME]": schema.ClusterEntry,
        "[[sources]]": schema.SourceEntry,
        "[[runs]]": schema.RunEntry,
        "[attribution]": schema.AttributionEntry,
        "[attribution.windows.CLASS]": schema.WindowEntry,
        "[[calendars]]": schema.CalendarEntry,
    }
    entries = {c for c in vars(schema).values() if isinstance(c, type) and issubclass(c, schema.Entry)}
    assert entries - {schema.Entry, schema.Document} == set(tables.values()), "a new table needs a section"
    assert list(told) == list(tables)
    for heading, model in tables.items():
        assert list(told[heading]) == list(model.model_fields), heading
        for key, field in model.model_fields.items():
            kind, default = told[heading][key]
            where = f"{heading} {key}"
            assert (default == "required") == field.is_required(), where
            if field.is_required():
                continue
            value = field.get_default(call_default_factory=True)
            if value is None or key == "windows":
                assert default == "none", where
            elif kind == "duration":
                assert seconds(default.strip('`"')) == value, where
            else:
                assert tomllib.loads(f"x = {default.strip('`')}")["x"] == (
                    list(value) if isinstance(value, tuple) else value
                ), where
    for column in JOB_COLUMNS:
        assert f"`{column}`" in text


def test_kinds_of_value_in_the_reference_are_those_that_the_file_takes() -> None:
    """A key said to be a duration takes one and refuses a word, and so on: each example of a kind parses."""
    from flows.config import ConfigError, parse

    examples = {
        "duration": '"90s"',
        "whole number": "7",
        "path": '"x"',
        "pattern": '"x-*.txt"',
        "text": '"kernel_log"',
        'text such as `"4GB"`': '"4GB"',
        "IANA zone": '"Europe/Berlin"',
        "list of texts": '["user"]',
        "one character": '"|"',
        "time with zone": "2026-05-04T13:30:00Z",
        "time": "2026-05-04T13:30:00Z",
        "table of globs": '{ user = "a*" }',
        "table of texts": '{ TZ = "UTC" }',
    }
    for_commands = {"command", "delay", "since", "timeout", "environment", "secrets"}
    needed = {
        "[[sources]]": {"path": '"x"'},
        "[[calendars]]": {
            "cluster": '"kernel_log"',
            "name": '"x"',
            "start": "2026-05-04T13:30:00Z",
            "end": "2026-05-05T13:30:00Z",
        },
    }
    for heading, keys in headed_keys(text_of(ROOT / "docs" / "configuration.md")).items():
        for key, (kind, _) in keys.items():
            if kind == "tables":
                continue
            table = heading.replace("CLASS", "xid").replace("NAME", "c")
            base = {"command": '["x"]'} if key in for_commands else needed.get(heading, {})
            for value, is_right in ((examples[kind], True), ("true", False)):
                entry = base | ({} if key == "end" and is_right else {key: value})
                text = table + "\n" + "".join(f"{name} = {text}\n" for name, text in entry.items())
                if is_right:
                    parse(text, ROOT / "goodput.toml")
                else:
                    with pytest.raises(ConfigError):
                        parse(text, ROOT / "goodput.toml")


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


def outputs_in_the_readme() -> dict[str, str]:
    text = text_of(ROOT / "README.md")
    return dict(re.findall(r"<!-- (\w+) output: begin -->\n```\n(.*?)\n```\n<!-- \1 output: end -->", text, re.DOTALL))


def test_what_the_readme_shows_is_the_replay_and_fits_a_page() -> None:
    """The text speaks of `make demo`: what stands below it is that command's own output."""
    outputs = outputs_in_the_readme()
    assert set(outputs) == {"demo", "explain"}
    assert max(len(line) for output in outputs.values() for line in output.splitlines()) <= 100
    for heading in ("The run pretrain-405b", "Against the truth", "Where the GPU-hours went", "Try next"):
        assert f"\n{heading}\n" in outputs["demo"]
    assert re.search(r"^All interruptions +466 ", outputs["demo"], re.MULTILINE)
    assert tempfile.gettempdir() not in str(outputs)


@pytest.mark.slow
def test_readme_shows_what_the_demo_prints() -> None:
    command = [sys.executable, str(ROOT / "docs" / "paste_demo.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
