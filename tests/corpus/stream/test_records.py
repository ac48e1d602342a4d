"""The text fields of a stream's records are detected as for reviews, or the records are refused."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from common.errors import DataError
from corpus.stream.lines import batch_of_lines, texts_of_batch
from corpus.stream.records import text_fields


@pytest.mark.parametrize(
    ("content", "chosen", "fields"),
    [
        ("a line\nanother, line\n", (), ()),
        ('{"reviewText": "a", "overall": 5}\n', (), ("reviewText",)),
        ('{"a": {"b": "c"}}\n', ("a.b",), ("a.b",)),
        ("{this is a text}\n", ("a",), None),
        ('{"a": "c"}\n', (), None),
        ("text,rating\na,5\n", (), None),
        ("", ("a",), ("a",)),
        ('{"text": "a"}', (), ("text",)),
        ("{{Infobox}} of\nsome {text}\n", (), ()),
        ("[Verse 1]\n[1] a text\n", (), ()),
        ('[{"text": "a"},\n{"text": "b"}]\n', (), None),
        ('{\n "text": "a"\n}\n{\n "text": "b"\n}\n', (), None),
    ],
)
def test_fields_are_detected_in_the_first_file_with_text(
    tmp_path: Path, content: str, chosen: tuple[str, ...], fields: tuple[str, ...] | None
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "texts").write_text(content)
    sources = (str(tmp_path),)
    if fields is None:
        with pytest.raises(DataError, match="texts"):
            text_fields(sources, chosen)
    else:
        assert text_fields(sources, chosen) == fields


def test_a_table_is_refused(tmp_path: Path, messages) -> None:
    parquet.write_table(pa.table({"text": ["a"]}), tmp_path / "a.parquet")
    with messages.raises(DataError):
        text_fields((str(tmp_path),), ())


def test_only_text_fields_give_words() -> None:
    lines = [b'{"a": "one\\ntwo", "b": "key"}', b"", b'{"b": "none"}', b'{"a": 3}', b"{", b'{"a": "nul\\u0000"}']
    assert texts_of_batch(batch_of_lines("/a", lines, 0), ("a",)) == (["one two", "", "nul "], [0, 1, 5])
