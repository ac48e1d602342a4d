"""Features of texts for fastText: table rows of their words and word n-grams. N-grams are hashed to buckets.

As in fastText (Joulin et al. 2017, section 2.2; facebookresearch/fastText, `Dictionary::addWordNgrams`), the hash of an
n-gram combines the hashes of its words. The hash selects one of `buckets` rows, which follow the rows of the words in
the table. Two n-grams can share a row. `plain_features` defines the features of one text; `features` computes the
features of many texts, with numba on a CPU. `default_buckets` chooses the default number of buckets.

Character n-grams are also hashed like those of fastText (Bojanowski et al. 2017, section 3.2;
`Dictionary::computeSubwords`).
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from corpus.text import FIRST_WORD
from corpus.tokens import NGRAM_FACTOR, ngram_buckets
from trainer.classification.rows import Rows
from trainer.computing.row_gradients import computed_by_numba

MOST_BUCKETS, BUCKETS_AN_NGRAM = 2_000_000, 8
"""Largest default number of buckets, and default number of buckets per distinct n-gram. With eight buckets per n-gram,
an eighth of the n-grams share a bucket.

On polarity/amazon_polarity10k (6 seeds, 2,000 test rows), four buckets per n-gram reached an accuracy of .876. Two
million buckets, nearly nine per n-gram, reached .879.
"""
_CHUNK = 4096
_FNV_START, _FNV_FACTOR = np.uint32(2166136261), np.uint32(16777619)


class Features(NamedTuple):
    """Table rows of n texts: the concatenated `rows` (t,), and the end of each text in `rows`, `ends` (n,)."""

    rows: Tensor
    ends: Tensor


def plain_features(ids: Sequence[int], hashes: Sequence[int], *, ngrams: int, buckets: int) -> list[int]:
    """Return the table rows of the text with word ids `ids`: the rows of its words, and then the rows of its n-grams.

    N-grams are ordered by their first word. `hashes` (words,): the hash of each word of the vocabulary by `token_hash`.
    The table begins with one row for each of these words.
    """
    of_ngrams = ngram_buckets([hashes[word] for word in ids], ngrams, buckets)
    return [*ids, *(len(hashes) + bucket for bucket in of_ngrams)]


def features(tokens: Tensor, lengths: Tensor, hashes: Tensor, *, ngrams: int, buckets: int) -> Features:
    """Return the table rows of n texts.

    `tokens` (t,) int32: the word ids of all texts, concatenated. `lengths` (n,) int64: the number of words in each
    text. `hashes` (words,) int64: the hash of each word of the vocabulary, as a signed 32-bit number.
    """
    ends = lengths.cumsum(0)
    for far in range(1, ngrams):
        ends = ends + (lengths - far).clamp(min=0).cumsum(0)  # add the n-grams of `far` + 1 words
    if computed_by_numba(tokens):
        rows = np.empty(int(ends[-1:].sum()), np.int32)
        texts = (tokens.numpy(), (lengths.cumsum(0) - lengths).numpy(), lengths.numpy(), hashes.numpy())
        ngram_loops().write_features(*texts, ngrams, np.uint64(buckets), rows)
        return Features(torch.from_numpy(rows), ends)
    return Features(_rows_by_torch(tokens, lengths, hashes, ngrams, buckets), ends)


def default_buckets(rows: Rows, vocabulary: Sequence[str], ngrams: int) -> int:
    """Return the default number of buckets for the n-grams of up to `ngrams` words in `rows`."""
    hashes = word_hashes(vocabulary)
    seen = np.zeros(len(hashes) + MOST_BUCKETS, bool)
    for start in range(0, len(rows), _CHUNK):
        batch = rows.whole_batch(np.arange(start, min(len(rows), start + _CHUNK)), torch.device("cpu"))
        seen[features(batch.tokens, batch.lengths, hashes, ngrams=ngrams, buckets=MOST_BUCKETS).rows] = True
        if (buckets := BUCKETS_AN_NGRAM * int(seen[len(hashes) :].sum())) >= MOST_BUCKETS:
            return MOST_BUCKETS
    return max(1, buckets)


@cache
def ngram_loops() -> Any:
    """Return the module of loops for CPUs (ngram_kernels.py)."""
    from trainer.classification.models import ngram_kernels  # imported here because numba takes long to load

    return ngram_kernels


def _rows_by_torch(tokens: Tensor, lengths: Tensor, hashes: Tensor, ngrams: int, buckets: int) -> Tensor:
    """Return the table rows of all texts. A stable sort by text puts the n-grams of a text after its words."""
    ends = lengths.cumsum(0)
    texts = torch.searchsorted(ends, torch.arange(len(tokens), device=tokens.device), right=True)  # (t,)
    combined = hashed = hashes[tokens]  # (t,)
    rows, of_text = [tokens.long()], [texts]
    for far in range(1, min(ngrams, len(tokens))):
        combined = ngram_hashes(combined, hashed, far)
        inside = texts[far:] == texts[: len(texts) - far]
        rows.append(ngram_rows(combined[inside], len(hashes), buckets))
        of_text.append(texts[far:][inside])
    order = torch.cat(of_text).argsort(stable=True)
    return torch.cat(rows)[order].int()


def ngram_hashes(shorter: Tensor, of_words: Tensor, far: int) -> Tensor:
    """Return the hashes (t - far,) int64 of the n-grams of `far` + 1 words that begin at each word.

    `shorter` (t - far + 1,): the hashes of the n-grams of `far` words. `of_words` (t,): the hash of each word.
    """
    return shorter[:-1] * NGRAM_FACTOR + of_words[far:]  # computed modulo 2 ** 64, as signed numbers


def ngram_rows(hashes: Tensor, words: int, buckets: int) -> Tensor:
    """Return the table rows of n-grams with the given hashes, in a table that begins with `words` rows for words.

    Hashes are unsigned 64-bit numbers that are stored as signed numbers, so 2 ** 64 is added to negative numbers.
    """
    return words + (hashes % buckets + (hashes < 0) * ((1 << 64) % buckets)) % buckets


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
