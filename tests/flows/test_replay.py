"""The replay writes what real systems write, and its truth says what it wrote."""

from __future__ import annotations

import ast
import hashlib
import json
import random
import re
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from flows.replay import generate
from flows.replay.mixes import MIXES, PLANNED, TABLE_5, counts
from flows.replay.text import elapsed, host_list

ROOT = Path(__file__).resolve().parents[2]
NODES, DAYS = 16, 2
GPUS = NODES * 8
STARTED = datetime(2024, 6, 3, 8, tzinfo=UTC).timestamp()
STEP = re.compile(
    r"^(\S+)Z \S+ \[default7\]: \[.*\] iteration +(\d+)/ *\d+ \|.*elapsed time per iteration \(ms\): ([\d.]+)"
)
SAVED = re.compile(r"successfully saved checkpoint from iteration +(\d+) ")
LOADED = re.compile(r" loading checkpoint from \S+ at iteration (\d+)")
SAVING = re.compile(r"saving checkpoint at iteration +(\d+) ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "r"
    generate(path, nodes=NODES, days=DAYS)
    return path


@pytest.fixture(scope="module")
def truth(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def attempts(folder: Path) -> list[dict[str, str]]:
    """The run's attempts as the last export that holds them tells, in order."""
    found = {}
    for row in rows(folder):
        if row["JobName"] == "pretrain-405b" and row["Start"] != "Unknown":
            found[row["JobIDRaw"], row["Submit"]] = row
    return sorted(found.values(), key=lambda row: row["Start"])


def rows(folder: Path) -> list[dict[str, str]]:
    table = []
    for path in sorted((folder / "exports/sacct").iterdir()):
        header, *lines = path.read_text().splitlines()
        names = header.split("|")
        table += [dict(zip(names, line.split("|"), strict=True)) for line in lines]
    return table


def seconds(text: str) -> float:
    return datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC).timestamp()


def digest(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        whole.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return whole.hexdigest()


def expanded(hosts: str) -> list[str]:
    prefix, _, inner = hosts.rstrip("]").partition("[")
    if not inner:
        return [prefix]
    names = []
    for part in inner.split(","):
        first, _, last = part.partition("-")
        names += [f"{prefix}{n:0{len(first)}d}" for n in range(int(first), int(last or first) + 1)]
    return names


def test_the_same_arguments_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    generate(tmp_path / "again", nodes=NODES, days=DAYS)
    assert digest(tmp_path / "again") == digest(folder)
    generate(tmp_path / "other", nodes=NODES, days=DAYS, seed=2)
    assert digest(tmp_path / "other") != digest(folder)


def test_the_papers_fleet_is_stopped_as_often_as_in_the_paper() -> None:
    """Table 5 has 18 causes and 419 stops, whatever chance says; 47 more were planned."""
    for seed in range(3):
        unexpected, planned = counts("llama3", 2048, 54, random.Random(seed))
        assert unexpected == TABLE_5
        assert (len(unexpected), sum(unexpected.values()), planned) == (18, 419, PLANNED) == (18, 419, 47)


@pytest.mark.parametrize("mix", MIXES)
def test_other_fleets_are_stopped_in_proportion(mix: str) -> None:
    unexpected, planned = counts(mix, 1024, 54, random.Random(1))
    assert (sum(unexpected.values()), planned) == (210, 24)
    heaviest = max(MIXES[mix], key=lambda cause: MIXES[mix][cause])
    assert unexpected[heaviest] == max(unexpected.values())


def test_truth_holds_every_stop_of_the_schedule(truth: list[dict[str, Any]]) -> None:
    *stops, run = truth
    assert run["kind"] == "run"
    assert all("kind" not in stop for stop in stops)
    planned = sum(stop["is_planned"] for stop in stops)
    assert (run["interruptions"], run["planned"], run["unexpected"]) == (len(stops), planned, len(stops) - planned)
    assert (planned, len(stops) - planned) == (2, 6), "the least that a small fleet is given"
    causes = Counter(stop["causes"][0] for stop in stops if not stop["is_planned"])
    assert set(causes) <= set(TABLE_5)


def test_the_run_lasts_exactly_as_long_as_asked(attempts: list[dict[str, str]], truth: list[dict[str, Any]]) -> None:
    assert seconds(attempts[0]["Start"]) == STARTED
    assert seconds(attempts[-1]["End"]) == STARTED + DAYS * 86_400
    assert attempts[-1]["State"] == "COMPLETED"
    assert truth[-1]["elapsed_seconds"] == DAYS * 86_400


def test_every_stop_is_the_end_of_an_attempt(attempts: list[dict[str, str]], truth: list[dict[str, Any]]) -> None:
    ends = [(row["JobIDRaw"], row["End"] + "Z") for row in attempts[:-1]]
    assert [(stop["job_id_raw"], stop["interrupted_at"]) for stop in truth[:-1]] == ends
    stopped = {"FAILED", "NODE_FAIL", "REQUEUED", "CANCELLED"}
    assert {row["State"].split()[0] for row in attempts[:-1]} <= stopped
    for row, following in pairwise(attempts):
        assert seconds(row["End"]) + 60 <= seconds(following["Start"]) <= seconds(row["End"]) + 6_600
        assert elapsed(int(seconds(row["End"]) - seconds(row["Start"]))) == row["Elapsed"]


def test_only_recoveries_by_hand_make_a_new_job(attempts: list[dict[str, str]], truth: list[dict[str, Any]]) -> None:
    assert len({row["JobIDRaw"] for row in attempts}) == 1 + truth[-1]["manual"]
    for row, following in pairwise(attempts):
        is_new = following["JobIDRaw"] != row["JobIDRaw"]
        assert following["Restarts"] == ("0" if is_new else str(int(row["Restarts"]) + 1))


def test_a_node_that_is_out_is_not_held_by_the_run(
    folder: Path, attempts: list[dict[str, str]], truth: list[dict[str, Any]]
) -> None:
    events = [
        line.split("|") for line in max((folder / "exports/slurm").glob("sacctmgr*")).read_text().splitlines()[2:]
    ]
    assert events
    for row in attempts:
        nodes = expanded(row["NodeList"])
        assert len(nodes) == NODES
        start, end = seconds(row["Start"]), seconds(row["End"])
        for _, node, since, until, *_ in events:
            if seconds(since) < start:
                assert node not in nodes or seconds(until) <= start, f"{node} was out"
        blamed = [t["node"] for t in truth[:-1] if seconds(t["interrupted_at"]) == end]
        assert all(node is None or node in nodes for node in blamed)


def test_no_node_has_two_jobs_of_whole_nodes_at_once(folder: Path) -> None:
    spans: dict[str, set[tuple[float, float]]] = defaultdict(set)
    for row in rows(folder):
        if row["Partition"] != "cpu" and row["End"] != "Unknown" and row["NodeList"] != "None assigned":
            for node in expanded(row["NodeList"]):
                spans[node].add((seconds(row["Start"]), seconds(row["End"])))
    assert spans
    for node, taken in spans.items():
        for (_, end), (start, _) in pairwise(sorted(taken)):
            assert end <= start, node


def test_exports_of_slurm_overlap_and_show_jobs_that_run(folder: Path) -> None:
    seen = Counter((row["JobIDRaw"], row["Submit"]) for row in rows(folder))
    assert max(seen.values()) >= 2
    states = {row["State"].split()[0] for row in rows(folder)}
    assert {"RUNNING", "COMPLETED", "FAILED", "CANCELLED"} <= states
    assert any("_" in row["JobID"] for row in rows(folder)), "array tasks"


def read_attempts(folder: Path, attempts: list[dict[str, str]]) -> list[dict[str, Any]]:
    """What the training log tells of each attempt: steps (number, end, seconds), loaded, saves begun and safe."""
    lines = {path.stem[5:]: path.read_text().splitlines() for path in (folder / "exports/train").iterdir()}
    told = []
    for row in attempts:
        start, end = seconds(row["Start"]), seconds(row["End"])
        mine = [line for line in lines[row["JobIDRaw"]] if start <= seconds(line.split("Z", 1)[0]) <= end + 120]
        steps = [(int(m[2]), seconds(m[1]), float(m[3]) / 1e3) for line in mine if (m := STEP.match(line)) is not None]
        text = "\n".join(mine)
        told.append(
            {
                "steps": steps,
                "loaded": [int(n) for n in LOADED.findall(text)],
                "saved": [int(n) for n in SAVED.findall(text)],
                "saving": [int(n) for n in SAVING.findall(text)],
            }
        )
    return told


def test_each_attempt_goes_on_from_the_last_safe_checkpoint(folder: Path, attempts: list[dict[str, str]]) -> None:
    safe = 0
    lost = 0
    for told in read_attempts(folder, attempts):
        numbers = [number for number, _, _ in told["steps"]]
        assert numbers == list(range(safe + 1, safe + 1 + len(numbers)))
        assert numbers, "each attempt lives past its start"
        assert told["loaded"] == ([safe] if safe else [])
        assert set(told["saved"]) <= set(told["saving"])
        safe = max(told["saved"], default=safe)
        lost += numbers[-1] - safe
    assert lost > 0


def test_the_truth_about_time_is_what_the_training_log_shows(
    folder: Path, attempts: list[dict[str, str]], truth: list[dict[str, Any]]
) -> None:
    """Added up once more, from the written files alone."""
    spent: Counter[str] = Counter()
    told = read_attempts(folder, attempts)
    for place, (row, log) in enumerate(zip(attempts, told, strict=True)):
        steps, is_last = log["steps"], place == len(attempts) - 1
        kept = steps[-1][0] if is_last else (told[place + 1]["loaded"] or [0])[0]
        usual = median(took for _, _, took in steps[1:]) if len(steps) > 1 else 0.0
        spent["starting"] += steps[0][1] - steps[0][2] - seconds(row["Start"])
        for number, _, took in steps:
            pause = max(0.0, took - usual) if number - 1 in log["saving"] else 0.0
            spent["checkpointing"] += pause
            spent["productive" if number <= kept else "lost_work"] += took - pause
        spent["stopping" if is_last else "stalled"] += seconds(row["End"]) - steps[-1][1]
        if not is_last:
            down = "down_planned" if truth[place]["is_planned"] else "down_unexpected"
            spent[down] += seconds(attempts[place + 1]["Start"]) - seconds(row["End"])
    ledger = truth[-1]["ledger"]
    assert sum(ledger.values()) == DAYS * 86_400 * GPUS
    assert truth[-1]["effective_training_time"] == pytest.approx(ledger["productive"] / sum(ledger.values()), abs=1e-6)
    for state, gpu_seconds in ledger.items():
        assert gpu_seconds / GPUS == pytest.approx(spent[state], rel=0.01, abs=30), state


def test_planned_stops_come_right_after_a_checkpoint(
    folder: Path, attempts: list[dict[str, str]], truth: list[dict[str, Any]]
) -> None:
    told = read_attempts(folder, attempts)
    planned = [place for place, stop in enumerate(truth[:-1]) if stop["is_planned"]]
    assert planned
    for place in planned:
        last, ended, _ = told[place]["steps"][-1]
        assert last - max(told[place]["saved"]) <= 15
        assert seconds(attempts[place]["End"]) - ended < 3 * 7, "steps advance until the end"


def test_kernel_lines_come_from_all_nodes_and_some_late_or_twice(folder: Path) -> None:
    lines = [line for path in sorted((folder / "exports/kern").iterdir()) for line in path.read_text().splitlines()]
    assert len(lines) > 0.8 * 28 * 20 * DAYS
    assert all(
        re.match(r"2024-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00 gpu\d{4} kernel: \[ *\d+\.\d{6}\] ", s) for s in lines
    )
    assert {line.split(" ", 2)[1] for line in lines} == {f"gpu{n:04d}" for n in range(1, NODES + 5)}
    assert len(set(lines)) < len(lines), "some are there twice"
    stamps = [seconds(line[:26]) for line in lines]
    assert any(b < a - 60 for a, b in pairwise(stamps)), "some are late"
    assert sum(b < a - 5 for a, b in pairwise(stamps)) < 0.05 * len(lines)


def test_the_configuration_names_files_that_exist(folder: Path) -> None:
    patterns = re.findall(r'^path = "(.+)"$', (folder / "goodput.toml").read_text(), re.MULTILINE)
    assert len(patterns) >= 6
    for pattern in patterns:
        assert list(folder.glob(re.sub(r"\{\w+\}", "*", pattern))), pattern


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"nodes": 15}, "give 16"), ({"days": 0}, "give 1"), ({"mix": "llama2"}, "llama3, hbm_heavy, network_heavy")],
)
def test_wrong_arguments_are_named(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        generate(tmp_path, **wrong)
    assert not list(tmp_path.iterdir())


def test_it_imports_the_standard_library_and_itself_only() -> None:
    for path in (ROOT / "flows/replay").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                own = name == "flows.replay" or name.startswith("flows.replay.")
                assert own or name.split(".")[0] in sys.stdlib_module_names, f"{path.name} imports {name}"


def test_host_lists_are_compressed_as_slurm_does() -> None:
    assert host_list(("gpu0001",)) == "gpu0001"
    assert host_list(("gpu0001", "gpu0002", "gpu0004")) == "gpu[0001-0002,0004]"
    assert elapsed(93_784) == "1-02:03:04"
