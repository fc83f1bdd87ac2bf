"""Diagnostics beyond their golden cases: real documents, what may follow or stand before them, what is no verdict."""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from transforms.outcome import Context, MissingSettingError, Parsed, UnreadableExportError
from transforms.parsing import documents
from transforms.sources.dcgm_diag import EVENT_CLASSES, parse, sniff
from transforms.stream import ExportStream
from transforms.tables import HARDWARE_EVENTS

ROOT = Path(__file__).resolve().parents[2]
COLLECTED = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = Context(COLLECTED, cluster="c1", node="gn01")


def read(data: bytes | str, context: Context = CONTEXT) -> tuple[pl.DataFrame, list[Parsed]]:
    parsed = list(parse(ExportStream.of(data.encode() if isinstance(data, str) else data), context))
    frames = [p.frames[HARDWARE_EVENTS.name] for p in parsed if p.frames]
    return (pl.concat(frames) if frames else HARDWARE_EVENTS.schema.to_frame()), parsed


def verdicts(rows: pl.DataFrame) -> list[tuple[str, str | None, str]]:
    return sorted(rows.select("event_class", "device", "unit").rows(), key=str)


def document(*results: dict[str, Any], name: str = "memory", root: str = "DCGM Diagnostic", **members: Any) -> str:
    test = {"name": name, "results": list(results)}
    return json.dumps({root: {"test_categories": [{"category": "Hardware", "tests": [test]}], **members}}, indent=2)


def gpu(number: int, status: str, **members: Any) -> dict[str, Any]:
    return {"entity_group": "GPU", "entity_group_id": 1, "entity_id": number, "status": status, **members}


def test_a_document_of_dcgms_own_tests(shared: Path) -> None:
    """385 lines, four GPUs: three fail the stress test, the other passes what it ran and is not blamed for what was skipped."""
    data = (shared / "exports/public/dcgm_diag/PER_GPU_JSON.json").read_bytes()
    assert sniff(data)
    rows, parsed = read(data)
    assert verdicts(rows) == [
        ("diagnostic_failed", "0", "sm_stress"),
        ("diagnostic_failed", "2", "sm_stress"),
        ("diagnostic_failed", "3", "sm_stress"),
        ("diagnostic_passed", "1", "memory, pcie, sm_stress"),
    ]
    assert set(rows.filter(pl.col("event_class") == "diagnostic_failed")["code"]) == {50}
    assert sum(p.used for p in parsed) == data.count(b"\n") + (not data.endswith(b"\n"))
    assert set(rows["occurred_at"]) == {COLLECTED}


def test_documents_of_a_health_check(shared: Path) -> None:
    """Level 1 looks at the host only: its pass is no pass of a GPU. Another tool's JSON is none of ours."""
    folder = shared / "exports/public/gcm_meta/dcgmi"
    passed, _ = read((folder / "diag_pass_output.json").read_bytes())
    assert passed["event_class"].to_list() == ["diagnostic_software_passed"]
    warned, _ = read((folder / "diag_warn_output.json").read_bytes())
    assert verdicts(warned) == [("diagnostic_warned", None, "persistence_mode")]
    assert not sniff((folder / "nvlink_error_pass_output.json").read_bytes())


