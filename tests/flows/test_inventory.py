"""Inventories, maps of ranks, topologies and health checks from export to mart."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path

from tests.conftest import Site

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "cases"
SETTINGS = """
[clusters.c1]
zone = "UTC"
gpus_per_node = 8
"""
SACCT = (
    "JobID|JobName|User|State|Submit|Start|End|NNodes|NodeList\n"
    "1|r|ann|FAILED|2025-05-04T07:00:00|2025-05-04T07:00:00|2025-05-04T12:00:00|2|gn[030-031]\n"
)


def test_fd3_an_xid_is_placed_on_its_gpu_by_the_inventory(site: Callable[..., Site]) -> None:
    """Eight events on GPUs 0, 0, 1, 2, 2, 3, 4 and one nobody knows, which is kept; the lost GPU (79) is not asked.

    Bus ids are told with four and eight digits, in both cases, with and without function.
    """
    made = site(SETTINGS)
    for name in ("kern.log", "gpu_inventory.csv"):
        made.add(name, (CASES / "FD3" / name).read_bytes(), cluster="c1")
    made.run()
    found = made.rows("select code, gpu, gpu_index, gpu_uuid from marts.hardware_events order by occurred_at")
    assert [(f["code"], f["gpu_index"]) for f in found] == [
        (31, 0), (13, 0), (14, 1), (94, 2), (13, 2), (79, 3), (119, 4), (45, None),
    ]  # fmt: skip
    assert [f["gpu_uuid"] and f["gpu_uuid"][-1] for f in found] == ["1", "1", "2", "3", "3", "4", "5", None]
    assert found[-1]["gpu"] == "0000:d8:00.0"
    assert made.column("select count(*) from marts.inventory where valid_to is null") == [5]


def listing(*gpus: str) -> str:
    """A listing of nodes' GPU 0: `node uuid`."""
    lines = [f"{node},0,0000:1b:00.0,{uuid}" for node, _, uuid in (g.partition(" ") for g in gpus)]
    return "\n".join(["node,gpu_index,pci_bus_id,uuid", *lines, ""])


def test_a_swapped_gpu_leaves_its_node_whatever_is_read_first(site: Callable[..., Site]) -> None:
    """Three listings without times, the second one also as a copy taken later; the same marts in any order.

    GPU-1 goes from gn030 to gn031 and back. Each listing's first and last statement are the same record.
    """
    first, second = listing("gn030 GPU-1", "gn031 GPU-2"), listing("gn030 GPU-2", "gn031 GPU-1")
    exports = [
        ("a.csv", first, "2025-05-01T00:00:00Z"),
        ("b.csv", second, "2025-05-03T00:00:00Z"),
        ("copy.csv", second, "2025-05-04T00:00:00Z"),
        ("c.csv", first, "2025-05-05T00:00:00Z"),
    ]
    digests = []
    for number, order in enumerate(list(permutations(exports))[::7]):
        made = site(SETTINGS, name=f"order-{number}")
        for name, text, collected_at in order:
            made.add(name, text, cluster="c1", collected_at=collected_at)
            made.run()
        digests.append(made.digest())
    assert len(digests) == 4
    assert all(d == digests[0] for d in digests)
    stays = made.rows("select node, uuid, valid_from, valid_to from marts.inventory order by uuid, valid_from")
    days = [datetime(2025, 5, day, tzinfo=UTC) for day in (1, 3, 5)]
    assert [tuple(s.values()) for s in stays] == [
        ("gn030", "GPU-1", days[0], days[1]),
        ("gn031", "GPU-1", days[1], days[2]),
        ("gn030", "GPU-1", days[2], None),
        ("gn031", "GPU-2", days[0], days[1]),
        ("gn030", "GPU-2", days[1], days[2]),
        ("gn031", "GPU-2", days[2], None),
    ]


def test_a_gpu_in_two_places_at_once_is_told_so(site: Callable[..., Site]) -> None:
    """GPU-1 is listed on two nodes, twice; GPU-2 moves, and leaves the one it came from. Then only one has GPU-1."""
    made = site(SETTINGS)
    days = [datetime(2025, 5, day, tzinfo=UTC) for day in (1, 3, 5)]
    both = ("gn030 GPU-1", "gn031 GPU-1")
    listings = [listing(*both, "gn032 GPU-2"), listing(*both, "gn033 GPU-2"), listing("gn031 GPU-1", "gn033 GPU-2")]
    for number, (day, text) in enumerate(zip(days, listings, strict=True)):
        made.add(f"{number}.csv", text, cluster="c1", collected_at=f"{day:%Y-%m-%dT%H:%M:%SZ}")
    made.run()
    stays = made.rows("select node, uuid, valid_from, valid_to, is_contradicted from marts.inventory order by node")
    assert [tuple(s.values()) for s in stays] == [
        ("gn030", "GPU-1", days[0], days[2], True),
        ("gn031", "GPU-1", days[0], None, True),
        ("gn032", "GPU-2", days[0], days[1], False),
        ("gn033", "GPU-2", days[1], None, False),
    ]


