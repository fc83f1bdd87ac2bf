"""One try of a command: what it printed is kept whole or not at all, and what failed says why."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest
import zstandard

from flows.config import landing_of
from flows.programs import StoppedError
from flows.pulling import pull, settings_of, sweep
from tests.flows.pulling_help import NOON, WINDOW, config, everything, one, printed, python, sh, toml

ROOT = Path(__file__).resolve().parents[2]
SECRET = "s3cr3t/va lue+x"  # noqa: S105 - of the test


def kept(home: Path) -> list[str]:
    """Names of all files in the folder that keeps what the command printed."""
    return sorted(p.name for p in landing_of(home / "data", "src").iterdir())


def eventually(is_so: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not is_so():
        time.sleep(0.05)
    return is_so()


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_what_a_command_prints_is_kept_as_it_was_printed(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sh("printf 'a\\nb\\377\\n'"))
    found = pull(settings, source, WINDOW, now=NOON)
    assert (found.status, found.message, found.tries) == ("loaded", None, 1)
    assert printed(found) == b"a\nb\xff\n"
    assert (found.byte_length, found.sha256) == (5, hashlib.sha256(b"a\nb\xff\n").hexdigest())
    assert kept(tmp_path) == ["20251129T100000Z-20251129T110000Z_20251129T120000.000000Z.zst"]
    assert (found.window_start, found.window_end, found.pulled_at) == (WINDOW.start, WINDOW.end, NOON)


def test_an_empty_output_is_a_success(tmp_path: Path) -> None:
    """A quiet hour is no failure: only the exit code tells."""
    settings, source = one(tmp_path, sh(":"))
    found = pull(settings, source, WINDOW)
    assert (found.status, found.byte_length, found.message, printed(found)) == ("loaded", 0, None, b"")


def test_an_empty_output_with_words_on_standard_error_says_them(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sh("echo 'no archive there' >&2"))
    found = pull(settings, source, WINDOW)
    assert (found.status, found.message) == ("loaded", "printed nothing, and said on standard error: no archive there")


def test_output_that_is_compressed_already_is_not_compressed_again(tmp_path: Path) -> None:
    """`curl` of a .gz: readers undo one compression, not two."""
    settings, source = one(tmp_path, sh("printf 'a\\nb\\n' | gzip -c"))
    found = pull(settings, source, WINDOW)
    assert printed(found) == b"a\nb\n"
    assert Path(found.path or "").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("echo one; echo broken >&2; exit 3", "`sh` ended with exit code 3: broken"),
        ("exit 1", "`sh` ended with exit code 1, and said nothing on standard error"),
        ("kill -9 $$", "`sh` was ended by SIGKILL, and said nothing on standard error"),
        ("printf 'first\\nsecond \\377\\033[31mred\\033[0m\\n\\007' >&2; exit 1", "`sh` ended with exit code 1: first / second \\xffred"),
        ("exit 127", "`sh` ended with exit code 127, and said nothing on standard error"),
    ],
)  # fmt: skip
def test_a_command_that_fails_leaves_nothing_and_says_why(tmp_path: Path, code: str, message: str) -> None:
    settings, source = one(tmp_path, sh(code))
    found = pull(settings, source, WINDOW)
    assert (found.status, found.path, found.sha256, found.byte_length) == ("failed", None, None, None)
    assert found.message == message
    assert kept(tmp_path) == []


def test_only_the_end_of_standard_error_is_kept(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sh("i=0; while [ $i -lt 30000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1"))
    message = pull(settings, source, WINDOW).message or ""
    assert message.endswith("line 29998 / line 29999")
    assert len(message) < 800


def test_a_program_that_is_missing_or_no_program_is_named(tmp_path: Path) -> None:
    settings, source = one(tmp_path, ["no-such-program-here"])
    assert "`no-such-program-here` was not found: install it" in (pull(settings, source, WINDOW).message or "")
    (tmp_path / "text").write_text("x")
    settings, source = one(tmp_path, ["./text"])
    assert pull(settings, source, WINDOW).message == "`./text` cannot be started: Permission denied"


def test_a_program_is_looked_for_from_the_folder_of_the_configuration(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "export.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\npwd\n")
    script.chmod(0o755)
    settings, source = one(tmp_path, ["bin/export.sh"])
    assert printed(pull(settings, source, WINDOW)).decode().strip() == os.path.realpath(tmp_path)


def test_a_command_has_no_shell_no_input_and_no_terminal(tmp_path: Path) -> None:
    """A word with spaces and signs stays one word; a program that asks something gets the end of its input at once."""
    code = "import sys, os; print(sys.argv[1:], repr(sys.stdin.read()), os.getsid(0) == os.getpid())"
    settings, source = one(tmp_path, python(code, "a b; rm -rf $HOME `x`", "*", "{start_epoch}"))
    found = pull(settings, source, WINDOW)
    expected = ["a b; rm -rf $HOME `x`", "*", str(int(WINDOW.start.timestamp()))]
    assert printed(found).decode().strip() == f"{expected} '' True"


def test_the_environment_is_ours_with_what_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "1")
    settings, source = one(tmp_path, sh("echo $OURS $TZ $OTHER"), 'environment = { TZ = "UTC", OTHER = "2" }')
    assert printed(pull(settings, source, WINDOW)) == b"1 UTC 2\n"


def test_one_that_runs_too_long_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    """Neither a child that ignores being asked to end, nor one that holds the output open, survives the timeout."""
    pids = tmp_path / "pids"
    code = f"(trap '' TERM; sh -c 'echo $$ >> {pids}; exec sleep 60') & echo $$ >> {pids}; echo half; echo dead slow >&2; wait"
    settings, source = one(tmp_path, sh(code), "timeout = 1")
    began = time.monotonic()
    found = pull(settings, source, WINDOW)
    assert time.monotonic() - began < 10
    assert found.message == "`sh` ran longer than 1 s (`timeout`) and was stopped: dead slow"
    assert (found.status, kept(tmp_path)) == ("failed", [])
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) == 2
    assert eventually(lambda: not any(map(is_alive, started)))


def test_output_that_comes_after_the_program_ended_counts(tmp_path: Path) -> None:
    """What a background process of it still prints is part of the export: cutting it off would lose lines in silence."""
    settings, source = one(tmp_path, sh("(sleep 0.5; echo late) & echo early"))
    assert printed(pull(settings, source, WINDOW)) == b"early\nlate\n"


def test_standard_error_held_open_by_a_background_process_is_not_waited_for(tmp_path: Path) -> None:
    """As an ssh that shares its connection does."""
    settings, source = one(tmp_path, sh("sleep 5 >/dev/null & echo out"))
    began = time.monotonic()
    assert printed(pull(settings, source, WINDOW)) == b"out\n"
    assert time.monotonic() - began < 4


def test_a_command_can_be_stopped(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sh("sleep 60"))
    stop, raised = Event(), []

    def work() -> None:
        try:
            pull(settings, source, WINDOW, stop=stop)
        except StoppedError as error:
            raised.append(error)

    thread = Thread(target=work)
    thread.start()
    stop.set()
    thread.join(5)
    assert raised
    assert kept(tmp_path) == []


def test_a_secret_comes_from_the_environment_else_from_the_callable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import hashlib, os; print(hashlib.sha256((os.environ['ONE'] + os.environ['TWO']).encode()).hexdigest())"
    settings, source = one(tmp_path, python(code), 'secrets = ["ONE", "TWO"]')
    monkeypatch.setenv("ONE", "first-value")
    found = pull(settings, source, WINDOW, secrets={"ONE": "not this", "TWO": "second-value"}.get)
    assert printed(found).decode().strip() == hashlib.sha256(b"first-valuesecond-value").hexdigest()


def test_a_missing_secret_fails_before_anything_runs_and_names_both_ways(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sh(f"touch {tmp_path}/ran"), 'secrets = ["NO_SUCH_SECRET"]')

    def broken(name: str) -> str:
        raise ValueError(f"the vault says {SECRET} for {name}")

    for secrets, why in (
        (None, "is not set"),
        (lambda _: None, "is not set"),
        (broken, "could not be loaded (ValueError)"),
    ):
        found = pull(settings, source, WINDOW, secrets=secrets)
        assert found.status == "failed"
        assert found.message == (
            f"the secret NO_SUCH_SECRET {why}: set the variable NO_SUCH_SECRET in the environment, or, for runs of a deployment, "
            "save the Prefect Secret block `no-such-secret`"
        )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "said",
    [
        'echo "login with $TOKEN failed" >&2',
        'echo "GET /?t=$(printf %s "$TOKEN" | sed \'s,/,%2F,;s, ,%20,;s,+,%2B,\') failed" >&2',
        'echo "Authorization: Basic $(printf %s "$TOKEN" | base64)" >&2',
        'i=0; while [ $i -lt 2000 ]; do echo "no $TOKEN $TOKEN" >&2; i=$((i+1)); done',
    ],
)
def test_the_value_of_a_secret_reaches_no_message_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """Also as it stands in an address or a header; also where the kept end of standard error begins amid it."""
    monkeypatch.setenv("TOKEN", SECRET)
    settings, source = one(tmp_path, sh(f"{said}; exit 1"), 'secrets = ["TOKEN"]')
    message = pull(settings, source, WINDOW).message or ""
    assert "***" in message
    for part in (SECRET, "va lue", "s3cr3t", "czNjcjN0", "va%20lue"):
        assert part not in message
    assert SECRET not in repr(settings_of(settings, source))
    assert SECRET.encode() not in everything(tmp_path)


def test_a_cut_that_leaves_a_part_of_a_secret_does_not_show_the_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "A" * 100 + "END-OF-IT")
    code = "import os, sys; t = os.environ['TOKEN']; sys.stderr.write(t + 'x' * (16384 - 20)); sys.exit(1)"
    settings, source = one(tmp_path, python(code), 'secrets = ["TOKEN"]')
    monkeypatch.setattr("flows.pulling._SHOWN_CHARACTERS", 1 << 20)
    assert "END-OF" not in (pull(settings, source, WINDOW).message or "")


def test_output_with_a_secret_in_it_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even cut in two by the blocks it is read in: a value in the landing folder would go on to the lake and the marts."""
    monkeypatch.setenv("TOKEN", SECRET)
    code = "import os, sys, time; t = os.environ['TOKEN']; o = sys.stdout; o.write('a' * 70000 + t[:5]); o.flush(); time.sleep(0.2); o.write(t[5:])"
    settings, source = one(tmp_path, python(code), 'secrets = ["TOKEN"]')
    found = pull(settings, source, WINDOW)
    assert (found.status, found.path) == ("failed", None)
    assert found.message == "it printed the value of a secret; nothing of it was kept"
    assert kept(tmp_path) == []


