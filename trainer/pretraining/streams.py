"""The training texts of a language model as one sequence, which is cut into as many streams as a step has rows.

Each text comes after an END, and texts are in another order in each epoch: in blocks, so that the order of millions of
texts is a few numbers. A stream is a contiguous piece of the sequence. Step k reads window k of every stream, so the
LSTM's state after a window is the state before the stream's next one. All windows of a step have the same length; the
last tokens of the sequence, fewer than there are streams, are left out in this epoch."""

from bisect import bisect_right
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from corpus.text import UNKNOWN
from trainer.classification.rows import RaggedRows, Rows
from trainer.language.model import END
from trainer.order import IntArray

_MOST_OF_A_BLOCK, _LEAST_BLOCKS = 64, 4096
_KEPT_BLOCKS = 1024
_OF_BLOCKS = 5

Ids = npt.NDArray[np.int64]


class TextStreams:
    """The streams of the texts in `rows`."""

    def __init__(self, rows: Rows, *, streams: int, window: int, words: int, seed: int) -> None:
        """`window`: tokens of a row of a step, about. Ids from `words` on are unknown words."""
        self._rows, self._words, self._seed = rows, words, seed
        self._order = lru_cache(maxsize=2)(self._made_order)
        self._block_tokens = lru_cache(maxsize=_KEPT_BLOCKS)(self._read_block)
        self._block = max(1, min(_MOST_OF_A_BLOCK, len(rows) // _LEAST_BLOCKS))
        starts = np.arange(0, len(rows), self._block)
        lengths = rows.lengths.astype(np.int64)
        self._sizes = np.add.reduceat(lengths, starts) + np.diff(starts, append=len(rows))  # (blocks,): with the ENDs
        self.tokens = int(self._sizes.sum())
        """Of an epoch, with the ENDs."""
        self.streams = min(streams, self.tokens)
        self._length = self.tokens // self.streams
        self.steps = max(1, round(self._length / window))
        """Windows of a stream."""

    def window_tokens(self, window: int) -> int:
        """The tokens of a row that a step learns to predict."""
        return self._length * (window + 1) // self.steps - self._length * window // self.steps

    def read(self, numbers: IntArray, epoch: int, *, backward: bool = False) -> Ids:
        """(n, tokens + 1): the windows of the rows `numbers` (n,), with the token after each. Row n is of stream
        n % streams, and of window n // streams. `backward`: the sequence is read from its end."""
        windows, streams = numbers // self.streams, numbers % self.streams
        size = max(self.window_tokens(int(window)) for window in np.unique(windows)) + 1
        begins = streams * self._length + self._length * windows // self.steps
        out = np.empty((len(numbers), size), np.int64)
        for row, begin in enumerate(begins.tolist()):
            if backward:
                self._copy(epoch, self.tokens - begin - size, out[row, ::-1])
            else:
                self._copy(epoch, begin, out[row])
        out[out >= self._words] = UNKNOWN
        return out

    def _copy(self, epoch: int, begin: int, out: Ids) -> None:
        """Fill `out` with the sequence of an epoch from a position on; it begins again at its end."""
        order, ends = self._order(epoch)
        begin, filled = begin % self.tokens, 0
        while filled < len(out):
            place = bisect_right(ends, begin)
            block = int(order[place])
            skip = begin - (ends[place] - int(self._sizes[block]))
            some = self._block_tokens(block)[skip : skip + len(out) - filled]
            out[filled : filled + len(some)] = some
            filled += len(some)
            begin = (begin + len(some)) % self.tokens

    def _made_order(self, epoch: int) -> tuple[IntArray, list[int]]:
        """The blocks in the order of an epoch, and where each ends."""
        order = np.random.default_rng((self._seed, epoch, _OF_BLOCKS)).permutation(len(self._sizes))
        ends: list[int] = np.cumsum(self._sizes[order]).tolist()
        return order, ends

    def _read_block(self, block: int) -> npt.NDArray[np.uint16 | np.uint32]:
        """The texts of a block, an END before each."""
        rows = self._rows[block * self._block : (block + 1) * self._block]
        lengths = rows.lengths.astype(np.int64)
        starts = np.cumsum(lengths) - lengths + np.arange(len(rows))  # of the ENDs
        out = np.full(int(lengths.sum()) + len(rows), END, rows.tokens.dtype)
        for number, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            out[start + 1 : start + 1 + length] = text_tokens(rows, number)
        return out


def text_tokens(rows: Rows, number: int) -> npt.NDArray[np.uint16 | np.uint32]:
    """(length,): the ids of a text."""
    length = int(rows.lengths[number])
    if isinstance(rows, RaggedRows):
        end = int(rows.ends[number])
        return rows.tokens[end - length : end]
    return rows.tokens[number, :length]
