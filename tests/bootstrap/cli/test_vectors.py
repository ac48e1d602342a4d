"""`shoal evaluate` and `shoal neighbours`: vectors are judged and looked into."""

import json
from pathlib import Path

import numpy as np
import pytest

from bootstrap.cli.main import main
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


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["evaluate", "--model", "{}"], 2, "there is nothing to judge by"),
        (["evaluate", "--model", "{}/none", "--similarity", "{}/vectors.bin"], 1, "vectors.bin, line 1"),
        (["neighbours", "--model", "{}/none", "king"], 1, "none"),
        (["neighbours", "--model", "{}", "king", "pear", "fig"], 1, "has no vector of: pear, fig"),
    ],
)
def test_wrong_use_is_a_sentence(
    model: Path, arguments: list[str], status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([each.format(model) for each in arguments]) == status
    assert sentence in " ".join(capsys.readouterr().err.split())
