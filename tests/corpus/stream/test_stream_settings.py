"""The settings of a stream, which are written once."""

from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import DataError
from corpus.stream.stream_settings import StreamSettings, absolute, host_and_port, read_settings, write_settings

SETTINGS = StreamSettings(sources=("/texts", "s3://pile/texts", "tcp://here:9000"), readers=2, follow=True)


def test_settings_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_settings(tmp_path / "new" / "stream", SETTINGS)
    assert read_settings(tmp_path / "new" / "stream") == SETTINGS
    assert [path.name for path in (tmp_path / "new" / "stream").iterdir()] == ["stream.json"]


def test_a_second_start_has_the_same_settings_or_is_refused(tmp_path: Path) -> None:
    write_settings(tmp_path, SETTINGS)
    write_settings(tmp_path, SETTINGS)
    with pytest.raises(DataError, match=r"stream\.json is of a stream with lowercase True, and not False"):
        write_settings(tmp_path, replace(SETTINGS, lowercase=False))
    with pytest.raises(DataError, match="with sources /texts, s3://pile/texts, tcp://here:9000, and not /other"):
        write_settings(tmp_path, replace(SETTINGS, sources=("/other",)))
    assert read_settings(tmp_path) == SETTINGS


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"sources": ()}, "sources is empty"),
        ({"sources": ("/a", "/a")}, "sources has an address twice"),
        ({"sources": ("texts",)}, "'texts' is not an absolute path"),
        *(({"sources": (f"tcp://here{end}",)}, "like tcp://host:9000") for end in ("", ":99999", ":9/path")),
        ({"readers": 0}, "readers is 0"),
        ({"tokeniser": "words"}, "'words' is not a tokeniser"),
        ({"part_rows": 0}, "part_rows is 0"),
        ({"part_rows": 1 << 18}, "part_rows is 262144"),
        ({"max_malformed": 1.5}, "max_malformed is 1.5"),
        ({"ahead": 0}, "ahead is 0"),
        *(({"quiet_seconds": seconds}, "quiet_seconds is not a number above 0") for seconds in (0.0, float("inf"))),
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(DataError, match=why):
        replace(SETTINGS, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b"\xff", "has no settings of a stream"),
        (b"{}", "sources is missing"),
        (b'{"sources": ["/a"], "speed": 1}', "'speed' is not a known field"),
        (b'{"sources": "/a"}', "sources is not of type"),
        (b'{"sources": ["/a"], "follow": 1}', "follow is not of type bool"),
    ],
)
def test_other_files_are_no_settings(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "stream.json").write_bytes(content)
    with pytest.raises(DataError, match=why):
        read_settings(tmp_path)


def test_a_folder_without_settings_is_no_stream(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no .*/absent/stream.json; it names the sources of the stream"):
        read_settings(tmp_path / "absent")


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*Not a directory; choose another folder for the stream"):
        write_settings(tmp_path / "file" / "stream", SETTINGS)


def test_a_stream_has_an_end_where_files_do_not_grow() -> None:
    assert not StreamSettings(sources=("/texts", "s3://pile")).endless
    assert StreamSettings(sources=("/texts",), follow=True).endless
    assert StreamSettings(sources=("/texts", "tcp://here:9000")).endless


def test_paths_become_absolute_and_other_addresses_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("texts") == str(tmp_path.resolve() / "texts")
    assert [absolute(each) for each in ("s3://a/b", "tcp://h:1")] == ["s3://a/b", "tcp://h:1"]
    assert host_and_port("tcp://[::1]:9000") == ("::1", 9000)
