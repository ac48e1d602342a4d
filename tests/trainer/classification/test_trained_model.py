"""Checks of model files: wrong content is refused with a sentence before memory of the stated size is allocated."""

import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError, TrainingError
from tests.trainer.classification.made_models import random_model
from trainer.classification import models
from trainer.classification.labelling import Labeller
from trainer.classification.trained_model import build_unfilled, load_weights
from trainer.config import TrainConfig
from trainer.output.archive import DamagedError

OWN = TrainConfig(data=Path("d"), output=Path("o"), embedding=4, hidden=3).model_settings("lstm", words=5, outputs=5)
MODEL = random_model()
STATE = MODEL.classifier.state_dict()
NUMBERS = sum(tensor.numel() for tensor in STATE.values())
REFUSED = (DamagedError, DataError, LookupError, TrainingError, TypeError, ValueError)
"""Exceptions that the reader of a model's folder converts to one sentence."""


def content() -> dict[str, Any]:
    """Return the plain values of a model."""
    return {
        "name": MODEL.name,
        "settings": dict(MODEL.settings),
        "loss": MODEL.loss.plain(),
        "vocabulary": list(MODEL.ids),
        "words": MODEL.words,
        "stopwords": sorted(MODEL.stopwords),
        "row_length": MODEL.row_length,
        "classes": list(MODEL.classes),
        "about": {name: dict(value) if isinstance(value, dict) else value for name, value in MODEL.about.items()},
    }


@given(
    st.fixed_dictionaries(
        {
            **{name: st.integers(1, 9) for name in ("words", "outputs", "embedding", "hidden")},
            "layers": st.integers(1, 4),
            "pooling": st.sampled_from(["last", "mean", "mean+words"]),
        }
    )
)
@settings(max_examples=30)
def test_count_weights_equals_the_number_of_weights(chosen: dict[str, Any]) -> None:
    whole = {**OWN, **chosen}
    built = models.build("lstm", whole).state_dict()
    assert models.kind("lstm").count_weights(whole) == sum(tensor.numel() for tensor in built.values())


LEFT_OUT = object()
"""Marks a value that the file lacks."""
WRONG: list[tuple[str, Any, str]] = [
    *(
        (name, LEFT_OUT, f"`{name}` is missing")
        for name in ("name", "settings", "loss", "vocabulary", "words", "stopwords", "row_length", "classes", "about")
    ),
    ("words", "runes", "its tokenisation rule is 'runes', but this version"),
    ("classes", ["a", "b", "c"], "it has 3 class names, but its"),
    ("about.test", {"loss": float("nan")}, "JSON"),
    ("about.test", [], "its measures are not a JSON object"),
    ("name", "oracle", "its model is oracle, but must be one of linear"),
    ("name", "../x", "its model is ../x, but must be"),
    ("settings.colour", "red", "'colour' is not a known field"),
    ("settings.seed", 3, "'seed' is not a known field"),
    ("settings.hidden", LEFT_OUT, "its settings are invalid"),
    ("settings.hidden", "3", "hidden is not of type int"),
    ("settings.hidden", 3.0, "hidden is not of type int"),
    ("settings.hidden", 4, "its number of weights does not match"),
    ("settings.hidden", 8192, "its number of weights does not match"),
    ("settings.embedding", 10**9, "--embedding is 1000000000, but must be from 1 to 8192"),
    ("settings.layers", 10**9, "--layers is 1000000000, but must be from 1 to 64"),
    ("settings.layers", 64, "its number of weights does not match"),
    ("settings.pooling", "max", "--pooling is max, but must be one of"),
    ("settings.words", 10**12, "its number of words or outputs does not match its settings"),
    ("settings.outputs", 10**12, "its number of words or outputs does not match"),
    ("settings.words", "five", "its number of words or its number of outputs is not"),
    ("vocabulary", [*MODEL.ids, "more"], "its number of words or outputs"),
    ("vocabulary", ["bad", "bad", "song"], "or a repeated word"),
    ("vocabulary", [7, "bad", "song"], "an invalid or a repeated word"),
    ("vocabulary", [["x"], "bad", "song"], "an invalid or a repeated word"),
    ("stopwords", ["the", "\x1b[2J"], "an invalid or a repeated word"),
    ("row_length", 0, "the row length is 0"),
    ("row_length", 10**12, "the row length is 1000000000000"),
    ("row_length", True, "row_length is not of type int"),
    ("loss.kind", "luck", "its loss is 'luck', which is unknown"),
    ("loss.kind", [], r"its loss is \[\], which is unknown"),
    ("loss.scale", [1, 5], "its rating scale is not a list of three integers"),
    ("loss.scale", ["1", "5", "4"], "its rating scale is not a list of three integers"),
    ("loss.scale", [1, 5, 1], "its rating scale does not have two classes"),
    *(
        ("loss.positive_weight", wrong, "its weight of positive rows is not a number above 0")
        for wrong in (float("nan"), 10**400)
    ),
    *(  # torch cannot divide by the last two
        ("loss.temperature", wrong, "its temperature is not a number above 0")
        for wrong in (0.0, float("inf"), LEFT_OUT, 2**64, 5e-324)
    ),
    *(("loss.threshold", wrong, "its threshold is not a number between 0 and 1") for wrong in (1, "0.5", LEFT_OUT)),
    *(
        ("loss.classes", wrong, "its number of classes is not an integer of at least 2")
        for wrong in (1, "two", LEFT_OUT)
    ),
    ("loss.classes", 3, "its loss is cross-entropy with a weight of 0.5, which is not a loss"),
    (
        "loss",
        {**MODEL.loss.plain(), "kind": "softmax", "positive_weight": 1.0, "classes": 10**12},
        "its number of words",
    ),
]


@pytest.mark.parametrize(("place", "value", "sentence"), WRONG)
def test_invalid_model_files_are_refused_in_little_memory(place: str, value: Any, sentence: str) -> None:
    held = inside = content()
    *outer, name = place.split(".")
    for each in outer:
        inside = inside[each]
    inside[name] = value
    if value is LEFT_OUT:
        del inside[name]
    tracemalloc.start()
    with pytest.raises(REFUSED, match=sentence):
        build_unfilled(held, NUMBERS)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150)
@given(data=st.data())
def test_any_model_file_is_refused_or_can_predict(data: st.DataObject) -> None:
    held = content()
    for _ in range(data.draw(st.integers(1, 2))):
        place = held
        name = data.draw(st.sampled_from(sorted(place)))
        if isinstance(place[name], dict) and data.draw(st.booleans()):
            place = place[name]
            name = data.draw(st.sampled_from(sorted(place, key=str))) if place else "x"
        place[name] = data.draw(PLAIN)
    with suppress(*REFUSED):
        model = load_weights(build_unfilled(held, NUMBERS), STATE)
        assert all(0 <= each.probability <= 1 for each in Labeller(model)(["good song", "bad", "song bad good"]))
