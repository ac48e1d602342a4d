"""Texts to the rows of a table of vectors: their words, and their n-grams of neighbouring words, hashed to buckets.

As in fastText (Joulin et al. 2017, section 2.2; facebookresearch/fastText, `Dictionary::addWordNgrams`): an n-gram's
hash is made of those of its words, and chooses one of `buckets` rows behind those of the words. Two n-grams may share a
row. `plain_features` says it for one text; `features` does the same for many, on a CPU by numba.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from corpus.text import FIRST_WORD
from corpus.tokens import NGRAM_FACTOR, ngram_buckets
from trainer.computing.row_gradients import computed_by_numba

_FNV_START, _FNV_FACTOR = np.uint32(2166136261), np.uint32(16777619)


class Features(NamedTuple):
    """The rows of a table that texts have: `rows` (t,), of all texts one after the other, and where each ends, (n,)."""

    rows: Tensor
    ends: Tensor


def plain_features(ids: Sequence[int], hashes: Sequence[int], *, ngrams: int, buckets: int) -> list[int]:
    """The rows of one text of words `ids`, in a table that begins with a row for each of `hashes` (words,), the hashes
    of all words by `token_hash`: the words' rows, then those of the n-grams by their first word."""
    found = ngram_buckets([hashes[word] for word in ids], ngrams, buckets)
    return [*ids, *(len(hashes) + bucket for bucket in found)]


def features(tokens: Tensor, lengths: Tensor, hashes: Tensor, *, ngrams: int, buckets: int) -> Features:
    """The rows of n texts: `tokens` (t,) int32 are the words of all, one text after the other, `lengths` (n,) int64
    their numbers, and `hashes` (words,) int64 those of all words, as signed numbers of 32 bits."""
    more = [(lengths - far).clamp_(min=0) for far in range(1, ngrams)]  # n-grams that end `far` words after their first
    ends = torch.stack([lengths, *more]).sum(0).cumsum(0)
    if computed_by_numba(tokens):
        from trainer.classification.models.ngram_kernels import write_features

        rows = np.empty(int(ends[-1:].sum()), np.int32)
        write_features(tokens.numpy(), lengths.numpy(), hashes.numpy(), ngrams, np.uint64(buckets), rows)
        return Features(torch.from_numpy(rows), ends)
    return Features(_rows_by_torch(tokens, lengths, hashes, ngrams, buckets), ends)


def word_hashes(vocabulary: Sequence[str]) -> Tensor:
    """(FIRST_WORD + words,) int64: fastText's hash of each word (`corpus.tokens.token_hash`), of padding and of unknown
    words."""
    words = [b"", b"", *(word.encode() for word in vocabulary)]
    assert len(words) == FIRST_WORD + len(vocabulary)
    lengths = np.array([len(word) for word in words])
    hashes = np.full(len(words), _FNV_START)
    order = np.argsort(lengths, kind="stable")
    for length in np.unique(lengths[lengths > 0]):  # those of one length together, a byte of each at a time
        begin, end = np.searchsorted(lengths[order], (length, length + 1))
        chosen = order[begin:end]
        letters = np.frombuffer(b"".join(words[at] for at in chosen), np.int8).reshape(-1, length)
        found = hashes[chosen]
        for column in range(length):
            found = (found ^ letters[:, column].astype(np.int32).view(np.uint32)) * _FNV_FACTOR
        hashes[chosen] = found
    return torch.from_numpy(hashes.view(np.int32).astype(np.int64))


def _rows_by_torch(tokens: Tensor, lengths: Tensor, hashes: Tensor, ngrams: int, buckets: int) -> Tensor:
    """The rows of all texts, a text's words and n-grams side by side: sorted stably by their text."""
    ends = lengths.cumsum(0)
    texts = torch.searchsorted(ends, torch.arange(len(tokens), device=tokens.device), right=True)  # (t,)
    of_words = found = hashes[tokens]  # (t,)
    rows, of_text = [tokens.long()], [texts]
    for far in range(1, min(ngrams, len(tokens))):
        found = ngram_hashes(found, of_words, far)
        inside = texts[far:] == texts[: len(texts) - far]
        rows.append(ngram_rows(found[inside], len(hashes), buckets))
        of_text.append(texts[far:][inside])
    order = torch.cat(of_text).argsort(stable=True)
    return torch.cat(rows)[order].int()


def ngram_hashes(shorter: Tensor, of_words: Tensor, far: int) -> Tensor:
    """(t - far,) int64: the hashes of n-grams from each word to the one `far` behind it, by those of the n-grams that
    are `shorter` by one word, (t - far + 1,), and of the words (t,)."""
    return shorter[:-1] * NGRAM_FACTOR + of_words[far:]  # modulo 2 ** 64, as signed numbers


def ngram_rows(hashes: Tensor, words: int, buckets: int) -> Tensor:
    """The rows of n-grams in a table that begins with `words` rows of words.

    Signed numbers of 64 bits are taken for unsigned ones, which are larger by 2 ** 64 where they are negative.
    """
    return words + (hashes % buckets + (hashes < 0) * ((1 << 64) % buckets)) % buckets
