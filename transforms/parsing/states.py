"""Job states and exit codes as sacct prints them."""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

# sacct(1), JOB STATE CODES, with the flags that sacct prints in place of a state.
STATES = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "CONFIGURING", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PENDING", "PREEMPTED", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "REVOKED", "RUNNING", "SIGNALING",
    "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "SUSPENDED", "TIMEOUT",
)  # fmt: skip
_STATE = re.compile(r"([A-Z_]+)(\+)?(?: BY (\S+))?", re.IGNORECASE)
_MIN_PREFIX = 3


class State(NamedTuple):
    """A state taken apart.

    Attributes:
        state: full name in upper case; as printed where it is unknown.
        cancelled_by_uid: uid after `by`; None where none is printed or it is cut.
        is_known: the state is one that Slurm documents.
        is_cut: the text ends in `+`: sacct cut it to the column's width.
    """

    state: str | None
    cancelled_by_uid: int | None
    is_known: bool
    is_cut: bool


def read_state(text: str | None) -> State:
    """Take a printed state apart: `CANCELLED by 50123`, `OUT_OF_ME+`, `completed`."""
    text = (text or "").strip()
    if not text:
        return State(None, None, True, False)
    is_cut = text.endswith("+")
    found = _STATE.fullmatch(text)
    name = _full_name(found.group(1).upper(), is_cut=found.group(2) is not None) if found else None
    if found is None or name is None:
        return State(text, None, False, is_cut)
    uid = found.group(3) or ""
    return State(name, int(uid) if re.fullmatch(r"[0-9]{1,10}", uid) else None, True, is_cut)


def _full_name(name: str, *, is_cut: bool) -> str | None:
    """Return the one state that `name` is, or is the beginning of."""
    if name in STATES:
        return name
    begun = [s for s in STATES if s.startswith(name)] if is_cut and len(name) >= _MIN_PREFIX else []
    return begun[0] if len(begun) == 1 else None


class ExitReading(NamedTuple):
    """Expressions for `code:signal`."""

    code: pl.Expr
    signal: pl.Expr
    is_unreadable: pl.Expr


def exit_code(column: str) -> ExitReading:
    """Return expressions that read the String column `column` as `code:signal` (both Int64); a bare number is a code."""
    text = pl.col(column).str.strip_chars()
    text = pl.when(text.is_in(("", "None", "Unknown")).not_()).then(text)
    part = text.str.extract_groups(r"^(\d{1,9})(?::(\d{1,9}))?$").struct
    code, signal = part.field("1").cast(pl.Int64), part.field("2").cast(pl.Int64)
    return ExitReading(code, signal, text.is_not_null() & code.is_null())
