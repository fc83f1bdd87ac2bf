"""The units in deployments/systemd/, read by systemd itself where it is installed.

Nothing is started: `systemd-analyze` reads a unit without a running systemd.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.test_deployments import ROOT, parse_command, prefect_settings

FOLDER = ROOT / "deployments" / "systemd"
UNITS = sorted(p for p in FOLDER.iterdir() if p.suffix in (".service", ".timer"))
SERVICES = [p for p in UNITS if p.suffix == ".service"]
EXPOSURE = 25
"""Tenths of `systemd-analyze security`'s points, 100 = no protection at all."""


def keys(unit: Path, section: str) -> dict[str, str]:
    """Keys of a section; several assignments of one are joined with spaces."""
    found: dict[str, str] = {}
    body = re.search(rf"^\[{section}\]\n(.*?)(?=^\[|\Z)", unit.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for line in body[1].splitlines() if body else []:
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[key] = f"{found[key]} {value}" if key in found else value
    return found


@pytest.fixture
def analyze() -> str:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd here")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if int(version) < 250:
        pytest.skip("systemd-analyze reads files that are not installed from version 250 on")
    return program


def installed(folder: Path) -> list[str]:
    """Copies of the units whose programs exist, so that what is said about them is said about the units."""
    folder.mkdir(exist_ok=True)
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace("/opt/goodput/bin", str(folder))
        (folder / unit.name).write_text(text, encoding="utf-8")
    for program in ("goodput", "prefect"):
        (folder / program).write_text("#!/bin/sh\n")
        (folder / program).chmod(0o755)
    return [str(folder / unit.name) for unit in UNITS]


def test_systemd_finds_nothing_wrong_with_the_units(analyze: str, tmp_path: Path) -> None:
    paths = installed(tmp_path / "units")
    done = subprocess.run([analyze, "verify", *paths], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    broken = tmp_path / "units" / "goodput.service"
    broken.write_text(broken.read_text(encoding="utf-8").replace("ProtectHome=", "ProtectHouse="))
    done = subprocess.run([analyze, "verify", str(broken)], capture_output=True, text=True, check=False)
    assert "ProtectHouse" in done.stderr


@pytest.mark.parametrize("unit", SERVICES, ids=lambda p: p.name)
def test_services_are_fenced_in(analyze: str, unit: Path) -> None:
    command = [analyze, "security", "--offline=true", f"--threshold={EXPOSURE}", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-600:]


@pytest.mark.parametrize(("name", "hours"), [("goodput-run", 1), ("goodput-maintain", 7 * 24)])
def test_timers_fire_on_time_and_after_an_outage(analyze: str, name: str, hours: int) -> None:
    timer = keys(FOLDER / f"{name}.timer", "Timer")
    assert (FOLDER / f"{name}.service").is_file(), "a timer starts the service of its own name"
    assert timer["Persistent"] == "true", "a time that passed while the machine was down is made up for"
    command = [analyze, "calendar", "--iterations=3", timer["OnCalendar"]]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={"TZ": "UTC"}).stdout
    stamps = re.findall(r"(?:Next elapse|#\d+): \w{3} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", said)
    times = [datetime.fromisoformat(f"{stamp}+00:00") for stamp in stamps]
    assert [(b - a) / timedelta(hours=1) for a, b in itertools.pairwise(times)] == [hours, hours]


def test_timers_and_deployments_have_one_schedule() -> None:
    """A machine with Prefect and one without do the same work at the same times."""
    from flows import prefect_serve

    for name, flow in {"goodput-run": "ingest", "goodput-maintain": "maintain"}.items():
        minute, hour, _, _, day = prefect_serve.SCHEDULES[flow].split()
        clock = keys(FOLDER / f"{name}.timer", "Timer")["OnCalendar"]
        assert f"{hour.zfill(2) if hour != '*' else hour}:{minute.zfill(2)}:00 UTC" in clock
        assert ("Sun" in clock) == (day == "0")


@pytest.mark.parametrize("unit", SERVICES, ids=lambda p: p.name)
def test_what_a_service_runs_exists(unit: Path) -> None:
    service = keys(unit, "Service")
    program, *arguments = shlex.split(service["ExecStart"])
    assert program.startswith("/opt/goodput/bin/")
    parse_command([Path(program).name, *arguments])
    for name in re.findall(r"(PREFECT_\w+)=", service.get("Environment", "")):
        assert name in prefect_settings(), f"Prefect reads no {name}"


@pytest.mark.parametrize("unit", SERVICES, ids=lambda p: p.name)
def test_a_service_has_its_own_user_and_writes_to_its_data_only(unit: Path) -> None:
    service = keys(unit, "Service")
    assert service["User"] == service["Group"] == "goodput"
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert service["ReadWritePaths"] == service["WorkingDirectory"] + "/data"
    assert service["KillSignal"] == "SIGTERM"
    assert service["Restart"] == "on-failure"
    assert "MemoryMax" in service
    assert "PASSWORD" not in unit.read_text(encoding="utf-8").upper()
    for file in service.get("EnvironmentFile", "").split():
        assert file.lstrip("-").startswith("/etc/goodput/"), "secrets lie where root alone reads them"


def test_the_example_of_the_worker_sets_what_prefect_reads() -> None:
    lines = (FOLDER / "prefect.env.example").read_text(encoding="utf-8").splitlines()
    named = [m[1] for line in lines if (m := re.match(r"#?([A-Z_]+)=", line))]
    assert named == ["PREFECT_API_URL", "PREFECT_API_AUTH_STRING"]
    assert set(named) <= prefect_settings()
