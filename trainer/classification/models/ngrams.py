"""Features of texts for fastText: table rows of their words and word n-grams. N-grams are hashed to buckets.

As in fastText (Joulin et al. 2017, section 2.2; facebookresearch/fastText, `Dictionary::addWordNgrams`), the hash of an
n-gram combines the hashes of its words. The hash selects one of `buckets` rows, which follow the rows of the words in
the table. Two n-grams can share a row. `plain_features` defines the features of one text; `features` computes the
features of many texts, with numba on a CPU. `default_buckets` chooses the default number of buckets.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from corpus.tokens import NGRAM_FACTOR, ngram_buckets
from trainer.classification.models.vocabulary_rows import WordRows, word_hashes, word_rows
from trainer.classification.rows import Rows
from trainer.computing.row_gradients import computed_by_numba

MOST_BUCKETS, BUCKETS_AN_NGRAM = 2_000_000, 8
"""Largest default number of buckets, and default number of buckets per distinct n-gram. With eight buckets per n-gram,
an eighth of the n-grams share a bucket.

On polarity/amazon_polarity10k (6 seeds, 2,000 test rows), four buckets per n-gram reached an accuracy of .876. Two
million buckets, nearly nine per n-gram, reached .879.
"""
_CHUNK = 4096


class Features(NamedTuple):
    """Table rows of n texts: the concatenated `rows` (t,), and the end of each text in `rows`, `ends` (n,)."""

    rows: Tensor
    ends: Tensor


def plain_features(
    ids: Sequence[int],
    hashes: Sequence[int],
    *,
    ngrams: int,
    buckets: int,
    of_words: Sequence[Sequence[int]] | None = None,
) -> list[int]:
    """Return the table rows of the text with word ids `ids`: the rows of its words, and then the rows of its n-grams.

    N-grams are ordered by their first word. `hashes` (words,): the hash of each word of the vocabulary by `token_hash`.
    The table begins with one row for each of these words. `of_words`: the rows of each word (`plain_word_rows`); None:
    one row per word.
    """
    rows_of_words = ids if of_words is None else [row for word in ids for row in of_words[word]]
    of_ngrams = ngram_buckets([hashes[word] for word in ids], ngrams, buckets)
    return [*rows_of_words, *(len(hashes) + bucket for bucket in of_ngrams)]


def features(
    tokens: Tensor, lengths: Tensor, hashes: Tensor, *, ngrams: int, buckets: int, of_words: WordRows | None = None
) -> Features:
    """Return the table rows of n texts.

    `tokens` (t,) int32: the word ids of all texts, concatenated. `lengths` (n,) int64: the number of words in each
    text. `hashes` (words,) int64: the hash of each word of the vocabulary, as a signed 32-bit number. `of_words`: the
    rows of each word; None: one row per word.
    """
    ends = lengths.cumsum(0)
    if of_words is not None:
        ends = pad(_row_counts(tokens, of_words).cumsum(0), (1, 0))[ends]
    for far in range(1, ngrams):
        ends = ends + (lengths - far).clamp(min=0).cumsum(0)  # add the n-grams of `far` + 1 words
    if computed_by_numba(tokens):
        rows = np.empty(int(ends[-1:].sum()), np.int32)
        texts = (tokens.numpy(), (lengths.cumsum(0) - lengths).numpy(), lengths.numpy(), hashes.numpy())
        tables = (None, None) if of_words is None else (of_words.rows.numpy(), of_words.starts.numpy())
        ngram_loops().write_features(*texts, *tables, ngrams, np.uint64(buckets), rows)
        return Features(torch.from_numpy(rows), ends)
    return Features(_rows_by_torch(tokens, lengths, hashes, ngrams, buckets, of_words), ends)


def default_buckets(rows: Rows, vocabulary: Sequence[str], ngrams: int, lengths: range) -> int:
    """Return the default number of buckets for the n-grams in `rows`.

    `ngrams`: the largest number of words in a word n-gram. `lengths`: the numbers of characters in a character n-gram.
    """
    hashes, of_words = word_hashes(vocabulary), word_rows(vocabulary, lengths, MOST_BUCKETS) if lengths else None
    seen = np.zeros(len(hashes) + MOST_BUCKETS, bool)
    for start in range(0, len(rows), _CHUNK):
        batch = rows.whole_batch(np.arange(start, min(len(rows), start + _CHUNK)), torch.device("cpu"))
        texts = (batch.tokens, batch.lengths, hashes)
        seen[features(*texts, ngrams=ngrams, buckets=MOST_BUCKETS, of_words=of_words).rows] = True
        if (buckets := BUCKETS_AN_NGRAM * int(seen[len(hashes) :].sum())) >= MOST_BUCKETS:
            return MOST_BUCKETS
    return max(1, buckets)


@cache
def ngram_loops() -> Any:
    """Return the module of loops for CPUs (ngram_kernels.py)."""
    from trainer.classification.models import ngram_kernels  # imported here because numba takes long to load

    return ngram_kernels


def _row_counts(tokens: Tensor, of_words: WordRows) -> Tensor:
    """Return the number of table rows (t,) of each word in `tokens` (t,)."""
    return of_words.starts[tokens + 1] - of_words.starts[tokens]


def _rows_by_torch(
    tokens: Tensor, lengths: Tensor, hashes: Tensor, ngrams: int, buckets: int, of_words: WordRows | None
) -> Tensor:
    """Return the table rows of all texts. A stable sort by text puts the n-grams of a text after its words."""
    ends = lengths.cumsum(0)
    texts = torch.searchsorted(ends, torch.arange(len(tokens), device=tokens.device), right=True)  # (t,)
    combined = hashed = hashes[tokens]  # (t,)
    if of_words is None:
        rows, of_text = [tokens.long()], [texts]
    else:
        counts = _row_counts(tokens, of_words)
        rows, of_text = [_own_rows(tokens, counts, of_words)], [texts.repeat_interleave(counts)]
    for far in range(1, min(ngrams, len(tokens))):
        combined = ngram_hashes(combined, hashed, far)
        inside = texts[far:] == texts[: len(texts) - far]
        rows.append(ngram_rows(combined[inside], len(hashes), buckets))
        of_text.append(texts[far:][inside])
    order = torch.cat(of_text).argsort(stable=True)
    return torch.cat(rows)[order].int()


def _own_rows(tokens: Tensor, counts: Tensor, of_words: WordRows) -> Tensor:
    """Return the concatenated table rows of all words in `tokens` (t,). `counts` (t,): each word's number of rows."""
    ends = counts.cumsum(0)
    far = of_words.starts[tokens] - (ends - counts)  # (t,): index in `of_words.rows` minus index in the result
    places = torch.arange(int(ends[-1]), device=tokens.device)
    return of_words.rows[places + far.repeat_interleave(counts)].long()


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
