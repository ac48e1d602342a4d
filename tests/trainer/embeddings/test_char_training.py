"""Runs that learn words by their characters: on one rank and on two, with both exchanges, stopped and gone on."""

from pathlib import Path

import numpy as np
import pytest

from tests.trainer.conftest import Launch
from tests.trainer.embeddings import made_text
from tests.trainer.runs import finish, step_losses, stop, summary, train_here, wait_for_lines
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


@pytest.mark.soak
def test_two_ranks_learn_what_one_learns(launch: Launch, text: Path, alone: Path, tmp_path: Path) -> None:
    finish(launch(2, "-m", "trainer", "--data", text, "--output", tmp_path, *LEARNING, "--balance", "3,1"))
    assert step_losses(tmp_path) == pytest.approx(step_losses(alone), rel=1e-3)
    assert summary(tmp_path)["loss"] == pytest.approx(summary(alone)["loss"], rel=1e-3)


@pytest.mark.soak
def test_a_run_that_is_stopped_goes_on_exactly(launch: Launch, text: Path, alone: Path, tmp_path: Path) -> None:
    arguments = ["-m", "trainer", "--data", text, "--output", tmp_path, *LEARNING]
    first = launch(0, *arguments, "--slow", "0:5")
    wait_for_lines(first, tmp_path, "step", 5)
    errors = stop(first)
    assert summary(tmp_path)["stopped"], errors
    assert 0 < summary(tmp_path)["rows_seen"] < summary(alone)["rows_seen"]
    finish(launch(0, *arguments, "--resume"))
    assert summary(tmp_path)["rows_seen"] == summary(alone)["rows_seen"]
    assert step_losses(tmp_path) == step_losses(alone)
    vectors = [open_words(str(output)).matrix for output in (alone, tmp_path)]
    assert np.array_equal(*vectors)
