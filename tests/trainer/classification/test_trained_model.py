"""Checks of model files: wrong content is refused with a sentence before memory of the stated size is allocated."""

import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError, TrainingError
from tests.trainer.classification.made_models import random_model
from tests.trainer.runs import changed
from trainer.classification import models
from trainer.classification.labelling import Labeller
from trainer.classification.models.lstm_options import LSTMOptions
from trainer.classification.trained_model import build_unfilled, load_weights
from trainer.output.archive import DamagedError

OWN = LSTMOptions(embedding=4, hidden=3).model_settings(words=5, outputs=5)
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


SIZES = {name: st.integers(1, 9) for name in ("words", "outputs", "embedding", "hidden")}
POOLINGS = st.sampled_from(["last", "mean+max+words"])


@given(st.fixed_dictionaries({**SIZES, "layers": st.integers(1, 4), "pooling": POOLINGS}))
@settings(max_examples=30)
def test_count_weights_equals_the_number_of_weights(chosen):
    whole = {**OWN, **chosen}
    built = models.build("lstm", whole).state_dict()
    assert models.kind("lstm").count_weights(whole) == sum(tensor.numel() for tensor in built.values())


WRONG = yaml.safe_load(Path(__file__).with_name("wrong_models.yaml").read_text())
WRONG["a weight beyond floats"] = {"loss.positive_weight": 10**400}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_invalid_model_files_are_refused_in_little_memory(changes, messages):
    held = changed(content(), changes)
    tracemalloc.start()
    with messages.raises(REFUSED):
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
def test_any_model_file_is_refused_or_can_predict(data):
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
