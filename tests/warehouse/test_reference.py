"""Reference data: recomputed where it is derived, cross-checked where tables speak of each other."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from scipy.stats import chi2

from warehouse import load

Rows = list[dict[str, str]]


def table(name: str) -> Rows:
    with (load.REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


@pytest.fixture(scope="module")
def con() -> Any:
    """A session with the reference tables and macros, as a build has them."""
    with duckdb.connect(":memory:") as session:
        session.execute("attach ':memory:' as build; create schema build.reference; use build")
        for path in sorted(load.REFERENCE.glob("*.csv")):
            load.reference_table(session, path)
        session.execute(load.MACROS.read_text(encoding="utf-8"))
        yield session


def garwood(n: int) -> tuple[float, float]:
    """Exact 95 % limits of a Poisson mean, by the chi-squared distribution (a count of 0 has no lower one but 0)."""
    return (chi2.ppf(0.025, 2 * n) / 2 if n else 0.0), chi2.ppf(0.975, 2 * n + 2) / 2


def test_poisson_quantiles_are_garwoods() -> None:
    rows = table("poisson_quantiles")
    assert [int(r["n"]) for r in rows] == list(range(2001))
    for row in rows:
        lower, upper = garwood(int(row["n"]))
        assert float(row["lower95"]) == pytest.approx(lower, abs=5.1e-7)
        assert float(row["upper95"]) == pytest.approx(upper, abs=5.1e-7)


@pytest.mark.parametrize(
    ("n", "limits"),
    [(0, (0, 3.69)), (3, (0.62, 8.77)), (24, (15.38, 35.71)), (419, (379.84, 461.11))],
)
def test_poisson_limits_agree_with_published_values(con: Any, n: int, limits: tuple[float, float]) -> None:
    got = con.execute("select round(poisson_lower(?), 2), round(poisson_upper(?), 2)", [n, n]).fetchone()
    assert got == limits


@pytest.mark.parametrize("n", [2001, 5000, 100_000, 10_000_000])
def test_poisson_limits_above_the_table_are_close(con: Any, n: int) -> None:
    """Wilson and Hilferty's approximation, good to a millionth here; it joins the table without a step."""
    lower, upper = garwood(n)
    got = con.execute("select poisson_lower(?), poisson_upper(?)", [n, n]).fetchone()
    assert got == pytest.approx((lower, upper), rel=1e-6)


def test_macros_of_rates(con: Any) -> None:
    """Llama 3: 419 unexpected interruptions in 54 days are one in 3.09 h, 2.81 to 3.41."""
    sql = "select round(mtti(54 * 24, 419), 2), mtti_interval(54 * 24, 419), poisson_interval(419, 54), mtti(10, 0)"
    mean, interval, rate, none = con.execute(sql).fetchone()
    assert mean == 3.09
    assert (round(interval["lower"], 2), round(interval["upper"], 2)) == (2.81, 3.41)
    assert (round(rate["lower"], 3), round(rate["upper"], 3)) == (round(379.835925 / 54, 3), round(461.110 / 54, 3))
    assert none is None
    assert con.execute("select mtti_interval(10, 0).upper, poisson_interval(1, 0).lower").fetchone() == (None, None)
    assert con.execute("select gpu_hours(5400)").fetchone() == (1.5,)


def test_wilson_limits_of_a_share(con: Any) -> None:
    """268 of 419 is 59.3 to 68.4 %."""
    got = con.execute(
        "select round(100 * wilson_lower(268, 419), 1), round(100 * wilson_upper(268, 419), 1)"
    ).fetchone()
    assert got == (59.3, 68.4)


@pytest.mark.parametrize("path", sorted(load.REFERENCE.glob("*.csv")), ids=lambda p: p.stem)
def test_every_row_names_its_source(path: Path) -> None:
    """All but the quantiles, which are computed."""
    if path.stem != "poisson_quantiles":
        assert [r for r in table(path.stem) if not r["source"].strip()] == []


