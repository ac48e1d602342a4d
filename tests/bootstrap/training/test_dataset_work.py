"""What a dataset's own lengths say of the work of learning from it."""

from pathlib import Path

import pytest

from bootstrap.training.sources.dataset import DatasetSource, PreparedDataset
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from experiments.forecast import lstm_operations
from tests.trainer.conftest import VOCABULARY, make_rows
from trainer.config import TrainConfig, configured


def config(**given: object) -> TrainConfig:
    return configured({"data": "d", "output": "o", **given})


def test_an_lstm_reads_as_many_words_as_the_texts_have_up_to_the_length_of_a_row(tmp_path: Path) -> None:
    made = make_rows(1000, seed=1)
    rows, path = made._replace(tokens=made.tokens[made.tokens > 0]), str(tmp_path / "d.h5")
    settings = Settings(ragged=True, words="tokens", duplicates=True, stopwords="none", vocabulary_size=60)
    write_dataset(Path(path), train=rows, test=rows, vocabulary=VOCABULARY, settings=settings)
    words = float(rows.lengths.mean())
    layers = {"embedding": 100, "hidden": 32, "layers": 2}
    whole, cut = (
        PreparedDataset(path).work(config(**layers, row_length=length), ranks=1).operations for length in (400, 5)
    )
    assert whole == pytest.approx(lstm_operations(**layers, words=words))
    assert cut == lstm_operations(**layers, words=5)
    size = DatasetSource(path).size()
    assert size is not None
    assert size.words == pytest.approx(words)
