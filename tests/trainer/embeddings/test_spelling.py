"""Words are read by their characters, also words that no run has seen."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainer.embeddings.char_lstm import LONGEST, MOST_CHARACTERS, Spelling

WORDS = st.lists(st.text(min_size=1, max_size=2 * LONGEST), min_size=1, max_size=6)


@given(WORDS, WORDS)
def test_every_word_has_a_number_for_each_of_its_characters(known: list[str], asked: list[str]) -> None:
    spelling = Spelling.of(known)
    letters = spelling.letters(asked)
    assert letters.shape == (len(asked), LONGEST)
    assert (letters > 0).sum(1).tolist() == [min(len(word), LONGEST) for word in asked]
    assert letters.max() < spelling.size


@given(WORDS)
def test_words_that_differ_are_spelt_differently_as_long_as_they_are_read(words: list[str]) -> None:
    letters = Spelling.of(words).letters(words)
    for word, row in zip(words, letters, strict=True):
        assert [np.array_equal(row, other) for other in letters] == [word[:LONGEST] == each[:LONGEST] for each in words]


def test_the_most_frequent_characters_have_numbers_of_their_own_and_the_others_share_one() -> None:
    many = [chr(0x4E00 + number) for number in range(MOST_CHARACTERS)]
    spelling = Spelling.of(["ba", "b", *many, *many])
    assert len(spelling.characters) == MOST_CHARACTERS
    assert "a" not in spelling.characters
    one, other, known = spelling.letters(["a", "z", many[0]])[:, 0].tolist()
    assert one == other != known


def test_the_numbers_of_characters_are_those_of_the_format_of_an_encoder() -> None:
    spelling = Spelling("abc")
    assert spelling.letters(["cabx"])[0, :5].tolist() == [4, 2, 3, 1, 0]
    assert spelling.size == 5


def test_a_character_that_is_not_known_counts_as_its_lower_case_form() -> None:
    spelling = Spelling.of(["word", "USA"])
    lower, upper, mixed = spelling.letters(["word", "WORD", "usa"])
    assert lower.tolist() == upper.tolist()
    assert mixed.tolist() != spelling.letters(["USA"])[0].tolist()
