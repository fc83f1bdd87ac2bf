"""Steps: the line that a training program prints every so many iterations.

Forms: Megatron-LM and Megatron-DeepSpeed, `iteration 10/ 1000 | consumed samples: 40 | elapsed time per iteration (ms): 5837.9 |
... | lm loss: 1.2E+01 |` (training_log in megatron/training/training.py); NeMo, `Training epoch 0, iteration 9/99 | ... |
global_step: 9 | reduced_train_loss: 11.03 | train_step_timing in s: 48.49 | consumed_samples: 320` (its progress printer, which
counts steps from 0).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl

from transforms.parsing.text import by_shape
from transforms.parsing.training.limits import MAX_COUNT, MAX_SAMPLES, MAX_STEP_SECONDS

_STEP = r"iteration +([0-9]+)/ *[0-9]+ *\|"
_MEGATRON = "elapsed time per iteration (ms):"
_NEMO = "train_step_timing in s:"
_NAN_ITERATIONS = "number of nan iterations:"
_MOST = {"step_seconds": MAX_STEP_SECONDS, "samples": MAX_SAMPLES, "batch_size": MAX_SAMPLES}
NO_STEP = f"the iteration it names is none: at most {MAX_COUNT:,} can be"
SEVERAL = "several steps stand in one line, written over each other: which values are whose is not known"
_NUMBER = r" *([^\s|]+)"
MANY = 100
# The first loss is the training loss: `lm loss`, `lm-loss`, `reduced_train_loss`; others follow it.
FIELDS = {
    "milliseconds": r"elapsed time per iteration \(ms\):",
    "loss": r"loss:",
    "samples": r"consumed[ _]samples:",
    "batch_size": r"global[ _]batch[ _]size:",
}


def is_step() -> pl.Expr:
    """Return whether `body` tells of a step."""
    body = pl.col("body")
    told = body.str.contains(_MEGATRON, literal=True) | body.str.contains(_NEMO, literal=True)
    return told & body.str.contains(_STEP)


def is_begun(bodies: pl.Series) -> pl.Series:
    """Return whether lines begin as a step's does; where they are none, they were cut or are of a form not known."""
    return bodies.str.contains(r"^ ?(?:\[[^\]]*\] *)?(?:Training epoch [0-9]+, )?" + _STEP)


def may_be_cut(body: str) -> bool:
    """Tell whether the values of a step's line without a line end may have lost digits: each is followed by a bar."""
    return re.search(_STEP, body) is not None and not body.endswith("|")


