"""Initialise a classifier's word vectors with pretrained word embeddings.

First, the mean of all vectors is subtracted from each vector. The mean does not distinguish words, and can be most of a
vector's length (Mu and Viswanath 2018, "All-but-the-Top"). Then the vectors are scaled to the average length of the
model's random vectors, for which the default learning rate and dropout were chosen. Otherwise, words with a pretrained
vector would have more weight than other words.
"""

import numpy as np
import torch
from torch import Tensor

from common.display import plural
from common.errors import TrainingError
from corpus.text import FIRST_WORD
from trainer.classification.data import StartVectors, TextData
from trainer.embeddings.vectors import open_vectors

_TINY = 1e-12


def find_start_vectors(address: str, data: TextData, *, size: int | None) -> StartVectors:
    """Return pretrained vectors for the vocabulary of `data`. Words match exactly, or in lower case.

    `address`: a file or folder with vectors (see `open_vectors`). `size`: the required number of dimensions; None: any
    number. Raises DataError if the file is unreadable. Raises TrainingError if the number of dimensions is wrong, or if
    no word of the vocabulary has a vector.
    """
    known = open_vectors(address)
    has = known.matrix.shape[1]
    if size not in (None, has):
        raise TrainingError(
            f"--embedding is {size}, but the vectors in {address} have {plural(has, 'dimension')}; leave out "
            "--embedding, or use different vectors"
        )
    rows = [known.find(word) for word in data.vocabulary]
    ids = np.array([FIRST_WORD + number for number, row in enumerate(rows) if row is not None], np.int64)
    if not len(ids):
        raise TrainingError(
            f"{address} contains no vector for any word of the dataset; use vectors for the dataset's language"
        )
    return StartVectors(ids, known.matrix[[row for row in rows if row is not None]], known.note)


def describe_start_vectors(address: str, data: TextData, start: StartVectors) -> str:
    """Return a message for the user that states how many words start with a pretrained vector."""
    words = plural(len(data.vocabulary), "word")
    return f"{len(start.ids):,} of {words} start with vectors from {address}{'; ' * bool(start.note)}{start.note}"


def set_start_vectors(table: Tensor, start: StartVectors) -> None:
    """Replace random vectors in a model's `table` by pretrained vectors. Words without a row in the table are
    ignored."""
    known = start.ids < len(table)
    vectors, ids = torch.from_numpy(start.vectors[known]).to(table), torch.from_numpy(start.ids[known]).to(table.device)
    vectors = vectors - vectors.mean(0)
    with torch.no_grad():
        table[ids] = vectors * (_length(table[ids]) / _length(vectors).clamp(min=_TINY))


def _length(vectors: Tensor) -> Tensor:
    """Return the root mean square of the lengths of vectors."""
    return vectors.square().sum(1).mean().sqrt()