def test_every_class_has_its_evidence_class() -> None:
    with (ROOT / "warehouse" / "reference" / "event_classes.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["event_class"].startswith("diagnostic_")]
    assert {r["event_class"] for r in rows} == EVENT_CLASSES
    assert {r["event_class"] for r in rows if r["is_fatal"] == "true"} == {"diagnostic_failed"}


@pytest.mark.parametrize("status", ["Skip", "SKIP", "Not Run", "NOT_RUN"])
def test_what_did_not_run_is_no_verdict(status: str) -> None:
    text = document(gpu(0, status))
    rows, parsed = read(text)
    assert rows.is_empty()
    assert parsed[-1].ignored == Counter(nothing_ran=text.count("\n") + 1)


@pytest.mark.parametrize("tree", ["null", "{}", '{"test_categories": null}', '{"test_categories": [null, {"tests": [null]}]}',
                                  '{"runtime_error": "no GPUs"}', '{"test_categories": [{"tests": [{"name": null, "results": [null]}]}]}'])  # fmt: skip
def test_null_members_are_no_verdict(tree: str) -> None:
    text = f'{{"DCGM Diagnostic": {tree}}}\n'
    _, parsed = read(text)
    fates = sum((p.ignored for p in parsed), Counter[str]())
    # `null` in place of the tree leaves nothing that says whose document it is.
    assert (fates == Counter(nothing_ran=1)) is (tree != "null")
    assert len([r for p in parsed for r in p.rejects]) == (tree == "null")


def test_names_of_both_generations_are_one_test() -> None:
    for old, new in (("PCIe", "pcie"), ("GPU Memory", "memory"), ("Memory Bandwidth", "memory_bandwidth"), ("Targeted Stress", "targeted_stress")):  # fmt: skip
        before, _ = read(document({"gpu_ids": "0", "status": "FAIL"}, name=old, root="DCGM GPU Diagnostic"))
        after, _ = read(document(gpu(0, "Fail"), name=new))
        assert verdicts(before) == verdicts(after) == [("diagnostic_failed", "0", new)]
        assert before["record_id"].to_list() == after["record_id"].to_list()


def test_a_failure_keeps_a_device_from_passing() -> None:
    tests = [{"name": n, "results": [gpu(0, "Pass"), gpu(1, s)]} for n, s in (("memory", "Pass"), ("pcie", "Fail"))]
    rows, _ = read(json.dumps({"DCGM Diagnostic": {"test_categories": [{"tests": tests}]}}))
    assert verdicts(rows) == [("diagnostic_failed", "1", "pcie"), ("diagnostic_passed", "0", "memory, pcie")]


def test_settings_of_the_host_break_no_gpu() -> None:
    """Persistence mode is off on every GPU of many a healthy node; that neither fails the GPU nor hides that memory passed."""
    warning = {"error_id": 29, "error_severity": 5, "warning": "Persistence Mode: it is disabled"}
    tests = [
        {"name": "software", "results": [gpu(0, "Fail", warnings=[warning])]},
        {"name": "memory", "results": [gpu(0, "Pass")]},
    ]
    rows, _ = read(json.dumps({"DCGM Diagnostic": {"test_categories": [{"tests": tests}]}}))
    assert verdicts(rows) == [
        ("diagnostic_passed", "0", "memory"),
        ("diagnostic_software_failed", "0", "persistence_mode"),
    ]


@pytest.mark.parametrize(
    ("error", "unit", "event_class"),
    [
        (80, "row_remap", "diagnostic_failed"),
        (9, "inforom", "diagnostic_failed"),
        (20, "device_count", "diagnostic_failed"),
        (25, "software", "diagnostic_software_failed"),
        (101, "software", "diagnostic_failed"),
    ],
)
def test_checks_of_the_host_find_broken_gpus_by_their_error(error: int, unit: str, event_class: str) -> None:
    rows, _ = read(document(gpu(0, "Fail", warnings=[{"error_id": error, "warning": "x"}]), name="software"))
    assert verdicts(rows) == [(event_class, "0", unit)]


@pytest.mark.parametrize("separator", ["", "\n", "\n\nthe next node\n", "\r\n"])
def test_several_documents_follow_each_other(separator: str) -> None:
    """As `cat` joins them, with and without a line end between."""
    text = separator.join(document(gpu(n, "Fail"), hostname=f"gn{n:02}") for n in range(3))
    rows, parsed = read(text)
    assert rows.select("node", "device").rows() == [("gn00", "0"), ("gn01", "1"), ("gn02", "2")]
    assert sum(p.used + p.ignored.total() for p in parsed) == len(text.removesuffix("\n").split("\n"))


def test_a_document_cut_short_takes_no_other_with_it() -> None:
    whole, cut = document(gpu(0, "Fail")), document(gpu(1, "Pass"))[:90]
    rows, parsed = read(f"{whole}\n{cut}\n{whole.replace('0', '2')}\n")
    assert [v[1] for v in verdicts(rows)] == ["0", "2"]
    rejects = [r for p in parsed for r in p.rejects]
    assert len(rejects) == cut.count("\n") + 1
    assert {r.reason for r in rejects} == {"the document breaks off: write it again, or copy it again"}


def test_a_file_without_a_document_is_unreadable_as_a_whole() -> None:
    with pytest.raises(UnreadableExportError, match="dcgmi diag"):
        read("Error: unable to establish a connection to the specified host: localhost\n")


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ("2025-05-04T10:00:00+02:00", datetime(2025, 5, 4, 8, tzinfo=UTC)),
        ("2025-05-04 10:00:00", datetime(2025, 5, 4, 1, tzinfo=UTC)),
        (1746345600, datetime(2025, 5, 4, 8, tzinfo=UTC)),
        ("lately", COLLECTED),
    ],
)
def test_a_time_in_the_document_wins(told: object, at: datetime) -> None:
    context = Context(COLLECTED, cluster="c1", node="gn01", zone="Asia/Tokyo")
    rows, _ = read(document(gpu(0, "Fail"), metadata={"timestamp": told}), context)
    assert rows["occurred_at"].to_list() == [at]
    assert rows["flags"].to_list() == [["value_unreadable"] if told == "lately" else []]


