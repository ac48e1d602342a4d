"""The text fields of a stream's records are detected as for reviews, or the records are refused."""

from contextlib import nullcontext
from operator import itemgetter
from pathlib import Path

import pytest
import yaml

from common.errors import DataError
from corpus.stream.lines import batch_of_lines, texts_of_batch
from corpus.stream.records import text_fields

ROWS = yaml.safe_load(Path(__file__).with_name("records.yaml").read_text())


@pytest.mark.parametrize("row", ROWS, ids=itemgetter("case"))
def test_fields_are_detected_or_files_refused_as_for_reviews(tmp_path, row, messages) -> None:
    (tmp_path / "before").write_text(row.get("before", ""))
    (tmp_path / row.get("name", "texts")).write_text(row["content"])
    with messages.raises(DataError) if row["fields"] == "refused" else nullcontext():
        assert text_fields((str(tmp_path),), tuple(row.get("chosen", ()))) == tuple(row["fields"])


def test_a_table_is_refused(tmp_path, messages) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": ["a"]}), tmp_path / "a.parquet")
    with messages.raises(DataError):
        text_fields((str(tmp_path),), ())


def test_only_text_fields_give_words() -> None:
    lines = [b'{"a": "one\\ntwo", "b": "key"}', b"", b'{"b": "none"}', b'{"a": 3}', b"{", b'{"a": "nul\\u0000"}']
    assert texts_of_batch(batch_of_lines("/a", lines, 0), ("a",)) == (["one two", "", "nul "], [0, 1, 5])
