"""`goodput doctor`: is everything in place that goodput needs, and if not, what to do. Only looks, writes nothing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flows.cli import facts
from flows.cli.findings import OK, PROBLEM, WARNING, Finding
from flows.cli.options import ConfigOption, JsonOption
from flows.cli.terminal import CommandError, say, say_json
from flows.cli.words import config_given, counted, pasteable

if TYPE_CHECKING:
    from collections.abc import Callable

PYTHON = (3, 11)
PACKAGES = {"prefect": "3.9,4", "polars": "2.1,3", "duckdb": "2.0,3", "pyarrow": "26,"}
"""The least version of each package that works, and the first that is not known to, as pyproject.toml has them."""

REACH_SECONDS = 2.0
"""How long Prefect's server may take to answer."""

_WANTS_KEY = (401, 403)  # it is there; the key is Prefect's own affair

_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")


def doctor(*, json: JsonOption = False, config: ConfigOption = None) -> int:
    """Look at everything goodput needs, and say for each whether it is fine and what to do if not.

    That is: Python and packages, the configuration, exports that no source matches, the data folder, who
    writes to it, the clock, zones, the exports that were read, the lake, the commands
    that are asked for exports, the published build, sources with nothing new,
    and Prefect's server. Writes nothing. Exit 1 if there is a problem; warnings
    alone are exit 0.
    """
    config_given.set(config)
    found = []
    for finding in _all(config):
        found.append(finding)
        if not json:
            say(pasteable(str(finding)))
    problems, warnings = (sum(f.level == level for f in found) for level in (PROBLEM, WARNING))
    if json:
        rows = [
            {"about": f.about, "level": f.level, "text": f.text, "next_step": pasteable(f.next_step)} for f in found
        ]
        say_json({"findings": rows, "problems": problems, "warnings": warnings})
    else:
        say(f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}, {len(found) - problems - warnings:,} ok")
    return 1 if problems else 0


def _all(config: Path | None) -> Iterator[Finding]:
    """Look at one thing after the other; what cannot be looked at is a finding, and does not hide the others."""
    from flows.cli import beside, doctor_build, doctor_data, doctor_pulls
    from flows.config import ConfigError, load

    yield from versions()
    settings = None
    try:
        settings = load(config)
    except ConfigError as error:
        yield from _unusable(error)
    else:
        yield from _carefully("configuration", _configuration, settings)
        yield from _carefully("other files", beside.other_files, settings)
        yield from _carefully("data folder", doctor_data.folder, settings)
        yield from _carefully("writer", doctor_data.writer, settings)
        yield from _carefully("clock", doctor_data.clock, settings)
        yield from _carefully("zone", doctor_data.zones, settings)
        yield from _carefully("exports", doctor_data.exports, settings)
        yield from _carefully("lake", doctor_data.lake, settings)
        yield from _carefully("commands", doctor_pulls.commands, settings)
        yield from _carefully("build", doctor_build.build, settings)
    yield from prefect(settings)


def _carefully(about: str, look: Callable[[Any], Iterator[Finding]], settings: facts.Config) -> Iterator[Finding]:
    try:
        yield from look(settings)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        yield Finding(about, PROBLEM, f"{where}{error.strerror or error}", "may this user read it?")
    except CommandError as error:
        yield Finding(about, PROBLEM, str(error))


def versions() -> Iterator[Finding]:
    """Compare Python and the packages with what goodput needs, without importing any."""
    running = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= PYTHON:
        yield Finding("python", OK, running)
    else:
        yield Finding("python", PROBLEM, running, f"goodput needs {'.'.join(map(str, PYTHON))} or newer")
    for name, bounds in PACKAGES.items():
        least, _, limit = bounds.partition(",")
        wanted = f"goodput needs {least} or newer" + (f", below {limit}" if limit else "")
        step = f"{wanted}: install the versions in requirements.txt"
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(name, PROBLEM, "is not installed", step)
            continue
        fits = _numbers(least) <= _numbers(version) and (not limit or _numbers(version) < _numbers(limit))
        yield Finding(name, OK, version) if fits else Finding(name, PROBLEM, version, step)


def _numbers(version: str) -> list[int]:
    """Return the leading numbers of a version: [3, 9, 1] of 3.9.1rc2."""
    found = re.match(r"\d+(\.\d+)*", version)
    return [int(part) for part in found[0].split(".")] if found else []