def test_fifty_megabytes_pass_through_little_memory(tmp_path: Path) -> None:
    """Measured in a process of its own, whose peak is its own: the output is never held as a whole."""
    work = (
        "import resource, sys; from tests.flows.pulling_help import *; from flows.pulling import pull; from pathlib import Path\n"
        "c, s = one(Path(sys.argv[1]), sh('head -c 50000000 /dev/urandom'))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "p = pull(c, s, WINDOW); assert p.byte_length == 50_000_000, p\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    paths = str(ROOT)
    ran = subprocess.run(
        [sys.executable, "-c", work, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(ran.stdout) < 16_000, "kilobytes"


def test_a_full_disk_is_our_error_and_not_the_commands(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sh("head -c 5000000 /dev/urandom"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            pull(settings, source, WINDOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert kept(tmp_path) == []


def test_killed_in_the_middle_nothing_looks_like_an_export_and_the_rest_is_swept(tmp_path: Path) -> None:
    work = (
        "import sys; from tests.flows.pulling_help import *; from flows.pulling import pull; from pathlib import Path\n"
        "c, s = one(Path(sys.argv[1]), sh('head -c 300000 /dev/urandom; sleep 30')); pull(c, s, WINDOW)\n"
    )
    paths = str(ROOT)
    process = subprocess.Popen(
        [sys.executable, "-c", work, str(tmp_path)], env={**os.environ, "PYTHONPATH": paths}, start_new_session=True
    )
    folder = tmp_path / "data" / "landing" / "src"
    assert eventually(lambda: any(p.stat().st_size for p in folder.glob(".*")))
    settings, _ = one(tmp_path, sh(":"))
    (rest,) = folder.iterdir()
    os.utime(rest, (1e9, 1e9))
    sweep(settings)
    assert rest.exists(), "a process still writes it"
    process.kill()
    process.wait()
    assert list(folder.glob("*.zst")) == []
    os.utime(rest, (1e9, 1e9))
    sweep(settings)
    assert list(folder.iterdir()) == []


def test_two_tries_of_one_instant_get_two_files(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sh("date +%N"))
    first, second = (pull(settings, source, WINDOW, now=NOON) for _ in range(2))
    assert first.path != second.path
    assert len(kept(tmp_path)) == 2
    assert printed(first) != printed(second)


def test_what_is_kept_is_one_whole_frame_with_its_checksum(tmp_path: Path) -> None:
    settings, source = one(tmp_path, sh("echo a; sleep 0.1; echo b"))
    raw = Path(pull(settings, source, WINDOW).path or "").read_bytes()
    assert zstandard.get_frame_parameters(raw).has_checksum


def test_another_command_zone_or_environment_has_other_settings(tmp_path: Path) -> None:
    """So that what was pulled with the old ones shows as stale; how long and how often it is asked changes nothing."""

    def of(command: list[str], more: str = "", zone: str = "UTC") -> str:
        found = config(tmp_path, toml(command, more), zone=zone)
        return settings_of(found, found.sources[0])

    base = of(["a", "{start}"])
    assert base == of(["a", "{start}"], 'timeout = 5\ndelay = "1h"\nwindow = "1d"\nformat = "slurm_sacct"')
    assert base != of(["a", "{start_utc}"])
    assert base != of(["a", "{start}"], zone="Europe/Berlin")
    assert base != of(["a", "{start}"], 'environment = { X = "1" }')
    assert of(["a", "{start_utc}"]) == of(["a", "{start_utc}"], zone="Europe/Berlin"), "no local time in it"
