"""Initial word vectors: a classifier starts from pretrained embeddings, which only the start of a run reads."""

from pathlib import Path

import numpy as np
import pytest
import torch

from common.errors import DataError, TrainingError
from trainer.classification import models
from trainer.classification.data import StartVectors, load_data
from trainer.classification.start_vectors import describe_start_vectors, find_start_vectors, set_start_vectors
from trainer.command_line import as_arguments, parse_arguments
from trainer.config import configured
from trainer.embeddings.vectors import WordVectors, write_binary, write_text
from trainer.resuming import resumed_config

PLACES = {"data": Path("d.h5"), "output": Path("out")}


def written(path: Path, words: list[str], size: int = 5, *, seed: int = 0) -> Path:
    """Write a file of random vectors with a common component."""
    vectors = np.random.default_rng(seed).normal(3, 1, (len(words), size)).astype(np.float32)
    (write_binary if path.suffix == ".bin" else write_text)(str(path), WordVectors(words, vectors))
    return path


def test_words_get_their_vectors_from_a_file_or_a_folder(dataset, tmp_path, messages):
    data = load_data(dataset)
    written(tmp_path / "vectors.bin", ["unknown", data.vocabulary[7], data.vocabulary[2]])
    for address in (tmp_path, tmp_path / "vectors.bin"):
        found = find_start_vectors(str(address), data, size=None)
        assert found.ids.tolist() == [4, 9]
        assert found.vectors.shape == (2, 5)
    messages.check(describe_start_vectors("v", data, found))


@pytest.mark.parametrize("name", ["lstm", "fasttext"])
def test_vectors_are_centred_and_scaled_to_the_length_of_random_ones(name):
    buckets = {"buckets": 50} if name == "fasttext" else {}
    config = configured({**PLACES, "model": name, "embedding": 20, **buckets})
    torch.manual_seed(0)
    model = models.build(name, config.options.model_settings(words=1002, outputs=1))
    before = model.word_vectors.detach().clone()
    ids = np.arange(2, 802)
    vectors = np.random.default_rng(0).normal(3, 7, (800, 20)).astype(np.float32)
    set_start_vectors(model.word_vectors, StartVectors(ids, vectors))
    after = model.word_vectors.detach()
    assert after[802:].equal(before[802:])
    assert after[:2].equal(before[:2])
    assert after[2:802].norm() == pytest.approx(float(before[2:802].norm()))
    assert after[2:802].mean(0).abs().max() < 1e-5
    away, meant = after[2:801] - after[3:802], torch.from_numpy(vectors[:-1] - vectors[1:])
    assert torch.cosine_similarity(away, meant).min() > 0.9999


def test_unusable_vectors_are_one_sentence(dataset, tmp_path, messages):
    data, other = load_data(dataset), tmp_path / "other.txt"
    with messages.raises(DataError):
        find_start_vectors(str(tmp_path / "none.bin"), data, size=None)
    with messages.raises(TrainingError):
        find_start_vectors(str(written(other, data.vocabulary)), data, size=64)
    with messages.raises(TrainingError):
        find_start_vectors(str(written(other, ["elsewhere"])), data, size=None)
    other.write_text(f"1 2\n{data.vocabulary[0]} nan 1\n")
    with messages.raises(DataError):
        find_start_vectors(str(other), data, size=None)


@pytest.mark.parametrize(
    ("options", "embedding", "rate"),
    [
        ({"model": "lstm"}, None, 0.02),
        ({"model": "lstm", "embedding": 64}, 64, 0.02),
        ({"model": "lstm", "word_rate": 0.5}, None, 0.5),
        ({"model": "fasttext"}, None, 1.0),
        ({"preset": "reference"}, None, 1.0),
        ({"preset": "gluon", "embedding": 100}, 100, 1.0),
    ],
)
def test_the_default_size_is_that_of_the_vectors(options, embedding, rate):
    config = configured({**PLACES, "embeddings": "vectors.bin", **options})
    assert (config.options.embedding, config.optimisation.word_rate) == (embedding, rate)
    assert parse_arguments(as_arguments(config)) == config
    assert configured({**PLACES, **options}).options.embedding is not None


def test_a_resumed_run_does_not_read_the_vectors_again(messages):
    started = configured(
        {"model": "lstm", **PLACES, "embeddings": "one.bin", "embedding": 100, "vocabulary": 30_000, "word_rate": 0.02}
    )
    state = {"config": started.plain(), "digest": "a", "global_batch": 256, "progress": {"epoch": 0, "step": 0}}
    again = configured({**PLACES, "model": "lstm", "embeddings": "one.bin", "resume": True})
    going, notes = resumed_config(state, again)
    assert (going.options.embedding, going.options.embeddings, notes) == (100, "one.bin", [])
    other = configured({**PLACES, "model": "lstm", "embeddings": "other.bin", "resume": True})
    with messages.raises(TrainingError):
        resumed_config(state, other)
