"""Find the fields of a line in which the delimiter also stands inside free text."""

from __future__ import annotations

from collections.abc import Sequence

from transforms.parsing.sacct_columns import Layout

MAX_EXTRA = 256
Span = tuple[int, int]


class UnsplittableLineError(ValueError):
    """The line cannot be split into its columns without guessing."""


def anchored(parts: Sequence[str], layout: Layout) -> tuple[dict[str, str | None], bool]:
    """Return the wanted fields of a line that holds more delimiters than it should, and whether free text was lost.

    Every way to hand the parts to the columns is weighed in which each column accepts its text. A column that gets
    the same parts in all of them is certain. Free text that is not certain becomes None; any other uncertain column
    makes the line unsplittable: values are never shifted.

    Args:
        parts: the line cut at every delimiter; at least as many as there are columns.
        layout: the export's columns.

    Raises:
        UnsplittableLineError: no way fits, or several do that disagree.
    """
    if len(parts) - layout.width > MAX_EXTRA:
        raise UnsplittableLineError(f"{len(parts)} fields where {layout.width} columns are expected")
    spans = _possible_spans(parts, layout)
    if not all(spans):
        raise UnsplittableLineError(
            f"{len(parts)} fields where {layout.width} columns are expected, and no reading fits the columns' types"
        )
    fields: dict[str, str | None] = {}
    is_lost = False
    for ours, position in layout.wanted.items():
        texts = {layout.delimiter.join(parts[i:j]) for i, j in spans[position]}
        if len(texts) == 1:
            fields[ours] = texts.pop()
        elif layout.names[position] in ("jobname", "comment"):
            fields[ours], is_lost = None, True
        else:
            raise UnsplittableLineError(
                f"the delimiter stands in several free-text columns: {layout.names[position]} could be any of {len(texts)}"
            )
    return fields, is_lost


def _possible_spans(parts: Sequence[str], layout: Layout) -> list[list[Span]]:
    """Return for each column the spans of parts it gets in some complete reading."""
    forward: list[list[Span]] = []
    reachable = {0}
    for position in range(layout.width):
        left = layout.width - position - 1
        forward.append([s for start in sorted(reachable) for s in _spans_from(parts, layout, position, start, left)])
        reachable = {j for _, j in forward[-1]}
    wanted_ends = {len(parts)}
    spans: list[list[Span]] = []
    for candidates in reversed(forward):
        kept = [s for s in candidates if s[1] in wanted_ends]
        spans.append(kept)
        wanted_ends = {i for i, _ in kept}
    return spans[::-1]


def _spans_from(parts: Sequence[str], layout: Layout, position: int, start: int, left: int) -> list[Span]:
    """Return the spans from `start` whose text the column at `position` accepts, leaving a part for each later one."""
    check = layout.checks[position]
    last = len(parts) - left if layout.flexible[position] else start + 1
    return [
        (start, end)
        for end in range(start + 1, last + 1)
        if check is None or check(layout.delimiter.join(parts[start:end]))
    ]
