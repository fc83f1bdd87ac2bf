"""Offsets that logs print against the configured zone: a wrong zone changes verdicts in silence, so it must be told."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.config import load
from flows.offsets import Clash, clashes, told

Goodput = Callable[..., Any]

LINE = "{stamp} n1 kernel: perf: interrupt took too long (2506 > 2500)\n"
SACCT = 'path = "sacct.txt"\nformat = "slurm_sacct"'
WINTER, SUMMER = "2026-11-20T14:10:00+0100", "2026-07-20T14:10:00+0200"


def look(folder: Path, zone: str, *sources: str) -> list[Clash]:
    entries = (*(sources or ('path = "kern.log"\nformat = "kernel_log"',)), SACCT)
    text = f'[clusters.c]\nzone = "{zone}"\n' + "".join(f"[[sources]]\n{entry}\n" for entry in entries)
    (folder / "goodput.toml").write_text(text)
    return clashes(load(folder / "goodput.toml"))


def log(path: Path, *stamps: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(LINE.format(stamp=stamp) for stamp in stamps))


@pytest.mark.parametrize(
    ("zone", "stamps", "is_told"),
    [
        ("UTC", (WINTER,), True),
        ("Europe/Berlin", (WINTER, SUMMER), False),
        ("Etc/GMT-1", (WINTER, SUMMER), True),  # a fixed offset is right for half a year
        ("Europe/London", (WINTER,), True),  # +0100 is London's, but not in November
        ("Europe/London", ("2026-07-20T14:10:00+01:00",), False),
        ("America/New_York", ("2026-11-20T14:10:00-05:00",), False),
        ("Europe/Berlin", ("2026-11-20T14:10:00+00:00", "2026-11-20T14:11:00Z"), False),  # logs in UTC are a custom
        ("UTC", ("Nov 20 14:10:00", "2026-11-20T14:10:00"), False),  # they print none
        ("UTC", ("2026-11-20T14:10:00+9900", "2026-13-77T14:10:00+0100", "0001-01-01T00:00:00+0100"), False),
    ],
)
def test_only_an_offset_that_the_zone_did_not_have_then_is_told(
    tmp_path: Path, zone: str, stamps: tuple[str, ...], is_told: bool
) -> None:
    for number, stamp in enumerate(stamps):  # each alone, and together
        log(tmp_path / str(number) / "kern.log", stamp)
    log(tmp_path / "all" / "kern.log", *stamps)
    found = look(tmp_path, zone, 'path = "?/kern.log"', 'path = "all/kern.log"\nformat = "kernel_log"')
    assert bool(found) is is_told


def test_the_offset_is_that_of_the_instant_and_not_of_the_wall_clock(tmp_path: Path) -> None:
    """02:30 came twice in Berlin on 25 October 2026, first with +0200, then with +0100: both are right."""
    log(tmp_path / "kern.log", "2026-10-25T02:30:00+0200", "2026-10-25T02:30:00+0100")
    assert look(tmp_path, "Europe/Berlin") == []


def test_the_doubt_goes_both_ways_and_each_has_its_step(tmp_path: Path) -> None:
    """Slurm may well print UTC beside logs in local time: who knows that says so at the source of the logs, and it is settled."""
    log(tmp_path / "kern.log", WINTER)
    (clash,) = look(tmp_path, "UTC")
    assert (clash.zone, clash.had, clash.stamp.offset) == ("UTC", timedelta(), timedelta(hours=1))
    what, step = told(clash)
    assert "logs of c print times with +0100 (kern.log, 2026-11-20), but UTC" in what
    assert "had +0000 then" in what
    assert 'set `zone` under [clusters.c], perhaps to "Europe/Berlin"' in step
    assert "if sacct printed UTC" in step
    assert "`zone` on their source (goodput.toml line 3)" in step
    assert look(tmp_path, "UTC", 'path = "kern.log"\nzone = "Europe/Berlin"') == []
    (own,) = look(tmp_path, "Europe/Berlin", 'path = "kern.log"\nzone = "UTC"')
    assert "correct `zone` of their source (goodput.toml line 3)" in told(own)[1], (
        "not the cluster's zone, which is right"
    )


def test_a_zone_that_only_logs_would_use_is_no_doubt(tmp_path: Path) -> None:
    """Where sacct's source says its zone, as a command with TZ=UTC does, somebody thought of it."""
    log(tmp_path / "kern.log", WINTER)
    text = '[clusters.c]\nzone = "UTC"\n[[sources]]\npath = "kern.log"\nformat = "kernel_log"\n[[sources]]\n' + SACCT
    for more, count in (("", 1), ('\nzone = "UTC"', 0)):
        (tmp_path / "goodput.toml").write_text(text + more)
        assert len(clashes(load(tmp_path / "goodput.toml"))) == count


