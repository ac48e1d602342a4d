"""The lines of answers, for two classes and for more."""

import json
from io import StringIO

import pytest

from bootstrap.cli.answer_lines import AnswerForm
from trainer.classification.labelling import Prediction

THREE = ("sport", "art", "trade")
ANSWERS = [Prediction("art", (0.125, 0.625, 0.25)), Prediction(None, (1 / 3,) * 3)]


def lines(**form: bool) -> str:
    out = StringIO()
    answers = AnswerForm(THREE, **{"probabilities": False, "as_json": False, **form}, keep=())
    answers.write(out, ["a\tpicture", "the"], ANSWERS)
    return out.getvalue()


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        (False, "art\t0.6250\ta picture\nunknown\t0.3333\tthe\n"),
        (True, "art\t0.1250\t0.6250\t0.2500\ta picture\nunknown\t0.3333\t0.3333\t0.3333\tthe\n"),
    ],
)
def test_a_class_has_its_name_and_its_probability(probabilities: bool, expected: str) -> None:
    assert lines(probabilities=probabilities) == expected


def test_an_object_names_all_classes() -> None:
    first, _ = map(json.loads, lines(probabilities=True, as_json=True).splitlines())
    assert first == {
        "label": "art",
        "probability": 0.625,
        "probabilities": {"sport": 0.125, "art": 0.625, "trade": 0.25},
        "text": "a\tpicture",
    }
