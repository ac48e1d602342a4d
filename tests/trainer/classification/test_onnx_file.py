"""The ONNX file of a model answers as the model does, for any number of rows of any width."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from tests.trainer.classification.made_models import random_fasttext, random_model
from trainer.classification.model_folder import write_model
from trainer.classification.onnx_file import write_onnx

WORDS = tuple(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")


@pytest.mark.parametrize(
    ("name", "kind", "pooling", "layers"),
    [
        ("lstm", "cross-entropy", "mean+max+words", 1),
        ("lstm", "bce", "last", 2),
        ("lstm", "mse", "mean", 1),
        ("lstm", "bce", "mean+words", 1),
        ("both", "cross-entropy", "mean+max+words", 1),
    ],
)
def test_a_file_gives_the_probabilities_of_the_model(
    tmp_path: Path, name: str, kind: str, pooling: str, layers: int
) -> None:
    options = {"layers": layers, "embedding": 8, "hidden": 5, "buckets": 50, "vocabulary": 20 if layers == 2 else 100}
    model = random_model(WORDS, name=name, kind=kind, pooling=pooling, **options)
    model = replace(model, loss=replace(model.loss, temperature=1.7))
    write_onnx(tmp_path / "model.onnx", model)
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    chance = np.random.default_rng(0)
    for rows, width in ((1, 1), (2, 3), (7, 100), (300, 9)):
        lengths = chance.integers(1, width + 1, rows)
        ids = chance.integers(1, 2 + len(WORDS), (rows, width), dtype=np.int32)
        tokens = np.where(np.arange(width) < lengths[:, None], ids, np.int32(0))
        (found,) = session.run(["probabilities"], {"tokens": tokens, "lengths": lengths})
        with torch.inference_mode():
            outputs = model.classifier(torch.from_numpy(tokens), torch.from_numpy(lengths))
            expected = model.loss.probabilities(outputs).numpy()
        assert found.shape == (rows, 2)
        assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize(("ngrams", "chars"), [(1, None), (3, None), (1, "3-6"), (2, "1-3")])
def test_a_model_of_whole_texts_has_a_file_that_takes_padded_rows(
    tmp_path: Path, ngrams: int, chars: str | None
) -> None:
    model = random_fasttext(WORDS, ngrams=ngrams, char_ngrams=chars)
    write_onnx(tmp_path / "model.onnx", model)
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    chance = np.random.default_rng(0)
    for rows, width in ((1, 1), (1, 2), (5, 3), (40, 30)):
        lengths = chance.integers(1, width + 1, rows)
        ids = chance.integers(1, 2 + len(WORDS), (rows, width), dtype=np.int32)
        real = np.arange(width) < lengths[:, None]
        (found,) = session.run(["probabilities"], {"tokens": np.where(real, ids, 0), "lengths": lengths})
        with torch.inference_mode():
            outputs = model.classifier(torch.from_numpy(ids[real]), torch.from_numpy(lengths))
            expected = model.loss.probabilities(outputs).numpy()
        assert np.abs(found - expected).max() < 1e-5


def test_the_folder_of_an_export_has_the_file_and_its_card_says_what_goes_in(tmp_path: Path) -> None:
    write_model(tmp_path / "model", random_model(), onnx=True)
    assert (tmp_path / "model" / "model.onnx").is_file()
    card = (tmp_path / "model" / "README.md").read_text()
    session = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx")
    for each in (*session.get_inputs(), *session.get_outputs()):
        assert f"`{each.name}`" in card
    assert "The label is 1 where the probability of `positive` is above the threshold 0.5, else 0." in card