def test_causes_are_table_5_and_the_rest() -> None:
    """Order, labels and categories as printed; counts by category sum to the paper's 419."""
    causes = table("causes")
    assert len({c["code"] for c in causes}) == len(causes)
    rows = [c for c in causes if c["table5_row"]]
    assert [int(c["table5_row"]) for c in rows] == list(range(1, 19))
    printed = [148, 72, 54, 35, 32, 19, 17, 7, 7, 6, 6, 3, 3, 2, 2, 2, 2, 2]
    sums: dict[str, int] = {}
    for cause, count in zip(rows, printed, strict=True):
        sums[cause["category"]] = sums.get(cause["category"], 0) + count
    assert sums == {
        "GPU": 268,
        "Dependency": 56,
        "Network": 35,
        "Unplanned Maintenance": 32,
        "Host": 21,
        "Unknown": 7,
    }
    flagged = sum(n for c, n in zip(rows, printed, strict=True) if c["hardware"] != "no")
    assert flagged == 356
    assert {c["hardware"] for c in causes} == {"confirmed", "suspected", "no"}
    assert {c["class"] for c in causes} == {"unexpected", "planned", "scheduler"}


def test_what_is_no_fault_is_named() -> None:
    """All-clears, boots, shutdowns and cleared logs; whatever ended. Nothing of these is fatal, or a clean-up."""
    rows = table("event_classes")
    fine = [r for r in rows if r["is_fault"] == "false"]
    assert {r["is_fault"] for r in rows} == {"true", "false"}
    assert {r["evidence_class"] for r in fine if not r["evidence_class"].endswith("_ended")} == {
        "boot", "reboot", "driver_load", "link_up", "diagnostic_passed", "diagnostic_software_passed", "sel_boot",
        "sel_log_cleared", "sel_os_shutdown",
    }  # fmt: skip
    assert all(r["is_fault"] == "false" for r in rows if r["evidence_class"].endswith("_ended"))
    assert all(r["is_fatal"] == r["is_cleanup"] == "false" for r in fine)


@pytest.mark.parametrize("name", ["evidence_weights", "cause_priors"])
def test_weights_speak_of_known_causes(name: str) -> None:
    codes = {c["code"] for c in table("causes")}
    assert {r["cause"] for r in table(name)} <= codes


def test_a_class_of_evidence_has_one_weight_for_a_cause() -> None:
    """Of two rows the weaker would be dead, and nobody could tell which was meant."""
    pairs = [(r["weight_class"], r["cause"]) for r in table("evidence_weights")]
    assert len(pairs) == len(set(pairs))


def test_every_cause_with_weights_has_a_prior() -> None:
    priors = {r["cause"] for r in table("cause_priors")}
    assert {r["cause"] for r in table("evidence_weights")} <= priors


def test_the_xid_catalogue_shows_where_lists_disagree() -> None:
    rows = {int(r["code"]): r for r in table("xid_catalog")}
    assert sorted(rows) == list(range(1, 173))
    assert len({r["mnemonic"] for r in rows.values()}) == 172
    views = {
        code: tuple(
            rows[code][f"{who}"] for who in ("nvidia_action", "nvsentinel_severity", "gpud_severity", "gcm_severity")
        )
        for code in (43, 63, 94, 109, 160)
    }
    assert views == {
        43: ("IGNORE", "nonfatal", "warning", "non-critical"),
        63: ("IGNORE", "nonfatal", "fatal", "non-critical"),
        94: ("RESTART_APP", "nonfatal", "fatal", ""),
        109: ("RESET_GPU", "fatal", "warning", "non-critical"),
        160: ("IGNORE", "fatal", "warning", ""),
    }
    assert rows[79]["nvidia_action"] == "RESTART_BM"
    unused = [c for c, r in rows.items() if r["nvidia_action"] == "CONTACT_SUPPORT" and not r["meaning"]]
    assert {87, 90, *range(111, 119)} <= set(unused)