def test_settings_that_are_missing_are_named() -> None:
    with pytest.raises(MissingSettingError, match="zone"):
        read(document(gpu(0, "Fail"), timestamp="2025-05-04 10:00:00"))
    with pytest.raises(MissingSettingError, match="cluster"):
        read(document(gpu(0, "Fail")), Context(COLLECTED))


def test_texts_in_which_the_words_stand_are_no_documents() -> None:
    assert not sniff(b'{"test_categories": []}\n')
    assert not sniff(b'see "DCGM Diagnostic" for test_categories { and\n')
    assert not sniff(b"")
    assert sniff(b'banner {1}\n{"version": 1, "DCGM Diagnostic": {"test_categories": []}}\n')


@pytest.mark.parametrize("data", [b'{"DCGM Diagnostic": ' + b'{"a": ' * 100_000 + b"1" + b"}" * 100_001, b'{"DCGM Diagnostic": {"a": "\xff\xfe"}}\n', b'{"DCGM Diagnostic": {"x": NaN}} }}}}\n'])  # fmt: skip
def test_hostile_documents_end_in_a_fate(data: bytes) -> None:
    _, parsed = read(data)
    assert sum(p.used + p.ignored.total() + len(p.rejects) for p in parsed) == 1


@pytest.mark.parametrize("code", [2**31, 2**63, -(2**64), 10**4000])
def test_an_error_code_that_cannot_be_is_none(code: int) -> None:
    rows, _ = read(document(gpu(0, "Fail", warnings=[{"error_id": code, "warning": "broken"}])))
    assert rows.select("event_class", "code", "text").rows() == [("diagnostic_failed", None, "broken")]


@pytest.mark.parametrize("name", [["a"], {"a": "b"}, None, "", []])
def test_a_host_name_that_is_none_leaves_the_sources_node(name: object) -> None:
    rows, _ = read(document(gpu(0, "Fail"), metadata={"hostname": name}))
    assert rows["node"].to_list() == ["gn01"]


@pytest.mark.parametrize("time", [1e300, 10**30, -(10**17), 10**4000, "9999-12-31T23:59:59-23:59", float("nan")])
def test_a_time_that_cannot_be_is_the_collection_time_flagged(time: object) -> None:
    rows, _ = read(document(gpu(0, "Fail"), metadata={"timestamp": time}))
    assert rows.select("occurred_at", "flags").rows() == [(COLLECTED, ["value_unreadable"])]


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    text = document(
        gpu(0, "Fail\ud800", warnings="a\udc00b \U0001f600"), name="mem\ud800", metadata={"hostname": "gn\ud800"}
    )
    assert "\\ud800" in text  # escaped, as JSON can hold it
    rows, _ = read(text)
    [row] = rows.to_dicts()
    assert (row["event_class"], row["node"], row["text"]) == ("diagnostic_failed", "gn\ufffd", "a\ufffdb \U0001f600")


def test_a_document_that_is_too_large_is_one_reject_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 500)
    large = document(*(gpu(n, "Fail") for n in range(20)))
    small = document(gpu(1, "Pass"))
    for end in ("\n", "\n}\n", "\n  }\n"):  # closed, or closed once too often
        rows, parsed = read(large + end + small + "\n")
        assert verdicts(rows) == [("diagnostic_passed", "1", "memory")]
        [reject] = [r for p in parsed for r in p.rejects]
        assert (reject.line, reject.reason) == (1, documents.TOO_LARGE)
        ignored = sum((p.ignored for p in parsed), Counter[str]())
        assert ignored["too_large"] == large.count("\n")
        assert ignored.total() == large.count("\n") + end.count("\n") - 1
    # One that is never closed ends where the next begins.
    rows, parsed = read(large[: large.rindex("}")] + "\n" + small)
    assert verdicts(rows) == [("diagnostic_passed", "1", "memory")]
    assert sum(len(p.rejects) for p in parsed) == 1
