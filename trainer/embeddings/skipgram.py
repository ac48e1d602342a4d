"""Skip-gram with negative sampling (Mikolov et al. 2013): two vectors per word, as a centre and as a context.

A pair is a centre and a context within the centre's window in the same line. Let p be the inner product of the two
vectors, and q the inner product of the centre and a negative sample. The loss of the pair is -log sigmoid(p), plus -log
sigmoid(-q) for each negative sample. All centres of a row share the row's negative samples (sampling.py). For a centre
with d contexts, each sample has the weight d * negatives / SHARED.

As for every task, gradients are averaged over the rows of a global batch; within a row, they are summed over its pairs.
The loss is also divided by the usual number of pairs in a row, so that the recorded loss is about the loss of one pair.

On a CPU, numba computes (skipgram_kernels.py); on other devices, torch computes (`_by_torch`). Both implementations
must compute the same, so change them together.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from corpus.text import FIRST_WORD
from trainer.clock import BACKWARD, StepTimer
from trainer.computing.dropout import hashes
from trainer.computing.gradients import Piece
from trainer.computing.row_gradients import FactoredGradient, new_table, sums_by_id
from trainer.devices import copy_to_device
from trainer.embeddings.sampling import SHARED, Sampling, Tokens

_LARGEST = 30.0
"""Absolute value at which inner products of vectors are clipped. Beyond it, the sigmoid is 0 or 1 to thirteen
digits."""


_GOLDEN, _OF_NOISE = 0x9E3779B97F4A7C15 - (1 << 64), 0xD1342543DE82EF95 - (1 << 64)
_FACTORS = 0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64)
"""The constants of `skipgram_kernels.mixed` as signed integers."""


Keys = npt.NDArray[np.uint64]
Factors = npt.NDArray[np.float32] | None


class Tables(NamedTuple):
    """Two tables (words, size): the vectors of all words as centres, and as contexts."""

    centres: Tensor
    contexts: Tensor


class SkipGram(nn.Module):
    """Skip-gram model: two vectors of each word, as a centre and as a context."""

    def __init__(self, words: int, size: int, *, squares: bool = False) -> None:
        """`words`: the number of ids, including the ids below FIRST_WORD, which have unused vectors.

        Centre vectors are drawn from torch's default generator; context vectors are 0. `squares`: whether the model
        includes the state of Adagrad. Ranks with local steps then synchronise this state together with the vectors.
        """
        super().__init__()
        self.centres = nn.Parameter(new_table(words, size).uniform_(-0.5 / size, 0.5 / size))
        self.contexts = nn.Parameter(new_table(words, size).zero_())
        self.squares = nn.ParameterList(new_table(words, 1).zero_() for _ in range(2 if squares else 0))

    @property
    def tables(self) -> Tables:
        """The vectors, without their gradients. The embedding of a word is its vector as a centre."""
        return Tables(self.centres.detach(), self.contexts.detach())


class SkipGramGradients:
    """Function that computes the gradients of text rows without autograd (`DirectGradients`)."""

    fewest = 8

    def __init__(self, tokens: Tokens, rules: Sampling, *, seed: int, pairs_a_row: float, steady: bool) -> None:
        """`tokens` (rows, n): word ids; 0 at the end of a line, 1 for a word without a vector.

        `pairs_a_row`: the usual number of pairs in a row. `steady`: whether to scale down the gradients of frequent
        words in large batches (sampling.STEADY).
        """
        self.tokens = tokens
        self._seed, self._pairs_a_row, self._steady = seed, pairs_a_row, steady
        self._scratch: list[Any] = []
        self.rules = rules
        self._factors: tuple[int, Factors] = 0, None
        self._device_sampling: _DeviceSampling | None = None

    def __call__(self, model: nn.Module, numbers: IntArray, batch_rows: int, step: int, timer: StepTimer) -> Piece:
        """See `DirectGradients`."""
        assert isinstance(model, SkipGram)
        loss, table_gradients = self.compute_rows(model, numbers, batch_rows, step)
        timer.end_phase(BACKWARD)
        return Piece(loss, (), [[each] for each in table_gradients])

    def compute_rows(
        self, model: SkipGram, numbers: IntArray, batch_rows: int, step: int
    ) -> tuple[Tensor, list[FactoredGradient]]:
        """Return the loss, and the gradients of centres and of contexts, for the rows `numbers` (n,).

        Both are the rows' contributions to the means over a global batch of `batch_rows` rows.
        """
        loss, _, table_gradients = self.sums(model.tables, self.tokens[numbers], hashes(self._seed, step, numbers))
        if self._factors[0] != batch_rows:
            self._factors = batch_rows, self.rules.steadiness(batch_rows) if self._steady else None
        return loss / (batch_rows * self._pairs_a_row), scale_gradients(
            table_gradients, self._factors[1], 1.0 / batch_rows
        )

    def touched(self, numbers: IntArray, step: int) -> tuple[Tensor, Tensor]:
        """Return the ids (m,) int64 of the words that the training rows `numbers` (n,) need at a step.

        The first tensor contains the centres, the second the contexts and negative samples.
        """
        return touched_words(self.tokens[numbers], hashes(self._seed, step, numbers), self.rules)

    def sums(self, tables: Tables, rows: Tokens, keys: Keys) -> tuple[Tensor, int, list[FactoredGradient]]:
        """Return the sum of the losses of `rows` (n, tokens), their number of pairs, and the gradients.

        `keys` (n,): hashes that determine the random choices for each row. The list contains the gradient of the
        centres, and then that of the contexts.
        """
        if tables.centres.is_cpu:
            return self._by_numba(tables, rows, keys)
        return self._by_torch(tables, rows, keys)

    def _by_torch(self, tables: Tables, rows: Tokens, keys: Keys) -> tuple[Tensor, int, list[FactoredGradient]]:
        device = tables.centres.device
        if self._device_sampling is None or self._device_sampling.keep.device != device:
            self._device_sampling = _DeviceSampling.on(device, self.rules)
        return _sums_by_torch(tables, rows, keys, self.rules, self._device_sampling)

    def _by_numba(self, tables: Tables, rows: Tokens, keys: Keys) -> tuple[Tensor, int, list[FactoredGradient]]:
        from trainer.embeddings import skipgram_kernels  # imported here because GPU machines lack numba

        arrays = tables.centres.numpy(), tables.contexts.numpy()
        places = self._scratch.pop() if self._scratch else tuple(np.full(len(arrays[0]), -1, np.int32) for _ in arrays)
        most = len(rows) * rows.shape[1], len(rows) * (rows.shape[1] + SHARED)
        touched = tuple(np.empty(min(each, len(arrays[0])), np.int32) for each in most)
        sums = tuple(np.empty((len(each), arrays[0].shape[1]), arrays[0].dtype) for each in touched)
        rules = (self.rules.keep, self.rules.noise, self.rules.window, self.rules.negatives, SHARED)
        known, loss, pairs = skipgram_kernels.skipgram_gradients(rows, keys, rules, arrays, places, touched, sums)
        self._scratch.append(places)  # returned for reuse by any thread; list operations are thread-safe
        table_gradients = [
            _single_rows(torch.from_numpy(ids[:count]), torch.from_numpy(gradients[:count]))
            for ids, gradients, count in zip(touched, sums, known, strict=True)
        ]
        return torch.tensor(loss, dtype=tables.centres.dtype), int(pairs), table_gradients


def scale_gradients(
    table_gradients: Sequence[FactoredGradient], factors: Factors, scale: float
) -> list[FactoredGradient]:
    """Multiply the gradients of centres and contexts in place by `factors` (2, words), if any, and by `scale`."""
    for each, of_words in zip(table_gradients, [None, None] if factors is None else factors, strict=True):
        if of_words is not None:
            each.gradients.mul_(torch.from_numpy(of_words).to(each.ids.device)[each.ids, None])
        each.gradients.mul_(scale)
    return list(table_gradients)


def touched_words(rows: Tokens, keys: Keys, rules: Sampling) -> tuple[Tensor, Tensor]:
    """Return the ascending ids (m,) int64 of the words that `rows` (n, tokens) need. See
    `SkipGramGradients.touched`."""
    words = np.unique(rows)
    centres = torch.from_numpy(words[words >= FIRST_WORD])
    drawn = _negative_samples(torch.from_numpy(keys.view(np.int64)), torch.from_numpy(rules.noise))
    return centres.long(), torch.unique(torch.cat((centres, drawn.flatten()))).long()


def count_pairs(rows: Tokens, keys: Keys, rules: Sampling) -> int:
    """Return the number of pairs in `rows` (n, tokens). `keys` (n,): hashes for the random choices of each row."""
    placed = _DeviceSampling.on(torch.device("cpu"), rules)
    kept = _subsampled(torch.from_numpy(rows), torch.from_numpy(keys.view(np.int64)), rules.window, placed.keep)
    return int(_context_mask(*kept).sum())


class _DeviceSampling(NamedTuple):
    """Sampling tables on a device. They are copied only once, because they are larger than a batch."""

    keep: Tensor
    noise: Tensor

    @classmethod
    def on(cls, device: torch.device, rules: Sampling) -> "_DeviceSampling":
        keep = torch.from_numpy(rules.keep.astype(np.int64))
        return cls(keep.to(device), torch.from_numpy(rules.noise).to(device))


def _sums_by_torch(
    tables: Tables, rows: Tokens, keys: Keys, rules: Sampling, placed: _DeviceSampling
) -> tuple[Tensor, int, list[FactoredGradient]]:
    device = tables.centres.device
    hashed, tokens = copy_to_device(keys.view(np.int64), device), copy_to_device(rows, device)
    words, lines, reaches = _subsampled(tokens, hashed, rules.window, placed.keep)  # (n, longest) each
    shared = _negative_samples(hashed, placed.noise)  # (n, SHARED)
    centres, contexts, noises = (
        table[ids] for table, ids in ((tables.centres, words), (tables.contexts, words), (tables.contexts, shared))
    )
    near = _context_mask(words, lines, reaches)  # (n, longest, longest)
    degrees = near.sum(2)  # (n, longest)
    # The gradient of a score's loss is the weight of the loss times the probability of the opposite outcome.
    scores = (centres @ contexts.mT).clamp(-_LARGEST, _LARGEST)
    against = (centres @ noises.mT).clamp(-_LARGEST, _LARGEST)  # (n, longest, SHARED)
    weights = (degrees * (rules.negatives / SHARED))[:, :, None].to(against.dtype)
    loss = -(logsigmoid(scores) * near).sum() - (logsigmoid(-against) * weights).sum()
    by_scores, by_against = -torch.sigmoid(-scores) * near, torch.sigmoid(against) * weights
    learned = degrees.sum(1, keepdim=True) > 0
    used, drawn = (words >= FIRST_WORD) & learned, learned.expand_as(shared)
    by_centres = by_scores @ contexts + by_against @ noises
    by_contexts = torch.cat(((by_scores.mT @ centres)[used], (by_against.mT @ centres)[drawn]))
    of_contexts = torch.cat((words[used], shared[drawn]))
    # Merge repeated words, because a large batch repeats most of its words, and ranks send each other the result.
    merged = sums_by_id(words[used], by_centres[used]), sums_by_id(of_contexts, by_contexts)
    return loss, int(degrees.sum()), [_single_rows(*each) for each in merged]


def _subsampled(rows: Tensor, hashed: Tensor, window: int, keep: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the words that subsampling keeps in `rows` (n, tokens), with their line numbers and window sizes.

    Each of the three tensors is (n, longest); the words are padded with 0. `hashed` (n,): a hash for each row.
    """
    places = torch.arange(1, rows.shape[1] + 1, device=rows.device)
    drawn = _mix(hashed[:, None] + places * _GOLDEN)
    kept = (rows >= FIRST_WORD) & (_shift_right(drawn, 40) < keep[rows])
    reaches = 1 + _shift_right((drawn & 0xFFFFFFFF) * window, 32)
    first = torch.argsort(~kept, dim=1, stable=True)[:, : int(kept.sum(1).max())]
    lines = (rows == 0).cumsum(1)
    return (rows * kept).gather(1, first), lines.gather(1, first), reaches.gather(1, first)