REASONS = {
    # Slurm's own words
    "Not responding": "not_responding",
    "Node unexpectedly rebooted": "unexpected_reboot",
    "Kill task failed": "kill_task_failed",
    "batch job complete failure": "kill_task_failed",
    "Prolog error": "prolog_error",
    "Epilog error": "prolog_error",
    "gres/gpu count reported lower than configured (3 < 8)": "gpu_lost",
    "Low RealMemory (reported:7681 < 100.00% of configured:8000)": "memory",
    "Low TmpDisk": "disk",
    "Reboot ASAP : reboot issued": "host_maintenance person",
    "ResumeTimeout reached": "boot_failed",
    # node health check
    "NHC: check_hw_ib:  No IB port mlx5_0:1 is ACTIVE (LinkUp 100 Gb/sec).": "network_link",
    "NHC: check_fs_mount:  /scratch not mounted": "mount",
    "NHC: check_hw_physmem:  Actual RAM size (1 kB) less than minimum allowed (2 kB).": "memory",
    "check_hw_physmem_free:  Not enough RAM free (1 kB < 2 kB).": "health_check",
    "check_fs_used:  / is 97% full (1TB), threshold is 95%": "health_check",
    "Sanity Check Failed": "health_check",
    # people and their scripts
    "planned: VBIOS/firmware upgrade": "planned person rollout",
    "kernel 6.2 rollout": "planned person rollout",
    "driver update 550": "planned person rollout",
    "Scheduled shutdown": "planned person rollout",
    "unplanned maintenance": "host_maintenance person",
    "reseat GPU 3, ticket 4411": "host_maintenance person",
    "maintenance": "host_maintenance person",
    # parts
    "ECC: uncorrectable, row remap pending": "gpu_memory",
    "ECC memory error": "gpu_memory",
    "Xid 48 GPU 2": "gpu_memory",
    "GPU 3 fell off the bus (Xid 79)": "gpu_lost",
    "GSP RPC timeout, GPU4": "gsp",
    "nvlink: link=7 errs=212 see T=4411": "nvlink",
    "mlx5_0 link down": "network_link",
    "HCA firmware fatal error": "nic",
    "kernel panic": "kernel",
    "broken nvme": "disk",
    "replace DIMM A2": "memory",
    "CPU dead": "cpu",
    "PSU 2 input lost": "power",
    "fan 3 failed": "chassis",
    "GPU overheating": "thermal",
    # none of these names a part or an intent
    "EAR powercap": None,
    "MIG reconfig": None,
    "needs amount check": None,
}


@pytest.mark.parametrize(("reason", "expected"), REASONS.items(), ids=str)
def test_reasons_are_classed_by_their_first_match(con: Any, reason: str, expected: str | None) -> None:
    row = con.execute(
        "select evidence_class, is_person, is_planned_rollout from reference.reason_patterns "
        "where regexp_matches(?, pattern) order by priority limit 1",
        [reason],
    ).fetchone()
    got = row and " ".join([row[0].removeprefix("reason_"), *(["person"] * row[1]), *(["rollout"] * row[2])])
    assert got == expected


def test_patterns_are_in_order() -> None:
    priorities = [int(r["priority"]) for r in table("reason_patterns")]
    assert priorities == sorted(set(priorities))


def test_real_slurm_reasons_are_all_classed(con: Any, shared: Path) -> None:
    """Every reason that a real Slurm wrote while it was being broken has a class, but the one that is no outage."""
    text = (shared / "exports/slurm_22_05/export_final/sacctmgr_events.txt").read_text()
    reasons = {line.split("|")[5] for line in text.splitlines()[1:]} - {"Cluster Registered TRES"}
    assert len(reasons) > 4
    for reason in reasons:
        assert con.execute(
            "select count(*) > 0 from reference.reason_patterns where regexp_matches(?, pattern)", [reason]
        ).fetchone() == (True,), reason


def test_notes_declare_only_columns_that_exist() -> None:
    notes = tomllib.loads((load.REFERENCE / "reference.toml").read_text(encoding="utf-8"))
    for name, note in notes.items():
        header = (load.REFERENCE / f"{name}.csv").read_text(encoding="utf-8").split("\n", 1)[0]
        assert set(note.get("types", {})) <= set(re.split(",", header)), name
