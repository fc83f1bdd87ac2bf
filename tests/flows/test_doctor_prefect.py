"""`goodput doctor` outside the data folder: versions of packages, and Prefect's server."""

from __future__ import annotations

import os
import re
import socket
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from flows import lease
from flows.cli import doctor as command
from flows.cli import serve
from flows.config import parse

ROOT = Path(__file__).resolve().parents[2]


def test_bounds_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = dict(re.fullmatch(r"([\w-]+)>=(.*)", d).groups() for d in project["dependencies"])  # type: ignore[union-attr]
    told = {name: bounds.replace(",", ",<").removesuffix(",<") for name, bounds in command.PACKAGES.items()}
    assert told == {name: wanted[name] for name in command.PACKAGES}
    assert project["requires-python"] == f">={'.'.join(map(str, command.PYTHON))}"


def test_packages_too_old_too_new_or_missing_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"prefect": "3.10.0", "polars": "2.0.9", "duckdb": "3.0.0rc1"}

    def version(name: str) -> str:
        if name not in versions:
            raise command.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(command.metadata, "version", version)
    found = {f.about: f for f in command.versions()}
    assert {name: f.level for name, f in found.items() if name != "python"} == {
        "prefect": "ok",  # 3.10 is after 3.9
        "polars": "problem",
        "duckdb": "problem",
        "pyarrow": "problem",
    }
    assert "2.1 or newer, below 3" in found["polars"].next_step


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        codes = {"/api/health": 200, "/key/health": 401, "/page/health": 200}
        self.send_response(codes.get(self.path, 404))
        self.send_header("Content-Type", "text/html" if "page" in self.path else "application/json")
        self.end_headers()
        self.wfile.write(b"true")

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    made = HTTPServer(("127.0.0.1", 0), Health)
    thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.mark.parametrize(
    ("path", "level", "told"),
    [
        ("api", "ok", "answers"),
        ("api/", "ok", "answers"),
        ("key", "ok", "answers"),
        ("", "problem", "404"),
        ("page", "problem", "ends in /api"),
    ],
)
def test_a_server_of_prefect_is_asked(
    monkeypatch: pytest.MonkeyPatch, server: str, path: str, level: str, told: str
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", f"http://user:secret@{server}/{path}")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # no proxy stands between a machine and itself
    (found,) = command.prefect()
    assert found.level == level
    assert told in str(found)
    assert "secret" not in str(found)


def test_a_server_that_is_silent_or_not_there_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "REACH_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        monkeypatch.setenv("PREFECT_API_URL", address)
        (found,) = command.prefect()
        assert found.level == "problem"
        assert re.search(r"no answer within 0.2 s|timed out", found.text)
    (found,) = command.prefect()
    assert found.level == "problem"
    assert "cannot be reached" in found.text
    assert "prefect server start" in found.next_step


@pytest.mark.parametrize("url", ["ftp://x/api", "127.0.0.1:4200", "http://x:port/api", "http://[::1/api"])
def test_an_address_that_is_none_is_a_problem(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    (found,) = command.prefect()
    assert found.level == "problem"


def test_who_serves_the_folder_is_named_with_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    settings = parse('[clusters.c1]\nzone = "UTC"\n', tmp_path / "goodput.toml")
    with lease.hold(settings.data, "serve --port 4311", name=serve.LOCK_NAME):
        (found,) = command.prefect(settings)
    assert f"process {os.getpid()} on " in found.text
    assert found.text.endswith("its page: http://127.0.0.1:4311")
    (found,) = command.prefect(settings)
    assert "no server is used" in found.text, "it has ended since"