def read(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `frame`, whose rows are steps, with what each tells.

    Returns:
        With columns step, step_seconds, loss, samples, batch_size as in `log_events`, `is_finite` (false where the loss is not,
        or where iterations since the last logged one were not), `is_unreadable` (a value that is there is none, or cannot be), and
        `step_problem`, why the line is no step, else null.
    """
    bodies = frame.get_column("body")
    texts = _texts(bodies)
    numbers = texts.select(
        "is_several",
        step=_integer("step"),
        step_seconds=(_number("milliseconds") / 1000).round(6),
        loss=_number("loss"),
        samples=_integer("samples"),
        batch_size=_integer("batch_size"),
        is_unreadable=pl.any_horizontal(
            _is_lost("milliseconds", _number),
            _is_lost("loss", _number),
            _is_lost("samples", _integer),
            _is_lost("batch_size", _integer),
        ),
    )
    is_nemo = bodies.str.contains(_NEMO, literal=True)
    if is_nemo.any():
        numbers = _with_nemo(numbers, bodies, is_nemo)
    is_finite = numbers.get_column("loss").is_finite().fill_null(True)
    if bodies.str.contains(_NAN_ITERATIONS, literal=True).any():
        is_finite &= ~bodies.str.contains(_NAN_ITERATIONS + r" *[1-9]")
    return frame.hstack(_bounded(numbers).with_columns(is_finite=is_finite))


def _bounded(numbers: pl.DataFrame) -> pl.DataFrame:
    """Return `numbers` without such as cannot be; of a loss that is not finite `is_finite` tells."""
    is_possible = {name: pl.col(name).is_between(0, most) for name, most in _MOST.items()}
    step, loss = pl.col("step"), pl.col("loss")
    return numbers.select(
        "step",
        *(pl.when(is_kept).then(name).alias(name) for name, is_kept in is_possible.items()),
        pl.when(loss.is_finite()).then(loss).alias("loss"),
        is_unreadable=pl.any_horizontal("is_unreadable", *(~is_kept for is_kept in is_possible.values())).fill_null(
            False
        ),
        step_problem=pl.when("is_several")
        .then(pl.lit(SEVERAL))
        .when(step.is_between(0, MAX_COUNT).fill_null(False).not_())
        .then(pl.lit(NO_STEP)),
    )


def _texts(bodies: pl.Series) -> pl.DataFrame:
    """Return the values of FIELDS as text; null where a line has none."""
    frame = bodies.alias("body").to_frame()
    body = pl.col("body")
    full = {"step": body.str.extract(_STEP), **{n: body.str.extract(k + _NUMBER) for n, k in FIELDS.items()}}
    full["is_several"] = body.str.count_matches(_STEP) > 1
    layout = _layout(bodies[-1]) if len(bodies) >= MANY else None
    if layout is None:
        return frame.select(**full)
    is_usual, quick = layout
    frame = frame.with_columns(parts=body.str.split("|"))  # once, for all that look at them
    return by_shape(frame, "body", is_usual, quick, full).drop("body", "parts")


def _layout(line: str) -> tuple[pl.Expr, dict[str, pl.Expr]] | None:
    """Return how to read the lines that have the same fields as `line`: whether one has, and its values by FIELDS' names.

    Cutting at the bars is several times quicker than searching. None = the line's fields do not all have names.
    """
    if len(re.findall(_STEP, line)) > 1:
        return None
    _, *named, tail = line.split("|")
    keys = [field[: field.find(":") + 1] for field in named]
    if not all(keys) or tail:
        return None
    parts = pl.col("parts")
    has_keys = [parts.list.get(i, null_on_oob=True).str.starts_with(key) for i, key in enumerate(keys, start=1)]
    is_usual = pl.all_horizontal(parts.list.len() == len(keys) + 2, parts.list.last() == "", *has_keys)
    quick = {"step": parts.list.get(0).str.extract(_STEP.removesuffix(r"\|") + "$")}
    for name, pattern in FIELDS.items():
        at = next((i for i, key in enumerate(keys) if re.search(pattern + "$", key)), None)
        if at is None:
            quick[name] = pl.lit(None, pl.String)
        else:
            quick[name] = parts.list.get(at + 1, null_on_oob=True).str.strip_prefix(keys[at]).str.strip_chars()
    return is_usual, quick | {"is_several": pl.lit(False)}


def _with_nemo(numbers: pl.DataFrame, bodies: pl.Series, is_nemo: pl.Series) -> pl.DataFrame:
    """Return `numbers` with step and seconds of NeMo's lines; a step's number is the steps done, as a checkpoint's is."""
    told = bodies.to_frame().select(
        global_step=pl.col("body").str.extract(r"global_step: *([0-9]+)"),
        seconds=pl.col("body").str.extract(_NEMO + _NUMBER),
    )
    both = numbers.hstack(told).with_columns(is_nemo=is_nemo)
    is_global = pl.col("is_nemo") & pl.col("global_step").is_not_null()
    return both.with_columns(
        step=pl.when(is_global).then(_integer("global_step") + 1).otherwise("step"),
        step_seconds=pl.when("is_nemo").then(_number("seconds")).otherwise("step_seconds"),
        is_unreadable=pl.col("is_unreadable") | (pl.col("is_nemo") & _is_lost("seconds", _number)),
    ).select(numbers.columns)


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64, strict=False)


def _integer(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64, strict=False)


def _is_lost(name: str, read: Callable[[str], pl.Expr]) -> pl.Expr:
    return pl.col(name).is_not_null() & read(name).is_null()
