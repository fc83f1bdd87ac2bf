"""A query reads and writes nothing outside the warehouse, changes nothing inside it, and opens what was asked for only."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from warehouse import publish, query
from warehouse.console import Snapshot
from warehouse.query import QueryError

from .conftest import Build

Open = Callable[..., Snapshot]

OUTSIDE = [
    "from read_text('{file}')",
    "from read_blob('{file}')",
    "from read_csv('{file}')",
    "from sniff_csv('{file}')",
    "from read_json('{file}')",
    "from parquet_metadata('{file}')",
    "from '{file}'",
    "from read_csv('/etc/passwd')",
    "from query('from read_text(''{file}'')')",
    "prepare stolen as from read_text('{file}')",
    "create temp table stolen as from read_text('{file}')",
    "from glob('/*')",
    "copy (select 1) to '{file}.csv'",
    "copy (select 1) to '/dev/stdout' (format csv)",
    "copy (select 1 as a, 2 as b) to '{folder}/parts' (format csv, partition_by (a))",
    "export database '{file}.d'",
    "import database '{folder}'",
    "attach '{file}.duckdb' as other",
    "attach '{folder}/other.duckdb' as other",
    "from read_duckdb('{folder}/other.duckdb')",
    "install httpfs",
    "install httpfs from community",
    "load httpfs",
    "load '{file}.duckdb_extension'",
    "update extensions",
    "from read_parquet('https://example.invalid/a.parquet')",
    "from 's3://example/a.parquet'",
    "attach 'https://example.invalid/a.duckdb' as other",
    "create secret s (type s3)",
    "create persistent secret s (type http)",
    "select getenv('HOME')",
]
SETTINGS = [
    "set enable_external_access = true",
    "set lock_configuration = false",
    "reset lock_configuration",
    "set global allowed_directories = ['/']",
    "set session TimeZone = 'Asia/Tokyo'",
    "set memory_limit = '1TB'",
    "set temp_directory = '{folder}'",
    "set log_query_path = '{file}.log'",
    "set custom_extension_repository = 'https://example.invalid'",
    "pragma memory_limit = '1TB'",
    "pragma enable_profiling = 'json'",
    "pragma profiling_output = '{file}.json'",
    "call enable_logging(storage = 'file', storage_config = {{'path': '{file}.log'}})",
    "call enable_logging('QueryLog', storage = 'stdout')",
]
INSIDE = [
    "create table marts.mine as select 1",
    "create view marts.mine as select 1",
    "create macro mine(a) as a",
    "create schema mine",
    "insert into marts.many values (1)",
    "delete from marts.many",
    "update marts.many set n = 1",
    "drop table marts.many",
    "alter table marts.many rename to few",
    "comment on table marts.many is 'mine'",
    "attach '{build}' as again",
]


@pytest.fixture
def link(make: Build, data: Path, tmp_path: Path) -> Path:
    make({"marts/many": "select range as n from range(100)"})
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "secret.csv").write_text("secret\n")
    return publish.link_of(data)


def filled(sql: str, link: Path, tmp_path: Path) -> str:
    folder = tmp_path / "elsewhere"
    return sql.format(file=folder / "secret.csv", folder=folder, build=link.resolve())


@pytest.fixture
def open_snapshot(link: Path) -> Iterator[Open]:
    """Open snapshots, closed after the test."""
    with ExitStack() as stack:
        yield lambda *folders: stack.enter_context(Snapshot(link, folders))


def state_of(folder: Path) -> dict[Path, bytes | None]:
    there = (p for p in folder.rglob("*") if ".reading-" not in p.name)  # where the session itself would spill
    return {p: p.read_bytes() if p.is_file() else None for p in there}


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (OUTSIDE, "disabled (by|through) config|requires the extension|name getenv does not exist"),
        (SETTINGS, "configuration has been locked"),
        (INSIDE, "read-only mode|file handle conflict"),
    ],
    ids=["outside", "settings", "inside"],
)
def test_a_query_is_shut_off(
    link: Path, open_snapshot: Open, tmp_path: Path, statements: list[str], reason: str
) -> None:
    """The same whether its answer is read or written; a shell's session is shut off after each as before."""
    before = state_of(tmp_path)
    snapshot = open_snapshot()
    for sql in (filled(s, link, tmp_path) for s in statements):
        with pytest.raises(QueryError, match=reason):
            pytest.fail(f"{sql} is allowed: {query.rows(link, sql)}")
        for form in ("csv", "parquet"):
            with pytest.raises(QueryError, match=reason):
                snapshot.write(sql, io.BytesIO(), form)
        for _ in range(2):
            with pytest.raises(QueryError, match=reason):
                snapshot.ask(sql, most=10, count_seconds=0)
        assert snapshot.ask("select count(*) from marts.many", most=1, count_seconds=0).rows == [(100,)]
    assert state_of(tmp_path) == before


def test_variables_of_the_program_are_no_tables(link: Path) -> None:
    ours = pa.table({"a": [1]})
    with pytest.raises(QueryError, match="ours"):
        query.rows(link, "from ours")
    assert ours.num_rows == 1


def test_what_a_session_makes_for_itself_stays_in_memory(open_snapshot: Open, tmp_path: Path) -> None:
    before = state_of(tmp_path)
    snapshot = open_snapshot()
    snapshot.ask("create temp table kept as select n from marts.many where n < 3", most=1, count_seconds=0)
    assert snapshot.ask("select count(*) from kept", most=1, count_seconds=0).rows == [(3,)]
    assert state_of(tmp_path) == before


def test_a_folder_is_opened_when_asked_and_nothing_else(link: Path, open_snapshot: Open, tmp_path: Path) -> None:
    folder, apart = tmp_path / "elsewhere", tmp_path / "apart"
    apart.mkdir()
    (apart / "secret.csv").write_text("secret\n")
    (folder / "out").symlink_to(apart)
    snapshot = open_snapshot(folder)

    def ask(sql: str) -> list[tuple[object, ...]]:
        return snapshot.ask(sql, most=10, count_seconds=0).rows

    assert ask(f"select content from read_text('{folder}/secret.csv')") == [("secret\n",)]
    ask(f"copy (select n from marts.many) to '{folder}/many.parquet'")
    assert ask(f"select count(*) from '{folder}/many.parquet'") == [(100,)]
    before = state_of(tmp_path)
    for path in (
        apart / "secret.csv",
        folder / ".." / "apart" / "secret.csv",
        folder / "out" / "secret.csv",  # a link leads out
        Path(f"{folder}2") / "secret.csv",  # a name that begins alike
        link,
        link.resolve(),
    ):
        with pytest.raises(QueryError):
            ask(f"select content from read_text('{path}')")
        with pytest.raises(QueryError):
            ask(f"copy (select 1) to '{path}' (format csv)")
    for sql in [*SETTINGS, *INSIDE, "install httpfs", "from 'https://example.invalid/a.csv'"]:
        with pytest.raises(QueryError):
            ask(filled(sql, link, tmp_path))
    assert state_of(tmp_path) == before


def test_a_relative_folder_is_the_one_meant(
    open_snapshot: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    snapshot = open_snapshot(Path("elsewhere"))
    assert snapshot.ask("from read_csv('elsewhere/secret.csv', header = false)", most=1, count_seconds=0).total == 1
    with pytest.raises(QueryError):
        snapshot.ask(f"from read_text('{os.devnull}')", most=1, count_seconds=0)
