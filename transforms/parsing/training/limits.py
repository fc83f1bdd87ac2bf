"""What numbers in a training log can be: one beyond these was garbled, and is taken for unreadable.

They are wide of anything a job prints, and narrow enough that no sum or difference of a few thousand of them leaves 64 bits.
"""

from __future__ import annotations

import math

MAX_COUNT = 10**12
MAX_SAMPLES = 10**15
MAX_STEP_SECONDS = 10 * 86_400.0
MAX_SECONDS = 10 * 366 * 86_400.0
_DIGITS = len(str(MAX_COUNT))


def count(text: str | None) -> int | None:
    """Return a step, rank or sequence number; None where there is none or it is larger than MAX_COUNT."""
    if text is None or len(text := text.lstrip("0") or "0") > _DIGITS:
        return None
    number = int(text)
    return number if number <= MAX_COUNT else None


def seconds(text: str | None, *, unit: float = 1.0, most: float = MAX_SECONDS) -> float | None:
    """Return a length of time; None where there is none or it is longer than `most`.

    Args:
        text: a number, not below 0.
        unit: how many of its units are a second.
        most: seconds.
    """
    try:
        number = float(text or "nan") / unit
    except ValueError:
        return None
    return number if math.isfinite(number) and number <= most else None


def is_lost(*read: tuple[str | None, float | None]) -> bool:
    """Tell whether one of some texts, each with what was read of it, is there and could not be read."""
    return any(text is not None and value is None for text, value in read)
