"""What `goodput sql` refuses, it refuses in every way of asking; folders open only when asked, and never the warehouse's."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flows.terminal_help import Terminal
from warehouse import publish

Goodput = Callable[..., Any]

REFUSED = {
    "from read_csv('/etc/passwd')": "--allow-files FOLDER",
    "copy (select 1) to '{here}/out.csv'": "--allow-files FOLDER",
    "attach '{here}/mine.duckdb' as mine": "--allow-files FOLDER",
    "install httpfs": "no network",
    "load httpfs": "no network",
    "from read_parquet('https://example.invalid/a.parquet')": "no network",
    "set lock_configuration = false": "settings are fixed",
    "pragma memory_limit = '1TB'": "settings are fixed",
    "select getenv('HOME')": "getenv does not exist",
    "drop table marts.runs": "never changed by a query",
}


class Typed(io.StringIO):
    """Standard input that is no terminal."""


def by_argument(goodput: Goodput, statement: str, *config: object, **_: Any) -> Any:
    return goodput("sql", statement, *config)


def by_file(goodput: Goodput, statement: str, *config: object, here: Path, **_: Any) -> Any:
    file = here / "statement.sql"
    file.write_text(statement)
    ran = goodput("sql", "--file", file, *config)
    file.unlink()
    return ran


def by_standard_input(
    goodput: Goodput, statement: str, *config: object, monkeypatch: pytest.MonkeyPatch, **_: Any
) -> Any:
    monkeypatch.setattr("sys.stdin", Typed(statement))
    return goodput("sql", *config)


@pytest.mark.parametrize("ask", [by_argument, by_file, by_standard_input])
@pytest.mark.parametrize("form", ["table", "csv"])
def test_a_query_is_refused_however_it_comes(
    goodput: Goodput, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Any, form: str
) -> None:
    config = ("--config", demo_folder / "goodput.toml", "--format", form)
    for statement, said in REFUSED.items():
        ran = ask(goodput, statement.format(here=tmp_path), *config, here=tmp_path, monkeypatch=monkeypatch)
        assert (ran.code, ran.out) == (1, ""), statement
        assert said in ran.err
        assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_shell_refuses_the_same(demo_folder: Path, tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    with Terminal("sql", "--config", demo_folder / "goodput.toml", state=home, columns=300) as at:
        at.wait("goodput>")
        for statement, said in REFUSED.items():
            assert said in at.ask(f"{statement.format(here=here)};", "error: "), statement
        assert at.leave() == 0
    assert list(here.iterdir()) == []


def test_a_folder_that_was_asked_for_is_read_and_written(goodput: Goodput, demo_folder: Path, tmp_path: Path) -> None:
    config = ("--config", demo_folder / "goodput.toml")
    (tmp_path / "nodes.csv").write_text("node,owner\ngpu008,me\n")
    sql = f"select owner from '{tmp_path}/nodes.csv' as o inner join marts.nodes as n on o.node = n.node"
    assert goodput("sql", sql, "--allow-files", tmp_path, "--format", "csv", *config).out.split() == ["owner", '"me"']
    for form in ("csv", "table"):
        target = tmp_path / f"{form}.parquet"
        assert goodput("sql", f"copy marts.runs to '{target}'", "--allow-files", tmp_path, *config).code == 0
        assert target.is_file()
    assert goodput("sql", "from read_csv('/etc/passwd')", "--allow-files", tmp_path, *config).code == 1
    assert goodput("sql", "drop table marts.runs", "--allow-files", tmp_path, *config).code == 1


def test_the_warehouses_own_folder_is_never_opened(goodput: Goodput, demo_folder: Path, tmp_path: Path) -> None:
    config = ("--config", demo_folder / "goodput.toml")
    link = tmp_path / "link"
    link.symlink_to(demo_folder / "data")
    for folder in (demo_folder, demo_folder / "data", demo_folder / "data" / "builds", link, Path("/")):
        ran = goodput("sql", "select 1", "--allow-files", folder, *config)
        assert (ran.code, ran.out) == (2, ""), folder
        assert "name a folder apart from it" in ran.err
    ran = goodput("sql", "select 1", "--allow-files", tmp_path / "absent", *config)
    assert (ran.code, ran.out) == (2, "")
    assert "no such folder" in ran.err
    assert list(tmp_path.iterdir()) == [link]


def test_parts_of_it_that_lie_elsewhere_are_never_opened_either(
    goodput: Goodput, demo_folder: Path, tmp_path: Path
) -> None:
    """Lake, builds and outputs of commands are often links to larger volumes."""
    home, other = tmp_path / "home", tmp_path / "other"
    (home / "data/lake").mkdir(parents=True)
    for name in ("builds", "landing", "lake/log_events"):
        (other / name).mkdir(parents=True)
        (home / "data" / name).symlink_to(other / name)
    (other / "mine").mkdir()
    (home / "goodput.toml").write_text((demo_folder / "goodput.toml").read_text())
    shutil.copy(publish.published(demo_folder / "data"), other / "builds/20260101T000000000000Z.duckdb")
    (home / "data/warehouse.duckdb").symlink_to("builds/20260101T000000000000Z.duckdb")
    config = ("--config", home / "goodput.toml")
    for folder in (other / "builds", other / "landing", other / "lake/log_events", other / "lake", other):
        ran = goodput("sql", "select 1", "--allow-files", folder, *config)
        assert (ran.code, ran.out) == (2, ""), folder
        assert "name a folder apart from it" in ran.err
    assert goodput("sql", "select 1 as one", "--allow-files", other / "mine", *config).code == 0
