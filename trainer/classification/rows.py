"""Rows of a dataset, and batches of rows: padded, or concatenated.

All kinds of rows can form a padded batch. Ragged rows are then cut to `row_length` words, as `shoal preprocess` cuts
fixed rows. Do not gather rows one by one in Python: a batch is a single indexing operation on the tokens.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray, Lengths
from torch import Tensor

from corpus.text import PADDING, UNKNOWN
from trainer.computing.dropout import POOL
from trainer.devices import copy_to_device

FEWEST_WORDS = 4
"""Minimum number of words that word dropout keeps, so that short texts do not lose their meaning."""
_MOST_PLACES = 1 << 24
"""Largest total number of entries in all word masks. If rows are very long, the pool has fewer masks."""


class WordDropout:
    """Word dropout: drops a share of each row's words, so that the model cannot recognise a text by a few unique words.

    The dropped words depend on seed, step and row (Iyyer et al. 2015, section 3.1). At least FEWEST_WORDS words are
    kept; a shorter row is kept whole. As in dropout of values (trainer/computing/dropout.py), the masks come from a
    fixed pool of random masks.
    """

    def __init__(self, share: float, longest: int, seed: int) -> None:
        """`share`: the probability that a word is dropped. `longest`: the largest number of words per row.

        Equal seeds give equal masks.
        """
        self._pool = min(POOL, max(1, _MOST_PLACES // longest))
        generator = np.random.default_rng((seed, POOL))
        kept = generator.random((self._pool, longest), dtype=np.float32) >= share
        self._before = np.zeros((self._pool, longest + 1), dtype=np.int32)  # number of kept words before each position
        np.cumsum(kept, axis=1, out=self._before[:, 1:])
        places = np.argsort(~kept, axis=1, kind="stable").astype(np.int32)  # (_pool, longest), kept positions first
        self._places = torch.from_numpy(places)

    def lengths(self, lengths: IntArray, keys: IntArray) -> IntArray:
        """Return the number of words (rows,) that each row keeps.

        `lengths` (rows,): the number of words in each row, at least 1. `keys` (rows,): the index of each row's mask.
        """
        return np.maximum(self._before[keys % self._pool, lengths], np.minimum(lengths, FEWEST_WORDS)).astype(np.int64)

    def places(self, lengths: IntArray, keys: IntArray, kept: IntArray, device: torch.device) -> Tensor:
        """Return the positions of the kept words in each row, (rows, max(kept)) int32 in ascending order, on `device`.

        `kept` (rows,): the result of `lengths(lengths, keys)`. Entries after the kept words are arbitrary positions in
        the row. If the mask of a row keeps too few words, the row gets a new mask on the host. All other positions are
        computed on `device`, because copying them from the host would take megabytes per step.
        """
        if self._places.device != device:
            self._places = self._places.to(device)
        keys = keys % self._pool
        places = self._places[:, : int(kept.max())][copy_to_device(keys, device)]
        few = np.flatnonzero(self._before[keys, lengths] < kept)
        numbered = np.arange(min(FEWEST_WORDS, places.shape[1]))
        some = (keys[few, None] + numbered) % lengths[few, None]  # consecutive words; the first depends on the key
        some[numbered >= kept[few, None]] = self._places.shape[1] - 1
        some = np.sort(some, axis=1).astype(np.int32)
        places[:, : len(numbered)].index_copy_(0, copy_to_device(few, device), copy_to_device(some, device))
        return places


_COPIED = 1 << 25
"""Number of bytes that are copied to a device at once."""

Labels = npt.NDArray[np.uint8 | np.uint16]


@dataclass(frozen=True, kw_only=True)
class TextBatch:
    """Batch of n rows for a model.

    `tokens` int32: padded (n, longest), with the longest row first, or concatenated (sum of lengths,). `lengths` (n,)
    int64. `labels`, `ratings` (n,): uint8 or uint16. `keys` (n,) int64: the index of each row's dropout mask, or None.
    """

    tokens: Tensor
    lengths: Tensor
    labels: Tensor
    ratings: Tensor
    keys: Tensor | None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, kw_only=True)
class Rows(ABC):
    """N rows of a dataset: the word ids `tokens`, and `lengths`, `labels` and `ratings` (N,) each."""

    tokens: npt.NDArray[np.uint16 | np.uint32]
    lengths: Lengths
    labels: Labels
    ratings: Labels
    device_tokens: Tensor | None = None
    """Copy of `tokens` on the device that computes, as signed integers of the same size."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, part: slice) -> Self:
        return self.chosen(part)

    @abstractmethod
    def chosen(self, which: IntArray | slice) -> Self:
        """Return the rows with the indices `which` (n,), or the slice `which` of the rows."""

    def ids(self, numbers: IntArray, words: int) -> IntArray:
        """Return the ids (m,) below `words` that occur in padded batches of the rows `numbers` (n,), in ascending
        order.

        Larger ids count as the unknown word. Padding (0) is left out, because it has no gradient. The result does not
        depend on the device of the tokens. Tokens on a GPU are processed in a separate stream, because in the default
        stream the host would wait for the previous step.
        """
        if self.device_tokens is None:
            return _distinct(self._cut_tokens(numbers), words)
        device = self.device_tokens.device
        with torch.cuda.stream(_own_stream(device) if device.type == "cuda" else None):
            lengths = self._padded_lengths(numbers)
            longest_first = np.argsort(-lengths, kind="stable")
            tokens = self._padded(numbers[longest_first], lengths[longest_first], None, device).flatten().long()
            seen = torch.zeros(words, dtype=torch.bool, device=device)
            seen[tokens.masked_fill_(tokens >= words, UNKNOWN)] = True
            seen[PADDING] = False
            return seen.nonzero().flatten().cpu().numpy()

    def batch(
        self, numbers: IntArray, device: torch.device, *, keys: IntArray | None = None, words: WordDropout | None = None
    ) -> TextBatch:
        """Return a padded batch of the rows `numbers` (n,), n > 0.

        `keys` (n,): the index of each row's dropout mask (dropout.py). `words`: word dropout, if any; the batch
        contains only the words that it keeps.
        """
        whole = lengths = self._padded_lengths(numbers)
        if words is not None and keys is not None:
            lengths = words.lengths(whole, keys)
        longest_first = np.argsort(-lengths, kind="stable")
        numbers, lengths = numbers[longest_first], lengths[longest_first]
        keys, places = None if keys is None else keys[longest_first], None
        if words is not None and keys is not None:
            near = device if self._tokens_on(device) is not None else torch.device("cpu")
            places = words.places(whole[longest_first], keys, lengths, near)
        return TextBatch(
            tokens=self._padded(numbers, lengths, places, device),
            lengths=copy_to_device(lengths, device),
            labels=copy_to_device(self.labels[numbers], device),
            ratings=copy_to_device(self.ratings[numbers], device),
            keys=None if keys is None else copy_to_device(keys, device),
        )

    def whole_batch(self, numbers: IntArray, device: torch.device, *, keys: IntArray | None = None) -> TextBatch:
        """Return a batch of the whole rows `numbers` (n,), n > 0, concatenated in this order.

        `keys` (n,): the index of each row's dropout mask (dropout.py).
        """
        lengths = self.lengths[numbers].astype(np.int64)
        return TextBatch(
            tokens=self._whole(numbers, lengths, device),
            lengths=copy_to_device(lengths, device),
            labels=copy_to_device(self.labels[numbers], device),
            ratings=copy_to_device(self.ratings[numbers], device),
            keys=None if keys is None else copy_to_device(keys, device),
        )

    def copy_to(self, device: torch.device) -> Self:
        """Return these rows with a copy of their tokens on a device, so that batches need no transfer.

        Raises torch.OutOfMemoryError if the tokens do not fit into the memory of the device.
        """
        signed = self.tokens.view(f"i{self.tokens.itemsize}")
        device_tokens = torch.empty(signed.shape, dtype=torch.from_numpy(signed[:0].copy()).dtype, device=device)
        step = max(1, _COPIED // signed[:1].nbytes)
        for start in range(0, len(signed), step):
            device_tokens[start : start + step] = torch.from_numpy(np.array(signed[start : start + step]))
        return replace(self, device_tokens=device_tokens)

    @abstractmethod
    def _cut_tokens(self, numbers: IntArray) -> npt.NDArray[Any]:
        """Return all word ids in padded batches of the rows `numbers` (n,), in any shape, with or without padding."""

    def _tokens_on(self, device: torch.device) -> Tensor | None:
        """Return the copy of the tokens on `device`; None if `device` has no copy."""
        stored = self.device_tokens
        return stored if stored is not None and stored.device.type == device.type else None

    @abstractmethod
    def _whole(self, numbers: IntArray, lengths: IntArray, device: torch.device) -> Tensor:
        """Return the word ids of whole rows `numbers` (n,) with `lengths` (n,), concatenated: (sum of lengths,)
        int32."""

    @abstractmethod
    def _padded_lengths(self, numbers: IntArray) -> IntArray:
        """Return the lengths (n,) of the rows `numbers` (n,) in a padded batch."""

    @abstractmethod
    def _padded(self, numbers: IntArray, lengths: IntArray, places: Tensor | None, device: torch.device) -> Tensor:
        """Return the padded word ids of the rows `numbers` (n,), longest row first: (n, longest) int32.

        Without `places`, these are the first `lengths` (n,) words of each row. Otherwise, they are the words at the
        positions `places` (n, longest), a tensor on the device of the tokens.
        """


@dataclass(frozen=True, kw_only=True)
class TextRows(Rows):
    """Fixed rows, cut to at most L words: `tokens` (N, L) are padded with 0."""

    def chosen(self, which: IntArray | slice) -> Self:
        arrays = {name: getattr(self, name)[which] for name in ("tokens", "lengths", "labels", "ratings")}
        return type(self)(**arrays)

    def _cut_tokens(self, numbers: IntArray) -> npt.NDArray[Any]:
        return self.tokens[numbers]

    def _whole(self, numbers: IntArray, lengths: IntArray, device: torch.device) -> Tensor:
        tokens, real = self._padded(numbers, lengths, None, device), torch.arange(int(lengths.max()), device=device)
        return tokens[real < copy_to_device(lengths, device)[:, None]]

    def _padded_lengths(self, numbers: IntArray) -> IntArray:
        return self.lengths[numbers].astype(np.int64)

    def _padded(self, numbers: IntArray, lengths: IntArray, places: Tensor | None, device: torch.device) -> Tensor:
        longest = int(lengths.max())
        if (stored := self._tokens_on(device)) is None:
            if places is None:
                tokens = self.tokens[numbers, :longest].astype(np.int32)
            else:
                tokens = self.tokens[numbers[:, None], places.numpy()].astype(np.int32)
                tokens *= np.arange(longest) < lengths[:, None]
            return copy_to_device(tokens, device)
        chosen = copy_to_device(numbers, device)
        if places is None:
            return _unsigned(stored[:, :longest][chosen])
        real = torch.arange(longest, device=device) < copy_to_device(lengths, device)[:, None]
        return _unsigned(stored[chosen[:, None], places] * real)


@dataclass(frozen=True, kw_only=True)
class RaggedRows(Rows):
    """Rows of any length. `tokens` (T,) contains these rows, and possibly other rows. `lengths` (N,): the lengths of
    whole rows."""

    ends: IntArray
    """(N,): end of each row in `tokens`."""
    row_length: int
    """Largest number of words per row in a padded batch."""

    def chosen(self, which: IntArray | slice) -> Self:
        arrays = {name: getattr(self, name)[which] for name in ("lengths", "labels", "ratings", "ends")}
        return replace(self, **arrays)

    def _cut_tokens(self, numbers: IntArray) -> npt.NDArray[Any]:
        return self.tokens[segments(self._starts(numbers), self._padded_lengths(numbers))]

    def _whole(self, numbers: IntArray, lengths: IntArray, device: torch.device) -> Tensor:
        starts = self._starts(numbers)
        if (stored := self._tokens_on(device)) is not None:
            return _unsigned(stored[_segments_on(starts, lengths, device)])
        return copy_to_device(self.tokens[segments(starts, lengths)].astype(np.int32), device)

    def _starts(self, numbers: IntArray) -> IntArray:
        """Return the start (n,) of each of the rows `numbers` (n,) in `tokens`."""
        return self.ends[numbers] - self.lengths[numbers]

    def _padded_lengths(self, numbers: IntArray) -> IntArray:
        return np.minimum(self.lengths[numbers], self.row_length).astype(np.int64)

    def _padded(self, numbers: IntArray, lengths: IntArray, places: Tensor | None, device: torch.device) -> Tensor:
        starts, longest = self._starts(numbers), int(lengths[0])
        if (stored := self._tokens_on(device)) is None:
            real = np.arange(longest) < lengths[:, None]  # (n, longest)
            at = starts[:, None] + (np.arange(longest) if places is None else places.numpy())
            return copy_to_device(self.tokens[at * real].astype(np.int32) * real, device)
        numbered = torch.arange(longest, device=device)
        real_on_device = numbered < copy_to_device(lengths, device)[:, None]
        on_device = copy_to_device(starts, device)[:, None] + (numbered if places is None else places)
        return _unsigned(stored[on_device * real_on_device] * real_on_device)


def segments(starts: IntArray, lengths: IntArray) -> IntArray:
    """Return n concatenated ranges of integers (sum of lengths,). Range i begins at `starts[i]` and has `lengths[i]`
    integers."""
    ends = np.cumsum(lengths)
    places: IntArray = np.repeat(starts - ends + lengths, lengths)
    places += np.arange(len(places))
    return places


def _segments_on(starts: IntArray, lengths: IntArray, device: torch.device) -> Tensor:
    """Return the same integers as `segments`, computed on a device."""
    total, before = int(lengths.sum()), np.cumsum(lengths) - lengths
    first = torch.repeat_interleave(
        copy_to_device(starts - before, device), copy_to_device(lengths, device), output_size=total
    )
    return first + torch.arange(total, device=device)


@cache
def _own_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the second stream of a device, which is always the same.

    torch does not reuse memory that was freed in one stream for another stream, so new streams would need new memory.
    """
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _distinct(tokens: npt.NDArray[Any], words: int) -> IntArray:
    seen = np.zeros(words, dtype=np.bool_)
    beyond = tokens >= words
    seen[np.where(beyond, UNKNOWN, tokens) if beyond.any() else tokens] = True
    seen[PADDING] = False
    return np.flatnonzero(seen)


def _unsigned(ids: Tensor) -> Tensor:
    """Return int32 ids from signed integers that have the bits of unsigned ids."""
    return ids.int() & 0xFFFF if ids.dtype == torch.int16 else ids
