"""The settings of a stream are written once, and later commands must have the same settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import DataError
from corpus.stream.stream_settings import StreamSettings, absolute, read_settings, write_settings

SETTINGS = StreamSettings(sources=("/texts", "s3://pile/texts"), readers=2, follow=True)


def test_settings_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_settings(tmp_path / "new" / "stream", SETTINGS)
    assert read_settings(tmp_path / "new" / "stream") == SETTINGS
    assert [path.name for path in (tmp_path / "new" / "stream").iterdir()] == ["stream.json"]


def test_a_second_start_with_other_settings_is_refused(tmp_path: Path) -> None:
    write_settings(tmp_path, SETTINGS)
    write_settings(tmp_path, SETTINGS)
    with pytest.raises(DataError, match=r"stream\.json describes a stream with lowercase True, not False"):
        write_settings(tmp_path, replace(SETTINGS, lowercase=False))
    with pytest.raises(DataError, match="with sources /texts, s3://pile/texts, not /other"):
        write_settings(tmp_path, replace(SETTINGS, sources=("/other",)))
    assert read_settings(tmp_path) == SETTINGS


def test_a_folder_without_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"/absent/stream.json does not exist; write the settings of the stream"):
        read_settings(tmp_path / "absent")


def test_a_failure_to_create_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*Not a directory; choose another folder for the stream"):
        write_settings(tmp_path / "file" / "stream", SETTINGS)


def test_paths_become_absolute_and_other_addresses_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("texts") == str(tmp_path.resolve() / "texts")
    assert absolute("s3://a/b") == "s3://a/b"
    with pytest.raises(DataError, match=r"^Shoal cannot read tcp://localhost:9000; give files, folders, or addresses"):
        absolute("tcp://localhost:9000")
