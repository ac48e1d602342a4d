"""Tests of the work of training on a dataset, from the lengths of its texts."""

from pathlib import Path

import pytest

from bootstrap.training.sources.dataset import DatasetSource, PreparedDataset
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from experiments.forecast import lstm_operations
from trainer.config import configured


def config(**given):
    return configured({"data": "d", "output": "o", "model": "lstm", **given})


@pytest.mark.parametrize("longest", [20, 1000])
def test_an_lstm_reads_the_words_of_the_texts_up_to_400(longest, tmp_path):
    from tests.trainer.conftest import VOCABULARY, make_rows

    made = make_rows(1000, seed=1, length=longest)
    rows, path = made._replace(tokens=made.tokens[made.tokens > 0]), str(tmp_path / "d.h5")
    settings = Settings(ragged=True, words="tokens", duplicates=True, stopwords="none", vocabulary_size=60)
    write_dataset(Path(path), train=rows, test=rows, vocabulary=VOCABULARY, settings=settings)
    words = float(rows.lengths.mean())
    layers = {"embedding": 100, "hidden": 32, "layers": 2}
    found = PreparedDataset(path).work(config(**layers), ranks=1).operations
    assert found == pytest.approx(lstm_operations(**layers, words=min(words, 400)))
    assert (words > 400) is (longest == 1000)
    assert DatasetSource(path).size().words == pytest.approx(words)
