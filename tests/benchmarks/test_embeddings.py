"""The benchmarks of models of words: what texts are."""

import argparse
import gzip
from pathlib import Path

import pytest

from benchmarks import embeddings
from benchmarks.embeddings.texts import add_options, write_texts


def test_a_text_is_written_in_lower_case_with_punctuation_apart_as_far_as_asked(tmp_path: Path) -> None:
    given = tmp_path / "book.txt.gz"
    given.write_bytes(gzip.compress(b"It's HERE.\n\n...and there\nmore\n"))
    parser = argparse.ArgumentParser()
    add_options(parser)
    found = write_texts(parser.parse_args([str(given), "--megabytes", "0.000024"]), tmp_path)
    assert found["book"].path.read_text() == "it ' s here .\n... and there\n"
    assert found["book"].words == 8


def test_a_part_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        embeddings.main(["nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
