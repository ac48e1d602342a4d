"""`shoal evaluate` and `shoal neighbours`: vectors are judged and looked into."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from bootstrap.cli.main import main
from tests.trainer.classification.made_models import random_model
from trainer.classification.model_folder import write_model
from trainer.embeddings.encoder import EncoderSettings, WordEncoder
from trainer.embeddings.model_folder import write_vectors
from trainer.embeddings.vectors import WordVectors, write_binary


@pytest.fixture
def model(tmp_path: Path) -> Path:
    words = ["king", "queen", "man", "woman", "apple"]
    matrix = np.array([[1, 1, 0], [1, -1, 0], [0.1, 1, 0], [0.1, -1, 0], [0, 0, 1]], np.float32)
    write_binary(str(tmp_path / "vectors.bin"), WordVectors(words, matrix))
    return tmp_path


def test_vectors_are_judged_by_pairs_and_by_questions(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / "pairs.txt").write_text("king queen 5\nking man 7\nking apple 0\nking pear 1\n")
    (model / "questions.txt").write_text(": family\nman king woman queen\nman king woman pear\n")
    asked = ["evaluate", "--model", str(model), "--similarity", str(model / "pairs.txt")]
    asked += ["--analogy", str(model / "questions.txt")]
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["words"], told["size"]) == (5, 3)
    (pairs,), (questions,) = told["similarity"].values(), told["analogy"].values()
    assert (pairs["known"], pairs["pairs"]) == (3, 4)
    assert pairs["spearman"] > 0
    assert questions["all"] == {"add": 1.0, "mul": 1.0, "known": 1, "questions": 2}
    assert questions["sections"]["family"] == questions["all"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert "pairs.txt" in printed
    assert "100.0%" in printed


def test_the_nearest_words_are_listed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neighbours", "--model", str(model / "vectors.bin"), "king", "--count", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["neighbours"]["king"][0]["word"] == "man"
    assert main(["neighbours", "--model", str(model), "King"]) == 0
    assert "apple" in capsys.readouterr().out


@pytest.fixture
def encoding(tmp_path: Path) -> Path:
    """The folder of a character model."""
    settings = EncoderSettings(characters="abcdefg", character_embedding=3, hidden=4, layers=1, size=5)
    torch.manual_seed(0)
    encoder = WordEncoder(settings, settings.build())
    words = ["bead", "cab", "face", "fad"]
    write_vectors(
        tmp_path / "model", WordVectors(words, encoder.vectors(words)), config={"model": "char-lstm"}, measures={},
        encoder=encoder,
    )  # fmt: skip
    return tmp_path


def test_a_model_with_an_encoder_knows_every_word(encoding: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neighbours", "--model", str(encoding), "badge", "Cab", "--count", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["neighbours"]
    assert {each["word"] for each in found["badge"]} < {"bead", "cab", "face", "fad"}
    assert "cab" not in {each["word"] for each in found["Cab"]}
    (encoding / "pairs.txt").write_text("bead badge 5\ncab cage 7\nfade gade 0\nfad fade 2\n")
    asked = ["evaluate", "--model", str(encoding / "model"), "--similarity", str(encoding / "pairs.txt"), "--json"]
    assert main(asked) == 0
    (pairs,) = json.loads(capsys.readouterr().out)["similarity"].values()
    assert (pairs["known"], pairs["pairs"]) == (4, 4)


@pytest.mark.parametrize("command", ["neighbours", "evaluate"])
def test_a_model_of_texts_has_no_vectors_and_the_sentence_says_what_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    write_model(tmp_path / "model", random_model())
    (tmp_path / "pairs.txt").write_text("bead badge 5\n")
    asked = ["bead"] if command == "neighbours" else ["--similarity", str(tmp_path / "pairs.txt")]
    assert main([command, "--model", str(tmp_path), *asked]) == 1
    sentence = " ".join(capsys.readouterr().err.split())
    assert "is a model that classifies texts (--model lstm) and not one of words; `shoal predict` takes it" in sentence


@pytest.mark.parametrize("command", [["predict"], ["export", "--output", "{}/new"]])
def test_a_model_of_words_labels_no_texts_and_the_sentence_says_what_takes_it(
    encoding: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([each.format(encoding) for each in command] + ["--model", str(encoding)]) == 1
    sentence = " ".join(capsys.readouterr().err.split())
    assert "is a model of words (--model char-lstm), and labels no texts; `shoal neighbours` and" in sentence
