"""Full disks, damaged files, closed pipes and folders nobody may look into: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows import landing, manifest, pipeline
from flows.cli import annotate, execute, facts
from flows.config_errors import ConfigError
from flows.manifest import ManifestError
from tests.flows.ingest_help import TOML, config, report_of, write

ROOT = Path(__file__).resolve().parents[2]
Goodput = Callable[..., Any]
SACCT = "JobID|Cluster|JobName|State|Start|End\n" + "".join(
    f"{n}|c1|train|FAILED|2025-05-04T08:00:00|2025-05-04T09:00:00\n" for n in range(40)
)


@pytest.fixture
def demo_copy(demo_folder: Path, tmp_path: Path) -> Path:
    """The demo as built, to be damaged."""
    folder = tmp_path / "copy"
    shutil.copytree(demo_folder, folder, symlinks=True)
    return folder


def started(*arguments: str, **kwargs: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "flows.cli", *arguments], cwd=ROOT, stderr=subprocess.PIPE, **kwargs)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_is_full_is_said_and_no_traceback(demo_folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = started("status", "--config", str(demo_folder / "goodput.toml"), stdout=full)
        told = ran.communicate()[1].decode()
    assert ran.returncode == 1
    assert told.startswith("error: cannot write the output: No space left on device")
    assert "Traceback" not in told


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_reader_that_leaves_ends_the_command_without_a_word(demo_folder: Path, form: str) -> None:
    settings = str(demo_folder / "goodput.toml")
    query = "select repeat('x', 1000) as a from range(3000)"  # more than a pipe holds
    arguments = ("sql", query, "--format", form, "--config", settings)
    with started(*arguments, stdout=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.readline()
        ran.stdout.close()
        assert ran.stderr.read() == b""
    assert ran.returncode == 141


@pytest.mark.parametrize("kept", [0, 5000, 300_000])
def test_a_damaged_build_is_named_with_what_makes_another(goodput: Goodput, demo_copy: Path, kept: int) -> None:
    [build] = (demo_copy / "data/builds").glob("*.duckdb")
    build.chmod(0o644)
    os.truncate(build, kept)
    for command in (["interruptions"], ["status"], ["sql", "from marts.runs"], ["check"], ["check", "--digest"]):
        ran = goodput(*command, "--config", demo_copy / "goodput.toml")
        assert ran.code == 1, command
        assert build.name in ran.err, command
        assert "goodput build" in ran.err, command
    assert goodput("build", "--config", demo_copy / "goodput.toml").code == 0
    assert goodput("interruptions", "--config", demo_copy / "goodput.toml").code == 0


def test_a_manifest_that_is_a_folder_or_empty_is_refused_like_a_missing_one(tmp_path: Path) -> None:
    """An empty file would be taken for a fresh manifest, and the lake's rows read a second time."""
    settings = config(tmp_path)
    write(tmp_path, "s.txt", SACCT)
    pipeline.ingest(settings)
    file = settings.data / manifest.FILE_NAME
    file.write_bytes(b"")
    with pytest.raises(ManifestError, match=r"is empty, but .* restore it from a backup"):
        pipeline.ingest(settings)
    file.unlink()
    file.mkdir()
    with pytest.raises(ManifestError, match="cannot be opened"):
        pipeline.ingest(settings)


def test_a_disk_that_is_full_while_building_leaves_the_former_build(
    goodput: Goodput, demo_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    from warehouse import dictionary, publish

    def full(*_: object) -> None:
        raise duckdb.IOException("IO Error: Could not write file: No space left on device")

    before = publish.published(demo_copy / "data")
    monkeypatch.setattr(dictionary, "comment", full)
    ran = goodput("build", "--force", "--config", demo_copy / "goodput.toml")
    assert ran.code == 1
    assert "No space left on device): the build before stays published" in ran.err
    assert publish.published(demo_copy / "data") == before
    assert [p.name for p in (demo_copy / "data/builds").glob("*.part*")] == []


def test_a_label_that_cannot_be_written_is_an_error(
    goodput: Goodput, demo_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path, _label: dict[str, str]) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(annotate, "append", refuse)
    settings = facts.configuration(demo_copy / "goodput.toml")
    ident = facts.rows(settings, "select interruption_id from marts.interruptions limit 1")[0]["interruption_id"]
    ran = goodput("annotate", ident, "--cause", "unknown", "--why", "x", "--config", demo_copy / "goodput.toml")
    assert ran.code == 1
    assert "cannot be written (Read-only file system): nothing was labelled" in ran.err


def test_what_may_not_be_looked_at_stops_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root nothing is closed but entries of /proc: is_dir and the target of a link are refused there."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open/a.txt").write_text("a")
    (tmp_path / "closed").symlink_to("nowhere")
    is_dir, realpath = Path.is_dir, os.path.realpath

    def guarded_is_dir(self: Path) -> bool:
        if self.name == "closed":
            raise PermissionError(13, "Permission denied", str(self))
        return is_dir(self)

    def guarded_realpath(path: Any, **kwargs: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return realpath(path, **kwargs)

    monkeypatch.setattr(Path, "is_dir", guarded_is_dir)
    monkeypatch.setattr(os.path, "realpath", guarded_realpath)
    found = landing.find(str(tmp_path / "**"))
    assert [(f.path.name, f.problem is None) for f in found] == [("closed", False), ("a.txt", True)]


def test_a_configuration_without_sources_says_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"names no exports: add \[\[sources\]\]"):
        pipeline.ingest(config(tmp_path, ""))


