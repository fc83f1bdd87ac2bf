"""The Prefect flows do what the command line does, and refuse parameters that cannot be used."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Event, Thread, Timer
from types import ModuleType
from typing import Any

import pytest

from flows import demo
from flows.cli import execute
from flows.reports import IngestReport
from tests.flows.pulling_help import HEADER, JOB

FLOWS = ("build", "ingest", "maintain", "report")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def prefect_flows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The flows, with a Prefect server of their own that nothing outlives; it takes half a minute to start."""
    with pytest.MonkeyPatch.context() as patch:
        # Prefect reads these when it is imported, so it is imported here and not above.
        patch.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("prefect")))
        patch.setenv("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
        patch.setenv("DO_NOT_TRACK", "1")
        from prefect.testing.utilities import prefect_test_harness

        from flows import prefect_flows

        with prefect_test_harness(server_startup_timeout=180):
            yield prefect_flows


def digest(folder: Path) -> dict[str, str]:
    from warehouse.digest import digest as digest_of

    return digest_of(folder / "data" / "warehouse.duckdb")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digest of the demo's marts as the command line makes them."""
    config = demo.prepare(tmp_path_factory.mktemp("cli") / "demo")
    assert execute(["run", "--config", str(config)]) == 0
    found = digest(config.parent)
    assert "interruptions" in found
    return found


def test_a_source_that_matches_nothing_fails_the_ingest_after_the_rest_is_loaded(
    prefect_flows: ModuleType, expected: dict[str, str], tmp_path: Path
) -> None:
    config = demo.prepare(tmp_path / "demo")
    config.write_text(config.read_text() + '\n[[sources]]\npath = "export/absent-*.txt"\n')
    with pytest.raises(prefect_flows.RunFailedError, match=r"1 could not be read, all else was: export/absent-\*\.txt"):
        prefect_flows.ingest(config=config)
    prefect_flows.build(config=config)
    assert digest(config.parent) == expected


def test_ingest_then_build_gives_the_marts_of_the_command_line_and_repeating_changes_nothing(
    prefect_flows: ModuleType, expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = demo.prepare(tmp_path / "demo")
    monkeypatch.chdir(config.parent)  # the default of `config` is looked up where the worker is, when the run starts
    told = []
    monkeypatch.setattr(prefect_flows.prefect_events, "lake_changed", told.append)
    prefect_flows.ingest()
    assert not (config.parent / "data" / "warehouse.duckdb").exists()
    prefect_flows.ingest()
    assert [c.path for c in told] == [
        config
    ] * 2  # also after an ingest that read nothing: the first may have been killed
    prefect_flows.build()
    assert digest(config.parent) == expected
    published = (config.parent / "data" / "warehouse.duckdb").resolve()
    prefect_flows.ingest()
    prefect_flows.build()
    assert (config.parent / "data" / "warehouse.duckdb").resolve() == published
    assert len(told) == 2


def test_a_run_is_for_the_time_it_was_scheduled_for(
    prefect_flows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(prefect_flows.pipeline, "ingest", lambda *_, until, **__: asked.append(until) or IngestReport())
    monkeypatch.setattr(prefect_flows.pipeline, "needs_build", lambda _: False)
    config = demo.prepare(tmp_path / "demo")
    late = datetime(2026, 5, 4, 2, 7, tzinfo=timezone(timedelta(hours=2)))
    monkeypatch.setattr(prefect_flows.prefect_events.runtime.flow_run, "scheduled_start_time", late, raising=False)
    prefect_flows.ingest(config=config)
    assert asked == [late]
    assert asked[0].tzinfo is UTC


def test_a_backfill_loads_the_period_and_says_what_it_could_not(
    prefect_flows: ModuleType, expected: dict[str, str], tmp_path: Path
) -> None:
    config = demo.prepare(tmp_path / "demo")
    prefect_flows.backfill(start="2020-01-01", end="2026-12-31", config=config)
    assert digest(config.parent) == expected
    with pytest.raises(prefect_flows.RunFailedError, match="--end 2026-05-01 is not after --start 2026-05-03"):
        prefect_flows.backfill(start="2026-05-03", end="2026-05-01", config=config)
    with pytest.raises(prefect_flows.RunFailedError, match="sact"):
        prefect_flows.backfill(start="2026-05-03", end="2026-05-04", config=config, sources=("sact",))
    told = prefect_flows.backfill(start="2026-11-31", config=config, return_state=True)
    assert told.is_failed()
    assert told.message.startswith("'2026-11-31' is no time"), "the line to read is all there is"
    prefect_flows.backfill(start="1d", config=config, build=False)  # until now
    config.write_text(config.read_text() + '\n[[sources]]\nname = "broken"\ncommand = ["false", "{start_utc}"]\n')
    with pytest.raises(prefect_flows.RunFailedError, match=r"1 window is not loaded.*broken .*exit code 1"):
        prefect_flows.backfill(start="2026-05-03T04:00Z", end="2026-05-03T05:00Z", config=config, sources=("broken",))
    prefect_flows.maintain(config=config)
    assert digest(config.parent) == expected


def test_an_expected_failure_is_told_without_a_traceback(
    prefect_flows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads the log of a failed run finds what to do; a traceback is for mistakes of the program."""
    from flows.lease import BusyError

    logged: list[logging.LogRecord] = []
    # Whatever handlers Prefect has given its loggers. A task that raises has its traceback in its own log all the same.
    monkeypatch.setattr(logging.Logger, "handle", lambda _, record: logged.append(record))

    def failing(flow: Any, **parameters: Any) -> tuple[str, bool]:
        """Return the message of the failed run, and whether the flow's log has a traceback."""
        logged.clear()
        state = flow(**parameters, return_state=True)
        assert state.is_failed()
        of_runs = [r for r in logged if r.name.startswith("prefect.flow_runs")]
        assert any(r.getMessage().startswith("Finished in state Failed(") for r in of_runs), "the log is looked at"
        return state.message, any(r.exc_info or "Traceback" in r.getMessage() for r in of_runs)

    config = demo.prepare(tmp_path / "demo")
    said, has_traceback = failing(prefect_flows.backfill, start="2026-05-03", end="2026-05-01", config=config)
    assert (said, has_traceback) == ("--end 2026-05-01 is not after --start 2026-05-03", False)

    config.write_text(config.read_text() + '\n[[sources]]\nname = "broken"\ncommand = ["false", "{start_utc}"]\n')
    said, has_traceback = failing(
        prefect_flows.backfill, start="2026-05-03T04:00Z", end="2026-05-03T05:00Z", config=config, sources=("broken",),
        build=False,
    )  # fmt: skip
    assert (said.startswith("1 window is not loaded"), has_traceback) == (True, False)

    def busy(*_args: Any, **_kwargs: Any) -> None:
        raise BusyError(config.parent / "data", None)

    monkeypatch.setattr(prefect_flows.pipeline, "build", busy)
    said, has_traceback = failing(prefect_flows.build, config=config)
    assert (said, has_traceback) == (str(BusyError(config.parent / "data", None)), False)

    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(prefect_flows.pipeline, "build", broken)
    assert failing(prefect_flows.build, config=config)[1], (
        "nobody expected it: where it happened is what is to be known"
    )


def test_a_secret_comes_from_the_block_named_like_its_variable(prefect_flows: ModuleType) -> None:
    from prefect.blocks.system import Secret

    events = prefect_flows.prefect_events
    assert events.secret("SITE_TOKEN") is None
    Secret(value="1e5").save("site-token")
    assert events.secret("SITE_TOKEN") == "1e5"  # as it was saved, and not the number it could be read as


def test_stale_sources_are_told_of_by_the_report(
    prefect_flows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    monkeypatch.setattr(prefect_flows.prefect_events, "emit_event", lambda event, **facts: told.append((event, facts)))
    config = tmp_path / "demo" / "goodput.toml"
    config.parent.mkdir()
    config.write_text('[clusters.c1]\nzone = "UTC"\n[[sources]]\nname = "jobs"\npath = "sacct_{collected_at}.txt"\n')
    (config.parent / "sacct_2025-05-04.txt").write_text(f"{HEADER}\n{JOB.format(n=1)}\n")
    prefect_flows.ingest(config=config)
    prefect_flows.build(config=config)
    prefect_flows.report(config=config)
    changed, *stale = told
    assert changed[0] == "goodput.lake.changed"
    assert changed[1]["resource"]["prefect.resource.id"].startswith("goodput.warehouse.demo-")
    ((event, facts),) = stale
    assert event == "goodput.source.stale"
    assert facts["resource"]["prefect.resource.name"] == "jobs"
    assert facts["payload"]["text"].startswith("jobs: nothing new for ")


@pytest.mark.parametrize("name", FLOWS)
def test_a_configuration_that_cannot_be_used_is_refused_before_any_task(
    prefect_flows: ModuleType, name: str, tmp_path: Path
) -> None:
    from prefect.exceptions import ParameterBindError, ParameterTypeError

    flow = getattr(prefect_flows, name)
    with pytest.raises(ParameterTypeError, match="no such file; write one with `goodput init"):
        flow(config=tmp_path / "absent.toml")
    wrong = tmp_path / "goodput.toml"
    wrong.write_text("[warehouse]\ndta = 'data'\n")
    with pytest.raises(ParameterTypeError, match="line 2"):
        flow(config=wrong)
    with pytest.raises(ParameterTypeError, match="config"):
        flow(config=3)
    with pytest.raises(ParameterBindError, match="day"):
        flow(day="2026-11-30")
    assert not (tmp_path / "data").exists()


def test_only_what_may_pass_is_tried_again(prefect_flows: ModuleType, tmp_path: Path) -> None:
    tasks = prefect_flows.tasks
    from flows.config import ConfigMissingError
    from flows.lease import BusyError

    assert tasks.may_help_to_wait(OSError("stale file handle"))
    assert not tasks.may_help_to_wait(BusyError(tmp_path, None))  # was waited for, for an hour
    assert not tasks.may_help_to_wait(ConfigMissingError(tmp_path))
    assert not tasks.may_help_to_wait(ZeroDivisionError())


def test_a_failure_of_the_disk_is_tried_again_and_a_mistake_is_not(
    prefect_flows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import pipeline

    config, tasks = demo.prepare(tmp_path / "demo"), prefect_flows.tasks
    calls = []
    real = pipeline.ingest

    def hiccup_once(*args: Any, **kwargs: Any) -> object:
        calls.append(args)
        if len(calls) == 1:
            raise OSError("stale file handle")
        return real(*args, **kwargs)

    monkeypatch.setattr(pipeline, "ingest", hiccup_once)
    monkeypatch.setattr(tasks, "ingest_exports", tasks.ingest_exports.with_options(retry_delay_seconds=[0, 0]))
    prefect_flows.ingest(config=config)
    assert len(calls) == 2

    def broken(*_args: Any, **_kwargs: Any) -> object:
        calls.append(())
        raise ZeroDivisionError

    monkeypatch.setattr(pipeline, "ingest", broken)
    with pytest.raises(ZeroDivisionError):
        prefect_flows.ingest(config=config)
    assert len(calls) == 3


def test_another_writer_is_waited_for_and_named(
    prefect_flows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from flows import lease

    config, tasks = demo.prepare(tmp_path / "demo"), prefect_flows.tasks
    monkeypatch.setattr(tasks, "get_run_logger", lambda: logging.getLogger("flow"))
    data = config.parent / "data"
    held, done = Event(), Event()

    def other() -> None:
        with lease.hold(data, "backfill"):
            held.set()
            done.wait(30)

    thread = Thread(target=other)
    thread.start()
    held.wait(30)
    Timer(2.0, done.set).start()
    with caplog.at_level(logging.INFO, "flow"):
        tasks.ingest_exports.fn(config, datetime.now(UTC))
    thread.join()
    (warning,) = [r.getMessage() for r in caplog.records if "waiting" in r.getMessage()]
    assert f"process {os.getpid()} on" in warning
    assert "`backfill`" in warning


def test_what_exports_say_reaches_the_log_without_control_characters(
    prefect_flows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = demo.prepare(tmp_path / "demo")
    (config.parent / "exports" / "export_2" / "hostile.txt").write_text("\x1b[2Jno format has such a line\n")
    tasks = prefect_flows.tasks
    monkeypatch.setattr(tasks, "get_run_logger", lambda: logging.getLogger("flow"))
    with caplog.at_level(logging.INFO, "flow"):
        tasks.ingest_exports.fn(config, datetime.now(UTC))
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert any("hostile.txt" in w and "no format has such a line" in w for w in warnings)
    assert "\x1b" not in "".join(warnings)
    assert any("10 exports:" in r.getMessage() for r in caplog.records)  # nine of the demo, and this one
