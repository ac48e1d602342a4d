"""The streams of a language model: every token once an epoch, windows that follow each other, both directions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.pretraining.made_language import rows as block_of
from trainer.classification.rows import RaggedRows, TextRows
from trainer.language.model import END
from trainer.pretraining.streams import TextStreams

TEXTS = st.lists(st.lists(st.integers(0, 23), min_size=1, max_size=12), min_size=3, max_size=30)


def ragged(texts: list[list[int]]) -> RaggedRows:
    block = block_of(texts)
    return RaggedRows(
        tokens=block.tokens,
        lengths=block.lengths,
        labels=block.labels,
        ratings=block.ratings,
        ends=block.lengths.cumsum(dtype=np.int64),
        row_length=400,
    )


def made(texts: list[list[int]], streams: int, window: int, *, words: int = 26, seed: int = 0) -> TextStreams:
    return TextStreams(ragged(texts), streams=streams, window=window, words=words, seed=seed)


def sequence(streams: TextStreams, epoch: int, *, backward: bool = False) -> list[list[int]]:
    """The tokens of each stream, window after window, and the one after the last."""
    found: list[list[int]] = [[] for _ in range(streams.streams)]
    for window in range(streams.steps):
        numbers = window * streams.streams + np.arange(streams.streams)
        for stream, tokens in enumerate(streams.read(numbers, epoch, backward=backward).tolist()):
            assert len(tokens) == streams.window_tokens(window) + 1
            assert not found[stream] or found[stream][-1] == tokens[0]
            found[stream] = [*found[stream][:-1], *tokens]
    return found


@given(TEXTS, st.integers(1, 6), st.integers(1, 20), st.integers(0, 3))
def test_an_epoch_has_each_token_once_but_for_fewer_than_there_are_streams(
    texts: list[list[int]], count: int, window: int, epoch: int
) -> None:
    streams = made(texts, count, window)
    whole = [token for stream in sequence(streams, epoch) for token in stream[:-1]]
    left = streams.tokens - len(whole)
    assert 0 <= left < streams.streams
    rest = streams.read(np.array([(streams.steps - 1) * streams.streams + streams.streams - 1]), epoch)
    assert streams.tokens == sum(map(len, texts)) + len(texts)
    texts_read = " ".join(map(str, whole)).split(f" {END} ")
    known = {" ".join(str(word + 2) for word in text) for text in texts}
    assert all(text in known for text in texts_read[1:-1])
    assert rest[0, -1] in {0, *range(2, 26)}


@given(TEXTS, st.integers(1, 6), st.integers(1, 20))
def test_backward_is_the_same_sequence_from_its_end(texts: list[list[int]], count: int, window: int) -> None:
    streams = made(texts, 1, window)
    (forward,), (backward,) = sequence(streams, 0), sequence(streams, 0, backward=True)
    assert backward[:-1] == forward[:-1][::-1]
    assert len(sequence(made(texts, count, window), 0, backward=True)) == min(count, streams.tokens)


def test_epochs_have_other_orders_and_a_seed_always_the_same() -> None:
    texts = [[number % 24] * 3 for number in range(50)]
    first, second = (sequence(made(texts, 2, 7), epoch) for epoch in (0, 1))
    assert first != second
    assert first == sequence(made(texts, 2, 7), 0)
    assert first != sequence(made(texts, 2, 7, seed=1), 0)


def test_words_beyond_the_vocabulary_are_unknown() -> None:
    tokens = made([[0, 23, 1]] * 8, 2, 4, words=10).read(np.arange(2), 0)
    assert set(tokens.flatten().tolist()) == {0, 1, 2, 3}


def test_fixed_rows_are_read_as_ragged_ones_are() -> None:
    texts = [[1, 2], [3], [4, 5, 6]]
    padded = np.array([[*[word + 2 for word in text], 0, 0][:3] for text in texts], np.uint16)
    lengths, labels = np.array([2, 1, 3], np.uint16), np.zeros(3, np.uint8)
    fixed = TextRows(tokens=padded, lengths=lengths, labels=labels, ratings=labels)
    streams = TextStreams(fixed, streams=2, window=3, words=26, seed=0)
    assert sequence(streams, 0) == sequence(made(texts, 2, 3), 0)
