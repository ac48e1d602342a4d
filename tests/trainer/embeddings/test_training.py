"""Training of word embeddings on one and two ranks, in all modes, from finite and unbounded text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus.stream.parts import part_numbers
from tests.corpus.stream.reading import read_followed
from tests.trainer.conftest import Launch
from tests.trainer.embeddings import made_text
from tests.trainer.runs import (
    finish,
    kill_all,
    lines,
    notes,
    step_losses,
    stop,
    summary,
    train_here,
    wait_for_lines,
)
from trainer.embeddings.char_lstm import read_encoder
from trainer.embeddings.model_folder import open_words
from trainer.embeddings.vectors import read_vectors
from trainer.output import checkpoint

LEARNING = (
    "--model", "skipgram", "--embedding", "16", "--global-batch", "4", "--epochs", "12", "--min-count", "1",
    "--subsample", "0", "--learning-rate", "1.6", "--threads", "1",
)  # fmt: skip


ROW = 4 + 8 + 4 * 16
"""Bytes of a word's gradient, with its id and its number of rows."""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return made_text.stream(tmp_path_factory.mktemp("text") / "stream", made_text.lines(2500))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return made_text.pairs(tmp_path_factory.mktemp("pairs") / "topics.txt")


CHARACTERS = (
    "--model", "char-lstm", "--hidden", "16", "--character-embedding", "8", "--epochs", "2", "--learning-rate", "0.3",
)  # fmt: skip


def test_words_of_a_character_model_become_similar_and_unseen_words_resemble_similar_spellings(text, pairs, tmp_path):
    assert train_here(tmp_path, "--data", text, *LEARNING, *CHARACTERS, "--similarity", pairs)["similarity"] > 0.8
    vectors = open_words(str(tmp_path))
    assert {word[:3] for word, _ in vectors.nearest("seaa", 5)} == {"sea"}
    assert {word[:3] for word, _ in vectors.including(["seaz"]).nearest("seaz", 5)} == {"sea"}
    encoder = read_encoder(tmp_path / "model" / "encoder.safetensors")
    assert np.allclose(encoder.vectors(vectors.words), vectors.matrix, atol=1e-5)


def trained(launch: Launch, ranks: int, text: Path, output: Path, *options: Any) -> dict[str, Any]:
    finish(launch(ranks, "-m", "trainer", "--data", text, "--output", output, *LEARNING, *options))
    return summary(output)


@pytest.fixture(scope="module")
def alone(text, pairs, tmp_path_factory):
    output = tmp_path_factory.mktemp("alone")
    train_here(output, "--data", text, *LEARNING, "--similarity", pairs, "--pip")
    return output


def test_cooccurring_words_become_similar(alone):
    assert summary(alone)["similarity"] > 0.8
    assert summary(alone)["vocabulary"] == 24
    assert summary(alone)["pip_loss"] > 0
    vectors = read_vectors(str(alone / "model" / "vectors.bin"))
    assert {word[:3] for word, _ in vectors.nearest("seaa", 5)} == {"sea"}
    assert vectors.words == read_vectors(str(alone / "model" / "vectors.txt")).words


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--optimiser", "adam", "--learning-rate", "0.01")])
def test_two_ranks_learn_together_what_one_learns(launch, text, tmp_path, options):
    one = trained(launch, 0, text, tmp_path / "1", *options)
    two = trained(launch, 2, text, tmp_path / "2", "--balance", "3,1", *options)
    assert step_losses(tmp_path / "2") == pytest.approx(step_losses(tmp_path / "1"), rel=1e-3)
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-3)
    assert one["bytes_a_step"] == 0
    assert 24 * ROW < two["bytes_a_step"] < 2 * 24 * ROW + 200  # most centres and contexts, and the bytes of reports


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["average:5", "async:3"])
def test_ranks_with_local_steps_learn_about_as_much(launch, text, alone, pairs, tmp_path, mode):
    found = trained(launch, 2, text, tmp_path, "--mode", mode, "--similarity", pairs, "--slow", "1:2")
    assert found["similarity"] > 0.7
    assert found["loss"] < summary(alone)["loss"] + 0.1
    assert 0 < found["bytes_a_step"] < 2 * 24 * ROW
    assert found["rows_seen"] == summary(alone)["rows_seen"] == sum(found["rows_of_ranks"])
    if mode.startswith("async"):
        assert found["staleness"]["most"] <= found["staleness"]["bound"]
        assert found["rows_of_ranks"][0] > found["rows_of_ranks"][1]


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["average:5", "async:3"])
def test_a_stopped_and_a_killed_run_on_a_stream_learn_from_each_row_once(launch, tmp_path, mode):
    stream = read_followed(tmp_path / "stream", tmp_path / "texts", made_text.lines(6_000), part_rows=64)
    parts = len(part_numbers(stream / "reader-0"))
    output, slow = tmp_path / "out", ("--slow", "0:8", "1:8")
    arguments = ["-m", "trainer", "--data", stream, "--output", output, *LEARNING, "--mode", mode]
    arguments += ["--checkpoint-minutes", "0.01", "--epochs", "1000"]
    first = launch(2, *arguments, *slow)
    wait_for_lines(first, output, "step", 5)
    errors = stop(first)
    assert summary(output)["stopped"], errors
    second = launch(2, *arguments, *slow, "--resume")
    wait_for_lines(second, output, "checkpoint", len(lines(output, "checkpoint")) + 2)
    kill_all(second)
    finish(launch(2, *arguments, "--resume"))
    found, _ = checkpoint.newest(output / "checkpoints")
    learned = {name: found[1]["task"][name] for name in ("taken", "chosen", "words_seen")}
    assert learned == {"taken": {"reader-0": parts}, "chosen": None, "words_seen": 12 * 6_000}
    assert summary(output)["rows_seen"] == 64 * parts


def test_the_last_checkpoint_includes_the_end_of_its_part(tmp_path):
    stream = read_followed(tmp_path / "stream", tmp_path / "texts", made_text.lines(500), part_rows=64)
    train_here(tmp_path / "out", "--data", stream, *LEARNING, "--checkpoint-minutes", "1e-9")
    found, _ = checkpoint.newest(tmp_path / "out/checkpoints")
    assert (found[1]["task"]["chosen"], found[1]["task"]["words_seen"]) == (None, 12 * 500)


UNTRAINED = 4.16
"""Initial loss of a pair: log 2 for the pair, and for each of five negative samples."""
ON_A_STREAM = ("--model", "skipgram", "--min-count", "1", "--threads", "1")


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    home = tmp_path_factory.mktemp("endless")
    return read_followed(home / "stream", home / "texts", made_text.bursts(8_000), part_rows=64)


def test_the_defaults_learn_from_unbounded_text(endless, tmp_path):
    assert train_here(tmp_path, "--data", endless, *ON_A_STREAM)["loss"] < 0.8 * UNTRAINED


def test_a_run_reports_why_it_ended_before_its_words(endless, tmp_path, messages):
    found = train_here(tmp_path, "--data", endless, *ON_A_STREAM, "--words", "1000000")
    assert found["words_seen"] == 160_000
    messages.check(*notes(tmp_path))


def test_a_run_counts_the_words_outside_the_vocabulary_of_its_first_words(endless, tmp_path):
    options = ("--vocabulary-words", "1", "--min-count", "2", "--words", "20000")
    found = train_here(tmp_path, "--data", endless, *ON_A_STREAM, *options)
    outside, seen = found["words_outside_vocabulary"], found["words_seen"]
    assert 0 < outside < seen
    assert any(note.startswith(f"{outside:,} of {seen:,} words") for note in notes(tmp_path))
