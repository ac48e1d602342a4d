"""Generates texts with the number, lengths and vocabulary size of Yelp polarity: half a million in some seconds.

Words follow Zipf's law with an exponent of 1, so that all 464,402 occur. The lowest bit of some ids is the label. So a
model of single words classifies about nineteen of twenty texts correctly, as it does with the real texts.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.gpu.rows import ROW_LENGTH, make_data
from corpus.text import FIRST_WORD
from trainer.classification.data import TextData
from trainer.classification.losses import Scale
from trainer.classification.rows import RaggedRows

WORDS = 464_402
TRAINING, TEST = 560_000, 38_000

_MEAN_WORDS, _LOG_SD, _MOST_WORDS = 133.0, 0.8, 1000
_LABEL_SHARE = 0.2
"""Share of the words that depend on the label."""
_BLOCK = 1 << 14


class Texts(NamedTuple):
    """Texts: `words` (T,) int32 from 0 to WORDS - 1, one text after the other; `lengths` (n,) uint32, the number of
    words; `labels` (n,) uint8."""

    words: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.uint32]
    labels: npt.NDArray[np.uint8]


def draw_texts(count: int, *, seed: int = 0) -> Iterator[Texts]:
    """Yield `count` texts in blocks."""
    generator = np.random.default_rng(seed)
    for start in range(0, count, _BLOCK):
        size = min(_BLOCK, count - start)
        drawn = generator.lognormal(math.log(_MEAN_WORDS) - _LOG_SD**2 / 2, _LOG_SD, size)
        lengths = np.clip(drawn, 1, _MOST_WORDS).astype(np.uint32)
        labels = generator.integers(0, 2, size, dtype=np.uint8)
        total = int(lengths.sum())
        ranks = np.exp(generator.random(total, dtype=np.float32) * np.float32(math.log(WORDS + 1)))  # 1 to WORDS
        words = np.minimum(ranks.astype(np.int32), WORDS) - 1
        depends_on_label = generator.random(total, dtype=np.float32) < _LABEL_SHARE
        words = np.where(depends_on_label, (words & ~1) | np.repeat(labels, lengths), words)
        yield Texts(words.astype(np.int32), lengths, labels)


def make_text_rows(count: int, *, seed: int = 0) -> RaggedRows:
    """Return `count` whole texts as rows."""
    words, lengths, labels = (np.concatenate(each) for each in zip(*draw_texts(count, seed=seed), strict=True))
    return RaggedRows(
        tokens=(words + FIRST_WORD).astype(np.uint32),
        lengths=lengths,
        labels=labels,
        ratings=labels,
        ends=lengths.cumsum(dtype=np.int64),
        row_length=ROW_LENGTH,
    )


def make_text_data(rows: RaggedRows, *, validation: int, test: int) -> TextData:
    """Split rows: the first `validation` rows, then `test` rows, and the rest to learn from."""
    return replace(
        make_data(rows, validation=validation, test=test),
        vocabulary=[spell(word) for word in range(WORDS)],
        scale=Scale(0, 1, 1),
        words="tokens",
    )


_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]


def spell(word: int) -> str:
    """Return a distinct spelling of a word id, of two to six letters. Frequent words are shorter."""
    syllables = [_SYLLABLES[word % 100]]
    while word := word // 100:
        word -= 1
        syllables.append(_SYLLABLES[word % 100])
    return "".join(syllables)
