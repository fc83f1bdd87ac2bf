"""Garbled training logs: times, numbers and digits that cannot be. One such line never stops the others from being read."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from tests.transforms.test_training_log import STEP, Read, at
from transforms.parsing.training import limits, messages, reader, steps
from transforms.parsing.training.clock import LATEST, Clock
from transforms.sources.training_log import sniff

STAMP = "2025-05-04T10:00:00Z "
GOOD = STAMP + STEP.format(1, 16, 1000) + "\n"
WATCHDOG = "[rank{0}]: [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE) ran for {2} milliseconds before timing out."


def reasons(read: Read) -> list[str]:
    return [reject.reason for reject in read.rejects]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize(
    "stamp",
    [
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00:00+23:59",
        "0000-01-01T00:00:00Z",
        "0000-01-01T00:00:00",
        "9999-12-31T23:59:60-01:00",
        "2025-02-30T00:00:00Z",
    ],
)
def test_a_stamp_that_names_no_instant_rejects_its_line_only(stamp: str, zone: str) -> None:
    bad = f"{stamp} {STEP.format(2, 16, 1000)}\n"
    local = "2025-05-04T10:00:00 " + STEP.format(1, 16, 1000) + "\n"
    read = Read(local + bad + local, zone=zone)
    assert [r.line for r in read.rejects] == [2]
    assert reasons(read)[0].startswith("time stamp '")
    # And the times of the others are what they are without it, in a zone whose clocks once showed another offset too.
    assert read.column("occurred_at") == 2 * Read(local, zone=zone).column("occurred_at")


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_first_and_the_last_year_have_a_time_or_none(stamp: str, zone: str) -> None:
    read = Read(f"{stamp} {STEP.format(1, 16, 1000)}\n" + GOOD, zone=zone)
    assert len(read.rejects) + read.used == 2
    times = read.column("occurred_at")  # Python cannot give back what is outside the years 1 to 9999
    assert times[-1] == at("10:00:00")


@pytest.mark.parametrize("number", ["1000000000001", "99999999999999", str(2**63 - 1), str(2**63), "9" * 5000])
def test_a_step_that_cannot_be_is_rejected(number: str) -> None:
    read = Read(GOOD + GOOD.replace("iteration        1/", f"iteration {number}/"))
    assert reasons(read) == [steps.NO_STEP]
    assert read.column("step") == [1]


def test_the_largest_step_is_read() -> None:
    assert Read(GOOD.replace("       1/", f"{limits.MAX_COUNT}/")).column("step") == [limits.MAX_COUNT]


@pytest.mark.parametrize("number", ["1000000000001", str(2**63 - 1), str(2**64), "9" * 5000])
def test_a_global_step_that_cannot_be_is_rejected(number: str) -> None:
    line = (
        "Training epoch 0, iteration 9/99 | global_step: {} | reduced_train_loss: 1.5 | train_step_timing in s: {} |\n"
    )
    read = Read(STAMP + line.format(9, 2.5) + STAMP + line.format(number, 2.5) + STAMP + line.format(10, "two"))
    assert reasons(read) == [steps.NO_STEP]
    assert read.column("step") == [10, 11]
    assert read.column("step_seconds") == [2.5, None]
    assert read.column("flags") == [[], ["value_unreadable"]]


@pytest.mark.parametrize("text", ["-1", "1e300", "1e17", "864000001", "nan", "inf", "-inf", "1.2.3"])
@pytest.mark.parametrize("many", [1, steps.MANY])
def test_the_seconds_of_a_step_are_possible_or_null_and_flagged(text: str, many: int) -> None:
    bad = GOOD.replace("1000.0", text)
    read = Read(many * GOOD + bad + many * GOOD)
    assert not read.rejects
    assert read.column("step_seconds") == [1.0] * many + [None] + [1.0] * many
    assert read.column("flags")[many] == ["value_unreadable"]
    assert {tuple(f) for f in read.column("flags")} == {(), ("value_unreadable",)}


@pytest.mark.parametrize("samples", [str(2**63 - 1), str(2**63), "-5", "1e3"])
def test_samples_are_possible_or_null_and_flagged(samples: str) -> None:
    read = Read(GOOD.replace("          16", samples))
    assert (read.column("samples"), read.column("flags")) == ([None], [["value_unreadable"]])


@pytest.mark.parametrize("many", [1, steps.MANY])
def test_steps_written_over_each_other_are_rejected_and_none_is_lost_in_silence(many: int) -> None:
    step = GOOD.removesuffix("\n")
    cut = step[: step.index("elapsed")]
    doubles = [step + STEP.format(2, 32, 1000), step + step, cut + STEP.format(2, 32, 1000)]
    read = Read(many * GOOD + "".join(d + "\n" for d in doubles) + many * GOOD)
    assert reasons(read) == [steps.SEVERAL] * 3
    assert read.used == 2 * many
    last = Read(many * GOOD + doubles[0] + "\n")  # the line by which the others are cut
    assert (reasons(last), last.used) == ([steps.SEVERAL], many)


@pytest.mark.parametrize("number", [str(2**63), str(2**63 - 1), "1000000000001", "9" * 5000])
@pytest.mark.parametrize(
    "line",
    [
        "saving checkpoint at iteration {} to /ck in torch_dist format",
        "successfully saved checkpoint from iteration {} to /ck [ t 1/8, p 1/1 ]",
        "successfully loaded checkpoint from /ck [ t 1/8, p 1/1 ] at iteration {}",
        "Scheduled async checkpoint save for step=/ck/step={}",
    ],
)
def test_a_checkpoint_of_an_iteration_that_cannot_be_is_rejected(line: str, number: str) -> None:
    read = Read(GOOD + STAMP + line.format(number) + "\n" + GOOD)
    assert reasons(read) == [messages.NO_ITERATION]
    assert read.column("event") == ["step", "step"]


@pytest.mark.parametrize(
    ("rank", "sequence", "milliseconds", "expected"),
    [
        ("3", "7", "1800010", (3, 7, 1800.01, [])),
        ("3", str(2**63), "1800010", (3, None, 1800.01, ["value_unreadable"])),
        ("3", "7", "999999999999999", (3, 7, None, ["value_unreadable"])),
        ("3", "9" * 5000, "9" * 5000, (3, None, None, ["value_unreadable"])),
    ],
)
def test_a_time_out_is_told_without_the_numbers_that_cannot_be(
    rank: str, sequence: str, milliseconds: str, expected: tuple[object, ...]
) -> None:
    read = Read(STAMP + WATCHDOG.format(rank, sequence, milliseconds) + "\n")
    [row] = read.frame.select("rank", "sequence", "seconds", "flags").rows()
    assert row == expected


@pytest.mark.parametrize(
    "line",
    [
        "[Rank {}] watchdog got stuck for {} seconds",
        "Unexpected result nan on rank {} at iteration {} (message='found NaN in loss')",
        "[Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={})",
    ],
)
def test_a_rank_that_cannot_be_is_null_and_flagged(line: str) -> None:
    for number in ("1000000000001", str(2**63), "9" * 5000):
        read = Read(STAMP + line.format(number, number) + "\n")
        assert read.column("rank") == [None]
        assert read.column("flags") == [["value_unreadable"]]


@pytest.mark.parametrize("time", ["1e25", "9" * 26, "864000001", "1.2.3", "9" * 400])
def test_a_save_longer_than_any_is_rejected_and_moves_no_clock(time: str) -> None:
    start = "using world size: 8, data-parallel size: 8\n[before the start of training step] datetime: 2025-05-04 10:00:00 \n"
    step = STEP.format(1, 16, 1000) + "\n"
    read = Read(f"{start}{step}    save-checkpoint ......: ({time}, {time})\n{step.replace('1/', '2/')}")
    assert reasons(read) == [messages.NO_SAVE_TIME]
    assert read.column("occurred_at", "step") == [at("10:00:01"), at("10:00:02")]


def test_times_added_up_beyond_every_calendar_are_none() -> None:
    clock = Clock()
    clock.stamped(LATEST - 1_000_000)
    assert clock.step(1, 2.0, is_stamped=False).us is None
    clock.stamped(LATEST)
    clock.paused(1.0)
    assert clock.line().us is None
    slow = "".join(STEP.format(n * 90_000, 16, 860_000_000) + "\n" for n in range(1, 9))
    read = Read("[before the start of training step] datetime: 2025-05-04 10:00:00 \n" + slow)
    assert read.column("occurred_at")[-1] is None
    assert read.column("flags")[-1] == ["time_missing"]


def test_a_line_after_a_hole_keeps_its_stamp() -> None:
    hole = b"\0" * 4096
    read = Read(hole + GOOD.encode() + hole + GOOD.encode().replace(b" 1/", b" 2/"))
    assert read.column("step") == [1, 2]
    assert read.column("occurred_at") == [at("10:00:00")] * 2
    assert read.column("flags") == [[], []]


def test_a_hole_within_a_line_rejects_it() -> None:
    cut = (STAMP + " iteration      ").encode()
    read = Read(GOOD.encode() + cut + b"\0" * 512 + GOOD.encode() + GOOD.encode())
    assert reasons(read) == [reader.HOLE]
    assert read.column("line") == [1, 3]


ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


@pytest.mark.parametrize(
    "part", ["10:00:00", "2025", "1000.0", "       1/", "          16", "1000 |", "[rank3]", "[Rank 3]", "SeqNum=7"]
)
def test_digits_of_other_scripts_are_no_digits_and_no_trouble(part: str) -> None:
    text = GOOD + STAMP + WATCHDOG.format(3, 7, 5000) + "\n"
    assert part in text
    garbled = text.replace(part, part.translate(ARABIC))
    read = Read(GOOD + garbled + GOOD)  # `Read` asserts that each line has one fate
    assert read.column("line")[0] == 1
    assert read.column("line")[-1] == 4
    assert all(isinstance(when, datetime) for when in read.column("occurred_at"))


def test_a_fraction_in_other_digits_is_no_stamp() -> None:
    read = Read(3 * GOOD + "2025-05-04T10:00:00.٣Z [rank٣]: KeyboardInterrupt\n")
    assert read.used + read.ignored.total() == 4
    assert read.column("rank") == [None] * read.used


def test_such_logs_are_still_recognized() -> None:
    assert sniff(b"\0" * 100 + GOOD.encode())


@pytest.mark.parametrize(
    ("text", "expected"), [(None, None), ("0", 0), ("000000000000000007", 7), (str(10**12), 10**12), ("1" * 13, None)]
)
def test_counts(text: str | None, expected: int | None) -> None:
    assert limits.count(text) == expected


def test_a_garbled_line_of_each_kind_leaves_the_frame_typed() -> None:
    read = Read(GOOD + STAMP + WATCHDOG.format(3, 2**63, 2**63) + "\n")
    assert read.frame.schema["sequence"] == pl.Int64
    assert read.frame["occurred_at"].max() == datetime(2025, 5, 4, 10, tzinfo=UTC)