def test_a_gpu_seen_elsewhere_later_takes_nothing_from_the_one_in_its_place(site: Callable[..., Site]) -> None:
    """GPU-2 stands where GPU-1 was; days later GPU-1 comes back from repair into another node."""
    made = site(SETTINGS)
    days = [datetime(2025, 5, day, tzinfo=UTC) for day in (1, 3, 5)]
    texts = [listing("gn030 GPU-1"), listing("gn030 GPU-2"), listing("gn031 GPU-1", "gn030 GPU-2")]
    for number, (day, text) in enumerate(zip(days, texts, strict=True)):
        made.add(f"{number}.csv", text, cluster="c1", collected_at=f"{day:%Y-%m-%dT%H:%M:%SZ}")
    made.run()
    stays = made.rows("select node, uuid, valid_from, valid_to from marts.inventory order by valid_from")
    assert [tuple(s.values()) for s in stays] == [
        ("gn030", "GPU-1", days[0], days[1]),
        ("gn030", "GPU-2", days[1], None),
        ("gn031", "GPU-1", days[2], None),
    ]


def test_a_listing_written_over_in_place_still_tells_what_was_before(site: Callable[..., Site]) -> None:
    """The old content is superseded as a file, not as a fact; its time is that of the file when it was first seen."""
    made = site(f'{SETTINGS}\n[[sources]]\npath = "live/gpus.csv"\ncluster = "c1"\n')
    path = made.folder / "live" / "gpus.csv"
    path.parent.mkdir()
    for day, uuid in ((1, "GPU-1"), (2, "GPU-22")):
        path.write_text(listing(f"gn030 {uuid}"))
        at = datetime(2025, 5, day, tzinfo=UTC).timestamp()
        os.utime(path, (at, at))
        made.run()
    assert made.column("select uuid from marts.inventory order by valid_from") == ["GPU-1", "GPU-22"]
    assert made.column("select uuid from marts.inventory where valid_to is null") == ["GPU-22"]


def test_names_are_the_schedulers_and_places_come_with_gpus(site: Callable[..., Site]) -> None:
    """A listing with domains, a topology without: one node."""
    made = site(SETTINGS)
    made.add("sacct.txt", SACCT, cluster="c1")
    made.add("gpus.csv", listing("gn030.site.example GPU-1"), cluster="c1")
    made.add("racks.csv", "node,rack,leaf\nGN030,A7,leaf-7\n", cluster="c1")
    made.add(
        "kern.log",
        "2025-05-04T11:00:00+00:00 gn030 kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n",
        cluster="c1",
    )
    made.run()
    assert made.rows("select node, rack, switch from marts.inventory") == [
        {"node": "gn030", "rack": "A7", "switch": "leaf-7"}
    ]
    assert made.rows("select node, gpu_index, gpu_uuid from marts.hardware_events") == [
        {"node": "gn030", "gpu_index": 0, "gpu_uuid": "GPU-1"}
    ]


def test_failed_health_checks_are_events_on_their_node(site: Callable[..., Site]) -> None:
    """Told twice, by NHC's helper and by syslog, it is one event; the GPU it names by index has its UUID."""
    made = site(SETTINGS)
    said = "Health check failed:  check_nvlink_status: GPU 0 has nvlinks inactive: Link 2: Inactive."
    made.add("nhc.log", f"20250504 11:00:00 /usr/libexec/nhc/node-mark-offline gn030 {said}\n", cluster="c1")
    made.add("syslog", f"2025-05-04T11:00:00+00:00 gn030 nhc[7]: {said}\n", cluster="c1")
    made.add("gpus.csv", listing("gn030 GPU-1"), cluster="c1")
    made.run()
    assert made.rows(
        "select node, class, evidence_class, is_fatal, unit, gpu_index, gpu_uuid from marts.hardware_events"
    ) == [
        {
            "node": "gn030",
            "class": "health_check_failed_nvlink",
            "evidence_class": "health_check_failed_nvlink",
            "is_fatal": True,
            "unit": "check_nvlink_status",
            "gpu_index": 0,
            "gpu_uuid": "GPU-1",
        }
    ]
    assert made.column("select count(*) from ops.record_locations where record_table = 'hardware_events'") == [2]
