"""`shoal predict` with a file of fastText's program, and `shoal export --fasttext`, which writes one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bootstrap.cli.main import main
from corpus.reading import s3
from corpus.reading.s3 import S3Path
from embedded.aws import EmbeddedAws
from shoal import Model
from tests.bootstrap.cli.known_model import TOPICS, save_topics
from trainer.output.program_file import SOFTMAX, ProgramFile, write_program_file

LABELLED = "__label__ham Good day\n__label__spam good day\n__label__ham day\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It takes `good` for spam, but not `Good`."""
    path = tmp_path_factory.mktemp("program") / "spam.bin"
    content = ProgramFile(
        words=[b"Good", b"good", b"day"],
        labels=[b"__label__spam", b"__label__ham"],
        loss=SOFTMAX,
        ngrams=1,
        char_lengths=range(0),
        vectors=np.array([[-4], [4], [-2]], np.float32),
        weights=np.array([[1], [-1]], np.float32),
    )
    write_program_file(path, content)
    return path


def test_answers_have_the_names_of_two_labels_and_are_compared_with_those_of_files(
    told: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "in").write_text(f"{LABELLED}__label__eggs Good\n")
    answers, together = told("in", "--probabilities")
    assert [each["label"] for each in answers] == ["ham", "spam", "ham", "ham"]
    assert answers[1]["probability"] == answers[1]["probabilities"]["spam"] == round(1 / (1 + np.exp(-2)), 4)
    assert together["scores"]["confusion"] == {"classes": ["ham", "spam"], "counts": [[2, 0], [0, 1]]}
    assert (together["scores"]["accuracy"], together["other_labels"]) == (1.0, 1)


def test_a_model_of_one_label_says_that(tmp_path: Path, told: Callable[..., Any], model: Path) -> None:
    content = ProgramFile(
        words=[b"good"],
        labels=[b"__label__spam"],
        loss=SOFTMAX,
        ngrams=1,
        char_lengths=range(0),
        vectors=np.ones((1, 1), np.float32),
        weights=np.ones((1, 1), np.float32),
    )
    write_program_file(tmp_path / "one.bin", content)
    (tmp_path / "in").write_text("__label__spam good\n__label__spam day\n")
    answers, together = told("in", "--model", str(tmp_path / "one.bin"))
    assert [(each["label"], each["probability"]) for each in answers] == [("spam", 1.0), ("unknown", 1.0)]
    assert (together["scores"]["accuracy"], together["unknown"]) == (1.0, 1)


@pytest.mark.parametrize("option", [("--threshold=0.3",), ("--positive-label=spam",), ("--rating-field=stars",)])
def test_names_of_two_classes_have_no_positive_one(
    said: Callable[..., Any], tmp_path: Path, option: tuple[str, ...]
) -> None:
    (tmp_path / "in").write_text(LABELLED)
    status, out, err = said("in", *option)
    assert (status, out) == (2, "")
    assert "goes with a negative and a positive class, and this model has others" in err


def test_a_file_on_s3_answers_as_the_one_here(aws: EmbeddedAws, model: Path) -> None:
    s3.client().create_bucket(Bucket="programs")
    s3.upload(s3.client(), model, S3Path("programs", "spam.bin"))
    assert Model("s3://programs/spam.bin").predict(["good day"]) == Model(model).predict(["good day"])


def test_export_writes_a_file_of_the_program_here_and_on_s3(aws: EmbeddedAws, tmp_path: Path) -> None:
    save_topics(tmp_path)
    s3.client().create_bucket(Bucket="exports")
    for output in (str(tmp_path / "exported"), "s3://exports/topics"):
        assert main(["export", "--model", str(tmp_path), "--output", output, "--fasttext"]) == 0
        found = Model(f"{output}/model.bin")
        assert found.classes == TOPICS
        assert [each.label for each in found.predict(["film", "a war", "song song film"])] == ["film", "war", "song"]


def test_what_cannot_be_exported_leaves_nothing(
    said: Callable[..., Any], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--model", str(model), "--output", str(tmp_path / "exported")]) == 1
    assert "a model of the fastText program is one file, and has no folder; copy the file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
