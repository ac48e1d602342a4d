"""Skip-gram with negative sampling (Mikolov et al. 2013): a vector of each word as a centre, and one as a context.

A pair is a word and one that stands within its reach in the same line. Its loss is -log sigmoid of the product of the
two vectors, and -log sigmoid of minus the product for each negative sample. Those of a row are the same for all of its
centres (sampling.py); a centre with d contexts has them d x negatives / SHARED times.

The gradient is that of the sum over a row's pairs, and the mean over the rows of a global batch, as for every task. The
loss is divided by the usual number of pairs in a row, so that what is recorded is about the loss of a pair.

On a CPU numba computes (skipgram_kernels.py), elsewhere torch (`_by_torch`). Both compute the same: change them
together.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

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
from trainer.computing.row_gradients import Means, new_table, sums_by_id
from trainer.devices import moved_to
from trainer.embeddings.sampling import SHARED, Sampling, Tokens

_LARGEST = 30.0
"""Products of vectors count as this at most: the sigmoid is then 1 to thirteen digits."""


_GOLDEN, _OF_NOISE = 0x9E3779B97F4A7C15 - (1 << 64), 0xD1342543DE82EF95 - (1 << 64)
_FACTORS = 0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64)
"""Numbers of skipgram_kernels.py, as signed ones."""


Keys = npt.NDArray[np.uint64]
Factors = npt.NDArray[np.float32] | None


class Tables(Protocol):
    """Two vectors of each word, (words, size) each."""

    @property
    def centres(self) -> Tensor: ...

    @property
    def contexts(self) -> Tensor: ...


class SkipGram(nn.Module):
    """The two vectors of each word."""

    def __init__(self, words: int, size: int, *, squares: bool = False) -> None:
        """`words`: with the ids below FIRST_WORD, whose vectors nobody uses. The centres are drawn from torch's
        generator. `squares`: whether the model has the state of Adagrad, too, so that ranks which take steps by
        themselves bring it together as they do the vectors."""
        super().__init__()
        self.centres = nn.Parameter(new_table(words, size).uniform_(-0.5 / size, 0.5 / size))
        self.contexts = nn.Parameter(new_table(words, size).zero_())
        self.squares = nn.ParameterList(new_table(words, 1).zero_() for _ in range(2 if squares else 0))

    def vectors(self) -> Tensor:
        """(words, size): what is known of each word afterwards."""
        return self.centres.detach()


class SkipGramGradients:
    """The gradients of rows of words, as `DirectGradients`."""

    fewest = 8

    def __init__(self, tokens: Tokens, rules: Sampling, *, seed: int, pairs_a_row: float, steady: bool) -> None:
        """`tokens` (rows, n): ids, 0 at the end of a line, 1 for a word without a vector. `pairs_a_row`: how many pairs
        a row has, about. `steady`: whether frequent words' gradients are smaller in large batches (sampling.STEADY)."""
        self.tokens = tokens
        self._seed, self._pairs_a_row, self._steady = seed, pairs_a_row, steady
        self._scratch: list[Any] = []
        self.rules = rules
        self._factors: tuple[int, Factors] = 0, None
        self._placed: _Placed | None = None

    def __call__(self, model: nn.Module, numbers: IntArray, of: int, step: int, timer: StepTimer) -> Piece:
        """See `DirectGradients`."""
        assert isinstance(model, SkipGram)
        loss, means = self.of_rows(model, numbers, of, step)
        timer.end_phase(BACKWARD)
        return Piece(loss, (), [[each] for each in means])

    def of_rows(self, model: SkipGram, numbers: IntArray, of: int, step: int) -> tuple[Tensor, list[Means]]:
        """What the training rows `numbers` (n,) add to the loss, and to the gradients of centres and contexts, in a
        global batch of `of` rows."""
        loss, _, means = self.sums(model, self.tokens[numbers], hashes(self._seed, step, numbers))
        if self._factors[0] != of:
            self._factors = of, self.rules.steadiness(of) if self._steady else None
        return loss / (of * self._pairs_a_row), scaled(means, self._factors[1], 1.0 / of)

    def touched(self, numbers: IntArray, step: int) -> tuple[Tensor, Tensor]:
        """The words (m,) int64 whose centres, and those whose contexts, these training rows (n,) need at a step."""
        return touched_words(self.tokens[numbers], hashes(self._seed, step, numbers), self.rules)

    def sums(self, model: Tables, rows: Tokens, keys: Keys) -> tuple[Tensor, int, list[Means]]:
        """The sum of the losses of `rows` (n, tokens) with `keys` (n,), the number of their pairs, and the gradients
        of centres and contexts."""
        if model.centres.is_cpu:
            return self._by_numba(model, rows, keys)
        return self._by_torch(model, rows, keys)

    def _by_torch(self, model: Tables, rows: Tokens, keys: Keys) -> tuple[Tensor, int, list[Means]]:
        device = model.centres.device
        if self._placed is None or self._placed.keep.device != device:
            self._placed = _Placed.on(device, self.rules)
        return _sums_by_torch(model, rows, keys, self.rules, self._placed)

    def _by_numba(self, model: Tables, rows: Tokens, keys: Keys) -> tuple[Tensor, int, list[Means]]:
        tables = model.centres.detach().numpy(), model.contexts.detach().numpy()
        places = self._scratch.pop() if self._scratch else tuple(np.full(len(tables[0]), -1, np.int32) for _ in tables)
        most = len(rows) * rows.shape[1], len(rows) * (rows.shape[1] + SHARED)
        touched = tuple(np.empty(min(each, len(tables[0])), np.int32) for each in most)
        sums = tuple(np.empty((len(each), tables[0].shape[1]), tables[0].dtype) for each in touched)
        rules = (self.rules.keep, self.rules.noise, self.rules.window, self.rules.negatives, SHARED)
        known, loss, pairs = _kernels().skipgram_gradients(rows, keys, rules, tables, places, touched, sums)
        self._scratch.append(places)  # of a thread; lists are safe to share
        means = [
            _single(torch.from_numpy(ids[:count]), torch.from_numpy(own[:count]))
            for ids, own, count in zip(touched, sums, known, strict=True)
        ]
        return torch.tensor(loss, dtype=model.centres.dtype), int(pairs), means


