"""Scores of `shoal evaluate` match their definitions."""

from math import log
from typing import Any

import pytest

from corpus.dataset_settings import Settings
from corpus.reading.formats import OTHER, LabelEncoder, MalformedLineError

# The modules under test import torch, which takes longer than all tests of this file.


def no_answers(**options: Any) -> Any:
    from shoal.prediction.scores import ScoredAnswers

    return ScoredAnswers(**options)


def predicted(label: int | str | None, probabilities: tuple[float, ...]) -> Any:
    from trainer.classification.labelling import Prediction

    return Prediction(label, probabilities)


def test_scores_of_two_classes_by_ratings() -> None:
    answers = no_answers()
    pairs = [(1, 0.1), (1, 0.4), (5, 0.9), (5, 0.2), (4, 1.0)]  # ratings, and probabilities of positive
    answers.add(
        [*(code for code, _ in pairs), 1],
        [*(predicted(int(p > 0.5), (1 - p, p)) for _, p in pairs), predicted(None, (0.5, 0.5))],
    )
    scores = answers.scores(Settings(), ("negative", "positive"))
    assert answers.unknown == 1
    assert scores["accuracy"] == 0.8
    assert scores["log_loss"] == pytest.approx(-sum(map(log, (0.9, 0.6, 0.9, 0.2, 1.0))) / 5)
    assert scores["classes"]["positive"] == {"precision": 1.0, "recall": pytest.approx(2 / 3), "f1": 0.8, "texts": 3}
    assert scores["classes"]["negative"]["precision"] == pytest.approx(2 / 3)
    assert scores["confusion"]["counts"] == [[2, 0], [1, 2]]
    assert [(each["from"], each["texts"], each["right"]) for each in scores["calibration"]] == [
        (0.6, 1, 1.0),
        (0.8, 1, 0.0),
        (0.9, 3, 1.0),
    ]
    errors = 0.4 + 0.8 + 3 * (1 - (0.9 + 0.9 + 1.0) / 3)
    assert scores["calibration_error"] == pytest.approx(errors / 5)


@pytest.mark.parametrize(("probability", "start"), [(0.79, 0.7), (0.88, 0.8), (1.0, 0.9)])
def test_a_probability_counts_in_the_bin_that_starts_below_it(probability, start) -> None:
    answers = no_answers()
    answers.add([5], [predicted(1, (1 - probability, probability))])
    assert [each["from"] for each in answers.scores(Settings(), ("negative", "positive"))["calibration"]] == [start]


def test_scores_of_named_classes_leave_out_other_labels_and_name_classes_that_are_never_predicted() -> None:
    answers = no_answers(classes=("war", "film", "song"))
    answers.add(
        [0, 1, OTHER],
        [predicted("war", (0.8, 0.1, 0.1)), predicted("war", (0.5, 0.5, 0.0)), predicted("film", (0, 1, 0))],
    )
    scores = answers.scores(Settings(ragged=True), answers.classes)
    assert (answers.others, scores["accuracy"]) == (1, 0.5)
    assert scores["log_loss"] == pytest.approx(-(log(0.8) + log(0.5)) / 2)
    assert scores["classes"]["film"] == {"precision": None, "recall": 0.0, "f1": 0.0, "texts": 1}
    assert scores["classes"]["song"] == {"precision": None, "recall": None, "f1": 0.0, "texts": 0}


def test_a_text_without_a_known_rating_is_not_scored() -> None:
    codes = LabelEncoder(Settings(), others=True)
    assert [codes.encode(value) for value in (5, "6", None, "x")] == [5, OTHER, OTHER, OTHER]
    assert codes.encode_missing() == OTHER
    with pytest.raises(MalformedLineError, match="no_rating"):
        LabelEncoder(Settings()).encode_missing()
    answers = no_answers()
    answers.add([5, OTHER, OTHER], [predicted(1, (0.1, 0.9)), predicted(0, (0.9, 0.1)), predicted(None, (0.5, 0.5))])
    assert (answers.others, answers.unknown, dict(answers.counts)) == (1, 1, {(5, 1, 9): 1})
