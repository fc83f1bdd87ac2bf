"""Take the prefixes off lines of a training log: a collector's stamp, a host, a rank or task.

In this order, each of them optional: `2024-06-03T08:04:12.123456Z` or `2025-05-04 13:31:07` as kubectl, rsyslog or `ts` put it, in
brackets where it has an offset; `stdout F` as a container runtime puts it; `gpu0001` (after a stamp) or `gpu0001:` as rsyslog or
pdsh put it, a word with a digit in it since messages begin with words too, and rsyslog's `tag[pid]:`; `12: ` as `srun -l` and
`retraining/0` as nemo-run put it; `[default7]:` or `[rank3]:` as torchrun and PyTorch put it.
"""

from __future__ import annotations

import polars as pl

STAMP = r"[0-9]{4}-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
_COLLECTOR = rf"(?:(?P<open>\[)?(?P<stamp>{STAMP})(?:[.,](?P<fraction>[0-9]{{1,9}}))?(?P<offset>Z|z|[+-][0-9][0-9]:?[0-9][0-9])?\]?(?:[ \t]|$))?"
_RUNTIME = r"(?:std(?:out|err) [FP] )?"
_HOST = r"(?:(?P<host>[A-Za-z][A-Za-z.-]*[0-9][\w-]*(?:\.[\w-]+)*)(?P<mark>:? )(?:[\w./-]+\[[0-9]+\]: )?)?"
_TASK = r"(?:(?: *(?P<task>[0-9]{1,6}): )|(?:[\w-]+/[0-9]+ ))?"
_RANK = r"(?:\[default(?P<local>[0-9]{1,4})\]:)?(?:\[rank(?P<rank>[0-9]{1,6})\]:? ?)?"
PREFIX = f"^{_COLLECTOR}{_RUNTIME}{_HOST}{_TASK}{_RANK}(?P<body>.*)$"
# Words with a digit that begin messages: rank0, step10, glog's E0504, boto3.exceptions.S3UploadFailedError.
_NO_HOST = (
    r"^(?i:rank|local_rank|step|iter|iteration|epoch|layer|cuda)[0-9]+$|^[EWIF][0-9]{3,4}$|"
    r"(?:Error|Exception|Warning|Interrupt|Exit|Timeout|Expired)$"
)
# What nearly every line of a stamped log is; it gives what the longer way gives (a test holds it).
USUAL = (
    rf"^(?P<stamp>{STAMP})(?:\.(?P<fraction>[0-9]{{1,9}}))?(?P<offset>Z)? (?:(?P<host>[A-Za-z][A-Za-z-]*[0-9][\w-]*) )?"
    r"(?:\[default(?P<local>[0-9]{1,4})\]:)?(?: ?iteration| ?\[[0-9]{4}-)"
)
FIELDS = ("stamp", "fraction", "offset", "host", "task", "local", "rank", "body")


def split(texts: pl.Series) -> pl.DataFrame:
    """Return the parts of lines.

    Returns:
        String columns FIELDS, null where the line has no such part; `body` is what follows the prefixes, without blanks and NUL
        bytes at its end.
    """
    frame = texts.alias("text").to_frame()
    usual = frame.select("text", groups=pl.col("text").str.extract_groups(USUAL)).unnest("groups")
    parts = usual.select(
        pl.col(name) if name in usual.columns else pl.lit(None, pl.String).alias(name) for name in FIELDS[:-1]
    ).with_columns(usual.select(body=_after_usual()))
    is_usual = pl.col("stamp").is_not_null() & pl.col("host").str.contains(_NO_HOST).fill_null(False).not_()
    at = parts.select(is_usual).to_series().not_().arg_true()
    if len(at):
        full = split_any(frame.select(pl.col("text").gather(at)))
        if len(at) == len(parts):
            parts = full
        else:
            parts = pl.DataFrame([c.scatter(at, full.get_column(c.name)) for c in parts.get_columns()])
    return parts.with_columns(pl.col("body").str.strip_chars_end(" \t\r\0"))


def _after_usual() -> pl.Expr:
    """Return what follows the prefix that USUAL found; of its parts the length is known, and all are ASCII."""
    length = pl.lit(len("2024-06-03 08:04:12 "))
    for name, around in (("fraction", "."), ("offset", ""), ("host", " "), ("local", "[default]:")):
        length += (pl.col(name).str.len_bytes().cast(pl.Int64) + len(around)).fill_null(0)
    return pl.col("text").str.slice(length)


def split_any(frame: pl.DataFrame) -> pl.DataFrame:
    """Return what `split` returns of the column `text`, by the way that is right for any line; blanks at ends stay."""
    parts = frame.select("text", groups=pl.col("text").str.extract_groups(PREFIX)).unnest("groups")
    # `[2021-06-10 20:47:51,885] [INFO]` is the program's own.
    is_own = pl.col("open").is_not_null() & pl.col("offset").is_null()
    is_word = pl.col("host").str.contains(_NO_HOST) | (pl.col("stamp").is_null() & (pl.col("mark") == " "))
    is_word = is_word.fill_null(False)
    body = pl.when(is_own).then("text").when(is_word).then(pl.concat_str("host", "mark", "body")).otherwise("body")
    named: dict[str, pl.Expr] = {name: pl.when(~is_own).then(name) for name in FIELDS}
    named |= {"host": pl.when(~is_own & ~is_word).then("host"), "body": body}
    return parts.select(expression.alias(name) for name, expression in named.items())