def _negative_samples(hashed: Tensor, noise: Tensor) -> Tensor:
    """Return the negative samples (n, SHARED) of each row, drawn from `noise`. `hashed` (n,): a hash for each row."""
    numbers = torch.arange(1, SHARED + 1, device=hashed.device)
    drawn = _mix(hashed[:, None] ^ (numbers * _OF_NOISE))
    return noise[_shift_right(_shift_right(drawn, 32) * len(noise), 32)]


def _context_mask(words: Tensor, lines: Tensor, reaches: Tensor) -> Tensor:
    """Return a mask (n, longest, longest): entry [r, i, j] is True if word j of row r is a context of word i."""
    places = torch.arange(words.shape[1], device=words.device)
    apart = (places[:, None] - places).abs()
    real = words >= FIRST_WORD
    same_line = lines[:, :, None] == lines[:, None]
    return (apart > 0) & (apart <= reaches[:, :, None]) & same_line & real[:, :, None] & real[:, None]


def _mix(numbers: Tensor) -> Tensor:
    """Return the same hashes as `skipgram_kernels.mixed`, from signed integers, which overflow like unsigned ones."""
    numbers = (numbers ^ _shift_right(numbers, 30)) * _FACTORS[0]
    numbers = (numbers ^ _shift_right(numbers, 27)) * _FACTORS[1]
    return numbers ^ _shift_right(numbers, 31)


def _shift_right(numbers: Tensor, bits: int) -> Tensor:
    """Return signed integers shifted to the right as if they were unsigned."""
    return (numbers >> bits) & ((1 << (64 - bits)) - 1)


def _single_rows(ids: Tensor, gradients: Tensor) -> FactoredGradient:
    """Return the `gradients` (m, columns) of the single table rows `ids` (m,) in factored form."""
    return FactoredGradient(ids.int(), torch.ones(len(ids), dtype=torch.int64, device=ids.device), gradients)
