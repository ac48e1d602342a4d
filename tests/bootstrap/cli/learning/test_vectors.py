"""`shoal evaluate` and `shoal neighbours` on word vectors and on character models."""

import json
from pathlib import Path

import pytest
import torch

from bootstrap.cli.main import main
from trainer.embeddings.encoder import EncoderSettings, WordEncoder
from trainer.embeddings.model_folder import write_vectors
from trainer.embeddings.vectors import WordVectors


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


def test_all_files_of_a_word_model_have_the_same_mode(encoding: Path) -> None:
    assert len({path.stat().st_mode for path in (encoding / "model").iterdir()}) == 1


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


@pytest.mark.parametrize("command", [["neighbours", "a"], ["evaluate", "--similarity", "pairs.txt"]])
def test_a_skipped_word_gives_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("glove.txt").write_text("a 1 2\nb nan 4\nc 1 3\n")
    Path("pairs.txt").write_text("a b 5\nb c 7\na c 0\nb a 1\n")
    assert main([*command, "--model", "glove.txt", "--json"]) == 0
    printed = capsys.readouterr()
    assert "warning: glove.txt: left out 1 word (a number is not finite)" in " ".join(printed.err.split())
    assert "NaN" not in printed.out
    assert '"spearman": null' in printed.out or command[0] == "neighbours"


@pytest.mark.parametrize("command", [["predict"], ["export", "--output", "{}/new"]])
def test_predict_and_export_refuse_a_word_model(
    encoding: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([each.format(encoding) for each in command] + ["--model", str(encoding)]) == 1
    sentence = " ".join(capsys.readouterr().err.split())
    assert (
        "is a model of words (--model char-lstm), which cannot label texts; use it with `shoal neighbours` or"
        in sentence
    )
