"""`goodput sources` lists files so that one source does not fill the screen, and none that needs a look is hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.conftest import Goodput

SACCT = "JobID|JobName|User|State|ExitCode|Submit|Eligible|Start|End|Elapsed|NNodes|NodeList|AllocTRES\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A source with twenty files, of which one in the middle is of no known format, and one with seven."""
    for number in range(20):
        (tmp_path / f"sacct-{number:02}.txt").write_text("hello\n" if number == 11 else SACCT)
    for number in range(7):
        (tmp_path / f"few-{number}.txt").write_text(SACCT)
    path = tmp_path / "goodput.toml"
    path.write_text('[clusters.c]\nzone = "UTC"\n[[sources]]\npath = "sacct-*.txt"\n[[sources]]\npath = "few-*.txt"\n')
    return path


def listed(out: str, kind: str) -> list[str]:
    """Return the lines below the heading of a source."""
    lines = out.partition(f"{kind}-*.txt: ")[2].partition("goodput.toml line")[0].splitlines()
    return [line.rpartition("/")[2].split("  ")[0] for line in lines[2:]]


def test_of_many_files_the_first_and_last_three_are_listed_and_any_that_is_not_like_them(
    goodput: Goodput, config: Path
) -> None:
    out = goodput("sources", "--config", config).out
    assert "sacct-*.txt: 20 files" in out
    ends = [f"sacct-{n:02}.txt" for n in (0, 1, 2, 17, 18, 19)]
    assert listed(out, "sacct") == [*ends[:3], "… and 13 more (--all)", *ends[3:], "sacct-11.txt"]
    assert "no parser knows it" in out


def test_a_line_that_hides_one_file_hides_none(goodput: Goodput, config: Path) -> None:
    """It would take the place of that file."""
    assert listed(goodput("sources", "--config", config).out, "few") == [f"few-{n}.txt" for n in range(7)]


def test_all_of_them_on_request_and_for_programs(goodput: Goodput, config: Path) -> None:
    assert listed(goodput("sources", "--all", "--config", config).out, "sacct") == [
        f"sacct-{n:02}.txt" for n in range(20)
    ]
    sources = json.loads(goodput("sources", "--json", "--config", config).out)["sources"]
    assert [len(source["files"]) for source in sources] == [20, 7]
