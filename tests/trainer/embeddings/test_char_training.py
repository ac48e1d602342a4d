"""Runs that learn words by their characters: on one rank and on two, with both exchanges, stopped and gone on."""

from pathlib import Path

import numpy as np
import pytest

from tests.trainer.embeddings import made_text
from tests.trainer.runs import summary, train_here
from trainer.embeddings.encoder import read_encoder
from trainer.embeddings.model_folder import open_words

LEARNING = (
    "--model", "char-lstm", "--embedding", "16", "--hidden", "16", "--character-embedding", "8", "--global-batch", "4",
    "--epochs", "2", "--min-count", "1", "--subsample", "0", "--learning-rate", "0.3", "--threads", "1",
    "--record-every", "1",
)  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_text.stream(tmp_path_factory.mktemp("text") / "stream", made_text.lines(2500))


@pytest.fixture(scope="module")
def alone(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("alone")
    train_here(output, "--data", text, *LEARNING, "--similarity", made_text.pairs(output / "topics.txt"))
    return output


def test_words_that_stand_together_become_similar_and_unseen_ones_like_those_they_resemble(alone: Path) -> None:
    assert summary(alone)["similarity"] > 0.8
    vectors = open_words(str(alone))
    assert {word[:3] for word, _ in vectors.nearest("seaa", 5)} == {"sea"}
    assert {word[:3] for word, _ in vectors.including(["seaz"]).nearest("seaz", 5)} == {"sea"}
    encoder = read_encoder(alone / "model" / "encoder.safetensors")
    assert np.allclose(encoder.vectors(vectors.words), vectors.matrix, atol=1e-5)