def scaled(means: Sequence[Means], factors: Factors, scale: float) -> list[Means]:
    """Gradients of centres and contexts times `factors` (2, words) of their words, if there are any, and `scale`."""
    for each, of_words in zip(means, [None, None] if factors is None else factors, strict=True):
        if of_words is not None:
            each.gradients.mul_(torch.from_numpy(of_words).to(each.ids.device)[each.ids, None])
        each.gradients.mul_(scale)
    return list(means)


def touched_words(rows: Tokens, keys: Keys, rules: Sampling) -> tuple[Tensor, Tensor]:
    """The words (m,) int64, in rising order, whose centres, and those whose contexts, `rows` (n, tokens) with `keys`
    (n,) need."""
    words = np.unique(rows)
    centres = torch.from_numpy(words[words >= FIRST_WORD])
    drawn = _drawn(torch.from_numpy(keys.view(np.int64)), torch.from_numpy(rules.noise))
    return centres.long(), torch.unique(torch.cat((centres, drawn.flatten()))).long()


def count_pairs(rows: Tokens, keys: Keys, rules: Sampling) -> int:
    """The number of pairs in `rows` (n, tokens) with `keys` (n,)."""
    placed = _Placed.on(torch.device("cpu"), rules)
    kept = _kept(torch.from_numpy(rows), torch.from_numpy(keys.view(np.int64)), rules.window, placed.keep)
    return int(_near(*kept).sum())


class _Placed(NamedTuple):
    """What sampling needs of a vocabulary, on a device: copied there once, because it is larger than a batch."""

    keep: Tensor
    noise: Tensor

    @classmethod
    def on(cls, device: torch.device, rules: Sampling) -> "_Placed":
        keep = torch.from_numpy(rules.keep.astype(np.int64))
        return cls(keep.to(device), torch.from_numpy(rules.noise).to(device))


