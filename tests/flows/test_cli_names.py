"""Names that were meant: of nodes as logs print them, of causes as people call them."""

from __future__ import annotations

import pytest

from flows.cli.names import meant_cause, meant_node, resolved

NODES = ["hgx-a017", "hgx-a018", "Login01", "gpu002"]
CAUSES = {
    "gpu_hbm": "GPU HBM3 Memory",
    "nic": "NIC",
    "network_switch_cable": "Network Switch/Cable",
    "system_memory": "System Memory",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hgx-a017", "hgx-a017"),
        ("hgx-a017.dc2.example", "hgx-a017"),
        ("HGX-A017.dc2.example", "hgx-a017"),
        ("login01", "Login01"),
        ("a017", None),
        ("", None),
    ],
)
def test_a_node_is_found_as_logs_print_it(name: str, expected: str | None) -> None:
    assert resolved(name, NODES) == expected


def test_the_name_as_given_wins() -> None:
    assert resolved("n1.b", ["n1", "n1.b", "N1.B"]) == "n1.b"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a017", "; did you mean `hgx-a017`?"),
        ("hgx", "; did you mean `hgx-a017` or `hgx-a018`?"),
        ("gpu02", "; did you mean `gpu002`?"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_a_part_of_a_node_finds_it(name: str, expected: str) -> None:
    assert meant_node(name, NODES) == expected
    assert meant_node("n", [f"n{i}" for i in range(5)]).endswith("or `n2`? (2 more fit)")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpu_hmb", "; did you mean `gpu_hbm`?"),
        ("HBM", "; did you mean `gpu_hbm`?"),
        ("NIC", "; did you mean `nic`?"),
        ("Network Switch/Cable", "; did you mean `network_switch_cable`?"),
        ("bad cable", "; did you mean `network_switch_cable`?"),
        ("memory", "; did you mean `gpu_hbm` or `system_memory`?"),
        ("xyzzy", ""),
    ],
)
def test_a_cause_is_found_by_code_label_or_word(name: str, expected: str) -> None:
    assert meant_cause(name, CAUSES) == expected
