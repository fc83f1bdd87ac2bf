"""The world the replay tells of: a fleet, incidents, and what each leaves behind in the logs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Stream = Literal["kernel", "sel", "training", "health", "diagnostic"]
Ending = Literal["exit", "node_fail", "watchdog", "cancel", "requeue"]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines of one cluster.

    Attributes:
        cluster: name.
        nodes: every node's name: those of the run first, then spares.
        gpus: GPUs a node.
        pci: PCI address of each GPU index, the same on every node: "0000:1b:00".
        nics: adapters of a node: ("mlx5_0", PCI address) each, one a GPU.
        racks: rack of each node.
        switches: leaf switch of each node.
        clock_offset: seconds by which each node's clock is wrong.
    """

    cluster: str
    nodes: tuple[str, ...]
    gpus: int
    pci: tuple[str, ...]
    nics: tuple[tuple[str, str], ...]
    racks: dict[str, str]
    switches: dict[str, str]
    clock_offset: dict[str, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One line that a machine or the training process wrote.

    Attributes:
        at: when, seconds since 1970, true time.
        node: the machine; "" in the training log where no rank is named.
        stream: which log.
        text: the message without the log's own stamp and host. kernel: after `kernel: `; sel: `sensor | event | Asserted`;
            training: after the collector's stamp; health: after the check's own stamp; diagnostic: JSON of `dcgmi diag -j`.
    """

    at: float
    node: str
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class Scene:
    """One incident in the world, before anything was logged.

    Attributes:
        cause: cause code of the taxonomy.
        fault_at: when it happened, seconds since 1970.
        stalled_at: when steps stopped advancing (end of the last step that ended).
        ended_at: when the attempt ended.
        node: node it sits in; for a run-wide cause the node of the rank that complained first.
        gpu: GPU index it sits in.
        neighbours: other nodes of the attempt in the same rack or on the same switch, at most 15.
        bystanders: some nodes of the attempt with no part in it.
        pids: process id of the training rank on each GPU index of `node`.
        fleet: the machines.
        rng: source of chance of this incident alone.
        ranks: rank of GPU 0 on each node named here; a node without one counts by its place in the fleet.
    """

    cause: str
    fault_at: float
    stalled_at: float
    ended_at: float
    node: str
    gpu: int
    neighbours: tuple[str, ...]
    bystanders: tuple[str, ...]
    pids: tuple[int, ...]
    fleet: Fleet
    rng: random.Random
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signature:
    """One way in which a cause shows itself.

    Attributes:
        name: what happens, in a word or two; for the truth file and for reading.
        cause: cause code.
        weight: how often among the signatures of its cause.
        ending: how the attempt ends. exit: ranks die, sbatch returns non-zero (FAILED); node_fail: the node stops answering
            (NODE_FAIL); watchdog: ranks hang until the NCCL watchdog kills them (FAILED, 10 to 30 minutes later); cancel: people
            or automation cancel a hung job; requeue: `scontrol requeue`.
        emit: the lines it leaves, in no particular order.
        node_reason: reason with which automation or a person takes the node out after the end; "" = it stays in.
        node_reason_after: seconds after the end at which the node is taken out, (least, most).
        is_identifiable: whether the exports hold what it takes to tell the cause.
        accepted: other causes that are right as well, as far as the exports can tell.
        gap: seconds from the fault to the stall, (least, most).
        sets_aside: suspects, this node among them, that the next attempt does without and that are tested in the two days
            after, without a drain; a diagnostic needs idle GPUs.
    """

    name: str
    cause: str
    weight: float
    ending: Ending
    emit: Callable[[Scene], Iterable[Line]]
    node_reason: str = ""
    node_reason_after: tuple[float, float] = (120.0, 900.0)
    is_identifiable: bool = True
    accepted: tuple[str, ...] = ()
    gap: tuple[float, float] = (0.0, 20.0)
    sets_aside: int = 0
