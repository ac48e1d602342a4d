"""Hashes of the words in a vocabulary, and of their character n-grams. They are computed once.

The hash function and the n-grams are those of fastText (Bojanowski et al. 2017, section 3.2;
facebookresearch/fastText, `Dictionary::computeSubwords`).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from corpus.text import FIRST_WORD

_FNV_START, _FNV_FACTOR = np.uint32(2166136261), np.uint32(16777619)


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
