"""Character model: spelling of words, and gradients of both implementations, compared with the definition."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpus.text import FIRST_WORD
from tests.trainer.embeddings.test_skipgram import WORDS, by_definition, rules
from trainer.clock import StepTimer
from trainer.computing.dropout import hashes
from trainer.embeddings.char_lstm import LONGEST, MOST_CHARACTERS, CharacterLoss, CharLSTM, EncoderSettings, Spelling
from trainer.embeddings.skipgram import SkipGram, SkipGramGradients

NAMES = ["a", "of", "sea", "fish", "shoal", "swim", "swims", "swam", "water", "underwater", "b", "fishes"]
ROWS = np.random.default_rng(3).integers(0, WORDS + FIRST_WORD, (5, 20)).astype(np.int32)


@pytest.fixture
def model():
    torch.manual_seed(0)
    characters = Spelling.of(NAMES).characters
    return CharLSTM(EncoderSettings(characters=characters, character_embedding=3, hidden=4, layers=2, size=7))


def loss_of(rows: np.ndarray) -> CharacterLoss:
    letters = np.zeros((FIRST_WORD + WORDS, LONGEST), np.int16)
    letters[FIRST_WORD:] = Spelling.of(NAMES).letters(NAMES)
    return CharacterLoss(rows, rules(), letters, seed=5, pairs_a_row=2.0)


def by_tables(model: CharLSTM, rows: np.ndarray, keys: np.ndarray) -> tuple[float, list[torch.Tensor]]:
    """Return the loss of pairs in tables that the model fills, and the gradients of its parameters."""
    letters = Spelling.of(NAMES).letters(NAMES)
    states = torch.cat([model(letters[number : number + 1]) for number in range(WORDS)])
    learned = SkipGram(WORDS + FIRST_WORD, 7)
    heads = model.centres(states), model.contexts(states)
    with torch.no_grad():
        for table, vectors in zip((learned.centres, learned.contexts), heads, strict=True):
            table[FIRST_WORD:] = vectors
    loss, _, gradients = by_definition(learned, rows, keys, rules())
    of_vectors = [each[FIRST_WORD:].float() for each in gradients]
    return loss.item(), list(torch.autograd.grad(heads, list(model.parameters()), of_vectors))


@pytest.fixture(params=["numba", "torch"])
def way(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(SkipGramGradients, "_by_numba", SkipGramGradients._by_torch)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_gradients_equal_those_of_the_pair_loss(model):
    numbers = np.array([0, 3, 4])
    loss = loss_of(ROWS)(model, numbers, 9, StepTimer())
    expected, gradients = by_tables(model, ROWS[numbers], hashes(5, 9, numbers))
    assert 2.0 * loss.item() == pytest.approx(expected, rel=1e-4)
    found = torch.autograd.grad(loss, list(model.parameters()))
    for own, other in zip(found, gradients, strict=True):
        assert torch.allclose(2.0 * own, other, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("way")
def test_rows_without_words_have_no_loss_and_gradients_of_zero(model):
    loss = loss_of(np.zeros_like(ROWS))(model, np.array([0, 2]), 1, StepTimer())
    assert loss.item() == 0.0
    assert all(not each.any() for each in torch.autograd.grad(loss, list(model.parameters())))
    assert loss_of(ROWS).sums(model, ROWS[:0], hashes(5, 1, np.arange(0))) == (0.0, 0)


SPELLED = st.lists(st.text(min_size=1, max_size=2 * LONGEST), min_size=1, max_size=6)


@given(SPELLED, SPELLED)
def test_every_character_of_a_word_has_a_number_and_different_words_have_different_spellings(known, asked):
    spelling = Spelling.of(known)
    letters = spelling.letters(asked)
    assert letters.shape == (len(asked), LONGEST)
    assert (letters > 0).sum(1).tolist() == [min(len(word), LONGEST) for word in asked]
    assert letters.max() < spelling.size
    rows = spelling.letters(known)
    for word, row in zip(known, rows, strict=True):
        assert [np.array_equal(row, other) for other in rows] == [word[:LONGEST] == each[:LONGEST] for each in known]


def test_the_most_frequent_characters_have_own_numbers_and_the_others_share_one():
    many = [chr(0x4E00 + number) for number in range(MOST_CHARACTERS)]
    spelling = Spelling.of(["ba", "b", *many, *many])
    assert len(spelling.characters) == MOST_CHARACTERS
    assert "a" not in spelling.characters
    one, other, known = spelling.letters(["a", "z", many[0]])[:, 0].tolist()
    assert one == other != known


def test_character_numbers_are_part_of_the_encoder_format_and_an_unknown_one_is_that_of_its_lower_case_form():
    spelling = Spelling("abc")
    assert spelling.letters(["cabx"])[0, :5].tolist() == [4, 2, 3, 1, 0]
    assert spelling.size == 5
    spelling = Spelling.of(["word", "USA"])
    lower, upper, mixed, known = spelling.letters(["word", "WORD", "usa", "USA"]).tolist()
    assert lower == upper
    assert mixed != known