def _sums_by_torch(
    model: Tables, rows: Tokens, keys: Keys, rules: Sampling, placed: _Placed
) -> tuple[Tensor, int, list[Means]]:
    device = model.centres.device
    hashed, tokens = moved_to(keys.view(np.int64), device), moved_to(rows, device)
    words, lines, reaches = _kept(tokens, hashed, rules.window, placed.keep)  # (n, longest) each
    shared = _drawn(hashed, placed.noise)  # (n, SHARED)
    centres, contexts, noises = (
        table.detach()[ids]
        for table, ids in ((model.centres, words), (model.contexts, words), (model.contexts, shared))
    )
    near = _near(words, lines, reaches)  # (n, longest, longest)
    degrees = near.sum(2)  # (n, longest)
    # Of a score, the gradient is the weight of its loss times the probability of the other answer.
    scores = (centres @ contexts.mT).clamp(-_LARGEST, _LARGEST)
    against = (centres @ noises.mT).clamp(-_LARGEST, _LARGEST)  # (n, longest, SHARED)
    weights = (degrees * (rules.negatives / SHARED))[:, :, None].to(against.dtype)
    loss = -(logsigmoid(scores) * near).sum() - (logsigmoid(-against) * weights).sum()
    by_scores, by_against = -torch.sigmoid(-scores) * near, torch.sigmoid(against) * weights
    learnt = degrees.sum(1, keepdim=True) > 0
    used, drawn = (words >= FIRST_WORD) & learnt, learnt.expand_as(shared)
    by_centres = by_scores @ contexts + by_against @ noises
    by_contexts = torch.cat(((by_scores.mT @ centres)[used], (by_against.mT @ centres)[drawn]))
    of_contexts = torch.cat((words[used], shared[drawn]))
    # Each word once: a large batch has most of them many times, and ranks send each other what is returned.
    merged = sums_by_id(words[used], by_centres[used]), sums_by_id(of_contexts, by_contexts)
    return loss, int(degrees.sum()), [_single(*each) for each in merged]


def _kept(rows: Tensor, hashed: Tensor, window: int, keep: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(n, longest) each: the words of rows (n, tokens) that are learnt from, and 0 behind them; their lines; and how
    far they reach."""
    places = torch.arange(1, rows.shape[1] + 1, device=rows.device)
    drawn = _mixed(hashed[:, None] + places * _GOLDEN)
    kept = (rows >= FIRST_WORD) & (_shifted(drawn, 40) < keep[rows])
    reaches = 1 + _shifted((drawn & 0xFFFFFFFF) * window, 32)
    first = torch.argsort(~kept, dim=1, stable=True)[:, : int(kept.sum(1).max())]
    lines = (rows == 0).cumsum(1)
    return (rows * kept).gather(1, first), lines.gather(1, first), reaches.gather(1, first)


def _drawn(hashed: Tensor, noise: Tensor) -> Tensor:
    """(n, SHARED): the words that each row is contrasted with."""
    numbers = torch.arange(1, SHARED + 1, device=hashed.device)
    drawn = _mixed(hashed[:, None] ^ (numbers * _OF_NOISE))
    return noise[_shifted(_shifted(drawn, 32) * len(noise), 32)]


def _near(words: Tensor, lines: Tensor, reaches: Tensor) -> Tensor:
    """(n, longest, longest): which words are the contexts of which."""
    places = torch.arange(words.shape[1], device=words.device)
    apart = (places[:, None] - places).abs()
    real = words >= FIRST_WORD
    same_line = lines[:, :, None] == lines[:, None]
    return (apart > 0) & (apart <= reaches[:, :, None]) & same_line & real[:, :, None] & real[:, None]


def _mixed(numbers: Tensor) -> Tensor:
    """`skipgram_kernels.mixed` in signed numbers, whose products wrap in the same way."""
    numbers = (numbers ^ _shifted(numbers, 30)) * _FACTORS[0]
    numbers = (numbers ^ _shifted(numbers, 27)) * _FACTORS[1]
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Tensor, bits: int) -> Tensor:
    """Numbers shifted to the right as if they were unsigned."""
    return (numbers >> bits) & ((1 << (64 - bits)) - 1)


def _single(ids: Tensor, gradients: Tensor) -> Means:
    """Gradients (m, columns) of single rows of a table, with these `ids` (m,)."""
    return Means(ids.int(), torch.ones(len(ids), dtype=torch.int64, device=ids.device), gradients)


@cache
def _kernels() -> Any:
    from trainer.embeddings import skipgram_kernels  # here, as in row_gradients.py: machines with GPUs lack numba

    return skipgram_kernels
