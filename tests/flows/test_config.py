"""The configuration: what is right is read with its defaults; what is wrong is named with its line and what was meant."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest

from flows import config
from flows.config_errors import line_numbers, line_of
from flows.config_types import CAPTURES, JOB_COLUMNS, seconds
from flows.landing import CAPTURES as LANDING_CAPTURES
from transforms.tables import JOB_ATTEMPTS
from warehouse.inputs import SETTINGS

FILE = Path("/etc/goodput/goodput.toml")


def parsed(text: str) -> config.Config:
    return config.parse(dedent(text), FILE)


def problems(text: str) -> list[str]:
    with pytest.raises(config.ConfigError) as caught:
        parsed(text)
    return [str(p) for p in caught.value.problems]


def test_an_empty_file_has_defaults() -> None:
    found = parsed("")
    assert found.data == Path("/etc/goodput/data")
    assert found.keep_builds == 5
    assert (found.memory_limit, found.threads, found.sources, found.only_cluster) == (None, None, [], None)


def test_paths_are_relative_to_the_file_and_sources_know_their_line() -> None:
    found = parsed(
        """
        [warehouse]
        data = "../lake"

        [[sources]]
        path = "exports/sacct-*.txt"

        [[sources]]
        path = "/abs/{node}/dmesg"
        format = "kernel_log"
        columns = ["a", "b"]
        delimiter = "\\t"
        collected_at = "2026-05-04T13:30:00+02:00"
        """
    )
    assert found.data == Path("/etc/goodput/../lake")
    first, second = found.sources
    assert (first.path, first.where) == ("/etc/goodput/exports/sacct-*.txt", "goodput.toml line 5")
    assert (second.path, second.where) == ("/abs/{node}/dmesg", "goodput.toml line 8")
    assert second.collected_at == datetime(2026, 5, 4, 11, 30, tzinfo=UTC)
    assert (second.columns, second.delimiter) == (("a", "b"), "\t")


def test_a_folder_whose_name_looks_like_a_glob_is_taken_literally() -> None:
    found = config.parse('[[sources]]\npath = "*.txt"\n', Path("/data/run[1]/goodput.toml"))
    assert found.sources[0].path == "/data/run[[]1]/*.txt"


def test_settings_rows_fit_the_tables_that_the_build_reads() -> None:
    found = parsed(
        """
        [clusters.llm]
        zone = "Europe/Berlin"
        gpus_per_node = 8

        [clusters."other one"]
        capacity_gpus = 96

        [[runs]]
        name = "llama"
        match = { user = "alice", job_name = "llama-*" }
        key = ["user", "job_name:^(.*)-v[0-9]+$"]
        max_gap = "7d"

        [attribution]
        before = "90s"

        [attribution.windows.gpu_lost]
        after = "7d"

        [[calendars]]
        cluster = "llm"
        name = "firmware"
        start = 2026-07-01T08:00:00
        end = 2026-07-01T12:00:00+02:00
        nodes = ["gpu001"]
        """
    )
    rows = found.settings_rows()
    assert set(rows) == set(SETTINGS)
    for name, table in SETTINGS.items():
        assert table.enforce(pl.DataFrame(rows[name], schema=table.schema)).height == len(rows[name])
        assert all(set(row) == set(table.schema) for row in rows[name])
    assert found.zones() == {"llm": "Europe/Berlin"}
    assert rows["runs"][0] == {
        "run_rule": 1,
        "name": "llama",
        "match_columns": ["user", "job_name"],
        "match_globs": ["alice", "llama-*"],
        "min_gpus": None,
        "key_columns": ["user", "job_name"],
        "key_patterns": ["", "^(.*)-v[0-9]+$"],
        "max_gap_seconds": 7 * 86400,
        "resume_window_seconds": 3600,
        "checkpoint_interval_seconds": 3600,
        "restart_overhead_seconds": 300,
    }
    # A lost GPU and Xid 79 are one class of evidence; a window under the event's name must reach it.
    assert rows["evidence_windows"] == [{"evidence_class": "xid_79", "before_seconds": 90, "after_seconds": 7 * 86400}]
    # A time without a zone is the cluster's: 08:00 in Berlin in July is 06:00 UTC.
    assert rows["calendars"][0]["started_at"] == datetime(2026, 7, 1, 6, tzinfo=UTC)
    assert rows["calendars"][0]["ended_at"] == datetime(2026, 7, 1, 10, tzinfo=UTC)


def test_a_window_for_a_kind_of_event_holds_for_all_its_codes_but_those_named_themselves() -> None:
    text = '[attribution.windows.xid_31]\nbefore = "1m"\n[attribution.windows.xid]\nbefore = "2h"\n'
    rows = {row["evidence_class"]: row for row in parsed(text).settings_rows()["evidence_windows"]}
    assert rows["xid_31"]["before_seconds"] == 60
    assert rows["xid_13"]["before_seconds"] == rows["xid_79"]["before_seconds"] == 7200
    assert {row["after_seconds"] for row in rows.values()} == {900}
    assert "xid" not in rows, "no evidence has this class, so such a row would do nothing"


def test_without_runs_every_job_is_tracked() -> None:
    (rule,) = parsed("").settings_rows()["runs"]
    assert (rule["match_columns"], rule["key_columns"], rule["min_gpus"]) == ([], ["user", "job_name"], None)


def test_one_cluster_is_the_only_one() -> None:
    assert parsed('[clusters.llm]\nzone = "UTC"').only_cluster == "llm"
    assert parsed("[clusters.a]\n[clusters.b]").only_cluster is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[warehouse]\nkeep_build = 3', "line 2: unknown key `keep_build` in [warehouse]; did you mean `keep_builds`?"),
        ('\n[warehose]', "line 2: unknown key `warehose` in the file; did you mean `warehouse`?"),
        ('[[source]]\npath = "a"', "line 1: unknown key `source` in the file; did you mean `sources`?"),
        ('[clusters.llm]\nzone = "Europe/Berln"', 'line 2: `zone`: "Europe/Berln" is no IANA time zone; did you mean "Europe/Berlin"?'),
        ('[clusters.llm]\nzone = ""', 'line 2: `zone`: "" is no IANA time zone; write one such as "UTC" or "Europe/Berlin"'),
        ('[clusters.llm]\ngpus_per_node = "8"', 'line 2: `gpus_per_node`: "8" is no whole number above 0'),
        ('[clusters.llm]\ngpus_per_node = true', "line 2: `gpus_per_node`: true is no whole number above 0"),
        ('[[sources]]\nformat = "kernel_log"', "line 1: [[sources]] needs `path` or `command`"),
        ('[[sources]]\npath = "a"\nformat = "kernel_lgo"', 'line 3: `format`: no export format is named "kernel_lgo"; did you mean `kernel_log`?'),
        ('[[sources]]\npath = "{nod}/a"', "line 2: `path`: a path cannot capture {nod}; did you mean `node`?"),
        ('[[sources]]\npath = "https://a/b"', 'line 2: `path`: "https://a/b" is an address; fetch it with a `command` such as curl, or into a file'),
        ('[[sources]]\npath = "a"\ncollected_at = 2026-05-04T13:30:00', "line 3: `collected_at`: 2026-05-04T13:30:00 has no zone; end it with Z or an offset such as +02:00"),
        ('[[sources]]\npath = "a"\ncolumns = "JobID"', 'line 3: `columns`: "JobID" is no list; write ["one", "two"]'),
        ('[[sources]]\npath = "a"\ndelimiter = "||"', 'line 3: `delimiter`: "||" is no delimiter; write one character such as "|" or "\\t"'),
        ('[clusters.llm]\n[[sources]]\npath = "a"\ncluster = "lmm"', 'line 4: `cluster`: "lmm" is not configured; did you mean "llm"?'),
        ('[[runs]]\nmax_gap = "3 weeks"', 'line 2: `max_gap`: "3 weeks" is no duration; write "90s", "45m", "24h", "7d" or whole seconds'),
        ('[[runs]]\nmax_gap = -1', 'line 2: `max_gap`: -1 is no duration; write "90s", "45m", "24h", "7d" or whole seconds'),
        ('[[runs]]\nmatch = { usr = "x" }', 'line 2: `match`: "usr" is no job column; did you mean "user"?'),
        ('[[runs]]\n[runs.match]\nusr = "x"', 'line 2: `match`: "usr" is no job column; did you mean "user"?'),
        ('[[runs]]\nkey = ["user", "job_name:v[0-9]+"]', 'line 2: `key`: "v[0-9]+" has no group; put round brackets round the part that names the run'),
        ('[[runs]]\nkey = []', "line 2: `key` is empty; give it at least one item, or leave it out"),
        ('[[runs]]\n[[runs]]\nfoo = 1', "line 3: unknown key `foo` in [[runs]]; known: "),
        ('attribution = 5', "line 1: `attribution` is a table: write [attribution], not attribution = 5"),
        ('runs = 5', "line 1: `runs` is a list of tables: write [[runs]]"),
        ('[attribution.windows.diag]\nbefor = "7d"', "line 2: unknown key `befor` in [attribution.windows.diag]; did you mean `before`?"),
        ('[[calendars]]\ncluster = "x"\nname = "n"\nstart = 2026-01-01T00:00:00\nend = 2026-01-02T00:00:00Z', "line 4: `start` has no zone; end it with Z, or set `zone` under [clusters.x]"),
        ('[[calendars]]\ncluster = "x"\nname = "n"\nstart = 2026-01-03T00:00:00Z\nend = 2026-01-02T00:00:00Z', "line 5: `end` is not after `start`"),
        ('[attribution.windows.gpu_lots]\nbefore = "7d"', "line 1: no evidence has the class `gpu_lots`; did you mean `gpu_lost`?"),
        ('[warehouse]\nmemory_limit = "1KB"', 'line 2: `memory_limit`: "1KB" is too little; a build needs 64MB at least'),
        ('[warehouse]\nthreads = 2147483647', "line 2: `threads`: 2147483647 is too large; the largest is 1024"),
        ('[clusters.a]\ngpus_per_node = 99999999999999999999', "line 2: `gpus_per_node`: 99999999999999999999 is too large; the largest is 2147483647"),
        ('[[runs]]\ncheckpoint_interval = "9999999999999999999d"', 'line 2: `checkpoint_interval`: "9999999999999999999d" is too long; the longest is 36500d'),
        ('[[runs]]\nmax_gap = 99999999999999999999', "line 2: `max_gap`: 99999999999999999999 is too long; the longest is 36500d"),
        ('[warehouse]\nmemory_limit = "lots"', 'line 2: `memory_limit`: "lots" is no amount of memory; write one such as "4GB"'),
        ('a = 1\nb = = 2', "line 2: is not TOML: Invalid value"),
        ('[warehouse]\ndata = "a', "is not TOML: "),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_what_was_meant(text: str, expected: str) -> None:
    assert expected in problems(text)[0]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = '[warehouse]\nkeep_builds = 0\n[clusters.llm]\nzone = "x"\n[[sources]]\npath = ""\n[[runs]]\nkye = 1\n'
    assert [p.partition(":")[0] for p in problems(text)] == ["line 2", "line 4", "line 6", "line 8"]


def test_the_error_is_one_text_without_a_trace_of_the_validator() -> None:
    with pytest.raises(config.ConfigError) as caught:
        parsed("[warehouse]\nkeep_builds = 0.5\n")
    assert str(caught.value) == f"{FILE}:\n  line 2: `keep_builds`: 0.5 is no whole number above 0"


def test_a_missing_file_points_to_init(tmp_path: Path) -> None:
    with pytest.raises(config.ConfigMissingError, match="goodput init"):
        config.load(tmp_path / "goodput.toml")


def test_a_file_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "goodput.toml"
    file.write_bytes(b"# fine\n# \xff\n")
    with pytest.raises(config.ConfigError, match="line 2: is not UTF-8"):
        config.load(file)


def test_lines_survive_comments_quotes_dots_and_text_over_many_lines() -> None:
    text = dedent(
        '''
        # [not.a.table]
        [ a . "b.c" ]  # comment
        x.y = 1
        s = """
        [z]
        k = 1
        """
        after = 2
        [[t]]
        [[t]]
        [t.sub]
        q = [
          "k = v",
        ]
        '''
    )
    lines = line_numbers(text)
    assert lines == {
        ("a", "b.c"): 3,
        ("a", "b.c", "x", "y"): 4,
        ("a", "b.c", "s"): 5,
        ("a", "b.c", "after"): 9,
        ("t",): 10,
        ("t", 0): 10,
        ("t", 1): 11,
        ("t", 1, "sub"): 12,
        ("t", 1, "sub", "q"): 13,
    }
    assert line_of(lines, ("t", 1, "sub", "q", 0)) == 13
    assert line_of(lines, ("nowhere",)) is None


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", 90), ("45m", 2700), ("24h", 86400), ("7d", 604800), (0, 0), ("0s", 0)]
)
def test_durations(text: object, expected: int) -> None:
    assert seconds(text) == expected


def test_columns_and_captures_agree_with_those_who_use_them() -> None:
    assert set(JOB_COLUMNS) <= set(JOB_ATTEMPTS.schema)
    assert set(CAPTURES) == set(LANDING_CAPTURES)
