"""Selects the n-grams of the linear model, and computes their ratios.

N-grams that occur at least twice have a weight. A key of 54 bits represents each n-gram. Do not hash n-grams to fewer
buckets: most n-grams of a new text are unseen, and would share weights with known n-grams.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpus.text import FIRST_WORD
from trainer.classification.data import WeightedNgrams
from trainer.classification.models.ngrams import hash_char_ngrams, ngram_hashes, word_hashes
from trainer.classification.rows import Rows, segments

MOST_NGRAMS = 4_000_000
"""Largest number of n-grams."""
_OCCURRENCES = 2
"""Minimum count of an n-gram. Rarer n-grams have no weight."""
_MOST_WORDS = 100_000_000
"""Number of words in the training rows above which n-grams are counted only in a sample of the rows."""
_MOST_COUNTED = 4 * MOST_NGRAMS
"""Number of (n-gram, class) pairs above which pairs with count 1 are discarded (Manku and Motwani 2002, "lossy
counting")."""
_CHUNK_WORDS = 1 << 20
SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)  # odd, so that different hashes remain different (Knuth, volume 3, 6.4)
_OF_CHARACTERS = 1 << 40  # larger than the hashes of single words
_CLASS_BITS = 10  # number of low bits of a key that contain the class during counting
CLASSES = (1 << _CLASS_BITS) - 1
CHARACTER_LENGTHS = range(2, 6)
"""Numbers of characters in a character n-gram."""
BLOCK = 1 << 16
"""Number of words for which character n-grams are computed at once."""

Keys = npt.NDArray[np.int64]


