"""Sources that are commands: what they may say, what is refused, and what they are called."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.config import ConfigError, SourceConfig, parse

FILE = Path("/site/goodput.toml")
COMMAND = '[[sources]]\ncommand = ["sacct", "-S", "{start}"]\n'


def source(text: str) -> SourceConfig:
    return parse(text, FILE).sources[0]


def problem(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, FILE)
    return str(caught.value.problems[0])


def test_a_command_has_the_defaults_of_an_hourly_one() -> None:
    found = source(COMMAND)
    assert (found.name, found.window, found.delay, found.timeout, found.since) == ("sacct", 3600, 600, 300, None)
    assert found.path == "/site/data/landing/sacct/*_{collected_at}.zst"


def test_every_key_reaches_the_source() -> None:
    more = 'name = "acct"\nwindow = "6h"\ndelay = "1h"\nsince = 2026-01-01T01:00:00+01:00\ntimeout = "2m"\nenvironment = { TZ = "UTC" }\nsecrets = ["TOKEN"]\n'
    found = source(COMMAND + more)
    assert (found.name, found.window, found.delay, found.timeout) == ("acct", 21600, 3600, 120)
    assert (found.since, found.environment, found.secrets) == (
        datetime(2026, 1, 1, tzinfo=UTC),
        {"TZ": "UTC"},
        ("TOKEN",),
    )


def test_the_folder_of_the_data_is_no_pattern() -> None:
    found = source('[warehouse]\ndata = "d[1]"\n' + COMMAND)
    assert found.path == "/site/d[[]1]/landing/sacct/*_{collected_at}.zst"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[[sources]]\ncommand = "sacct -S {start}"', "line 2: `command`: \"sacct -S {start}\" is one text, and no shell reads it; write a list"),
        ('[[sources]]\ncommand = ["sacct", "{begin}"]', "line 2: `command`: a command has no {begin}"),
        ("[[sources]]\ncommand = []", "line 2: `command`: it is empty; write the program and its arguments"),
        (COMMAND + 'path = "a"', "line 1: [[sources]] has both `path` and `command`; keep one"),
        ('[[sources]]\npath = "a"\nsecrets = ["X"]', "line 3: `secrets` is for sources with a `command`; this one has a `path`"),
        (COMMAND + 'window = "7m"', 'line 3: `window`: "7m" does not divide a day into equal windows'),
        (COMMAND + 'name = "a b"', 'line 3: `name`: "a b" is no name'),
        (COMMAND + 'name = "a"\n' + COMMAND + 'name = "a"', 'line 3: `name`: two sources are called "a"'),
        (COMMAND + "timeout = 0", "line 3: `timeout`: 0 leaves a command no time"),
        (COMMAND + "collected_at = 2026-01-01T00:00:00Z", "line 3: `collected_at` is for sources with a `path`"),
        (COMMAND + 'environment = { TZ = "Berlin" }', 'line 3: `environment`: TZ "Berlin" is no IANA time zone'),
        (COMMAND + 'zone = "Europe/Berlin"\nenvironment = { TZ = "UTC" }', 'line 3: `zone`: "Europe/Berlin" is not the TZ of `environment`, "UTC"'),
        ('[[sources]]\ncommand = ["/usr/bin/ssh", "h", "sacct"]\nenvironment = { TZ = "UTC" }', 'line 3: `environment`: ssh passes no TZ on; write TZ=UTC before the remote program, and zone = "UTC"'),
        (COMMAND + 'secrets = ["my token"]', 'line 3: `secrets`: "my token" is no name of a variable'),
        (COMMAND + 'environment = { "A=B" = "x" }', 'line 3: `environment`: "A=B" is no name of a variable'),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(text: str, expected: str) -> None:
    assert expected in problem(text)
