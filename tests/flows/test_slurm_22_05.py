"""A real Slurm that was broken on purpose: eleven interruptions, whatever way its exports arrive."""

from __future__ import annotations

import random
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import pytest

from tests.conftest import Site

DATA = Path(str(files("flows") / "demo_data" / "slurm_22_05" / "exports"))
SETTINGS = """
[clusters.llm]
zone = "UTC"
gpus_per_node = 8

[[runs]]
match = { user = "alice", job_name = "llama-*" }
max_gap = "10m"
resume_window = "1m"
checkpoint_interval = "30s"
restart_overhead = "5s"

[attribution]
before = "2m"
after = "1m"
coalesce_gap = "10s"
maintenance_before = "30s"
maintenance_after = "1m"
"""
FIRST, LAST = "2026-11-30T02:53:45Z", "2026-11-30T03:05:00Z"
VERDICTS = [
    ("planned_maintenance", None),
    ("unexpected_reboot", "gpu005"),
    ("gpu_system_processor", "gpu005"),
    ("unknown", None),
    ("unknown", None),
    ("gpu_faulty", "gpu008"),
    ("gpu_hbm", "gpu002"),
    ("gpu_faulty", "gpu008"),
    ("operator_change", None),
    ("unknown", None),
    ("network_switch_cable", "gpu008"),
]

Export = tuple[str, bytes, str]


def exports(kinds: Iterable[str] = ("sacct_all.txt",)) -> list[Export]:
    """Both overlapping exports of the given kinds, node events, and the kernel log."""
    found = [
        (f"{folder}/{name}", (DATA / folder / name).read_bytes(), collected)
        for folder, collected in (("export_2", FIRST), ("export_final", LAST))
        for name in (*kinds, "sacctmgr_events.txt", "scontrol_show_reservation.txt")
    ]
    return [*found, ("kern.log", (DATA / "kern.log").read_bytes(), LAST)]


def loaded(folder: Path, given: Iterable[Export], *, settings: str = SETTINGS) -> Site:
    made = Site(folder, settings)
    for number, (name, content, collected) in enumerate(given):
        made.add(f"{number}/{name}", content, cluster="llm", collected_at=collected)
    made.run()
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return loaded(tmp_path_factory.mktemp("whole"), exports())


def test_the_eleven_interruptions_have_their_causes(whole: Site) -> None:
    """The verdicts that follow from what was done to the cluster, and no interruption more."""
    stops = whole.rows("select cause, culprit_node from marts.interruptions order by interrupted_at")
    assert [(s["cause"], s["culprit_node"]) for s in stops] == VERDICTS
    assert whole.column("select distinct attempts from marts.runs") == [11]


def test_every_evidence_row_is_found_in_its_export(whole: Site) -> None:
    """A verdict cites lines: each record stands in a file at that line, and the line says what is cited."""
    cited = whole.rows(
        "select evidence.node, evidence.text, locations.path, locations.line, evidence.kind "
        "from marts.interruption_evidence as evidence "
        "inner join ops.record_locations as locations on evidence.record_id = locations.record_id"
    )
    assert len(cited) >= 30
    for row in cited:
        line = Path(row["path"]).read_text(encoding="utf-8").splitlines()[row["line"] - 1]
        if row["kind"] == "hardware event":
            assert row["text"] in line
        assert row["node"] is None or row["node"] in line or "[" in line


@pytest.mark.slow
def test_order_repetition_and_overlap_do_not_matter(whole: Site, tmp_path: Path) -> None:
    """The last export holds all that the first one does: together, in any order and number, they say the same."""
    shuffled = exports() * 2
    random.Random(7).shuffle(shuffled)
    assert loaded(tmp_path / "shuffled", shuffled).digest() == whole.digest()
    last = [e for e in exports() if not e[0].startswith("export_2")]
    assert loaded(tmp_path / "last", last).digest() == whole.digest()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_exports_cut_at_any_line_say_the_same(whole: Site, tmp_path: Path, seed: int) -> None:
    """Every export is cut at a random line into pieces; later pieces repeat the header, or get a column list."""
    rng = random.Random(seed)
    made = Site(tmp_path / "cut", SETTINGS)
    for number, (name, content, collected) in enumerate(exports()):
        lines = content.splitlines(keepends=True)
        at = rng.randrange(1, len(lines)) if len(lines) > 1 else 1
        keys: dict[str, object] = {"cluster": "llm", "collected_at": collected}
        made.add(f"{number}/a/{name}", b"".join(lines[:at]), **keys)
        rest = b"".join(lines[at:])
        if not rest:
            continue
        is_table = name.endswith(("sacct_all.txt", "sacctmgr_events.txt"))
        if name.endswith("sacct_all.txt") and rng.random() < 0.5:
            keys |= {"format": "slurm_sacct", "columns": lines[0].decode().strip().split("|")}
        elif is_table:
            rest = lines[0] + rest
        made.add(f"{number}/b/{name}", rest, **keys)
    made.run()
    assert made.digest() == whole.digest()


@pytest.mark.slow
def test_fewer_columns_change_nothing_that_both_know(whole: Site, tmp_path: Path) -> None:
    """109 columns with steps and 21 without, together, are what the wide export says alone."""
    both = loaded(tmp_path / "both", exports(("sacct_all.txt", "sacct_alloc.txt")))
    assert both.digest() == whole.digest()


@pytest.mark.slow
def test_the_narrow_export_alone_has_the_same_verdicts_and_ledger(whole: Site, tmp_path: Path) -> None:
    """What is missing in the narrow export is no evidence: interruptions, verdicts and ledger are equal."""
    narrow = loaded(tmp_path / "narrow", exports(("sacct_alloc.txt",)))
    for mart in ("interruptions", "interruption_evidence", "ledger", "goodput_daily", "root_causes", "runs"):
        assert narrow.digest()[mart] == whole.digest()[mart], mart


def test_causes_of_any_period(whole: Site) -> None:
    """The macro counts the interruptions of a period, its end excluded; shares are of the unexpected ones."""
    call = "from root_causes_between('llm', timestamptz '{}', timestamptz '{}')"
    everything = whole.rows(call.format("2026-11-30 00:00:00+00", "2026-12-01 00:00:00+00"))
    assert sum(row["interruptions"] for row in everything) == 11
    assert round(sum(row["share_of_unexpected"] or 0 for row in everything), 3) == 1
    assert {row["cause"] for row in everything if row["share_of_unexpected"] is None} == {
        "operator_change",
        "planned_maintenance",
    }
    until = whole.rows(call.format("2026-11-30 02:53:00+00", "2026-11-30 02:54:35+00"))
    assert [row["cause"] for row in until] == ["planned_maintenance"]


def test_the_run_balances_to_the_second(whole: Site) -> None:
    """From the first start to the last end every second is in one state, each GPU-second counted once."""
    (run,) = whole.rows("select elapsed_hours, elapsed_gpu_seconds, gpus from marts.runs")
    (total,) = whole.rows("select sum(seconds) as seconds, sum(gpu_seconds) as gpu_seconds from marts.ledger")
    assert total["seconds"] == 536  # 02:52:42 to 03:01:38
    assert run["elapsed_gpu_seconds"] == total["gpu_seconds"] == 536 * 64
