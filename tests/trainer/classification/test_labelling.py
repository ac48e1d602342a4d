"""Labelling: the prediction for a text depends neither on other texts nor on the speed."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.classification.made_models import random_model
from trainer.classification import labelling
from trainer.classification.labelling import Labeller, Prediction

WORDS = ["good", "bad", "song"]
MANY = 1 << 40
"""Number of letters above which the fast encoder is used."""


@pytest.fixture(scope="module")
def model():
    return random_model(kind="bce")


@pytest.fixture(params=[0, MANY], ids=["plain", "fast"])
def label(model, request):
    return Labeller(model, expected=request.param)


def test_texts_are_tokenised_like_the_training_texts(label):
    plain, dressed = label(["good song", "  The GOOD, the &lt;song&gt;!"])
    assert plain.label == dressed.label
    assert plain.probabilities == pytest.approx(dressed.probabilities, abs=1e-6)


def test_a_text_without_a_known_word_has_no_label(label):
    texts = ["zebra lamp", "", "the", "12345 !?", "the The THE"]
    *unlabelled, last = label([*texts, "good zebra"])
    assert unlabelled == label(texts) == [Prediction(None, (0.5, 0.5))] * 5
    assert last.label is not None


@settings(max_examples=50)
@given(texts=st.lists(st.lists(st.sampled_from([*WORDS, "the", "zebra"]), max_size=6).map(" ".join), max_size=40))
def test_other_texts_batches_and_threads_do_not_change_a_prediction(model, texts):
    alone = [Labeller(model)([text])[0] for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labelling, "_BATCH_WORDS", 7)
        for expected, threads in ((0, 1), (MANY, 1), (0, 3)):
            together = Labeller(model, expected=expected, threads=threads)(texts)
            assert [p.label for p in together] == [p.label for p in alone]
            assert [p.probability for p in together] == pytest.approx([p.probability for p in alone], abs=1e-6)


def test_a_repeated_text_is_computed_once(model, monkeypatch):
    seen = []

    def forward(tokens, lengths):
        seen.extend(tokens.tolist())
        return torch.zeros(len(lengths), 1)

    monkeypatch.setattr(model.classifier, "forward", forward)
    assert len(Labeller(model)(["good", "bad song", "good", "good"])) == 4
    assert sorted(seen) == [[2, 0], [3, 4]]


def test_words_outside_the_vocabulary_count_as_unknown_words_and_only_the_first_words_of_a_row_count(label):
    assert label(["good zebra"]) == label(["good quagga"]) != label(["good"])
    assert label(["good bad good bad song"]) == label(["good bad good bad good good"])


FEW_THEN_MANY = """
import sys
from tests.trainer.classification.test_labelling import Labeller, labelling, random_model
label = Labeller(random_model(kind="bce"))
few = label(["good song"])
assert not {"numba", "h5py"} & sys.modules.keys()
labelling._FAST_FROM = 15
assert label(["good song"]) == few
assert "numba" in sys.modules
"""


def test_few_texts_do_not_load_the_fast_encoder():
    subprocess.run([sys.executable, "-c", FEW_THEN_MANY], check=True)


@pytest.mark.parametrize("expected", [0, MANY])
def test_with_named_classes_the_label_is_the_name_of_the_most_probable_one(expected):
    three = random_model(kind="softmax", classes=("sport", "art", "trade"))
    found = Labeller(three, 0.9, expected=expected)(["good", "bad", "song", "the", "good"])
    assert found[3] == Prediction(None, (1 / 3, 1 / 3, 1 / 3))
    assert found[0] == found[4]
    for each in (*found[:3], found[4]):
        assert sum(each.probabilities) == pytest.approx(1)
        assert each.label == three.classes[each.probabilities.index(max(each.probabilities))]
        assert each.probability == max(each.probabilities)
    assert len({each.label for each in found[:3]}) > 1
