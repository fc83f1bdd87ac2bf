"""The Prefect flows do what the command line does, and refuse parameters that cannot be used."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flows import demo
from flows.cli import execute

ROOT = Path(__file__).resolve().parents[2]
FLOWS = ("build", "ingest", "run")

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


def test_run_gives_the_marts_of_the_command_line(
    prefect_flows: ModuleType, expected: dict[str, str], tmp_path: Path
) -> None:
    config = demo.prepare(tmp_path / "demo")
    prefect_flows.run(config=config)
    assert digest(config.parent) == expected


def test_a_source_that_matches_nothing_fails_the_run_after_the_rest_is_published(
    prefect_flows: ModuleType, expected: dict[str, str], tmp_path: Path
) -> None:
    config = demo.prepare(tmp_path / "demo")
    config.write_text(config.read_text() + '\n[[sources]]\npath = "export/absent-*.txt"\n')
    with pytest.raises(prefect_flows.RunFailedError, match=r"1 of 10 exports could not be read: export/absent-\*\.txt"):
        prefect_flows.run(config=config)
    assert digest(config.parent) == expected


def test_ingest_then_build_gives_the_same_and_repeating_changes_nothing(
    prefect_flows: ModuleType, expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = demo.prepare(tmp_path / "demo")
    monkeypatch.chdir(config.parent)  # the default of `config` is looked up where the worker is, when the run starts
    prefect_flows.ingest()
    assert not (config.parent / "data" / "warehouse.duckdb").exists()
    prefect_flows.build()
    assert digest(config.parent) == expected
    prefect_flows.run()
    assert digest(config.parent) == expected


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


@pytest.mark.parametrize("name", FLOWS)
def test_no_parameter_holds_a_value_computed_when_the_deployment_was_made(prefect_flows: ModuleType, name: str) -> None:
    # A stored default such as "yesterday" would load the same day for ever and report success.
    properties = getattr(prefect_flows, name).parameters.model_dump()["properties"]
    assert {parameter: facts["default"] for parameter, facts in properties.items()} == {"config": "goodput.toml"}


def test_only_what_may_pass_is_tried_again(prefect_flows: ModuleType, tmp_path: Path) -> None:
    from flows.config import ConfigMissingError
    from flows.lease import BusyError
    from warehouse.publish import BuildRunningError

    assert prefect_flows.may_help_to_wait(BusyError(tmp_path, None))
    assert prefect_flows.may_help_to_wait(BuildRunningError("another process"))
    assert prefect_flows.may_help_to_wait(OSError("stale file handle"))
    assert not prefect_flows.may_help_to_wait(ConfigMissingError(tmp_path))
    assert not prefect_flows.may_help_to_wait(ZeroDivisionError())


def test_a_busy_data_folder_is_waited_for(
    prefect_flows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import pipeline
    from flows.lease import BusyError

    config = demo.prepare(tmp_path / "demo")
    calls = []
    real = pipeline.ingest

    def busy_once(*args: Any, **kwargs: Any) -> object:
        calls.append(args)
        if len(calls) == 1:
            raise BusyError(config.parent / "data", None)
        return real(*args, **kwargs)

    monkeypatch.setattr(pipeline, "ingest", busy_once)
    quick = prefect_flows.ingest_exports.with_options(retry_delay_seconds=[0, 0, 0])
    monkeypatch.setattr(prefect_flows, "ingest_exports", quick)
    prefect_flows.ingest(config=config)
    assert len(calls) == 2

    def broken(*_args: Any, **_kwargs: Any) -> object:
        calls.append(())
        raise ZeroDivisionError

    monkeypatch.setattr(pipeline, "ingest", broken)
    with pytest.raises(ZeroDivisionError):
        prefect_flows.ingest(config=config)
    assert len(calls) == 3


def test_what_exports_say_reaches_the_log_without_control_characters(
    prefect_flows: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = demo.prepare(tmp_path / "demo")
    (config.parent / "exports" / "export_2" / "hostile.txt").write_text("\x1b[2Jno format has such a line\n")
    monkeypatch.setattr(prefect_flows, "get_run_logger", lambda: logging.getLogger("flow"))
    with caplog.at_level(logging.INFO, "flow"):
        prefect_flows.ingest_exports.fn(config)
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert any("hostile.txt" in w and "no format has such a line" in w for w in warnings)
    assert "\x1b" not in "".join(warnings)
    assert any("10 exports:" in r.getMessage() for r in caplog.records)  # nine of the demo, and this one


@pytest.mark.usefixtures("prefect_flows")
def test_the_three_deployments_can_be_made() -> None:
    import prefect.settings
    from prefect.client.orchestration import get_client

    env = {**os.environ, "PREFECT_API_URL": str(prefect.settings.PREFECT_API_URL.value())}

    def prefect_command(*arguments: str) -> None:
        command = [sys.executable, "-m", "prefect", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    prefect_command("work-pool", "create", "goodput", "--type", "process")
    prefect_command("--no-prompt", "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
    with get_client(sync_client=True) as client:
        found = client.read_deployments()
        made = {client.read_flow(d.flow_id).name: d for d in found}
    assert sorted(made) == list(FLOWS)
    for name, deployment in made.items():
        assert deployment.entrypoint == f"flows/prefect_flows.py:{name}"
        assert deployment.work_pool_name == "goodput"
        assert deployment.enforce_parameter_schema
        assert deployment.parameters == {}
        assert deployment.schedules == []
