"""Parts of the shell without a terminal: its words, completion, history, errors in short, answers that are too wide."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from flows.cli.answers import plain, say_answer, say_records
from flows.cli.query_errors import in_short, is_interrupt
from flows.cli.shell_completion import SqlCompleter
from flows.cli.shell_history import MOST_BYTES, history_file
from flows.cli.shell_words import command_of
from tests.flows.terminal_help import plain as without_escapes
from warehouse.console import Snapshot


@pytest.fixture(scope="module")
def completer(demo_folder: Path) -> Iterator[SqlCompleter]:
    with Snapshot(demo_folder / "data" / "warehouse.duckdb") as snapshot:
        yield SqlCompleter(snapshot)


def offered(completer: SqlCompleter, text: str) -> dict[str, str]:
    """What completion offers where `|` stands: each whole word with what is said of it."""
    before, _, after = text.partition("|")
    event = CompleteEvent(completion_requested=True)
    found = completer.get_completions(Document(before + after, len(before)), event)
    return {c.text: c.display_meta_text for c in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("help", ("help", "")),
        (".describe runs", ("describe", "runs")),
        ("describe marts.runs;", ("describe", "marts.runs")),
        ("describe select 1;", None),
        ("describe", ("describe", "")),
        ("describe;", ("describe", "")),
        ("questions 3", ("questions", "3")),
        (".nonsense", ("nonsense", "")),
        (".exit", ("quit", "")),
        ("\\q", None),
        ("select 1;", None),
        ("tables\nfrom x;", None),
        ("from tables;", None),
    ],
)
def test_words_of_the_shell_are_told_from_sql(text: str, expected: tuple[str, str] | None) -> None:
    assert command_of(text) == expected


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("from mar|", "marts.interruptions"),
        ("from inter|", "marts.interruptions"),
        ("from root|", "root_causes_between("),
        ("select conf| from marts.interruptions", "confidence"),
        ("select i.conf| from marts.interruptions as i", "confidence"),
        ("select pois|", "poisson_interval("),
        ("sel|", "select"),
        ("select date_tr|", "date_trunc"),
        ("select 1 from marts.interruptions where cause = 'net|", "network_switch_cable'"),
        ("from marts.interruptions as i where i.cause in ('gpu_hbm', 'net|", "network_switch_cable'"),
        ("describe ru|", "marts.runs"),
        (".desc|", "describe"),
    ],
)
def test_completion_offers(completer: SqlCompleter, text: str, wanted: str) -> None:
    assert wanted in offered(completer, text)


def test_completion_says_what_a_column_means(completer: SqlCompleter) -> None:
    assert "UTC" in offered(completer, "select interrupted_| from marts.interruptions")["interrupted_at"]


def test_completion_offers_columns_of_the_named_tables_only(completer: SqlCompleter) -> None:
    found = offered(completer, "select | from marts.runs")
    assert "effective_training_time" in found
    assert "culprit_node" not in found
    assert offered(completer, "select 'conf| from marts.interruptions") == {}  # within a text


def test_history_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = history_file(tmp_path / "data")
    assert path == tmp_path / "state" / "goodput" / "sql_history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert history_file(tmp_path / "data") == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert history_file(tmp_path / "state") is None  # the warehouse's folder is no place for it


def test_a_long_history_loses_its_older_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "goodput" / "sql_history"
    path.parent.mkdir()
    entries = [f"\n# then\n+select {n};\n" for n in range(MOST_BYTES // 20)]
    path.write_text("".join(entries))
    assert history_file(tmp_path / "data") == path
    kept = path.read_text()
    assert len(kept) < MOST_BYTES
    assert kept.startswith("\n# then\n+select ")
    assert kept.endswith(entries[-1])


def test_errors_are_short_with_a_next_step() -> None:
    said = in_short('Catalog Error: Table with name rums does not exist!\nDid you mean "x"?', known=["marts.runs"])
    assert said.splitlines()[1] == "Did you mean marts.runs?"
    assert '"x"' not in said
    assert len(in_short("\n".join(map(str, range(100)))).splitlines()) < 10
    assert is_interrupt("INTERRUPT Error: Interrupted!")
    assert not is_interrupt("Conversion Error: INTERRUPT")


def test_nested_values_are_one_text() -> None:
    assert plain({"lower": 1.23456, "upper": None}) == "{lower: 1.235, upper: None}"
    assert plain([1, [2.5]]) == "[1, [2.500]]"
    assert plain(b"a\x00\\") == "a\\x00\\x5C"


def test_an_answer_that_is_too_wide_loses_columns_or_is_turned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    columns = [f"column_{n}" for n in range(30)]
    say_answer(columns, [list(range(30))] * 9, hint="see")
    assert "column_29" in capsys.readouterr().out  # in a pipe nothing is left out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    say_answer(columns, [list(range(30))] * 9, hint="see")
    captured = capsys.readouterr()
    assert "column_29" not in captured.out
    assert "columns, column_6 to column_29; see" in captured.err
    assert max(map(len, without_escapes(captured.out).splitlines())) <= 60
    say_answer(columns, [list(range(30))], hint="see")
    assert "column_29  29" in capsys.readouterr().out


def test_columns_of_one_name_are_all_shown(capsys: pytest.CaptureFixture[str]) -> None:
    say_answer(["a", "a"], [(1, 2)], hint="")
    assert capsys.readouterr().out.split() == ["a", "a", "(2)", "1", "2"]
    say_records(["a", "a"], [(1, "x\x1b[2J")])
    assert capsys.readouterr().out == "a  1\na  x\\x1b[2J\n"
