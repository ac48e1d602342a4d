"""Scores of `shoal evaluate` match their definitions."""

from math import log

import pytest

from bootstrap.prediction.scores import ScoredAnswers
from corpus.dataset_settings import Settings
from corpus.reading.formats import OTHER, LabelEncoder, MalformedLineError
from trainer.classification.labelling import Prediction


def test_scores_of_two_classes_by_ratings() -> None:
    answers = ScoredAnswers()
    pairs = [(1, 0.1), (1, 0.4), (5, 0.9), (5, 0.2), (4, 1.0)]  # ratings, and probabilities of positive
    answers.add(
        [*(code for code, _ in pairs), 1],
        [*(Prediction(int(p > 0.5), (1 - p, p)) for _, p in pairs), Prediction(None, (0.5, 0.5))],
    )
    found = answers.scores(Settings(), ("negative", "positive"))
    assert answers.unknown == 1
    assert found["accuracy"] == 0.8
    assert found["log_loss"] == pytest.approx(-sum(map(log, (0.9, 0.6, 0.9, 0.2, 1.0))) / 5)
    assert found["classes"]["positive"] == {"precision": 1.0, "recall": pytest.approx(2 / 3), "f1": 0.8, "texts": 3}
    assert found["classes"]["negative"]["precision"] == pytest.approx(2 / 3)
    assert found["confusion"]["counts"] == [[2, 0], [1, 2]]
    assert [(each["from"], each["texts"], each["right"]) for each in found["calibration"]] == [
        (0.6, 1, 1.0),
        (0.8, 1, 0.0),
        (0.9, 3, 1.0),
    ]
    errors = 0.4 + 0.8 + 3 * (1 - (0.9 + 0.9 + 1.0) / 3)
    assert found["calibration_error"] == pytest.approx(errors / 5)


def test_scores_of_named_classes_leave_out_other_labels_and_name_classes_that_are_never_predicted() -> None:
    answers = ScoredAnswers(classes=("war", "film", "song"))
    answers.add(
        [0, 1, OTHER],
        [Prediction("war", (0.8, 0.1, 0.1)), Prediction("war", (0.5, 0.5, 0.0)), Prediction("film", (0, 1, 0))],
    )
    found = answers.scores(Settings(ragged=True), answers.classes)
    assert (answers.others, found["accuracy"]) == (1, 0.5)
    assert found["log_loss"] == pytest.approx(-(log(0.8) + log(0.5)) / 2)
    assert found["classes"]["film"] == {"precision": None, "recall": 0.0, "f1": 0.0, "texts": 1}
    assert found["classes"]["song"] == {"precision": None, "recall": None, "f1": 0.0, "texts": 0}


def test_a_text_without_a_known_rating_is_not_scored() -> None:
    codes = LabelEncoder(Settings(), others=True)
    assert [codes.encode(value) for value in (5, "6", None, "x")] == [5, OTHER, OTHER, OTHER]
    assert codes.encode_missing() == OTHER
    with pytest.raises(MalformedLineError, match="no_rating"):
        LabelEncoder(Settings()).encode_missing()
    answers = ScoredAnswers()
    answers.add([5, OTHER, OTHER], [Prediction(1, (0.1, 0.9)), Prediction(0, (0.9, 0.1)), Prediction(None, (0.5, 0.5))])
    assert (answers.others, answers.unknown, dict(answers.counts)) == (1, 1, {(5, 1, 9): 1})
