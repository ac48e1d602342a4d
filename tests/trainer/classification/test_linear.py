"""Linear model: its n-grams, their ratios and its outputs equal those of a plain implementation."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpus.tokens import NGRAM_FACTOR, char_ngrams, token_hash
from trainer.classification import models
from trainer.classification.data import WeightedNgrams
from trainer.classification.models import linear, ngram_index
from trainer.classification.models import ngram_counts as module
from trainer.classification.models import ngrams as ngrams_module
from trainer.classification.models.linear import CHARACTERS, Linear
from trainer.classification.models.ngram_counts import CHARACTER_LENGTHS, fit_ngrams
from trainer.classification.rows import RaggedRows
from trainer.computing import row_gradients

WORDS = ["good", "not", "gold", "né", "日本", "!"]
TEXTS = st.lists(
    st.tuples(st.lists(st.integers(1, 1 + len(WORDS)), min_size=1, max_size=8), st.integers(0, 2)), min_size=1
)


SETTINGS = {"words": 2 + len(WORDS), "ngrams": 3, "outputs": 2}


def signed(number: int) -> int:
    number %= 2**64
    return number - 2**64 if number >= 2**63 else number


def word_hash(word: str) -> int:
    found = token_hash(word.encode())
    return found - 2**32 if found >= 2**31 else found


def key(number: int) -> int:
    return signed(signed(number) * module.SPREAD) & ~1023


def ngram_keys(text: Sequence[int]) -> Iterator[int]:
    """Return the keys of the n-grams of up to three words."""
    known = [word_hash(word) for word in ("", "", *WORDS)]
    for first in range(len(text)):
        found = known[text[first]]
        yield key(found)
        for other in text[first + 1 : first + 3]:
            found = found * NGRAM_FACTOR + known[other]
            yield key(found)


def char_keys(text: Sequence[int]) -> Iterator[int]:
    for word in text:
        if word > 1:
            yield from (
                key(2**40 + token_hash(each.encode())) for each in char_ngrams(WORDS[word - 2], CHARACTER_LENGTHS)
            )


def plain_ratios(of_texts: Sequence[tuple[Sequence[int], int]]) -> dict[int, float]:
    """Return the ratio of each n-gram that occurs twice, for texts with `keys` and a class."""
    counts = Counter((each, label) for keys, label in of_texts for each in keys)
    every = Counter(each for keys, _ in of_texts for each in keys)
    kept = [each for each, count in every.items() if count >= 2]
    classes = {label for _, label in of_texts}
    of_class = {label: sum(counts[each, label] for each in kept) for label in classes}
    whole = sum(of_class.values())

    def ratio(each, label):
        own = (1 + counts[each, label]) / (len(kept) + of_class[label])
        others = (1 + every[each] - counts[each, label]) / (len(kept) + whole - of_class[label])
        return abs(log(own / others)) * every[each] / (1 + every[each])

    return {each: max(ratio(each, label) for label in classes if counts[each, label]) for each in kept}


def rows_of(texts: Sequence[tuple[Sequence[int], int]]) -> RaggedRows:
    tokens = np.array([word for text, _ in texts for word in text], np.uint16)
    lengths, labels = np.array([len(text) for text, _ in texts]), np.array([label for _, label in texts], np.uint8)
    ends = lengths.cumsum()
    return RaggedRows(tokens=tokens, lengths=lengths, labels=labels, ratings=labels, ends=ends, row_length=9)


def ngrams_of(texts: Sequence[tuple[Sequence[int], int]], **how: int) -> WeightedNgrams:
    return fit_ngrams(rows_of(texts), WORDS, **{"ngrams": 3, **how})


@given(texts=TEXTS)
def test_ratios_of_ngrams_equal_those_of_the_plain_implementation(texts):
    keys, ratios, longest, _ = ngrams_of(texts)
    words, characters = ([([*keys_of(text)], label) for text, label in texts] for keys_of in (ngram_keys, char_keys))
    expected = plain_ratios(words) | plain_ratios(characters)
    assert longest == max(len(text) for text, _ in texts)
    assert keys.tolist() == [-(2**63), *sorted(expected)]
    assert dict(zip(keys[1:].tolist(), ratios[1:].tolist(), strict=True)) == pytest.approx(expected, rel=1e-5)


def test_counts_do_not_depend_on_when_they_are_merged(monkeypatch):
    chance = np.random.default_rng(0)
    texts = [(chance.integers(1, 8, 5).tolist(), int(chance.integers(2))) for _ in range(300)]
    together = ngrams_of(texts)
    for name, value in (("_CHUNK_WORDS", 50), ("_MOST_COUNTED", 2_000), ("BLOCK", 4)):
        monkeypatch.setattr(module, name, value)
    apart = ngrams_of(texts)
    assert apart.keys.tolist() == together.keys.tolist()
    assert apart.ratios.tolist() == together.ratios.tolist()


@pytest.mark.parametrize("most", [1, 2, 3, 6])
def test_the_most_frequent_ngrams_have_a_weight(most):
    texts = [([2, 2, 2, 2, 4, 4], 0), ([3, 3, 4], 1), ([2, 3], 1)]
    few = ngrams_of(texts, ngrams=1, most=most)
    assert len(few.keys) == 1 + most
    assert key(word_hash("good")) in few.keys
    assert len(ngrams_of(texts, ngrams=1).keys) > 7


def made(texts: Sequence[tuple[Sequence[int], int]]) -> tuple[Linear, WeightedNgrams]:
    found = ngrams_of(texts)
    settings = {**SETTINGS, "buckets": len(found.keys) + 2}
    model = models.build("linear", settings)
    numbers = sum(each.numel() for each in model.state_dict().values())
    assert numbers == models.kind("linear").count_weights(settings)
    model.set_ngrams(found, torch.zeros(2), torch.zeros(2))
    model.set_vocabulary(WORDS)
    torch.manual_seed(0)
    with torch.no_grad():
        torch.nn.init.normal_(model.weights).mul_(model.ratios > 0)  # otherwise they never learn
        torch.nn.init.normal_(model.bias)
        torch.nn.init.normal_(model.by_words)
    return model, found


@pytest.mark.parametrize("by", ["numba", "torch"])
@given(texts=TEXTS)
def test_outputs_equal_those_of_the_plain_implementation(by, texts):
    with pytest.MonkeyPatch.context() as patch:
        for each in (linear, ngrams_module, row_gradients):
            patch.setattr(each, "computed_by_numba", lambda _tensor: by == "numba")
        model, found = made(texts)
        tokens = torch.tensor([word for text, _ in texts for word in text], dtype=torch.int32)
        with torch.inference_mode():
            outputs = model(tokens, torch.tensor([len(text) for text, _ in texts]))
    rows = {each: row for row, each in enumerate(found.keys.tolist())}
    for (text, _), output in zip(texts, outputs, strict=True):
        expected = (model.bias + 2 * (sqrt(len(text) / 100) - 1) * model.by_words).detach()
        for share, keys in ((1.0, ngram_keys(text)), (CHARACTERS, char_keys(text))):
            known = [rows[each] for each in keys if each in rows]
            length = sqrt(sum(float(model.ratios[row]) ** 2 for row in known))
            if length:
                expected += share * model.weights.detach()[known].sum(0) / length / sqrt(2)
        torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)


def test_a_text_without_a_known_ngram_has_an_output_of_its_limited_length_and_no_ngram_gradient():
    model, _ = made([([2, 3, 2, 3], 0), ([4, 5, 4], 1)])
    unknown = torch.ones(4 + 400, dtype=torch.int32)
    longest, longer = model(unknown, torch.tensor([4, 400]))  # the longest training row has four words
    assert longest.tolist() == longer.tolist() != model.bias.tolist()
    longest.sum().backward()
    assert not model.weights.grad.to_dense().any()


def test_a_new_model_has_the_same_output_for_every_text_and_a_restored_model_its_ngrams():
    model, ngrams = made([([2, 3, 2, 3], 0), ([4, 5, 6], 1), ([4, 5], 1)])
    again = Linear(**SETTINGS, buckets=len(model.keys))
    again.set_ngrams(ngrams, torch.tensor([-0.5, 0.25]), torch.zeros(2))
    again.set_vocabulary(WORDS)
    rows = torch.tensor([2, 3, 4, 5, 1], dtype=torch.int32), torch.tensor([3, 2])
    assert again(*rows).tolist() == [[-0.5, 0.25]] * 2
    again.load_state_dict(model.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(again(*rows), model(*rows))


def test_strength_shrinks_the_outputs_except_in_training():
    model, ngrams = made([([2, 3, 2, 3], 0), ([4, 5, 6], 1), ([4, 5], 1)])
    base = torch.tensor([-0.5, 0.25])
    shrunk = Linear(**SETTINGS, buckets=len(model.keys))
    shrunk.set_ngrams(ngrams._replace(strength=0.2), base, base)
    shrunk.set_vocabulary(WORDS)
    shrunk.load_state_dict({**shrunk.state_dict(), "weights": model.weights.detach()})
    rows = torch.tensor([2, 3, 4, 5, 1], dtype=torch.int32), torch.tensor([3, 2])
    with torch.inference_mode():
        trained, evaluated = shrunk(*rows), shrunk.eval()(*rows)
    assert (trained - base).abs().min() > 0.01
    torch.testing.assert_close(evaluated, base + 0.2 * (trained - base))


HARMS = {
    "too few rows": ("rows", lambda rows: rows[:-1]),
    "a row that is too large": ("rows", lambda rows: rows + 1000),
    "negative rows": ("rows", lambda rows: rows - 1),
    "rows of another type": ("rows", lambda rows: rows.long()),
    "two dimensions": ("rows", lambda rows: rows[None]),
    "descending starts": ("starts", lambda starts: starts.flip(0)),
    "no rows of a word": ("starts", lambda starts: torch.cat([starts[:1], starts[:-2], starts[-1:]])),
    "starts of another vocabulary": ("starts", lambda starts: starts[1:]),
    "a word's row that is too large": ("own", lambda own: own + 1000),
    "a negative row of a word": ("own", lambda own: own - 1),
    "hashes of another vocabulary": ("hashes", lambda hashes: hashes[1:]),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_stored_tensors_of_the_vocabulary_are_used_unless_they_are_damaged(harm, messages):
    model, _ = made([([2, 3, 2, 3], 0), ([4, 5, 6], 1), ([4, 5], 1)])
    stored = {name: tensor.clone() for name, tensor in model.vocabulary_tensors().items()}
    model.restore_vocabulary(WORDS, stored)
    assert all(tensor is stored[name] for name, tensor in model.vocabulary_tensors().items())
    name, change = harm
    with messages.raises(ValueError):
        model.restore_vocabulary(WORDS, {**stored, name: change(stored[name])})


def test_setting_the_vocabulary_is_fast_before_ngrams_are_set():
    model = Linear(**SETTINGS, buckets=1000)
    model.set_vocabulary(WORDS)
    assert model.index.alike == 0


def test_ngrams_of_rows_on_another_device_are_counted():
    texts = [([2, 3, 2, 3], 0), ([4, 5, 4], 1)]
    here, there = rows_of(texts), rows_of(texts).copy_to(torch.device("meta"))
    found = (fit_ngrams(rows, WORDS, ngrams=3) for rows in (here, there))
    assert next(found).keys.tolist() == next(found).keys.tolist()


def test_unsorted_ngrams_in_a_file_are_refused(monkeypatch, messages):
    """Keys with equal prefixes would make the search take forever."""
    model, _ = made([([2, 3, 2, 3], 0), ([4, 5, 4], 1)])
    state = {name: each.clone() for name, each in model.state_dict().items()}
    monkeypatch.setattr(ngram_index, "_MOST_ALIKE", len(model.keys) - 1)
    for keys in (state["keys"].flip(0), torch.arange(len(model.keys))):
        with messages.raises(ValueError):
            model.load_state_dict({**state, "keys": keys})
