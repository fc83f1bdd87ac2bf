"""Values that must stand in no file, log or message: where they come from, and how they are hidden in what programs print."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote, quote_plus

Secrets = Callable[[str], str | None]
"""Returns the value of a secret, None where it does not know it."""
HIDDEN = b"***"
SHORTEST = 6
"""A shorter value may stand in any output by chance: output is not searched for it."""


class MissingSecretError(Exception):
    """A secret is nowhere to be found; the message says where to put it."""


def values(names: Iterable[str], secrets: Secrets | None = None) -> dict[str, str]:
    """Return the value of each of `names`: from the environment, else from `secrets`.

    Raises:
        MissingSecretError: one is in neither, or cannot be loaded.
    """
    return {name: os.environ.get(name) or _loaded(name, secrets) for name in names}


def _loaded(name: str, secrets: Secrets | None) -> str:
    why = "is not set"
    try:
        if secrets is not None and (found := secrets(name)):
            return found
    except Exception as error:  # noqa: BLE001 - of whatever kind; its text may hold what must not be shown
        why = f"could not be loaded ({type(error).__name__})"
    raise MissingSecretError(
        f"the secret {name} {why}: set the variable {name} in the environment, or, for runs of a deployment, save the Prefect "
        f"Secret block `{block_name(name)}`"
    )


def block_name(name: str) -> str:
    """Return what the Prefect block for a variable is called: block names have small letters and dashes only."""
    return name.lower().replace("_", "-")


class Mask:
    """Finds the values of secrets, also as they stand in addresses and in headers of HTTP."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._forms = sorted({f for v in values.values() for f in _forms(v) if f}, key=lambda f: (-len(f), f))
        self._pattern = re.compile(b"|".join(map(re.escape, self._forms))) if self._forms else None
        self._long = [f for f in self._forms if len(f) >= SHORTEST]
        self._before = b""

    def hidden(self, text: bytes, *, is_cut: bool = False) -> bytes:
        """Return `text` with the values hidden; what a cut at its beginning may have left of one is left out."""
        if self._pattern is None:
            return text
        text = self._pattern.sub(HIDDEN, text)
        return HIDDEN + text[len(self._forms[0]) :] if is_cut else text

    def is_in(self, block: bytes) -> bool:
        """Tell whether a value ends in this block of a stream, whose blocks are given one after the other."""
        if not self._long:
            return False
        text = self._before + block
        self._before = text[-len(self._long[0]) :]
        return any(form in text for form in self._long)


def _forms(value: str) -> set[bytes]:
    raw = value.encode("utf-8", "surrogateescape")
    lines = [line for line in raw.split() if len(line) >= SHORTEST]
    coded = {base64.b64encode(raw).rstrip(b"="), quote(raw, safe="").encode(), quote_plus(raw).encode()}
    return {raw, raw.strip(), *lines, *coded}
