"""The shape of the project: which way imports go, what each source brings, what no file may hold."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("flows", "transforms", "warehouse")
GENERATED = {"requirements.txt", "requirements-dev.txt", "LICENSE"}
MAX_LINES = 400


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Dotted names that a file imports, also inside functions and under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which way an import goes"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            found |= {a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    return found


def reaches(name: str, target: str) -> bool:
    """Tell whether importing `name` imports `target` or something inside it."""
    return name == target or name.startswith(f"{target}.")


def importers(target: str) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in modules(package)
        if any(reaches(name, target) for name in imports(path))
    }


def tracked() -> Iterator[tuple[str, str]]:
    """Name and text of every file that is in git or would be added; of every file where there is no git."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    else:
        skipped = {".venv", "__pycache__", "data", "demo", "dist", "build"}
        names = []
        for folder, folders, files in os.walk(ROOT):
            folders[:] = [f for f in folders if f not in skipped and not f.endswith("_cache") and f != ".hypothesis"]
            names += [(Path(folder) / f).relative_to(ROOT).as_posix() for f in files]
    for name in sorted(filter(None, names)):
        if (ROOT / name).is_file():
            yield name, (ROOT / name).read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize("package", PACKAGES)
def test_package_has_code(package: str) -> None:
    # The other tests of this file walk these folders: an empty walk would prove nothing.
    assert len(modules(package)) > 3


def test_transforms_import_nothing_of_ours_and_no_engine() -> None:
    forbidden = ("flows", "warehouse", "duckdb", "prefect")
    wrong = {
        (path.name, name)
        for path in modules("transforms")
        for name in imports(path)
        if any(reaches(name, target) for target in forbidden)
    }
    assert not wrong


def test_transforms_have_no_clock_and_no_network() -> None:
    # The clock, addresses and connections come in as arguments: the same bytes give the same rows for ever.
    clock = re.compile(r"\b(datetime|dt|date)\.(now|today|utcnow)\(|\btime\.(time|monotonic|sleep)\(")
    network = ("socket", "urllib.request", "http", "httpx", "requests", "subprocess")
    for path in modules("transforms"):
        assert not clock.search(path.read_text()), f"{path} reads the clock"
        assert not [n for n in imports(path) if any(reaches(n, t) for t in network)], f"{path} reaches outside"


def test_warehouse_imports_only_the_declared_tables() -> None:
    wrong = {
        (path.name, name)
        for path in modules("warehouse")
        for name in imports(path)
        if any(reaches(name, package) for package in ("flows", "transforms", "prefect"))
        and not reaches(name, "transforms.tables")
    }
    assert not wrong


def test_only_the_warehouse_imports_duckdb() -> None:
    found = importers("duckdb")
    assert found
    assert all(name.startswith("warehouse/") for name in found), found


def test_only_the_prefect_files_import_prefect() -> None:
    found = importers("prefect")
    assert found
    assert all(name.startswith("flows/prefect_") for name in found), found


def test_only_two_commands_import_the_prefect_files_and_not_before_they_are_called() -> None:
    # Prefect takes a second and a half to import: the rest of the command line must never pull it in.
    ours = {path.stem for path in modules("flows") if path.stem.startswith("prefect_")}
    found = {name for stem in ours for name in importers(f"flows.{stem}")}
    outside = {name for name in found if not name.startswith("flows/prefect_")}
    assert "flows/cli/serve.py" in outside
    assert all(re.fullmatch(r"flows/cli/(serve|backfill\w*)\.py", name) for name in outside), outside
    for name in outside:
        body = ast.parse((ROOT / name).read_text()).body
        early = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom) and "prefect" in ast.unparse(n)]
        assert not early, f"{name} imports {ast.unparse(early[0])} when it is loaded"


def test_every_source_has_a_fixture_folder() -> None:
    fixtures = ROOT / "tests" / "fixtures" / "sources"
    sources = {p.stem for p in (ROOT / "transforms" / "sources").glob("[a-z]*.py")}
    assert sources
    missing = {s for s in sources if not any(p.is_file() for p in (fixtures / s).rglob("*"))}
    assert not missing, f"add tests/fixtures/sources/<name>/ for {sorted(missing)}"
    unknown = {p.name for p in fixtures.iterdir() if p.is_dir()} - sources
    assert not unknown, f"no transforms/sources/<name>.py for the fixture folders {sorted(unknown)}"


def test_no_code_file_is_long() -> None:
    long = {n: t.count("\n") for n, t in tracked() if n.endswith((".py", ".sql")) and t.count("\n") > MAX_LINES}
    assert not long, f"split files longer than {MAX_LINES} lines"


def test_no_file_names_a_package_registry() -> None:
    # Where packages come from is the machine's setting; the words are split so that this file does not hold them.
    hosts = ["py" + "pi.org", "python" + "hosted.org", "registry.npm" + "js", "deb.deb" + "ian", "--index" + "-url"]
    pattern = re.compile("|".join(map(re.escape, hosts)), re.IGNORECASE)
    wrong = {name for name, text in tracked() if pattern.search(text)}
    assert not wrong


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    pattern = re.compile(r"(?<![\w.{}$~-])/(?:work|tmp|root|home/[a-z]+|Users/[A-Za-z]+)/\w")
    inputs = ("tests/fixtures/", "examples/", "flows/demo_data/")  # exports may print any path
    wrong = {
        (name, match[0])
        for name, text in tracked()
        if name not in GENERATED and not name.startswith(inputs) and (match := pattern.search(text))
    }
    assert not wrong
