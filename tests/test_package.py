"""The wheel holds what the program needs and nothing else, and works where there is no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("flows", "transforms", "warehouse")
DATA = {".sql", ".csv", ".toml", ".txt", ".log", ".jsonl"}

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, timeout: int = 300) -> str:
    """Run a command with nothing of this checkout on Python's path; return what it printed."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "GOODPUT"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=clean, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
    run(sys.executable, "-m", "pip", "wheel", *options, str(ROOT), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `goodput` of a fresh environment: the wheel, and beside it only what this environment's packages offer."""
    venv = tmp_path_factory.mktemp("elsewhere") / "an environment"  # a path with a blank must do
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=venv.parent)
    python = venv / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=venv,
    )
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=venv).strip())
    # A folder named in a .pth file is put on the path, but .pth files inside it are not read: the editable install of
    # this environment, which is one, stays out of reach.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return venv / "bin" / "goodput"


def test_top_level_is_the_three_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        top = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)
    assert len(top) == len(PACKAGES) + 1


def test_everything_in_the_packages_is_inside(wheel: Path) -> None:
    expected = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {Path(name).suffix for name in expected} >= {".py", ".sql", ".csv", ".toml"}
    assert any(name.startswith("flows/demo_data/") for name in expected)
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith(tuple(f"{p}/" for p in PACKAGES))}
    assert inside == expected


def test_wheel_says_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    needs = set(re.findall(r"^Requires-Dist: ([\w-]+)", metadata, re.MULTILINE))
    assert {"polars", "duckdb", "prefect", "tzdata"} <= needs
    assert "pytest" not in needs
    assert "scipy" not in needs


def test_installed_program_runs_the_demo_elsewhere(program: Path, tmp_path: Path) -> None:
    code = "import flows, transforms, warehouse; print(flows.__file__, transforms.__file__, warehouse.__file__)"
    found = run(program.with_name("python"), "-c", code, cwd=tmp_path)
    assert str(ROOT) not in found
    run(program, "demo", "tried out", "--example", "slurm", cwd=tmp_path)
    here = tmp_path / "tried out"
    assert (here / "data" / "warehouse.duckdb").is_symlink()
    count = run(program, "sql", "select count(*) as n from marts.interruptions", "--format", "csv", cwd=here)
    assert count.split() == ["n", "11"]  # the exports' own account of what was done: eleven interruptions
    assert not list(tmp_path.glob("data"))
    run(program, "demo", "replayed", "--nodes", "16", "--days", "2", cwd=tmp_path)
    assert (tmp_path / "replayed" / "data" / "warehouse.duckdb").is_symlink()


def test_installed_program_runs_from_the_root_folder(program: Path) -> None:
    assert "goodput demo" in run(program, "--help", cwd=Path("/"))
