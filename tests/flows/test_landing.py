"""Finding exports: patterns and captures, times in paths, links."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.landing import BadStampError, find, stamp_utc


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


def names(root: Path, pattern: str) -> list[str]:
    return [str(f.path.relative_to(root)) for f in find(f"{root}/{pattern}") if not f.is_folder]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.txt", ["a.txt"]),
        ("*.txt", ["a.txt", "b[1].txt"]),
        ("?.txt", ["a.txt"]),
        ("[ab].txt", ["a.txt"]),
        ("[!b]*.txt", ["a.txt"]),
        ("b[[]1].txt", ["b[1].txt"]),
        ("*/*.log", ["d/x.log"]),
        ("**/*.log", ["d/e/y.log", "d/x.log"]),
        ("**", ["a.txt", "b[1].txt", "d/e/y.log", "d/x.log"]),
        ("d/**", ["d/e/y.log", "d/x.log"]),
        ("**/e/*", ["d/e/y.log"]),
        ("none*", []),
        ("none/x", []),
        ("a.txt/x", []),
        (".h*", [".hidden"]),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, expected: list[str]) -> None:
    make(tmp_path, "a.txt", "b[1].txt", "d/x.log", "d/e/y.log", ".hidden", ".git/z.log")
    assert names(tmp_path, pattern) == expected


def test_captures(tmp_path: Path) -> None:
    make(tmp_path, "c1/2026-11-30/gpu001.log", "c2/20261130T025345Z/gpu002.log")
    found = [f.captures for f in find(f"{tmp_path}/{{cluster}}/{{collected_at}}/{{node}}.log")]
    assert found == [
        {"cluster": "c1", "collected_at": "2026-11-30", "node": "gpu001"},
        {"cluster": "c2", "collected_at": "20261130T025345Z", "node": "gpu002"},
    ]


def test_a_stamp_is_told_from_the_name_beside_it(tmp_path: Path) -> None:
    make(tmp_path, "my-node-2026-11-30.log", "sacct_2026-11-30T02:53:45Z.txt", "train_71500_3.log")
    assert find(f"{tmp_path}/{{node}}-{{collected_at}}.log")[0].captures["node"] == "my-node"
    assert find(f"{tmp_path}/sacct_{{collected_at}}.txt")[0].captures["collected_at"] == "2026-11-30T02:53:45Z"
    assert find(f"{tmp_path}/train_{{job_id}}.log")[0].captures == {"job_id": "71500_3"}


def test_a_path_whose_stamp_cannot_be_read_is_a_problem_and_not_left_out(tmp_path: Path) -> None:
    make(tmp_path, "sacct_2026-11-30.txt", "sacct_latest.txt")
    good, bad = find(f"{tmp_path}/sacct_{{collected_at}}.txt")
    assert good.problem is None
    assert "'latest', which is no date" in str(bad.problem)


def test_one_capture_used_twice_must_be_the_same(tmp_path: Path) -> None:
    make(tmp_path, "n1/n1.log", "n1/n2.log")
    first, second = find(f"{tmp_path}/{{node}}/{{node}}.log")
    assert (first.captures, first.problem) == ({"node": "n1"}, None)
    assert "two different names" in str(second.problem)


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    make(tmp_path, "real/a.log", "other/b.log")
    (tmp_path / "real/up").symlink_to("..")
    (tmp_path / "real/self").symlink_to("self")
    (tmp_path / "real/other").symlink_to("../other")
    (tmp_path / "x/deep").mkdir(parents=True)
    (tmp_path / "x/deep/back").symlink_to(tmp_path / "x")
    assert names(tmp_path, "real/**/*.log") == ["real/a.log", "real/other/b.log"]
    assert names(tmp_path, "**/*.log") == ["other/b.log", "real/a.log"], "each file once, by its own path"
    assert names(tmp_path, "x/**/*.log") == []


def test_a_dangling_link_is_told(tmp_path: Path) -> None:
    (tmp_path / "gone.log").symlink_to("nowhere")
    [found] = find(f"{tmp_path}/*.log")
    assert "No such file" in str(found.problem)


def test_a_name_that_is_not_utf8_becomes_text(tmp_path: Path) -> None:
    name = bytes(tmp_path) + b"/caf\xe9.log"
    Path(name.decode("utf-8", "surrogateescape")).write_text("x")
    [found] = find(f"{tmp_path}/*.log")
    assert found.name.endswith("caf\\xe9.log")
    found.name.encode()


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-11-30T02:53:45Z", "Europe/Berlin", datetime(2026, 11, 30, 2, 53, 45, tzinfo=UTC)),
        ("20261130T025345Z", None, datetime(2026, 11, 30, 2, 53, 45, tzinfo=UTC)),
        ("2026-11-30_02-53-45", None, datetime(2026, 11, 30, 2, 53, 45, tzinfo=UTC)),
        ("2026-11-30T02:53", "Europe/Berlin", datetime(2026, 11, 30, 1, 53, tzinfo=UTC)),
        ("2026-11-30T02:53:45+0530", None, datetime(2026, 11, 29, 21, 23, 45, tzinfo=UTC)),
        ("2026-11-30T02:53:45.25-08:00", None, datetime(2026, 11, 30, 10, 53, 45, 250_000, tzinfo=UTC)),
        ("2026-11-30", None, datetime(2026, 12, 1, tzinfo=UTC)),
        ("20261231", "America/New_York", datetime(2027, 1, 1, 5, tzinfo=UTC)),
        ("2025-10-26T02:30:00", "Europe/Berlin", datetime(2025, 10, 26, 0, 30, tzinfo=UTC)),
    ],
)
def test_stamps(text: str, zone: str | None, expected: datetime) -> None:
    assert stamp_utc(text, zone) == expected


@pytest.mark.parametrize("text", ["latest", "2026-13-01", "2026-02-30", "2026", "2026-11-30T25:00:00Z", "9999-12-31"])
def test_what_is_no_stamp_is_refused(text: str) -> None:
    with pytest.raises(BadStampError):
        stamp_utc(text, None)
