"""The training log source beyond its golden cases: real logs, identity, growth, settings, hostile bytes, and its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows import init_look, pipeline
from tests.conftest import ROOT, Site
from transforms.outcome import Context, MissingSettingError, Reject
from transforms.parsing.training import prefix, steps
from transforms.parsing.training.clock import Clock
from transforms.registry import all_sources
from transforms.registry import sniff as sniffed
from transforms.sources.training_log import MAX_LINES, SOURCE, sniff
from transforms.stream import ExportStream
from transforms.tables import LOG_EVENTS

CASES = ROOT / "tests" / "fixtures" / "cases"
PUBLIC = Path("exports") / "public" / "bigscience"
GPT, DEEPSPEED = "meg_gpt2_base_n16_dp1_tp4_pp16-1809577.out", "meg_ds_3d_gpt2_perf_n16-ds-on.out"
STEP = " iteration {:8d}/    1000 | consumed samples: {:12d} | elapsed time per iteration (ms): {:.1f} | lm loss: 2.5E+00 |"


class Read:
    """Rows and fates of a log."""

    def __init__(self, data: bytes | str, *, zone: str | None = "UTC", **settings: Any) -> None:
        data = data.encode() if isinstance(data, str) else data
        stream = ExportStream.of(data, **settings.pop("stream", {}))
        context = Context(datetime(2025, 5, 5, tzinfo=UTC), cluster="c1", zone=zone, **settings)
        self.used, self.ignored, self.is_open = 0, Counter[str](), False
        self.rejects: list[Reject] = []
        frames = [LOG_EVENTS.schema.to_frame()]
        for parsed in SOURCE.parse(stream, context):
            self.used += parsed.used
            self.ignored += parsed.ignored
            self.rejects += parsed.rejects
            self.is_open |= parsed.is_open
            frames += [LOG_EVENTS.enforce(f) for f in parsed.frames.values()]
        self.frame = pl.concat(frames)
        self.lines = stream.lines
        assert self.used + self.ignored.total() + len(self.rejects) == self.lines

    def column(self, name: str, event: str | None = None) -> list[Any]:
        frame = self.frame if event is None else self.frame.filter(pl.col("event") == event)
        return frame[name].to_list()


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2025-05-04T{clock}+00:00")


# --- real logs ---


@pytest.mark.parametrize(("name", "steps", "lines"), [(GPT, 9, 1793), (DEEPSPEED, 49, 1045)])
def test_public_logs(shared: Path, name: str, steps: int, lines: int) -> None:
    # Counts are those of `grep -c "^ iteration"` and `wc -l`.
    data = (shared / PUBLIC / name).read_bytes()
    assert [s.name for s in sniffed(data[: 64 << 10])] == ["training_log"]
    read = Read(data, zone="Europe/Paris")
    assert len(read.column("step", "step")) == steps
    assert read.lines == lines
    assert not read.rejects
    assert read.column("event", "error") == []  # nothing in them failed: one ran to its limit, one was cancelled


def test_a_public_log_is_dated_from_its_anchors(shared: Path) -> None:
    # 90 steps from 08:41:06; srun printed the cancel at 08:46:02, before step 100 could be: 18 s and not 27 s later.
    read = Read((shared / PUBLIC / GPT).read_bytes(), zone="Europe/Paris")
    steps = read.frame.filter(pl.col("event") == "step")
    took = 10 * sum([5.8379, 2.7111, 2.7673, 2.7708, 2.7591, 2.7411, 2.7386, 2.7383, 2.739])
    first = datetime(2021, 5, 23, 6, 41, 6, tzinfo=UTC)
    assert (steps["occurred_at"][-1] - first).total_seconds() == pytest.approx(took, abs=0.001)
    assert steps["flags"].to_list() == [["time_derived"]] * 9
    cancel = read.frame.filter(pl.col("error_class") == "CANCELLED")["occurred_at"][0]
    assert 0 < (cancel - steps["occurred_at"][-1]).total_seconds() < 27.39


@pytest.mark.parametrize("offset", [0, 20_000, 66_000])
@pytest.mark.parametrize("name", [GPT, DEEPSPEED])
def test_a_public_log_is_recognized_wherever_it_is_cut(shared: Path, name: str, offset: int) -> None:
    assert sniff((shared / PUBLIC / name).read_bytes()[offset : offset + (64 << 10)])


# --- the cases in Megatron's form ---


def test_replayed_steps_gp1() -> None:
    read = Read((CASES / "GP1" / "train.log").read_bytes())
    assert read.column("step", "step") == [*range(1, 13), *range(11, 21)]
    assert read.column("occurred_at", "step")[::11] == [at("10:02:10"), at("10:04:00")]
    assert read.column("step", "checkpoint_durable") == [5, 10, 15, 20]
    assert read.column("step", "checkpoint_loaded") == [10]
    assert read.column("occurred_at", "start") == [at("10:00:00"), at("10:10:06")]
    assert not read.is_open


def test_a_save_that_never_ended_gp3() -> None:
    read = Read((CASES / "GP3" / "train.log").read_bytes())
    assert read.column("step", "checkpoint_begun") == [15]
    assert read.column("step", "checkpoint_durable") == [10, 20]


def test_the_prefix_wins_over_the_stamp_in_the_line_ca2() -> None:
    # The prefix is Berlin's time, the bracket the container's UTC: the same instant, two hours apart on the face.
    read = Read((CASES / "CA2" / "train.log").read_bytes(), zone="Europe/Berlin")
    assert read.column("occurred_at", "step") == [at("11:01:02")]
    assert read.column("rank", "nccl_timeout") == [0, 1, 2, 3, 4, 6, 7]
    assert set(read.column("occurred_at", "nccl_timeout")) == {at("11:31:07"), at("11:31:08")}
    assert set(read.column("sequence", "nccl_timeout")) == {9021}
    assert read.column("seconds", "nccl_timeout")[0] == 1800.01


# --- identity ---


def test_copies_have_the_same_records_and_other_ranks_and_nodes_have_others() -> None:
    line = "2025-05-04T10:00:00Z {}OSError: [Errno 116] Stale file handle\n"
    who = ["gpu001 [rank1]: ", "gpu001 [rank2]: ", "gpu002 [rank1]: ", "gpu001 [default1]:", "gpu001 [default2]:", ""]
    text = "".join(line.format(w) for w in who)
    ids = Read(text).column("record_id")
    assert len(set(ids)) == len(who)
    assert Read("2025-05-04T09:00:00Z nothing\n" + text).column("record_id") == ids
    assert not set(ids) & set(Read(text, job_id="7").column("record_id"))


def test_a_line_without_stamp_is_the_same_record_however_the_log_is_cut() -> None:
    start = "[before the start of training step] datetime: 2025-05-04 10:00:00 \n"
    steps = [STEP.format(n, 16 * n, 1000) + "\n" for n in range(1, 5)]
    whole = Read("using world size: 8, data-parallel size: 8\n" + start + "".join(steps) + "KeyboardInterrupt\n")
    later = Read(start + "".join(steps) + "KeyboardInterrupt\n")
    assert whole.column("record_id")[1:] == later.column("record_id")
    assert whole.column("occurred_at")[1:] == later.column("occurred_at")
    headless = Read("".join(steps[1:]))
    assert headless.column("occurred_at") == [None] * 3
    assert headless.column("flags") == [["time_missing"]] * 3
    # The same words after another step, or another start, are another record.
    again = Read(start + steps[0] + "KeyboardInterrupt\n" + steps[1] + "KeyboardInterrupt\n")
    assert len(set(again.column("record_id", "error"))) == 2


# --- growth ---


def grow(site: Callable[..., Site], name: str, text: str, cuts: list[int]) -> pl.DataFrame:
    """Ingest a log as it grows, and return its rows."""
    place = site('[clusters.c1]\nzone = "UTC"\n', name=name)
    path = place.add("fit-7.out", b"", cluster="c1", format="training_log", job_id="7")
    for end in [*cuts, len(text)]:
        path.write_bytes(text[:end].encode())
        pipeline.ingest(place.config())
    return place.lake("log_events").drop("export_id", "collected_at").sort("line", "event")


@pytest.mark.parametrize("log", ["unstamped", "failures", "prefixes"])
def test_a_log_that_grew_gives_what_a_whole_one_gives(site: Callable[..., Site], log: str) -> None:
    folder = ROOT / "tests" / "fixtures" / "sources" / "training_log" / log
    text = (folder / "input.log").read_text()
    whole = grow(site, "whole", text, [])
    cuts = [len(text) // 7 * n for n in range(1, 7)]
    assert grow(site, "pieces", text, cuts).equals(whole)


def test_only_a_log_that_needs_it_is_read_again() -> None:
    bare = STEP.format(1, 16, 1000) + "\n"
    stamp = "2025-05-04T10:00:00Z "
    step = stamp + bare
    assert not Read(3 * step).is_open
    assert Read(bare).is_open  # what follows is dated from what stands here
    assert Read(3 * step + stamp + "Traceback (most recent call last):\n").is_open
    traceback = 'Traceback (most recent call last):\n  File "a"\nOSError: x\n'
    assert Read(9 * step + traceback).is_open
    assert not Read(9 * step + traceback + step).is_open


def test_tracebacks_that_ranks_wrote_between_each_other_without_a_mark() -> None:
    head, frame = "Traceback (most recent call last):\n", '  File "a.py", line 1, in f\n'
    read = Read(head + frame + head + frame + "    g()\nOSError: x\n" + frame + "app.Mismatch: y\n" + frame)
    assert read.column("error_class") == ["OSError", "Mismatch"]
    assert read.ignored == {"traceback": 6, "other": 1}


# --- settings ---


@pytest.mark.parametrize(
    "line",
    [
        "2025-05-04 10:00:00" + STEP.format(1, 16, 1000),
        " [2025-05-04 10:00:00]" + STEP.format(1, 16, 1000),
        "[before the start of training step] datetime: 2025-05-04 10:00:00 ",
        "[rank0]:[E504 11:31:07.000000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)",
    ],
)
def test_a_stamp_without_a_zone_asks_for_one(line: str) -> None:
    with pytest.raises(MissingSettingError, match=r"set `zone` under \[clusters.c1\]"):
        Read(line + "\n", zone=None)


def test_a_stamp_with_an_offset_needs_no_zone() -> None:
    read = Read("2025-05-04T10:00:00+02:00" + STEP.format(1, 16, 1000) + "\n", zone=None)
    assert read.column("occurred_at") == [at("08:00:00")]


def test_a_log_needs_a_cluster() -> None:
    with pytest.raises(MissingSettingError, match="`cluster`"):
        list(SOURCE.parse(ExportStream.of(b"x\n"), Context(datetime(2025, 5, 5, tzinfo=UTC))))


def test_job_and_node_come_from_the_context() -> None:
    read = Read("2025-05-04T10:00:00Z KeyboardInterrupt\n", job_id="405", node="gpu001")
    assert (read.column("job_id"), read.column("node")) == (["405"], ["gpu001"])


def test_init_says_what_a_log_needs(tmp_path: Path) -> None:
    (tmp_path / "a.out").write_text(" [2025-05-04 10:00:00]" + STEP.format(1, 16, 1000) + "\n")
    (tmp_path / "b.out").write_text("2025-05-04T10:00:00Z" + STEP.format(1, 16, 1000) + "\n")
    needs = [init_look.look(tmp_path / name).needs for name in ("a.out", "b.out")]
    assert needs == [{"cluster", "zone", "job_id"}, {"cluster", "job_id"}]


# --- hostile bytes ---


def test_colours_are_no_part_of_a_line() -> None:
    plain = "2025-05-04T10:00:00Z OSError: [Errno 116] Stale file handle\n"
    coloured = "\x1b[32m2025-05-04T10:00:00Z \x1b[1;31mOSError: [Errno 116] Stale file handle\x1b[0m\n"
    assert Read(coloured).column("record_id") == Read(plain).column("record_id")


def test_lines_too_long_are_rejected_with_their_place_and_the_others_read() -> None:
    line = "2025-05-04T10:00:00Z" + STEP.format(1, 16, 1000) + "\n"
    read = Read(line + "x" * 5_000 + "\n" + line, stream={"max_line": 1_000})
    assert [(r.line, r.byte_offset, r.byte_length) for r in read.rejects] == [(2, len(line), 5_000)]
    assert read.column("line") == [1, 3]


def test_many_short_lines_are_read_in_parts() -> None:
    step = "2025-05-04T10:00:00Z" + STEP.format(1, 16, 1000) + "\n"
    read = Read(step + "\n" * (3 * MAX_LINES) + step)
    assert read.ignored == {"blank": 3 * MAX_LINES}
    assert read.column("line") == [1, 3 * MAX_LINES + 2]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\r\n",
        b"\0",
        b"\xff\xfe\n",
        b"Traceback (most recent call last):",
        b"[rank0]:",
        b"a\n\r",
        b"a\n\x1b[0m",
    ],
)
def test_next_to_nothing(data: bytes) -> None:
    assert Read(data).frame.is_empty()


def test_every_cut_of_every_case_has_one_fate_a_line() -> None:
    # `Read` asserts it.
    for path in sorted((ROOT / "tests/fixtures/sources/training_log").glob("*/input.log")):
        data = path.read_bytes()
        for end in range(0, len(data), 97):
            Read(data[:end])


# --- parts ---


def test_the_quick_way_to_split_gives_what_the_long_way_gives() -> None:
    stamps = ["2025-05-04T10:00:00Z", "2025-05-04 10:00:00", "2025-05-04T10:00:00.123456789Z", "2025-05-04T10:00:00.5"]
    bodies = (
        " " + STEP.format(1, 16, 1000),
        STEP.format(1, 16, 1000),
        "  [2025-05-04 10:00:00]" + STEP.format(1, 16, 1),
    )
    hosts = ("", " gpu0001", " gpu-a1 [default7]:", " [default12]:")
    lines = pl.Series("text", [s + h + b for s in stamps for h in hosts for b in bodies])
    assert lines.str.contains(prefix.USUAL).sum() == 32  # or the quick way is not what is tested
    assert prefix.split(lines).equals(prefix.split_any(lines.to_frame()))
    word = pl.Series("text", ["2025-05-04 10:00:00 step7" + STEP.format(1, 16, 1000)])
    assert prefix.split(word).equals(prefix.split_any(word.to_frame()))


def test_the_quick_way_to_read_steps_gives_what_the_long_way_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = " iteration {:8d}/  1000 | consumed samples: 16 | elapsed time per iteration (ms): 5.5 | global batch size: 8 | lm loss: {} | scale: 1.0 |"
    others = [
        " iteration        7/  1000 | consumed samples: 16 | elapsed time per iteration (ms): 5.5 | global batch size: 8 | scale: 1.0 |",
        " iteration        7/  1000 | elapsed time per iteration (ms): 5.5 | consumed samples: 16 | lm loss: 2.5 | global batch size: 8 | scale: 1.0 |",
        " iteration        7/  1000 | consumed samples: 16 | elapsed time per iteration (ms): 5.5 | global batch size: 8 | mtp loss: 2.5 | scale: 1.0 |",
        usual.format(7, "2.5") + "[rank1]: OSError: x",
        usual.format(7, "nan") + " number of nan iterations: 3 |",
        " [2024-07-23 10:00:00]" + usual.format(7, "1e400"),
        "Training epoch 0, iteration 9/99 | global_step: 9 | reduced_train_loss: 1.5 | train_step_timing in s: 2.5 | consumed_samples: 320",
        usual.format(7, "two words"),
    ]
    lines = [line for n in range(200) for line in (usual.format(n, n / 8), others[n % len(others)])]
    for last in (usual.format(7, "2.5"), others[0], others[5]):
        frame = pl.DataFrame({"body": [*lines, last]})
        quick = steps.read(frame)
        monkeypatch.setattr(steps, "MANY", 1_000_000)
        slow = steps.read(frame)
        monkeypatch.undo()
        assert quick.equals(slow)
        assert quick["step"].null_count() == 0


@pytest.mark.parametrize(
    ("line", "host", "task", "local", "rank", "body"),
    [
        ("2025-05-04T10:00:00Z gpu0001 [default7]: iteration", "gpu0001", None, "7", None, " iteration"),
        ("2025-05-04 10:00:00 gpu0001: 12: [rank3]: x", "gpu0001", "12", None, "3", "x"),
        ("gpu0001: x", "gpu0001", None, None, None, "x"),
        ("gpu0001 x", None, None, None, None, "gpu0001 x"),
        (" 3: [rank3]:[E504 11:31:07.0 a.cpp:1] x", None, "3", None, "3", "[E504 11:31:07.0 a.cpp:1] x"),
        ("2025-05-04 10:00:00 rank0 said: x", None, None, None, None, "rank0 said: x"),
        ("2025-05-04 10:00:00 boto3.exceptions.S3UploadFailedError: x", None, None, None, None, "boto3.exceptions.S3UploadFailedError: x"),
        ("[2021-06-10 20:47:51,885] [INFO] x", None, None, None, None, "[2021-06-10 20:47:51,885] [INFO] x"),
        ("11:31:07 x", None, None, None, None, "11:31:07 x"),
        ("", None, None, None, None, ""),
    ],
)  # fmt: skip
def test_prefixes(
    line: str, host: str | None, task: str | None, local: str | None, rank: str | None, body: str
) -> None:
    row = prefix.split(pl.Series([line])).row(0, named=True)
    assert {k: row[k] for k in ("host", "task", "local", "rank", "body")} == {
        "host": host,
        "task": task,
        "local": local,
        "rank": rank,
        "body": body,
    }


def test_the_clock_counts_steps_between_printed_ones_and_never_runs_backwards() -> None:
    clock = Clock()
    assert clock.step(5, 1.0, is_stamped=False).us is None
    clock.stamped(1_000_000_000)
    clock.started(is_process=False)
    clock.counted_from(100)
    assert clock.step(110, 2.0, is_stamped=False).us == 1_020_000_000
    clock.stamped(1_050_000_000)  # a line between two steps: later than the step would be
    assert clock.step(120, 2.0, is_stamped=False).us == 1_050_000_000
    clock.paused(3.5)
    assert clock.step(121, 2.0, is_stamped=False).us == 1_055_500_000
    assert clock.step(5, 2.0, is_stamped=False).us == 1_057_500_000  # a rollback: how many steps is not known


@pytest.mark.parametrize("name", sorted(set(all_sources()) - {"training_log"}))
def test_no_other_sources_exports_are_claimed(name: str) -> None:
    heads = [p.read_bytes()[: 64 << 10] for p in (ROOT / "tests" / "fixtures" / "sources" / name).glob("*/*")]
    assert heads
    assert not any(map(sniff, heads))
