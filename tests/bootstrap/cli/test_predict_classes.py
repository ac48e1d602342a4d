"""`shoal predict` with a model of more than two classes: its answers beside the labels that the files have."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bootstrap.cli.known_model import TOPICS, save_topics

LABELLED = [
    ("war", "the war"),
    ("film", "a film"),
    ("film", "film and war and war"),
    ("song", "song"),
    ("film", "film"),
]
"""The third is answered wrongly."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("topics")
    save_topics(folder)
    return folder


def as_fasttext(rows: list[tuple[str, str]]) -> str:
    return "".join(f"__label__{label} {text}\n" for label, text in rows)


def as_json(rows: list[tuple[str, str]]) -> str:
    return "".join(json.dumps({"label": label, "text": text}) + "\n" for label, text in rows)


def as_csv(rows: list[tuple[str, str]]) -> str:
    return "".join(f"{label},{text}\n" for label, text in rows)


@pytest.mark.parametrize("way", [as_fasttext, as_json, as_csv])
def test_answers_are_compared_with_the_labels_of_the_files(
    way: Callable[..., str], told: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "in").write_text(way(LABELLED))
    answers, together = told("in")
    assert [each["label"] for each in answers] == ["war", "film", "war", "song", "film"]
    scores = together["scores"]
    assert scores.pop("confusion") == {"classes": list(TOPICS), "counts": [[1, 0, 0], [1, 2, 0], [0, 0, 1]]}
    f1 = (2 / 3 + 4 / 5 + 1) / 3
    expected = {"accuracy": 4 / 5, "majority": 3 / 5, "balanced_accuracy": (1 + 2 / 3 + 1) / 3, "macro_f1": f1}
    assert scores == pytest.approx(expected)
    assert (together["other_labels"], together["unknown"], together["not_scored"]) == (0, 0, None)


def test_a_person_sees_the_scores_and_the_matrix(said: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in").write_text(as_fasttext([*LABELLED, ("sport", "film"), ("war", "the")]))
    status, out, err = said("in")
    assert (status, len(out.splitlines())) == (0, 7)
    lines = [line.split() for line in err.splitlines()]
    assert " ".join(lines[0]) == "scored 5 texts; left out: 1 unknown, 1 of labels that the model does not know"
    assert [line[:2] for line in lines[1:4]] == [["accuracy", "80.0%"], ["balanced", "accuracy"], ["macro-F1", "0.822"]]
    assert lines[4:] == [["predicted", "as", *TOPICS], ["war", *"100"], ["film", *"120"], ["song", *"001"]]
    assert "warning" not in err


def test_texts_of_labels_that_the_model_does_not_know_are_answered_and_counted(
    told: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "in.json").write_text(as_json([("sport", "a film"), *LABELLED, ("news", "war"), ("sport", "the")]))
    answers, together = told("in.json")
    assert [each["label"] for each in answers] == ["film", "war", "film", "war", "song", "film", "war", "unknown"]
    assert (together["other_labels"], together["unknown"], together["malformed"]) == (3, 1, 0)
    assert together["scores"]["accuracy"] == 4 / 5


def test_labels_of_which_the_model_knows_none_are_an_error_after_the_answers(
    said: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "in").write_text(as_fasttext([("sport", "film"), ("news", "war")]))
    status, out, err = said("in")
    assert (status, [line.split("\t")[0] for line in out.splitlines()]) == (1, ["film", "war"])
    sentence = (
        "the model knows none of the labels of the input, such as '__label__sport' (1), '__label__news' (1); name"
    )
    assert sentence in " ".join(err.split())
    assert said("in", "--output", "answers.tsv")[0] == 1
    assert not (tmp_path / "answers.tsv").exists()


def test_texts_without_labels_are_answered(told: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"text": "film"}\n{"text": "war"}\n')
    answers, together = told("in.json")
    assert [each["label"] for each in answers] == ["film", "war"]
    assert (together["scores"], together["other_labels"]) == (None, 0)
    assert "--label-field" in together["not_scored"]
    (tmp_path / "plain.txt").write_text("film\n\n")
    answers, together = told("plain.txt")
    assert [each["label"] for each in answers] == ["film", "unknown"]
    assert (together["scores"], together["not_scored"]) == (None, None)


def test_ratings_are_not_compared_unless_they_are_named_as_labels(told: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"text": "film", "overall": 5}\n')
    answers, together = told("in.json")
    assert (answers[0]["label"], together["scores"]) == ("film", None)
    assert "the classes are those of labels, but " in together["not_scored"]
    assert "has ratings (overall); name the field of the labels by --label-field" in together["not_scored"]
