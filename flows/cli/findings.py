"""What `goodput doctor` finds: one line each, with the next step where there is one."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: what was looked at: "data folder".
        level: `ok`, `warning` (works, but look at it) or `problem` (does not work, or will not).
        text: what was found.
        next_step: what to do about it; empty where nothing is to be done.
    """

    about: str
    level: str
    text: str
    next_step: str = ""

    def __str__(self) -> str:
        told = f"{self.text}; {self.next_step}" if self.next_step else self.text
        return f"{self.level:<8} {self.about}: {' '.join(told.split())}"
