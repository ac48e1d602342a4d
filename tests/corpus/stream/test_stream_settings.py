"""The settings of a stream are written once, and later commands must have the same settings."""

from dataclasses import replace

from common.errors import DataError
from corpus.stream.stream_settings import StreamSettings, absolute, read_settings, write_settings

SETTINGS = StreamSettings(sources=("/texts", "s3://pile/texts"), readers=2, follow=True)


def test_settings_are_read_as_they_were_written(tmp_path) -> None:
    write_settings(tmp_path / "new" / "stream", SETTINGS)
    assert read_settings(tmp_path / "new" / "stream") == SETTINGS
    assert [path.name for path in (tmp_path / "new" / "stream").iterdir()] == ["stream.json"]


def test_a_second_start_with_other_settings_is_refused(tmp_path, messages) -> None:
    write_settings(tmp_path, SETTINGS)
    write_settings(tmp_path, SETTINGS)
    for changed in (replace(SETTINGS, lowercase=False), replace(SETTINGS, sources=("/other",))):
        with messages.raises(DataError):
            write_settings(tmp_path, changed)
    assert read_settings(tmp_path) == SETTINGS


def test_a_folder_without_settings_and_a_failure_to_create_a_folder_are_reported(tmp_path, messages) -> None:
    (tmp_path / "file").write_text("")
    with messages.raises(DataError):
        read_settings(tmp_path / "absent")
    with messages.raises(DataError):
        write_settings(tmp_path / "file" / "stream", SETTINGS)


def test_paths_become_absolute_and_other_addresses_stay(tmp_path, monkeypatch, messages) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("texts") == str(tmp_path.resolve() / "texts")
    assert absolute("s3://a/b") == "s3://a/b"
    with messages.raises(DataError):
        absolute("tcp://localhost:9000")
