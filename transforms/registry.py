"""Find the module in `transforms/sources` that reads a given export."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from transforms import sources
from transforms.foreign import foreign
from transforms.outcome import Context, Parsed
from transforms.stream import CHUNK_BYTES, ExportStream
from transforms.tables import Table

Parser = Callable[[ExportStream, Context], Iterator[Parsed]]
Sniffer = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Source:
    """An export format.

    Attributes:
        name: name of its module; the word that finds it everywhere.
        tables: normalized tables its rows go to.
        sniff: tells from the first 64 KiB (decompressed) whether an export has this format.
        parse: reads an export piece by piece; counts every line once.
        doc: one line for `goodput sources`: what command or system writes it.
        version: raised when the same bytes would give other rows; older pieces are then read again.
        chunk_bytes: bytes it wants to be given at a time.
        is_document: one answer that is read whole (JSON, a status listing): a file that changed is read anew from its
            start. False = lines, of which only those that were added are read.
        names_clusters: its rows may name their cluster, so what they give depends on which clusters are configured.
    """

    name: str
    tables: tuple[Table, ...]
    sniff: Sniffer
    parse: Parser
    doc: str
    version: int = 1
    chunk_bytes: int = CHUNK_BYTES
    is_document: bool = False
    names_clusters: bool = False


@cache
def all_sources() -> dict[str, Source]:
    """Return every source by name: each module in `transforms.sources` defines `SOURCE`."""
    found: dict[str, Source] = {}
    for info in pkgutil.iter_modules(sources.__path__):
        source: Source = importlib.import_module(f"{sources.__name__}.{info.name}").SOURCE
        if source.name != info.name or source.name in found:
            raise ValueError(f"transforms/sources/{info.name}.py defines a source named {source.name}")
        found[source.name] = source
    return found


def sniff(head: bytes) -> list[Source]:
    """Return the sources that recognize an export by its first bytes; one is right, none or several are not.

    Archives, and texts in another encoding or with other line ends, are none: their lines cannot be told apart.
    """
    if foreign(head):
        return []
    return [s for s in all_sources().values() if s.sniff(head)]
