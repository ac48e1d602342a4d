"""Index of the linear model's n-grams: finds the rows of n-grams in the model's table.

The table is sorted by the n-grams' keys. The rows of each word and of its character n-grams are found once, when the
vocabulary is set. The rows of n-grams of several words are found in each text.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from corpus.text import FIRST_WORD
from trainer.classification.models.ngram_counts import BLOCK, char_keys_of, keys_of
from trainer.classification.models.ngrams import ngram_hashes, word_hashes

_MOST_ALIKE = 64
"""Largest permitted number of keys with the same high bits, which index the keys. In practice there are at most a
dozen."""


class NgramIndex(nn.Module):
    """Index of sorted keys, with the rows of the n-grams of each word of a vocabulary.

    The methods get the `keys` (k,) int64, because they are a part of the model's state, and the index is not. Row 0
    stands for all n-grams without a key.
    """

    firsts: Tensor
    """(prefixes,) int32: the row at which the search for a key with a given prefix starts."""
    hashes: Tensor
    """(words,) int64: the hash of each word id."""
    own: Tensor
    """(words,) int32: the row of each word id."""
    rows: Tensor
    """(r,) int32: row 0 and the rows of the character n-grams of each word id, concatenated."""
    starts: Tensor
    """(words + 1,) int64: the start of each word id in `rows`."""

    def __init__(self, words: int) -> None:
        """`words`: the number of word ids, including the ids of padding and of unknown words."""
        super().__init__()
        self.shift = 0
        """Number of low bits of a key that its prefix lacks."""
        self.alike = 0
        """Largest number of keys with the same prefix."""
        for name, kind, size in (
            ("firsts", torch.int32, 0),
            ("hashes", torch.int64, words),
            ("own", torch.int32, words),
            ("rows", torch.int32, 0),
            ("starts", torch.int64, words + 1),
        ):
            self.register_buffer(name, torch.zeros(size, dtype=kind), persistent=False)

    def set_keys(self, keys: Tensor) -> None:
        """Index the keys. Raises ValueError if they are not sorted, or if too many of them have the same prefix."""
        bits = max(2, len(keys).bit_length())
        self.shift = 64 - bits
        counts = torch.bincount((keys >> self.shift) + (1 << (bits - 1)), minlength=1 << bits)
        self.firsts = (counts.cumsum(0) - counts).clamp(max=len(keys) - 1).int()
        real = keys[keys < torch.iinfo(torch.int64).max]  # empty before a checkpoint is loaded
        counts[-1] -= len(keys) - len(real)
        self.alike = int(counts.max())
        if self.alike > _MOST_ALIKE or bool((real[1:] < real[:-1]).any()):
            raise ValueError("its n-grams are not in the order of their hashes")

    def set_vocabulary(self, vocabulary: Sequence[str], keys: Tensor) -> None:
        """Find the rows of the words and of their character n-grams, after `set_keys`."""
        self.hashes = word_hashes(vocabulary).to(keys.device)
        self.own = self.find(keys_of(self.hashes), keys)
        self.rows, self.starts = self._char_rows(vocabulary, keys)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that `set_vocabulary` sets."""
        return {name: getattr(self, name) for name in ("hashes", "own", "rows", "starts")}

    def set_stored(self, stored: Mapping[str, Tensor], keys: Tensor) -> None:
        """Set the `tensors` of a model file. Raises ValueError if the model could read outside of them."""
        hashes, own, rows, starts = stored["hashes"], stored["own"], stored["rows"], stored["starts"]
        if (
            [each.dtype for each in (hashes, own, rows, starts)] != [torch.int64, torch.int32, torch.int32, torch.int64]
            or (hashes.shape, own.shape, starts.shape) != (self.hashes.shape, self.own.shape, self.starts.shape)
            or rows.dim() != 1
            or (int(starts[0]), int(starts[-1])) != (0, len(rows))
            or bool((starts.diff() < 1).any())
            or not 0 <= min(int(own.min()), int(rows.min())) <= max(int(own.max()), int(rows.max())) < len(keys)
        ):
            raise ValueError("its tensors of the vocabulary do not match its vocabulary and its n-grams")
        self.hashes, self.own, self.rows, self.starts = hashes, own, rows, starts

    def find(self, wanted: Tensor, keys: Tensor) -> Tensor:
        """Return the index (n,) int32 of each of the keys `wanted` (n,) in `keys`; 0 if a key is missing.

        The high bits of a key select the position in `keys` at which the search starts.
        """
        # Divide instead of shifting, because ONNX cannot shift signed integers.
        prefix = torch.div(wanted, 1 << self.shift, rounding_mode="floor")
        at = self.firsts[prefix + len(self.firsts) // 2].long()
        for _ in range(self.alike):
            at = (at + (keys[at] < wanted)).clamp(max=len(keys) - 1)
        return (at * (keys[at] == wanted)).int()

    def ngram_rows(self, tokens: Tensor, texts: Tensor, keys: Tensor, *, words: int) -> Tensor:
        """Return the table rows (t, words) of the n-grams of 1 to `words` words that begin at each word.

        `tokens` (t,): the words of all texts. `texts` (t,): the index of each word's text.
        """
        hashes = hashed = self.hashes[tokens]
        rows = [self.own[tokens]]
        for far in range(1, words):
            hashes = ngram_hashes(hashes, hashed, far)
            inside = texts[far:] == texts[:-far]
            rows.append(torch.cat([self.find(keys_of(hashes), keys) * inside, torch.zeros_like(rows[0][:far])]))
        return torch.stack(rows, 1)

    def sums_of_chars(self, values: Tensor) -> Tensor:
        """Return, for each word, the sum (words, columns) of the rows of `values` for its character n-grams.

        The sums become constants in an ONNX file.
        """
        sums = np.add.reduceat(values.numpy()[self.rows.numpy()], self.starts.numpy()[:-1])
        return torch.from_numpy(sums)

    def _char_rows(self, vocabulary: Sequence[str], keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return row 0 and the rows of the character n-grams of each word id, concatenated: (r,) int32.

        Also return the start (words + 1,) int64 of each word's rows.
        """
        device = keys.device
        rows, counts = [torch.zeros(FIRST_WORD, dtype=torch.int32)], [torch.ones(FIRST_WORD, dtype=torch.int64)]
        for begin in range(0, len(vocabulary), BLOCK):
            wanted, numbers = char_keys_of(vocabulary[begin : begin + BLOCK])
            indices = self.find(torch.from_numpy(wanted).to(device), keys).cpu()
            word_of = torch.arange(len(numbers)).repeat_interleave(torch.from_numpy(numbers))[indices > 0]
            word_of = torch.cat([torch.arange(len(numbers)), word_of])  # each word begins with row 0
            rows.append(
                torch.cat([indices.new_zeros(len(numbers)), indices[indices > 0]])[word_of.argsort(stable=True)]
            )
            counts.append(torch.bincount(word_of, minlength=len(numbers)))
        return torch.cat(rows).to(device), pad(torch.cat(counts).cumsum(0), (1, 0)).to(device)
