"""`shoal evaluate` and `shoal neighbours` on word vectors and on character models."""

import json
from pathlib import Path

import pytest

from tests.shoal.cli.command import shoal_here


@pytest.fixture
def encoding(tmp_path) -> Path:
    """The folder of a character model."""
    import torch

    from trainer.embeddings.char_lstm import CharLSTM, EncoderSettings
    from trainer.embeddings.model_folder import write_vectors
    from trainer.embeddings.vectors import WordVectors

    settings = EncoderSettings(characters="abcdefg", character_embedding=3, hidden=4, layers=1, size=5)
    torch.manual_seed(0)
    encoder = CharLSTM(settings)
    words = ["bead", "cab", "face", "fad"]
    vectors = WordVectors(words, encoder.vectors(words))
    write_vectors(tmp_path / "model", vectors, config={"model": "char-lstm"}, measures={}, encoder=encoder)
    return tmp_path


def test_all_files_of_a_word_model_have_the_same_mode(encoding) -> None:
    assert len({path.stat().st_mode for path in (encoding / "model").iterdir()}) == 1


def test_a_model_with_an_encoder_knows_every_word(encoding) -> None:
    printed = shoal_here("neighbours", "--model", encoding, "badge", "Cab", "--count", "2", "--json").stdout
    neighbours = {word: {each["word"] for each in near} for word, near in json.loads(printed)["neighbours"].items()}
    assert neighbours["badge"] < {"bead", "cab", "face", "fad"}
    assert "cab" not in neighbours["Cab"]
    (encoding / "pairs.txt").write_text("bead badge 5\ncab cage 7\nfade gade 0\nfad fade 2\n")
    done = shoal_here("evaluate", "--model", encoding / "model", "--similarity", encoding / "pairs.txt", "--json")
    (pairs,) = json.loads(done.stdout)["similarity"].values()
    assert (pairs["known"], pairs["pairs"]) == (4, 4)


@pytest.mark.parametrize("command", ["neighbours a", "evaluate --similarity pairs.txt"])
def test_a_skipped_word_gives_a_warning(tmp_path, monkeypatch, messages, command) -> None:
    monkeypatch.chdir(tmp_path)
    Path("glove.txt").write_text("a 1 2\nb nan 4\nc 1 3\n")
    Path("pairs.txt").write_text("a b 5\nb c 7\na c 0\nb a 1\n")
    done = shoal_here(*command.split(), "--model", "glove.txt", "--json")
    assert (done.returncode, "NaN" in done.stdout) == (0, False)
    messages.check(done.stderr.rstrip())
    assert '"spearman": null' in done.stdout or command == "neighbours a"


@pytest.mark.parametrize("command", ["predict", "export"])
def test_predict_and_export_refuse_a_word_model(encoding, messages, command) -> None:
    done = shoal_here(command, "--model", encoding, "--output", encoding / "new")
    assert done.returncode == 1
    messages.check(done.stderr.rstrip())