def _unusable(error: Exception) -> Iterator[Finding]:
    """Yield a finding for each problem of a configuration that cannot be used."""
    path, problems = getattr(error, "path", ""), getattr(error, "problems", ())
    for problem in problems:
        yield Finding("configuration", PROBLEM, f"{path}: {problem}")
    yield Finding(
        "data", WARNING, "not looked at: only a configuration says where it is", "mend that and run this again"
    )


def _configuration(settings: facts.Config) -> Iterator[Finding]:
    from flows.ingesting import jobs, unmatched

    if not settings.sources:
        text = f"{settings.path} has no [[sources]], so nothing is read"
        yield Finding("configuration", WARNING, text, "see `goodput init PATHS...` and docs/configuration.md")
        return
    files, empty = jobs(settings)
    what = f"{counted(len(settings.sources), 'source')}, {counted(len(files), 'file')}"
    yield Finding("configuration", OK, f"{settings.path}: {what}")
    for source in unmatched(settings, empty):
        yield Finding("configuration", PROBLEM, f"{source.path}: {source.message}")


def prefect(settings: facts.Config | None = None) -> Iterator[Finding]:
    """Say whether Prefect's server answers, where one is set, or who serves the data folder with one of its own."""
    url = os.environ.get("PREFECT_API_URL", "").strip()
    if not url:
        if settings is not None and (serving := _serving(settings)):
            yield Finding("prefect server", OK, serving)
            return
        text = "PREFECT_API_URL is not set: no server is used; `goodput run` from cron needs none"
        yield Finding("prefect server", OK, text)
        return
    shown, problem = _answer(url)
    if problem is None:
        yield Finding("prefect server", OK, f"{shown} answers")
        return
    step = "start it (`prefect server start`), or correct or unset PREFECT_API_URL; `goodput run` works without"
    yield Finding("prefect server", PROBLEM, f"PREFECT_API_URL: {shown}: {problem}", step)


def _serving(settings: facts.Config) -> str:
    """Return who serves the data folder, and where its page is; empty where nobody does."""
    from flows import lease
    from flows.cli import doctor_data, serve

    if not doctor_data.is_held(settings.data / serve.LOCK_NAME):
        return ""
    who = lease.holder(settings.data, serve.LOCK_NAME)
    if who is None:
        return "`goodput serve` runs on this data folder"
    _, _, port = who.command.partition("--port ")
    page = f"http://127.0.0.1:{port}" if port else "that of the server which PREFECT_API_URL named when it was started"
    return (
        f"`goodput serve` runs on this data folder, process {who.pid} on {who.host} since {who.since}; its page: {page}"
    )


def _answer(url: str) -> tuple[str, str | None]:
    """Return the address without user and password, and why its server does not say that it is healthy, if so."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return "an address that cannot be read", str(error)
    if parts.scheme not in ("http", "https") or not host:
        return "an address that is no http:// or https:// one", "nothing to ask"
    place = f"[{host}]" if ":" in host else host
    shown = f"{parts.scheme}://{place}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    return shown, _in_time(f"{shown}/health", is_local=bool(_LOOPBACK.fullmatch(host)))


def _in_time(url: str, *, is_local: bool) -> str | None:
    """Ask in a thread of its own: looking a name up, or an answer that trickles, knows no time-out."""
    from threading import Thread

    answers: list[str | None] = []
    thread = Thread(target=lambda: answers.append(_ask(url, is_local=is_local)), daemon=True)
    thread.start()
    thread.join(REACH_SECONDS)
    return answers[0] if answers else f"no answer within {REACH_SECONDS:g} s"


def _ask(url: str, *, is_local: bool) -> str | None:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, build_opener

    opener = build_opener(*([ProxyHandler({})] if is_local else []))  # a proxy cannot reach this machine's loopback
    try:
        with opener.open(url, timeout=REACH_SECONDS) as response:
            if response.headers.get_content_type() == "text/html":
                return "answers with a web page; Prefect's API has an address that ends in /api"
    except HTTPError as error:
        error.close()
        if error.code in _WANTS_KEY:
            return None
        return f"answers {error.code} to /health; is it Prefect's API (its address ends in /api)?"
    except URLError as error:
        return f"cannot be reached ({error.reason})"
    except (OSError, HTTPException, ValueError) as error:
        return f"cannot be reached ({error})"
    return None
