"""Ingest and its parsers: a fault in one harms nobody else, another version or setting reads again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from flows import ingesting, pipeline
from flows.manifest import opened
from tests.flows.ingest_help import TOML, append, check_balance, config, ids, write
from transforms import lake
from transforms.outcome import Context, Parsed
from transforms.registry import Source
from transforms.stream import ExportStream
from transforms.tables import ANNOTATIONS


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "exports").mkdir()
    return tmp_path


def fake(**changes: object) -> Source:
    """A format of lines that begin with `fake`; each line makes an annotation."""

    def parse_fake(stream: ExportStream, context: Context) -> Iterator[Parsed]:
        for chunk in stream.chunks():
            texts = chunk.data.decode().splitlines()
            frame = pl.DataFrame({"cluster": context.cluster, "interruption_id": texts})
            yield Parsed({"annotations": frame}, used=len(texts))

    known = {
        "name": "fake",
        "tables": (ANNOTATIONS,),
        "sniff": lambda head: head.startswith(b"fake"),
        "parse": parse_fake,
        "doc": "",
    }
    return Source(**{**known, **changes})  # type: ignore[arg-type]


def use(monkeypatch: pytest.MonkeyPatch, *sources: Source) -> None:
    monkeypatch.setattr(ingesting, "all_sources", lambda: {s.name: s for s in sources})
    monkeypatch.setattr(ingesting, "sniff", lambda head: [s for s in sources if s.sniff(head)])


def test_a_parser_that_loses_a_line_fails_the_export(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(stream: ExportStream, _context: Context) -> Iterator[Parsed]:
        for chunk in stream.chunks():
            yield Parsed(used=chunk.data.count(b"\n") - 1)

    use(monkeypatch, fake(parse=losing))
    write(home, "a.txt", "fake 1\nfake 2\n")
    [export] = pipeline.ingest(config(home)).exports
    assert export.status == "failed"
    assert "1 used + 0 ignored + 0 rejected lines, but read 2" in str(export.message)


def test_a_fault_in_a_parser_fails_its_exports_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(stream: ExportStream, context: Context) -> Iterator[Parsed]:
        yield from fake().parse(stream, context)
        raise ZeroDivisionError("division by zero")

    use(monkeypatch, fake(parse=faulty), fake(name="other", sniff=lambda head: head.startswith(b"other")))
    write(home, "a.txt", "fake 1\n")
    write(home, "b.txt", "other 1\n")
    report = pipeline.ingest(config(home))
    assert [e.status for e in report.exports] == ["failed", "loaded"]
    assert "ZeroDivisionError: division by zero" in str(report.exports[0].message)
    assert ids(home) == ["other 1"], "rows that came before the fault are not kept"
    use(monkeypatch, fake())
    assert not pipeline.ingest(config(home)).failed
    assert ids(home) == ["fake 1", "other 1"]
    check_balance(home)


def test_a_failure_after_rows_were_written_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(stream: ExportStream, context: Context) -> Iterator[Parsed]:
        yield from fake().parse(stream, context)
        raise ZeroDivisionError

    use(monkeypatch, fake(parse=faulty))
    write(home, "a.txt", "fake 1\n")
    assert pipeline.ingest(config(home), batch_bytes=1).failed
    assert lake.parts_on_disk(home / "data/lake") == []
    check_balance(home)


def test_two_parsers_that_claim_a_file_are_an_error_of_that_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, fake(), fake(name="twin"))
    write(home, "a.txt", "fake 1\n")
    [export] = pipeline.ingest(config(home)).exports
    assert export.status == "failed"
    assert "several formats fit (fake, twin): set `format`" in str(export.message)
    configured = TOML.replace('exports/**"', 'exports/**"\nformat = "annotations"')
    use(monkeypatch, fake(name="annotations"), fake(name="twin"))
    [export] = pipeline.ingest(config(home, configured)).exports
    assert (export.status, export.source) == ("loaded", "annotations")


def test_a_new_parser_version_reads_old_pieces_again_with_their_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = TOML.replace("collected_at = 2026-11-30T03:05:00Z", "")
    use(monkeypatch, fake())
    path = write(home, "a.txt", "fake 1\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    pipeline.ingest(config(home, without))
    append(path, "fake 2\nfake 3")
    pipeline.ingest(config(home, without))
    with opened(home / "data") as manifest:
        before = manifest.exports()
    use(monkeypatch, fake(version=2))
    assert pipeline.ingest(config(home, without)).lines == 3
    with opened(home / "data") as manifest:
        assert manifest.exports() == before, "the same pieces, cut and dated as before"
    assert ids(home) == ["fake 1", "fake 2", "fake 3"], "none twice"
    check_balance(home)


def test_other_settings_read_a_file_again_but_a_new_cluster_does_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, fake())
    write(home, "a.txt", "fake 1\n")
    named = TOML.replace('exports/**"', 'exports/**"\ncluster = "c1"')
    pipeline.ingest(config(home, named))
    more = named + '[clusters.c2]\nzone = "Asia/Tokyo"\n'
    assert pipeline.ingest(config(home, more)).lines == 0
    other_zone = named.replace('"UTC"', '"Europe/Berlin"')
    assert pipeline.ingest(config(home, other_zone)).lines == 1, "its times may mean something else now"
    assert ids(home) == ["fake 1"]


def test_a_record_that_may_go_on_is_read_again_with_what_follows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines `fake ...` make one record here; a file met after the first of them must not tell two."""

    def pairing(stream: ExportStream, context: Context) -> Iterator[Parsed]:
        for chunk in stream.chunks():
            texts = chunk.data.decode().splitlines()
            pairs = [" ".join(texts[i : i + 2]) for i in range(0, len(texts), 2)]
            frame = pl.DataFrame({"cluster": context.cluster, "interruption_id": pairs})
            yield Parsed({"annotations": frame}, used=len(texts), is_open=len(texts) % 2 == 1)

    use(monkeypatch, fake(parse=pairing))
    path = write(home, "a.txt", "fake 1\nfake 2\nfake 3\n")
    pipeline.ingest(config(home))
    assert ids(home) == ["fake 1 fake 2", "fake 3"]
    with path.open("a") as handle:
        handle.write("fake 4\nfake 5\n")
    assert pipeline.ingest(config(home)).lines == 5
    assert ids(home) == ["fake 1 fake 2", "fake 3 fake 4", "fake 5"]
    check_balance(home)
