"""What a model's files claim of it is refused with a sentence before anything of the claimed size is built."""

import tracemalloc
from collections.abc import Callable
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
from trainer.classification.trained_model import fill, unfilled
from trainer.config import TrainConfig
from trainer.output.archive import DamagedError

OWN = TrainConfig(data=Path("d"), output=Path("o"), embedding=4, hidden=3).model_settings("lstm", words=5, outputs=5)
MODEL = random_model()
STATE = MODEL.classifier.state_dict()
NUMBERS = sum(tensor.numel() for tensor in STATE.values())
REFUSED = (DamagedError, DataError, LookupError, TrainingError, TypeError, ValueError)
"""What the reader of a model's folder makes one sentence of."""


def content() -> dict[str, Any]:
    """The plain values of a model."""
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
def test_a_model_says_how_many_weights_it_has(chosen: dict[str, Any]) -> None:
    whole = {**OWN, **chosen}
    built = models.build("lstm", whole).state_dict()
    assert models.weights("lstm", whole) == sum(tensor.numel() for tensor in built.values())


def settled(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda held: held["settings"].update(changes)


def lost(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda held: held["loss"].update(changes)


HARM: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    **{
        f"no {name}": (lambda held, name=name: held.pop(name) and None, f"it has no {name}")
        for name in ("name", "settings", "loss", "vocabulary", "words", "stopwords", "row_length", "classes", "about")
    },
    "another rule of words": (lambda held: held.update(words="runes"), "its rule of words is 'runes', and this Shoal"),
    "names of other classes": (lambda held: held.update(classes=["a", "b", "c"]), "it has 3 names of classes, and its"),
    "measures that JSON cannot hold": (lambda held: held["about"].update(test={"loss": float("nan")}), "JSON"),
    "a list as measures": (lambda held: held["about"].update(test=[]), "its measures are not a table"),
    "another model": (lambda held: held.update(name="oracle"), "its model is oracle, but must be one of lstm"),
    "a path as model": (lambda held: held.update(name="../x"), "its model is ../x, but must be"),
    "an unknown setting": (settled(colour="red"), "'colour' is not a known field"),
    "an option of runs": (settled(seed=3), "'seed' is not a known field"),
    "a setting less": (lambda held: held["settings"].pop("hidden") and None, "its settings are not those of a model"),
    "a text as size": (settled(hidden="3"), "hidden is not of type int"),
    "half a size": (settled(hidden=3.0), "hidden is not of type int"),
    "another size": (settled(hidden=4), "the number of its weights is not that of"),
    "a model that fills the memory": (
        settled(hidden=8192, layers=64),
        "the number of its weights is not that of",
    ),
    "a huge size": (settled(embedding=10**9), "--embedding is 1000000000, but must be from 1 to 8192"),
    "endless layers": (settled(layers=10**9), "--layers is 1000000000, but must be from 1 to 64"),
    "some layers more": (settled(layers=9), "the number of its weights is not that of"),
    "another pooling": (settled(pooling="max"), "--pooling is max, but must be one of"),
    "words without end": (settled(words=10**12), "the number of its words or its outputs is not that of its settings"),
    "outputs without end": (settled(outputs=10**12), "the number of its words or its outputs is not that"),
    "words in letters": (settled(words="five"), "its words or its outputs are not numbers"),
    "a word more": (lambda held: held["vocabulary"].append("more"), "the number of its words or its outputs"),
    "a word twice": (lambda held: held["vocabulary"].__setitem__(0, "bad"), "or a word twice"),
    "a number as word": (lambda held: held["vocabulary"].__setitem__(0, 7), "an entry that is not a word"),
    "a list as word": (lambda held: held["vocabulary"].__setitem__(0, ["x"]), "an entry that is not a word"),
    "a command": (lambda held: held["stopwords"].append("\x1b[2J"), "an entry that is not a word"),
    "no row length": (lambda held: held.update(row_length=0), "the row length is 0"),
    "a huge row length": (lambda held: held.update(row_length=10**12), "the row length is 1000000000000"),
    "a row length of yes": (lambda held: held.update(row_length=True), "row_length is not of type int"),
    "another loss": (lost(kind="luck"), "its loss is 'luck', which is unknown"),
    "a list as loss": (lost(kind=[]), r"its loss is \[\], which is unknown"),
    "two ratings": (lost(scale=[1, 5]), "its ratings are not a scale"),
    "ratings in letters": (lost(scale=["1", "5", "4"]), "its ratings are not a scale"),
    "one class": (lost(scale=[1, 5, 1]), "its ratings are not a scale of two classes"),
    "no weight": (lost(positive_weight=float("nan")), "its weight of positive rows is not a number above 0"),
    "no temperature": (lost(temperature=0.0), "its temperature is not a number above 0"),
    "an endless temperature": (lost(temperature=float("inf")), "its temperature is not a number above 0"),
    "a temperature that torch cannot divide by": (lost(temperature=2**64), "its temperature is not a number above 0"),
    "a temperature next to nothing": (lost(temperature=5e-324), "its temperature is not a number above 0"),
    "a weight that is no float": (lost(positive_weight=10**400), "its weight of positive rows is not a number above 0"),
    "a threshold of all": (lost(threshold=1), "its threshold is not a number between 0 and 1"),
    "a threshold in letters": (lost(threshold="0.5"), "its threshold is not a number between 0 and 1"),
    "a class less": (lost(classes=1), "its classes are not a number of at least 2"),
    "classes in letters": (lost(classes="two"), "its classes are not a number of at least 2"),
    **{
        f"a loss without {name}": (lambda held, name=name: held["loss"].pop(name) and None, sentence)
        for name, sentence in (
            ("classes", "its classes are not a number of at least 2"),
            ("temperature", "its temperature is not a number above 0"),
            ("threshold", "its threshold is not a number between 0 and 1"),
        )
    },
    "a loss of two for three": (lost(classes=3), "its loss is cross-entropy with a weight of 0.5, which is not one of"),
    "classes without end": (
        lost(kind="softmax", positive_weight=1.0, classes=10**12),
        "the number of its words or its outputs is not that of its settings",
    ),
}


@pytest.mark.parametrize("kind", HARM)
def test_what_a_model_cannot_be_is_refused_in_little_memory(kind: str) -> None:
    harm, sentence = HARM[kind]
    held = content()
    harm(held)
    tracemalloc.start()
    with pytest.raises(REFUSED, match=sentence):
        unfilled(held, NUMBERS)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150)
@given(data=st.data())
def test_whatever_a_model_claims_it_is_refused_or_can_predict(data: st.DataObject) -> None:
    held = content()
    for _ in range(data.draw(st.integers(1, 2))):
        place = held
        name = data.draw(st.sampled_from(sorted(place)))
        if isinstance(place[name], dict) and data.draw(st.booleans()):
            place = place[name]
            name = data.draw(st.sampled_from(sorted(place, key=str))) if place else "x"
        place[name] = data.draw(PLAIN)
    with suppress(*REFUSED):
        model = fill(unfilled(held, NUMBERS), STATE)
        assert all(0 <= each.probability <= 1 for each in Labeller(model)(["good song", "bad", "song bad good"]))
