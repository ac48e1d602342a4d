"""Hashes and table rows of the words in fastText's vocabulary. They are computed once.

As in fastText (Bojanowski et al. 2017, section 3.2; facebookresearch/fastText, `Dictionary::computeSubwords`), a word
has its own row, and the rows of its character n-grams. Character n-grams and word n-grams share the same buckets.
`plain_word_rows` defines the rows of words; `word_rows` computes them for large vocabularies. All unknown words share
one row, because their characters are not stored.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from corpus.text import FIRST_WORD
from corpus.tokens import char_ngrams, token_hash

_FNV_START, _FNV_FACTOR = np.uint32(2166136261), np.uint32(16777619)
_BLOCK = 1 << 16
"""Number of words that are computed at once, so that memory is bounded."""


class WordRows(NamedTuple):
    """Table rows of all words. Word i has the rows `rows[starts[i]:starts[i + 1]]`, and its own row is the first.

    `rows` is (r,) int32, and `starts` is (words + 1,) int64.
    """

    rows: Tensor
    starts: Tensor


def word_hashes(vocabulary: Sequence[str]) -> Tensor:
    """Return fastText's hash (`corpus.tokens.token_hash`) of padding, of unknown words, and of each word.

    The result is (FIRST_WORD + words,) int64.
    """
    words = [b"", b"", *(word.encode() for word in vocabulary)]
    assert len(words) == FIRST_WORD + len(vocabulary)
    lengths = np.array([len(word) for word in words])
    hashes = np.full(len(words), _FNV_START)
    order = np.argsort(lengths, kind="stable")
    for length in np.unique(lengths[lengths > 0]):  # all words of one length at once, byte by byte
        begin, end = np.searchsorted(lengths[order], (length, length + 1))
        chosen = order[begin:end]
        letters = np.frombuffer(b"".join(words[at] for at in chosen), np.int8).reshape(-1, length)
        block_hashes = hashes[chosen]
        for column in range(length):
            block_hashes = (block_hashes ^ letters[:, column].astype(np.int32).view(np.uint32)) * _FNV_FACTOR
        hashes[chosen] = block_hashes
    return torch.from_numpy(hashes.view(np.int32).astype(np.int64))


def plain_word_rows(vocabulary: Sequence[str], lengths: range, buckets: int) -> list[list[int]]:
    """Return lists of table rows: of padding, of unknown words, and of each word of the vocabulary.

    A word's own row is followed by the rows of its character n-grams. `lengths`: the numbers of characters in a
    character n-gram. In the table, the words' own rows come first, and then the `buckets` rows of n-grams.
    """
    words = FIRST_WORD + len(vocabulary)
    of_ngrams = [
        [words + token_hash(ngram.encode()) % buckets for ngram in char_ngrams(word, lengths)] for word in vocabulary
    ]
    return [[word, *rows] for word, rows in enumerate([[]] * FIRST_WORD + of_ngrams)]


def word_rows(vocabulary: Sequence[str], lengths: range, buckets: int) -> WordRows:
    """Return the same rows as `plain_word_rows`, except that the n-grams of a word can be in a different order."""
    words = FIRST_WORD + len(vocabulary)
    rows, counts = [np.arange(FIRST_WORD, dtype=np.int32)], [np.ones(FIRST_WORD, np.int64)]
    for begin in range(0, len(vocabulary), _BLOCK):
        block = vocabulary[begin : begin + _BLOCK]
        word_of, hashes = hash_char_ngrams(block, lengths)
        numbers = np.arange(len(block))
        order = np.argsort(np.concatenate([numbers, word_of]), kind="stable")
        of_ngrams = words + (hashes % np.uint32(buckets)).astype(np.int64)
        rows.append(np.concatenate([FIRST_WORD + begin + numbers, of_ngrams])[order].astype(np.int32))
        counts.append(1 + np.bincount(word_of, minlength=len(block)))
    starts = np.cumsum(np.concatenate([[0], *counts]))
    return WordRows(torch.from_numpy(np.concatenate(rows)), torch.from_numpy(starts))


def hash_char_ngrams(block: Sequence[str], lengths: range) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each character n-gram of a block of words, the index of its word (g,) int64, and its hash (g,)
    uint32.

    The n-grams of all words are extended together, character by character.
    """
    joined = np.frombuffer("".join(f"<{word}>" for word in block).encode(), np.int8)
    letters = joined.astype(np.int32).view(np.uint32)  # fastText reads bytes from 128 on as negative numbers
    begins = np.flatnonzero(joined >= -64)  # (c,): start of each character; continuation bytes are below -64
    sizes = np.diff(begins, append=len(joined))  # (c,)
    characters = np.array([len(word) + 2 for word in block])  # (words,)
    word_of = np.repeat(np.arange(len(block)), characters)  # (c,)
    left = np.repeat(characters.cumsum(), characters) - np.arange(len(begins))  # (c,): characters until the word's end
    hashes = np.full(len(begins), _FNV_START)  # (c,): hash of the n-gram that begins at each character
    ngrams = []
    for length in range(1, lengths.stop):
        firsts = np.flatnonzero(left >= length)
        lasts = firsts + length - 1
        for byte in range(sizes.max()):
            longer = sizes[lasts] > byte
            grown = firsts[longer]
            hashes[grown] = (hashes[grown] ^ letters[begins[lasts[longer]] + byte]) * _FNV_FACTOR
        if length == 1:  # a single `<` or `>`, which mark the ends of a word, is not an n-gram
            firsts = firsts[(left[firsts] > 1) & (left[firsts] < characters[word_of[firsts]])]
        if length in lengths:
            ngrams.append((word_of[firsts], hashes[firsts]))
    of_words, of_ngrams = zip(*ngrams, strict=True)
    return np.concatenate(of_words), np.concatenate(of_ngrams)
