"""Tracebacks of a training code of our own invention: where they begin, and how they end."""

from __future__ import annotations

import random

FRAMES = {
    "loop": (
        ("/opt/train/launch.py", 88, "main", "trainer.run(config)"),
        ("/opt/train/loop.py", 412, "run", "metrics = self.step(batch)"),
        ("/opt/train/loop.py", 297, "step", "loss = self.schedule(forward, data, self.chunks)"),
    ),
    "megatron": (
        ("/opt/megatron/pretrain_gpt.py", 268, "<module>", "pretrain("),
        (
            "/opt/megatron/megatron/training/training.py",
            356,
            "pretrain",
            "iteration, num_floating_point_operations_so_far = train(",
        ),
        ("/opt/megatron/megatron/training/training.py", 1502, "train", "train_step(forward_step_func,"),
    ),
}
"""Where tracebacks begin: file, line, function, source."""

ENDS: dict[str, tuple[tuple[tuple[str, int, str, str], ...], tuple[str, ...]]] = {
    "shape": (
        (("/opt/train/model/attention.py", 173, "forward", "scores = torch.matmul(query, key.transpose(-1, -2))"),),
        (
            "RuntimeError: The size of tensor a (8192) must match the size of tensor b (8191) at non-singleton dimension 2",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8192x16384 and 12288x53248)",
        ),
    ),
    "data": (
        (("/opt/train/data/mixture.py", 64, "__next__", "sample = self.sources[name][position]"),),
        (
            "KeyError: 'code_v3'",
            "IndexError: index 48012288 is out of bounds for axis 0 with size 48012280",
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xa7 in position 311: invalid start byte",
        ),
    ),
    "assertion": (
        (
            (
                "/opt/train/data/packing.py",
                119,
                "pack",
                "assert total == self.sequence_length, (total, self.sequence_length)",
            ),
        ),
        ("AssertionError: (8193, 8192)", "AssertionError: sequence parallel chunks differ between ranks"),
    ),
    "types": (
        (("/opt/train/optim/schedule.py", 41, "rate", "return self.peak * min(1.0, step / self.warmup)"),),
        (
            "TypeError: unsupported operand type(s) for /: 'int' and 'NoneType'",
            "ZeroDivisionError: division by zero",
            "AttributeError: 'NoneType' object has no attribute 'step'",
        ),
    ),
    "checkpoint": (
        (("/opt/train/state/writer.py", 233, "save", "plan = self.planner.merge(local_plans)"),),
        (
            "ValueError: duplicate shard key decoder.layers.61.mlp.linear_fc2.weight in plan",
            "RuntimeError: Missing key in checkpoint state_dict: optimizer.state.exp_avg_sq.decoder.layers.17.",
        ),
    ),
    "config": (
        (("/opt/train/config/live.py", 58, "reload", "value = int(entry.value)"),),
        ("ValueError: invalid literal for int() with base 10: '2048,'", "NameError: name 'ramp' is not defined"),
    ),
}
"""How they end: last frames and the exceptions seen there."""


def trace(rng: random.Random, kind: str) -> list[str]:
    """Lines of an uncaught exception of one kind."""
    frames, exceptions = ENDS[kind]
    told = ["Traceback (most recent call last):"]
    for path, line, function, source in (*FRAMES[rng.choice(sorted(FRAMES))], *frames):
        told += [f'  File "{path}", line {line}, in {function}', f"    {source}"]
    return [*told, rng.choice(exceptions)]
