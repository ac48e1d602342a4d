"""Initialises a classifier's word vectors with pretrained word embeddings.

The common mean of the vectors is removed: it does not distinguish words, and may be most of their length (Mu and
Viswanath 2018, "All-but-the-Top"). Then the vectors are scaled to the average length of the model's random ones, for
which its learning rate and dropout were chosen. Otherwise words would count more because they have a pretrained vector.
"""

import numpy as np
import torch
from torch import Tensor

from common.display import plural
from common.errors import TrainingError
from corpus.text import FIRST_WORD
from trainer.classification.data import StartVectors, TextData
from trainer.embeddings.vectors import open_vectors

_SAMPLE = 10_000
"""Number of rows from which the share of words with a vector is estimated."""
_TINY = 1e-12


def find_start_vectors(address: str, data: TextData, *, size: int | None) -> StartVectors:
    """Return the vectors of the words of `data`, matched exactly or in lower case.

    `address`: a file or folder (`vectors.open_vectors`). Raises DataError if the file is unreadable. Raises
    TrainingError if the vectors do not have `size` dimensions (None: any), or if no word has a vector.
    """
    known = open_vectors(address)
    has = known.matrix.shape[1]
    if size not in (None, has):
        raise TrainingError(
            f"--embedding is {size}, but the vectors in {address} have {plural(has, 'dimension')}; leave out "
            "--embedding, or give other vectors"
        )
    rows = [known.find(word) for word in data.vocabulary]
    ids = np.array([FIRST_WORD + number for number, row in enumerate(rows) if row is not None], np.int64)
    if not len(ids):
        raise TrainingError(f"{address} has no vector of any word of the dataset; give vectors of its language")
    return StartVectors(ids, known.matrix[[row for row in rows if row is not None]], known.note)


def describe_start_vectors(address: str, data: TextData, start: StartVectors) -> str:
    """Return a sentence for the user about the number of words that start with a vector."""
    rows = data.validation
    sample = rows.whole_batch(np.arange(min(len(rows), _SAMPLE)), torch.device("cpu"))
    share = np.isin(sample.tokens.numpy(), start.ids).mean()
    return (
        f"{len(start.ids):,} of {plural(len(data.vocabulary), 'word')} start with the vectors in {address}; they are "
        f"{share:.1%} of the words in the validation rows{'; ' * bool(start.note)}{start.note}"
    )


def set_start_vectors(table: Tensor, start: StartVectors) -> None:
    """Replace the random vectors of these words in a model's table. Words beyond the table are ignored."""
    known = start.ids < len(table)
    vectors, ids = torch.from_numpy(start.vectors[known]).to(table), torch.from_numpy(start.ids[known]).to(table.device)
    vectors = vectors - vectors.mean(0)
    with torch.no_grad():
        table[ids] = vectors * (_length(table[ids]) / _length(vectors).clamp(min=_TINY))


def _length(vectors: Tensor) -> Tensor:
    """Return the root mean square of the vectors' lengths."""
    return vectors.square().sum(1).mean().sqrt()
