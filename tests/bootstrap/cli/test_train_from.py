"""`shoal train --from` a classifier, as a person types it: from reviews to a model, and on with more reviews."""

import json
from pathlib import Path

import pytest

from tests.bootstrap.cli.command import shoal
from tests.bootstrap.cli.test_pretrain import texts

pytestmark = pytest.mark.soak


def test_a_classifier_goes_on_with_more_reviews(tmp_path: Path) -> None:
    for name, more in (("first", ""), ("second", " dazzling")):
        lines = [json.dumps({"text": text + more, "label": number % 2}) for number, text in enumerate(texts(300))]
        (tmp_path / f"{name}.json").write_text("".join(f"{line}\n" for line in lines))
    cache = ("--cache", tmp_path / "cache", "--threads", "1", "--json")
    first = shoal(
        "train", "--local", "--model", "fasttext", "--input", tmp_path / "first.json", "--epochs", "6", "--output",
        tmp_path / "first", *cache,
    )  # fmt: skip
    assert first.returncode == 0, first.stderr
    (old,) = (tmp_path / "cache").glob("texts-*/dataset.h5")
    second = shoal(
        "train", "--local", "--from", tmp_path / "first", "--input", tmp_path / "second.json", "--epochs", "2",
        "--old-data", old, "--output", tmp_path / "second", *cache,
    )  # fmt: skip
    assert second.returncode == 0, second.stderr
    assert "new words, which start from their parts: 1. " in second.stderr
    assert f"training rows of {old} are learnt again" in second.stderr
    assert json.loads(second.stdout)["accuracy"] > 0.9
    words = (tmp_path / "second/model/vocabulary.txt").read_text().split()
    assert words == [*(tmp_path / "first/model/vocabulary.txt").read_text().split(), "dazzling"]
    again = shoal("train", "--config", tmp_path / "second/config.yaml", "--output", tmp_path / "third")
    assert again.returncode == 0, again.stderr
