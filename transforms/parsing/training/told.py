"""What a message of a training log says, apart from when and from where."""

from __future__ import annotations

from typing import NamedTuple

START, EXIT, STEP = "start", "exit", "step"
BEGUN, DURABLE, LOADED = "checkpoint_begun", "checkpoint_durable", "checkpoint_loaded"
NCCL_TIMEOUT, NCCL_ERROR, ERROR = "nccl_timeout", "nccl_error", "error"
NOT_FINITE, SPIKE = "loss_not_finite", "loss_spike"


class Told(NamedTuple):
    """The columns of `log_events` that the message alone decides; see transforms.tables.

    `text` is set where the event is told over several lines, `is_unreadable` where a number that is there is none.
    """

    event: str
    step: int | None = None
    rank: int | None = None
    node: str | None = None
    error_class: str | None = None
    sequence: int | None = None
    seconds: float | None = None
    text: str | None = None
    is_unreadable: bool = False


class Passed(NamedTuple):
    """A line that is looked at but makes no row.

    Attributes:
        rule: the rule by which it is passed over.
        step: iteration from which steps are counted on: 0 where no checkpoint is loaded.
        pause_seconds: time it tells of that is in no step's own time.
    """

    rule: str
    step: int | None = None
    pause_seconds: float = 0.0


class Lost(NamedTuple):
    """A line that tells something which cannot be read.

    Attributes:
        reason: why.
    """

    reason: str


Found = list[Told] | Passed | Lost
