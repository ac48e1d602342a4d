"""The plain way of labelling, with which Shoal is compared, gives the same answers as Shoal."""

from pathlib import Path

import pytest

from benchmarks.peers.plain_predict import probabilities
from benchmarks.predict import write_texts, write_untrained_model
from bootstrap.prediction.texts import find_text_files, read_text_files
from corpus.dataset_settings import Settings
from corpus.reading.sources import ReadingOptions
from corpus.reading.tally import Tally
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model


def test_the_plain_way_says_the_same_of_short_and_long_texts(tmp_path: Path) -> None:
    files = tmp_path / "short.json", tmp_path / "long.json"
    write_texts(*files, 60)
    texts = [
        text
        for file in files
        for batch in read_text_files(find_text_files([str(file)], ReadingOptions(), Settings()), Tally())
        for text in batch.texts
    ]
    assert len(set(texts)) == 120
    assert sum(map(len, texts[60:])) > 7 * sum(map(len, texts[:60]))
    write_untrained_model(tmp_path / "model", [texts])
    model = load_model(tmp_path)
    said = [each.probability for each in Labeller(model, expected=1 << 40)([*texts, "the of"])]
    assert probabilities(model, [*texts, "the of"]) == pytest.approx([*said[:-1], -0.5], abs=1e-6)
