"""What a build depends on, as one hash: where it is that of the newest build, another build would hold the same."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import duckdb

from transforms import tables
from warehouse.inputs import Inputs

_SUFFIXES = {".py", ".sql", ".csv", ".toml"}


def fingerprint(inputs: Inputs, code_version: str) -> str | None:
    """Return the SHA-256 of records, settings, code and reference data; None where it is not known what the lake holds."""
    if inputs.content is None:
        return None
    return hashlib.sha256(f"{inputs.content} {basis(inputs, code_version)}".encode()).hexdigest()


def basis(inputs: Inputs, code_version: str) -> str:
    """Return the SHA-256 of everything but the records: a build of another basis is none to go on from."""
    settings = sorted((name, [sorted(row.items()) for row in rows]) for name, rows in inputs.settings.items())
    text = repr((settings, code_version, code(), duckdb.__version__))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def code() -> str:
    """Return the SHA-256 of everything that models are made of: SQL, reference data, and the code round them."""
    root = Path(__file__).parent
    files = sorted(p for p in root.rglob("*") if p.suffix in _SUFFIXES)
    hashed = hashlib.sha256()
    for path in (Path(tables.__file__), *files):
        hashed.update(f"{path.name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()