def fit_ngrams(rows: Rows, vocabulary: Sequence[str], *, ngrams: int, most: int = MOST_NGRAMS) -> WeightedNgrams:
    """Return the n-grams that occur at least twice in `rows`: word n-grams, and character n-grams.

    `ngrams`: the largest number of words in a word n-gram. `most`: the largest number of n-grams; the most frequent are
    kept, and at most half of this number are character n-grams.
    """
    hashes, of_words, of_tokens = word_hashes(vocabulary), _Counts(), _Counts()
    every = max(1, -(-int(rows.lengths.sum(dtype=np.int64)) // _MOST_WORDS))
    numbers = np.arange(0, len(rows), every)
    step = max(1, int(_CHUNK_WORDS // rows.lengths.mean()))
    for start in range(0, len(numbers), step):
        batch = rows.whole_batch(numbers[start : start + step], torch.device("cpu"))
        label = batch.labels.long().repeat_interleave(batch.lengths)  # (t,)
        text = torch.arange(len(batch)).repeat_interleave(batch.lengths)
        of_tokens.add(((batch.tokens.long() << _CLASS_BITS) + label).numpy())
        ngram_hash = hashed = hashes[batch.tokens]
        for far in range(1, ngrams):
            ngram_hash = ngram_hashes(ngram_hash, hashed, far)
            inside = text[far:] == text[: len(ngram_hash)]
            of_words.add((keys_of(ngram_hash[inside]) + label[far:][inside]).numpy())
    pairs, counts = of_tokens.merge()
    tokens, label_of = pairs >> _CLASS_BITS, pairs & CLASSES
    of_words.add(keys_of(hashes).numpy()[tokens] + label_of, counts)
    of_chars = _Counts()
    for begin in range(0, len(vocabulary), BLOCK):
        block = vocabulary[begin : begin + BLOCK]
        keys, numbers_of = char_keys_of(block)
        in_block = slice(*np.searchsorted(tokens, (FIRST_WORD + begin, FIRST_WORD + begin + len(block))))
        words = tokens[in_block] - FIRST_WORD - begin
        chars = segments((np.cumsum(numbers_of) - numbers_of)[words], numbers_of[words])
        of_chars.add(
            keys[chars] + label_of[in_block].repeat(numbers_of[words]), counts[in_block].repeat(numbers_of[words])
        )
    chars_found = of_chars.select(most // 2)
    words_found = of_words.select(most - len(chars_found[0]))
    keys = np.concatenate([words_found[0], chars_found[0]])
    ratios = np.concatenate([words_found[1], chars_found[1]])
    order = np.argsort(keys)
    return WeightedNgrams(
        np.insert(keys[order], 0, np.iinfo(np.int64).min), np.insert(ratios[order], 0, 0), int(rows.lengths.max())
    )


class _Counts:
    """Counts of n-grams by class. A pair is a number: the key of an n-gram, with the class in the lowest bits."""

    def __init__(self) -> None:
        self._parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]

    def add(self, pairs: Keys, counts: Keys | None = None) -> None:
        """Add `counts` (n,) to the counts of `pairs` (n,). Without `counts`, count each pair once."""
        if counts is None:
            pairs, counts = np.unique(pairs, return_counts=True)
        self._parts.append((pairs, counts))
        if sum(len(each) for each, _ in self._parts[1:]) > max(len(self._parts[0][0]), _MOST_COUNTED // 4):
            self.merge()

    def merge(self) -> tuple[Keys, Keys]:
        """Return the distinct pairs (n,), in ascending order, and their counts (n,)."""
        pairs, counts = map(np.concatenate, zip(*self._parts, strict=True))
        order = np.argsort(pairs)
        firsts = _first_indices(pairs := pairs[order])
        pairs, counts = pairs[firsts], np.add.reduceat(counts[order], firsts) if len(firsts) else counts
        if len(pairs) > _MOST_COUNTED:
            pairs, counts = pairs[counts > 1], counts[counts > 1]
        self._parts = [(pairs, counts)]
        return pairs, counts

    def select(self, most: int) -> tuple[Keys, npt.NDArray[np.float32]]:
        """Return the keys of the `most` most frequent n-grams that occur at least twice, and their ratios."""
        pairs, counts = self.merge()
        keys = pairs & ~CLASSES
        firsts = _first_indices(keys)
        if not len(firsts):
            return keys, np.zeros(0, np.float32)
        each = np.add.reduceat(counts, firsts)  # (k,)
        chosen = np.zeros(len(each), bool)
        chosen[np.argsort(-each, kind="stable")[:most]] = True
        numbers = np.diff(firsts, append=len(keys))
        kept, in_all = (chosen & (each >= _OCCURRENCES)).repeat(numbers), each.repeat(numbers)
        keys, counts, in_all, of_class = keys[kept], counts[kept], in_all[kept], (pairs & CLASSES)[kept]
        firsts = _first_indices(keys)
        of_own = np.bincount(of_class, counts)[of_class]
        # Add-one smoothing, so that no n-gram has frequency 0.
        frequency = (1 + counts) / (len(firsts) + of_own)
        others = (1 + in_all - counts) / (len(firsts) + counts.sum() - of_own)
        ratios = np.abs(np.log(frequency / others)) * in_all / (1 + in_all)
        return keys[firsts], (np.maximum.reduceat(ratios, firsts) if len(firsts) else ratios).astype(np.float32)


def _first_indices(ascending: Keys) -> Keys:
    """Return the index (m,) of the first occurrence of each distinct number in `ascending`."""
    return np.flatnonzero(np.diff(ascending, prepend=ascending[:1] - 1))


def keys_of(hashes: Tensor) -> Tensor:
    """Return the keys (n,) of n-grams with `hashes` (n,). The lowest bits of a key are 0."""
    spread = hashes * SPREAD  # modulo 2 ** 64
    keys: Tensor = spread - spread.remainder(1 << _CLASS_BITS)
    return keys


def char_keys_of(block: Sequence[str]) -> tuple[Keys, Keys]:
    """Return the keys (g,) of the character n-grams of words, word by word, and each word's number of keys (words,)."""
    word_of, hashes = hash_char_ngrams(block, CHARACTER_LENGTHS)
    order = np.argsort(word_of, kind="stable")
    keys = keys_of(torch.from_numpy(hashes[order].astype(np.int64)) + _OF_CHARACTERS).numpy()
    return keys, np.bincount(word_of, minlength=len(block))