@pytest.mark.parametrize("ident", ["", " "])
def test_an_empty_id_is_wrong_use(goodput: Goodput, demo_folder: Path, ident: str) -> None:
    ran = goodput("explain", ident, "--config", demo_folder / "goodput.toml")
    assert (ran.code, ran.out) == (2, "")
    assert "the id is empty" in ran.err


def test_a_time_ago_with_a_sign_is_explained(goodput: Goodput) -> None:
    ran = goodput("interruptions", "--since", "-5h")
    assert ran.code == 2
    assert "write a time ago without the sign, 5h" in ran.err


def test_names_of_columns_reach_no_terminal_as_they_are(demo_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = 'select 1 as "\x1b[2Jcol"'
    assert execute(["sql", query, "--config", str(demo_folder / "goodput.toml")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2Jcol" in out


@pytest.mark.parametrize(
    ("name", "change", "hint"),
    [
        ("wide", lambda b: b.decode().encode("utf-16"), "UTF-16 text: convert it"),
        ("wide-bare", lambda b: b.decode().encode("utf-16-le"), "UTF-16 text: convert it"),
        ("wide-big", lambda b: b.decode().encode("utf-16-be"), "UTF-16 text: convert it"),
        ("returns", lambda b: b.replace(b"\n", b"\r"), "carriage returns alone"),
        (
            "zip",
            lambda b: b"PK\x03\x04\x14\x00\x00\x00\x00\x00" + b"\x00" * 20 + b"s.txt" + b,
            "zip archive: unpack it",
        ),
        ("tar", lambda b: b"s.txt".ljust(257, b"\0") + b"ustar\x0000".ljust(255, b"\0") + b, "tar archive: unpack it"),
    ],
)
def test_what_holds_no_lines_is_unknown_with_a_hint(
    tmp_path: Path, name: str, change: Callable[[bytes], bytes], hint: str
) -> None:
    write(tmp_path, name, change(SACCT.encode()))
    write(tmp_path, "plain", SACCT)
    write(tmp_path, "dos", SACCT.replace("\n", "\r\n"))
    report = pipeline.ingest(config(tmp_path))
    assert report_of(report, name).status == "unknown_format"
    assert hint in str(report_of(report, name).message)
    assert [report_of(report, n).status for n in ("plain", "dos")] == ["loaded", "loaded"]


def test_a_cluster_that_is_configured_later_gives_its_rows_back(tmp_path: Path) -> None:
    """What the export calls c2 counts as c1 until c2 is configured; then the file is read again."""
    write(tmp_path, "s.txt", SACCT.replace("39|c1", "39|c2"))
    named = TOML.replace('exports/**"', 'exports/**"\ncluster = "c1"')
    assert pipeline.ingest(config(tmp_path, named)).used == 40
    more = named + '[clusters.c2]\nzone = "UTC"\n'
    assert pipeline.ingest(config(tmp_path, more)).used == 40, "read again"
    from transforms import lake

    found = lake.scan(tmp_path / "data/lake", "job_attempts").collect()
    assert sorted(set(found["cluster"])) == ["c1", "c2"]
    assert found.height == 40


@pytest.mark.parametrize(("year", "is_odd"), [(2199, True), (1971, True), (2026, False)])
def test_a_time_of_collection_that_cannot_be_is_warned_of(
    goodput: Goodput, tmp_path: Path, year: int, is_odd: bool
) -> None:
    from datetime import UTC, datetime

    text = TOML.replace("collected_at = 2026-11-30T03:05:00Z\n", "")
    (tmp_path / "goodput.toml").write_text(text)
    path = write(tmp_path, "s.txt", SACCT)
    moment = datetime(year, 1, 2, tzinfo=UTC).timestamp()
    os.utime(path, (moment, moment))
    for command in ("run", "check"):
        ran = goodput(command, "--config", tmp_path / "goodput.toml")
        assert ran.code == 0
        assert ("collected in the future or before 1990" in ran.err) == is_odd
        assert ("set `collected_at` on the source" in ran.err) == is_odd