def test_each_cluster_of_a_path_is_compared_with_its_own_zone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        log(tmp_path / name / "kern.log", WINTER)
    (tmp_path / "goodput.toml").write_text(
        '[clusters.a]\nzone = "Europe/Berlin"\n[clusters.b]\nzone = "Asia/Tokyo"\n'
        '[[sources]]\npath = "{cluster}/kern.log"\n'
    )
    assert [(c.cluster, c.path.parent.name) for c in clashes(load(tmp_path / "goodput.toml"))] == [("b", "b")]


def test_compressed_logs_are_looked_at_and_what_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    folder.mkdir()
    packed = gzip.compress(LINE.format(stamp=WINTER).encode())
    (folder / "3.gz").write_bytes(packed)
    assert len(look(tmp_path, "UTC", 'path = "k/*"')) == 1
    (folder / "1.gz").write_bytes(packed[:15])  # torn off
    os.mkfifo(folder / "2")  # opening it would wait for ever
    assert len(look(tmp_path, "UTC", 'path = "k/*"')) == 1
    (folder / "3.gz").unlink()
    (folder / "3").symlink_to("nowhere")
    (folder / "4").mkdir()
    assert look(tmp_path, "UTC", 'path = "k/*"', 'path = "missing/*"') == []


def test_formats_without_such_stamps_are_not_opened(tmp_path: Path) -> None:
    log(tmp_path / "sacct.txt", WINTER)
    assert look(tmp_path, "UTC", SACCT.replace("sacct.txt", "*.txt")) == []


def test_a_hundred_sources_of_many_files_cost_little(tmp_path: Path) -> None:
    """It is asked at every run: a few files of each source are opened, however many there are."""
    for source in range(100):
        for day in range(10):
            log(tmp_path / str(source) / f"kern.{day}", *["Nov 20 14:10:00"] * 100)
    sources = [f'path = "{source}/kern.*"\nformat = "kernel_log"' for source in range(100)]
    assert look(tmp_path, "UTC", *sources) == []
    config = load(tmp_path / "goodput.toml")
    begin = time.process_time()
    clashes(config)
    assert time.process_time() - begin < 1.0, "about 0.05 s on an idle machine"


def test_run_check_status_and_doctor_tell_it_and_fail_for_nothing(goodput: Goodput, tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobIDRaw|Cluster|JobName|User|State|Submit|Start|End|NodeList\n"
        "1|1|c|a|u|COMPLETED|2026-11-20T13:00:00|2026-11-20T13:00:00|2026-11-20T14:00:00|n1\n"
    )
    log(tmp_path / "kern.log", WINTER)
    look(tmp_path, "UTC", 'path = "kern.log"\ncluster = "c"')
    site = ("--config", tmp_path / "goodput.toml")
    for command in ("run", "check", "status"):
        ran = goodput(command, *site)
        assert (ran.code, "logs of c print times with +0100" in ran.err) == (0, True), command
    (warning,) = json.loads(goodput("check", "--json", *site).out)["warnings"]
    found = json.loads(goodput("doctor", "--json", *site).out)["findings"]
    (zone,) = [f for f in found if f["about"] == "zone"]
    assert (zone["level"], f"{zone['text']}; ") == ("warning", warning[: len(zone["text"]) + 2])
