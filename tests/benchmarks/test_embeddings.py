"""The texts of the benchmarks of word embeddings."""

import argparse
import gzip

from benchmarks.embeddings.texts import add_options, write_texts


def test_text_is_written_in_lower_case_with_separate_punctuation(tmp_path) -> None:
    given = tmp_path / "book.txt.gz"
    given.write_bytes(gzip.compress(b"It's HERE.\n\n...and there\n"))
    parser = argparse.ArgumentParser()
    add_options(parser)
    found = write_texts(parser.parse_args([str(given)]), tmp_path)
    assert found["book"].path.read_text() == "it ' s here .\n... and there\n"
    assert found["book"].words == 8
