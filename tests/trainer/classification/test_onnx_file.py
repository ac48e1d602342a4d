"""The ONNX file of a model answers as the model does, for any number of rows of any width."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from tests.trainer.classification.made_models import random_fasttext, random_linear, random_model
from trainer.classification.model_folder import write_model, write_onnx

WORDS = tuple(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")

LSTM, CROSS = {"embedding": 8, "hidden": 5, "layers": 1}, "cross-entropy"
MODELS = {
    "lstm": random_model(WORDS, kind=CROSS, pooling="mean+max+words", **LSTM),
    "last": random_model(WORDS, kind="bce", pooling="last", **{**LSTM, "layers": 2, "vocabulary": 20}),
    "mean": random_model(WORDS, kind="mse", pooling="mean", **LSTM),
    "mean+words": random_model(WORDS, kind="bce", pooling="mean+words", **LSTM),
    "linear": random_linear(WORDS),
    "words": random_fasttext(WORDS, ngrams=1),
    "trigrams": random_fasttext(WORDS, ngrams=3),
    "characters": random_fasttext(WORDS, ngrams=1, char_ngrams="3-6"),
    "bigrams, characters": random_fasttext(WORDS, ngrams=2, char_ngrams="1-3"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_file_gives_the_probabilities_of_the_model(tmp_path: Path, name: str) -> None:
    model = replace(MODELS[name], loss=replace(MODELS[name].loss, temperature=1.7))
    write_onnx(tmp_path / "model.onnx", model)
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    chance = np.random.default_rng(0)
    for rows, width in ((1, 1), (2, 3), (7, 100), (300, 9)):
        lengths = chance.integers(1, width + 1, rows)
        ids = chance.integers(1, 2 + len(WORDS), (rows, width), dtype=np.int32)
        real = np.arange(width) < lengths[:, None]
        tokens = np.where(real, ids, np.int32(0))
        (found,) = session.run(["probabilities"], {"tokens": tokens, "lengths": lengths})
        given = ids[real] if model.classifier.reads_whole_texts else tokens
        with torch.inference_mode():
            outputs = model.classifier(torch.from_numpy(given), torch.from_numpy(lengths))
            expected = model.loss.probabilities(outputs).numpy()
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < 1e-5


def test_the_folder_of_an_export_has_the_file_and_its_card_says_what_goes_in(tmp_path: Path) -> None:
    write_model(tmp_path / "model", random_model(), onnx=True)
    assert (tmp_path / "model" / "model.onnx").is_file()
    card = (tmp_path / "model" / "README.md").read_text()
    session = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx")
    for each in (*session.get_inputs(), *session.get_outputs()):
        assert f"`{each.name}`" in card
    assert "The label is 1 where the probability of `positive` is above the threshold 0.5, else 0." in card
