"""A data folder that was exchanged, or is gone, under who serves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows import same_folder
from flows.same_folder import OtherFolderError, check, remember


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(same_folder.VARIABLE, raising=False)
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv(same_folder.VARIABLE, "")  # so that what `remember` sets is taken back
    remember(folder)
    return folder


def test_the_same_folder_is_fine_whatever_is_written_to_it(data: Path) -> None:
    (data / "file").write_text("more")
    check(data)


def test_a_folder_that_is_gone_is_not_made_anew(data: Path) -> None:
    data.rename(data.with_name("elsewhere"))
    with pytest.raises(OtherFolderError, match=r"is gone .*mount its volume"):
        check(data)
    assert not data.exists()


def test_an_empty_folder_in_its_place_is_another_one(data: Path) -> None:
    """What is left at the place of a volume that is no longer mounted."""
    data.rename(data.with_name("elsewhere"))
    data.mkdir()
    with pytest.raises(OtherFolderError, match=r"is another one than .* mount its volume"):
        check(data)


@pytest.mark.usefixtures("data")
def test_runs_of_other_folders_and_those_nobody_serves_are_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(tmp_path / "other")
    monkeypatch.delenv(same_folder.VARIABLE)
    check(tmp_path / "gone")
