"""Generates rows with the lengths and word frequencies of reviews: 21 million in some seconds.

A quarter of the words depend on the label, so that a run can learn. No word may be very frequent: a GPU would wait for
its row of the word table. Reviews without stopwords have no such word.
"""

import numpy as np
import numpy.typing as npt
import torch

from corpus.text import FIRST_WORD
from trainer.classification.data import TextData
from trainer.classification.losses import Scale
from trainer.classification.rows import Rows, TextRows

ROW_LENGTH, VOCABULARY = 100, 10_000

_SHIFT, _EXPONENT = 30.0, 1.15  # frequency ~ 1 / (rank + shift) ** exponent, for words that are not stopwords
_SLOTS = 1 << 20
_POSITIVE = 0.8
_CHUNK = 1 << 19


def row_lengths(generator: np.random.Generator, count: int) -> npt.NDArray[np.uint16]:
    """Return numbers of words of rows, (count,), from 1 to ROW_LENGTH, as in reviews without stopwords."""
    return np.minimum(1 + generator.lognormal(3.4, 0.9, count), ROW_LENGTH).astype(np.uint16)


def make_rows(count: int, device: torch.device, *, seed: int = 0) -> TextRows:
    """Return `count` rows on the host, drawn on `device`."""
    host = np.random.default_rng(seed)
    lengths = row_lengths(host, count)
    labels = (host.random(count, dtype=np.float32) < _POSITIVE).astype(np.uint8)
    slots = _words_by_frequency(host).to(device)  # (_SLOTS,)
    generator = torch.Generator(device).manual_seed(seed)
    tokens = np.empty((count, ROW_LENGTH), dtype=np.uint16)
    places = torch.arange(ROW_LENGTH, device=device)
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        drawn = torch.randint(4 * _SLOTS, (size, ROW_LENGTH), generator=generator, device=device, dtype=torch.int32)
        words = slots[drawn % _SLOTS]
        label = torch.from_numpy(labels[start : start + size]).to(device)[:, None]
        words = torch.where(drawn < _SLOTS, (words & ~1) | label, words)  # a quarter of the words
        own = torch.from_numpy(lengths[start : start + size].astype(np.int64)).to(device)[:, None]
        tokens[start : start + size] = (words * (places < own)).to(torch.int16).cpu().numpy().view(np.uint16)
    return TextRows(tokens=tokens, lengths=lengths, labels=labels, ratings=4 * labels + 1)


def make_data(rows: Rows, *, validation: int, test: int) -> TextData:
    """Split rows: the first `validation` rows, then `test` rows, and the rest to learn from."""
    return TextData(
        training=rows[validation + test :],
        validation=rows[:validation],
        test=rows[validation : validation + test],
        vocabulary=[f"w{number}" for number in range(VOCABULARY)],
        stopwords=frozenset(),
        row_length=ROW_LENGTH,
        scale=Scale(1, 5, 4),
        rating_steps=1,
        rating_fraction=False,
        digest="0" * 32,
    )


def _words_by_frequency(generator: np.random.Generator) -> torch.Tensor:
    """Return ids, (_SLOTS,), each in proportion to its word's frequency."""
    frequency = (np.arange(VOCABULARY) + _SHIFT) ** -_EXPONENT
    ids = generator.choice(VOCABULARY, _SLOTS, p=frequency / frequency.sum()) + FIRST_WORD
    return torch.from_numpy(ids.astype(np.int32))
