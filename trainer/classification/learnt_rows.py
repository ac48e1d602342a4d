"""A sketch of the rows that a model learnt from, by which an evaluation notices that it scores these.

A row's hash is of its words, in any order; the smallest hashes of all rows are kept (bottom-k sketch, Cohen and Kaplan
2007). Of other texts those with a hash in the same range are looked up: their share stands for that of all.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from corpus.text import UNKNOWN
from trainer.classification.rows import Rows

Hashes = npt.NDArray[np.uint32]

_KEPT = 4096
_MOST_ROWS = 1_000_000
"""The most rows of which hashes are made: more would take longer, and the share is as well known."""
_CHUNK = 4096


def sketch(rows: Rows, *, words: int, row_length: int | None) -> dict[str, Any]:
    """The sketch of rows, for JSON. Ids from `words` on are the unknown word; `row_length`: words after it are not
    read."""
    table = _mixed(words)
    numbers, smallest = np.arange(min(len(rows), _MOST_ROWS)), np.zeros(0, np.uint32)
    for start in range(0, len(numbers), _CHUNK):
        batch = rows.whole_batch(numbers[start : start + _CHUNK], torch.device("cpu"))
        ids, lengths = batch.tokens.numpy().astype(np.int64), batch.lengths.numpy()
        starts = np.cumsum(lengths) - lengths
        values = table[np.where(ids < words, ids, UNKNOWN)]
        if row_length is not None:
            values[np.arange(len(values)) - np.repeat(starts, lengths) >= row_length] = 0
        found = (np.add.reduceat(values, starts) >> np.uint64(32)).astype(np.uint32)
        smallest = np.unique(np.concatenate([smallest, found]))[:_KEPT]
    return {
        "rows": len(rows),
        "hashed": len(numbers),
        "smallest": b64encode(smallest.astype("<u4").tobytes()).decode(),
    }


def text_hashes(
    ids: npt.NDArray[np.int32], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], *, words: int
) -> Hashes:
    """(n,): the hashes of the texts that have a word, of the fields of corpus.encoding.EncodedRows."""
    table = _mixed(words)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(table[ids])])  # modulo 2**64, as differences are
    found = sums[starts + lengths] - sums[starts]
    hashes: Hashes = (found[lengths > 0] >> np.uint64(32)).astype(np.uint32)
    return hashes


def learnt_share(about: Mapping[str, Any], hashes: Hashes) -> float | None:
    """About which share of the texts with these hashes (n,) a model learnt from; None where it has no sketch, or none
    of the texts is in its range."""
    try:
        kept = about["training_rows"]
        smallest = np.frombuffer(b64decode(kept["smallest"]), "<u4")
        whole = kept["rows"] / kept["hashed"]
        if not len(smallest):
            return None
        in_range = hashes[hashes <= smallest[-1]] if len(smallest) == _KEPT else hashes
        return min(1.0, whole * float(np.isin(in_range, smallest).mean())) if len(in_range) else None
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def _mixed(words: int) -> npt.NDArray[np.uint64]:
    """(words,): a random number for each id (splitmix64), so that sums of different rows differ."""
    x = np.arange(1, words + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
