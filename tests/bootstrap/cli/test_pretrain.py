"""`shoal pretrain` and `shoal train --from`, as a person types them: from plain text to labels."""

import json
from pathlib import Path

import numpy as np
import pytest

from bootstrap.cli.main import main
from corpus.dataset import open_dataset
from tests.bootstrap.cli.command import shoal

SMALL = ("--embedding", "8", "--hidden", "12", "--layers", "1", "--epochs", "1", "--global-batch", "8", "--bptt", "16")


def texts(count: int) -> list[str]:
    generator = np.random.default_rng(0)
    kinds = (("awful", "broken", "late"), ("fine", "sturdy", "quick"))
    return [
        " ".join(
            [str(generator.choice(kinds[number % 2])), *map(str, generator.choice(["lamp", "cable", "box", "it"], 9))]
        )
        for number in range(count)
    ]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """plain.txt, a text a line, and reviews.json with labels, and one malformed line."""
    found = texts(300)
    (tmp_path / "plain.txt").write_text("".join(f"{text}\n" for text in found))
    lines = [json.dumps({"text": text, "label": number % 2}) for number, text in enumerate(found)]
    (tmp_path / "reviews.json").write_text("".join(f"{line}\n" for line in [*lines, "{"]))
    return tmp_path


@pytest.mark.parametrize("unit", ["tokens", pytest.param("bytes", marks=pytest.mark.soak)])
def test_plain_text_becomes_a_language_model_and_that_a_classifier(files: Path, unit: str) -> None:
    cache = ("--cache", files / "cache")
    learnt = shoal(
        "pretrain", "--local", "--input", files / "plain.txt", "--unit", unit, "--output", files / "language", *SMALL,
        *cache, "--json",
    )  # fmt: skip
    assert learnt.returncode == 0, learnt.stderr
    told = json.loads(learnt.stdout)
    assert told["perplexity"] < (256 if unit == "bytes" else 12)
    assert told["vocabulary"] == len((files / "language/model/vocabulary.txt").read_text().split())
    assert "without a label" not in learnt.stderr
    trained = shoal(
        "train", "--local", "--input", files / "reviews.json", "--from", files / "language", "--epochs", "12",
        "--global-batch", "32", "--output", files / "model", *cache, "--json",
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["accuracy"] > (0.6 if unit == "tokens" else 0.0)  # too little text for bytes
    labelled = shoal("predict", "--model", files / "model", given="a fine lamp\nan awful cable\n")
    assert labelled.returncode == 0, labelled.stderr
    assert len(labelled.stdout.splitlines()) == 2


@pytest.mark.soak
def test_labels_are_not_looked_at_and_malformed_lines_are_told(files: Path) -> None:
    learnt = shoal(
        "pretrain", "--local", "--input", files / "reviews.json", "--output", files / "language", *SMALL,
        "--cache", files / "cache",
    )  # fmt: skip
    assert learnt.returncode == 0, learnt.stderr
    assert "1 of 301 lines are malformed" in learnt.stderr
    assert "perplexity" in learnt.stdout
    (made,) = (files / "cache").glob("texts-*/dataset.h5")
    with open_dataset(made) as dataset:
        assert not dataset.train.rows(0, len(dataset.train)).labels.any()


def test_a_dry_run_reads_no_more_than_beginnings(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    assert main(["pretrain", "--local", "--input", "plain.txt", "--output", "out", "--dry-run"]) == 0
    assert "plain.txt" in capsys.readouterr().out
    assert not (files / "out").exists()
