"""Training logs as Megatron-LM, Megatron-DeepSpeed and NeMo jobs write them -> steps, checkpoints, errors.

Every line has one fate: it tells something (used, in one row or, where a step's loss is not finite or ranks wrote over each
other, in several), a rule passes over it (ignored), or it tells something at a time nobody can read (rejected).

A log whose lines carry no stamp of a collector is read again from the piece's beginning when it grows, since its new lines are
dated from stamps and steps before them; a stamped one is read from its last complete line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transforms.outcome import Context, Parsed
from transforms.parsing.training.reader import LogReader
from transforms.registry import Source
from transforms.stream import Chunk, ExportStream
from transforms.tables import LOG_EVENTS

_SURE = re.compile(
    rb"iteration +\d+/ *\d+ *\|.*(?:elapsed time per iteration \(ms\):|train_step_timing in s:)|"
    rb"using world size: \d+,.*parallel|"
    rb"^-{4,} arguments -{4,}|"
    rb"\[(?:after|before|exiting) [^\]]+\] datetime: \d{4}-|"
    rb"\(after \d+ iterations\) memory \(MB\) \||"
    rb"(?:saving checkpoint at iteration|successfully (?:saved|loaded) checkpoint) |"
    rb"Watchdog caught collective operation timeout|ProcessGroupNCCL\.cpp:\d+\]|"
    rb"\S+:\d+:\d+ \[\d+\].* NCCL (?:INFO|WARN) |"
    rb"torch\.distributed\.elastic|/torch/(?:distributed|nn|autograd)/[\w/]+\.py\", line \d+",
    re.MULTILINE,
)
# A job's script, traced by `bash -x`, may fill the beginning: then it loads or starts such a program.
_TRACE = re.compile(rb"^\++ ", re.MULTILINE)
_FRAMEWORK = re.compile(rb"megatron|pytorch|torchrun|torch\.distributed|deepspeed|nemo\b", re.IGNORECASE)
_TRACED_LINES = 20
MAX_LINES = 50_000


def sniff(head: bytes) -> bool:
    """Tell whether an export holds a line that only such programs write, or is the trace of a script that starts one."""
    if _SURE.search(head):
        return True
    return len(_TRACE.findall(head)) >= _TRACED_LINES and _FRAMEWORK.search(head) is not None


def parse(stream: ExportStream, ctx: Context) -> Iterator[Parsed]:
    """Yield rows of `log_events` chunk by chunk.

    Raises:
        MissingSettingError: no cluster, or stamps without an offset and no zone.
    """
    reader = LogReader(ctx, stream.head)
    for chunk in stream.chunks():
        for part in _bounded(chunk):
            yield reader.read(part)
    yield Parsed(rejects=list(stream.long_lines), is_open=reader.is_open)


def _bounded(chunk: Chunk) -> Iterator[Chunk]:
    """Yield a chunk in parts of about MAX_LINES lines: many short lines take more memory than few long ones."""
    lines = chunk.data.count(b"\n")
    if lines <= MAX_LINES:
        yield chunk
        return
    size, start, line = len(chunk.data) * MAX_LINES // lines + 1, 0, chunk.first_line
    while start < len(chunk.data):
        end = chunk.data.find(b"\n", start + size) + 1 or len(chunk.data)
        data = chunk.data[start:end]
        yield Chunk(data, line, chunk.byte_offset + start)
        line += data.count(b"\n")
        start = end


SOURCE = Source(
    name="training_log",
    tables=(LOG_EVENTS,),
    sniff=sniff,
    parse=parse,
    chunk_bytes=4 << 20,  # lines take several times their bytes while they are read
    doc="output of a training job: Megatron-LM, Megatron-DeepSpeed, NeMo; PyTorch and NCCL errors in it",
    version=2,
)
